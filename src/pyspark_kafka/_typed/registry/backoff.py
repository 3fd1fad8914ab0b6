"""The pauses after an outage of a registry."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 5.0
# The longest pause that a registry can require: it delays all requests of the process.
_MAX_ASKED_S = 60.0


class RegistryBackoff:
    """The pause of this process before it retries an unreachable registry. Safe to use from threads.

    The pauses double from 0.1 s to 5 s, and half of each is random: the tasks of a cluster do not retry together.

    Args:
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before = 0.0

    def wait_s(self) -> float:
        """Return the seconds until the next attempt; 0 after a response."""
        with self._lock:
            return max(0.0, self._not_before - self._clock())

    def failed(self, asked_s: float = 0.0) -> None:
        """Record that no address of the registry responded; threads in the same outage count it once.

        Args:
            asked_s: the pause that a busy registry requires; at most 60 s count.
        """
        with self._lock:
            now = self._clock()
            asked_until = now + min(asked_s, _MAX_ASKED_S)
            if now < self._not_before:
                self._not_before = max(self._not_before, asked_until)
                return
            max_pause_s = min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 30))
            self._failures += 1
            pause_s = max_pause_s * (0.5 + 0.5 * random.random())  # noqa: S311 - no secret
            self._not_before = max(now + pause_s, asked_until)

    def answered(self) -> None:
        """Record a response, whatever its status: a refusal is not an outage."""
        with self._lock:
            self._failures = 0
            self._not_before = 0.0
