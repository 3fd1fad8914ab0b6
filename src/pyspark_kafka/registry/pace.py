"""When a registry that was away is asked again. Layer: registry."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class Pace:
    """How long this process waits before it asks a registry again that was away. Safe to use from threads.

    The waits double from 0.1 s to 5 s, and half of each is by chance: the tasks of a cluster do not come at once.

    Args:
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before = 0.0

    def wait_s(self) -> float:
        """Return the seconds until the next attempt; 0 if the registry answered last."""
        with self._lock:
            return max(0.0, self._not_before - self._clock())

    def failed(self) -> None:
        """Note that no address of the registry answered; threads that meet the same outage count it once."""
        with self._lock:
            now = self._clock()
            if now < self._not_before:
                return
            longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 30))
            self._failures += 1
            self._not_before = now + longest_s * (0.5 + 0.5 * random.random())  # noqa: S311 - no secret

    def answered(self) -> None:
        """Note an answer, whatever it says: a refusal is no outage."""
        with self._lock:
            self._failures = 0
            self._not_before = 0.0
