"""Who waits until the rows that were readable at a call are committed: `processAllAvailable`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.connector import Offset

_LOOK_SECONDS = 0.1
# After this time in which lanes find no rows below a target the source is asked again: the log may have been cut.
_STALE_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class _Wait:
    """Someone who waits for the rows that were readable at the call.

    Attributes:
        asked: when, by the monotonic clock.
        is_polled_for: whether the source is or was asked where they end.
        was_polled: whether it has said so.
        target: where; None if the source does not know.
        since: when it has said so last, by the monotonic clock.
        is_over: whether they are committed, or nobody can say where they end.
        error: why nobody can.
    """

    asked: float
    is_polled_for: bool = False
    was_polled: bool = False
    target: Offset | None = None
    since: float = 0.0
    is_over: bool = False
    error: BaseException | None = None


class RowWaits:
    """Those who wait for rows. One thread waits in `wait`, another one, that of the query, ends waits.

    Attributes:
        end_wanted: set while someone waits: the epoch that runs is to end, so that what it read is committed.

    Args:
        has_reached: whether a position is at or behind a target, as `ContinuousStream.hasReached`.
    """

    def __init__(self, has_reached: Callable[[Offset, Offset], bool]) -> None:
        self.end_wanted = threading.Event()
        self._has_reached = has_reached
        self._changed = threading.Condition()
        self._waits: list[_Wait] = []

    @property
    def need_target(self) -> bool:
        """Return whether someone waits for whom the source was not asked yet."""
        return any(not wait.was_polled for wait in self._waits)

    @property
    def are_waiting(self) -> bool:
        """Return whether someone waits."""
        return bool(self._waits)

    def wait(self, is_active: Callable[[], bool], wake: Callable[[], None]) -> None:
        """Wait until every row that is readable now is committed; return if the query ends first.

        Args:
            is_active: whether the query runs.
            wake: has its thread look who waits.

        Raises:
            BaseException: the source could not say where these rows end. The query continues.
        """
        wait = _Wait(time.monotonic())
        with self._changed:
            self._waits.append(wait)
            try:
                wake()
                while is_active() and not wait.is_over:
                    self.end_wanted.set()
                    self._changed.wait(_LOOK_SECONDS)
            finally:
                # Also if it was interrupted: the query does not rest while somebody waits.
                self._waits = [other for other in self._waits if other is not wait]
        if wait.error is not None:
            raise wait.error

    def begin_poll(self) -> None:
        """Take note that the source is asked now: what it says is not about those who come from here on."""
        with self._changed:
            for wait in self._waits:
                wait.is_polled_for = True

    def fail_poll(self, error: BaseException) -> None:
        """Take note that the source could not say it: those for whom it was asked have the error."""
        with self._changed:
            for wait in self._waits:
                if wait.is_polled_for and not wait.was_polled:
                    wait.error, wait.is_over = error, True
            self._waits = [wait for wait in self._waits if not wait.is_over]
            self._changed.notify_all()

    def set_target(self, target: Offset | None, reached: Offset) -> None:
        """Take note of where readable rows end, for those who waited when the source was asked: see `begin_poll`.

        Args:
            target: the end; None if the source does not know.
            reached: what is committed; some may have their rows already.
        """
        with self._changed:
            for wait in self._waits:
                if wait.is_polled_for and not wait.was_polled:
                    wait.was_polled, wait.target, wait.since = True, target, time.monotonic()
            self._end(reached, None)

    def poll_again(self) -> None:
        """Take note that the query was planned again: a target may be of a topic that is gone, or was recreated."""
        with self._changed:
            for wait in self._waits:
                wait.is_polled_for = wait.was_polled = False

    def committed(self, reached: Offset, idle_since: float | None) -> None:
        """Take note of a commit: end the waits that are over with it.

        Args:
            reached: what is committed.
            idle_since: when the epoch began, by the monotonic clock, if no lane had a row in it; None otherwise.
        """
        with self._changed:
            self._end(reached, idle_since)

    def wake(self) -> None:
        """Let everyone look again whether the query runs."""
        with self._changed:
            self._changed.notify_all()

    def _end(self, reached: Offset, idle_since: float | None) -> None:
        for wait in self._waits:
            if wait.was_polled and wait.target is not None:
                wait.is_over = self._has_reached(reached, wait.target)
                if not wait.is_over and idle_since is not None and idle_since >= wait.since + _STALE_SECONDS:
                    wait.is_polled_for = wait.was_polled = False
            elif wait.was_polled and idle_since is not None:
                wait.is_over = idle_since >= wait.asked
        self._waits = [wait for wait in self._waits if not wait.is_over]
        self._changed.notify_all()
