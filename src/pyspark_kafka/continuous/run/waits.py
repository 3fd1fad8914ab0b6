"""Calls that wait until the rows that were readable at the call are committed: `processAllAvailable`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.connector import Offset

_LOOK_SECONDS = 0.1
# After this time without rows below a target the source is queried again: the log may have been cut.
_STALE_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class _Wait:
    """A call that waits for the rows that were readable when it was made.

    Attributes:
        asked: the time of the call, by the monotonic clock.
        is_polled_for: whether the source is polled, or was polled, for the end of these rows.
        was_polled: whether it has responded.
        target: the end; None if the source does not know.
        since: the time of its last response, by the monotonic clock.
        is_over: whether the rows are committed, or their end cannot be found.
        error: the reason for that.
    """

    asked: float
    is_polled_for: bool = False
    was_polled: bool = False
    target: Offset | None = None
    since: float = 0.0
    is_over: bool = False
    error: BaseException | None = None


class RowWaits:
    """The calls that wait for rows. Any thread waits in `wait`; the thread of the query ends waits.

    Attributes:
        end_wanted: set while a call waits: the epoch that runs is to end, so that its rows are committed.

    Args:
        has_reached: whether a position is at or after a target, as `ContinuousStream.hasReached`.
    """

    def __init__(self, has_reached: Callable[[Offset, Offset], bool]) -> None:
        self.end_wanted = threading.Event()
        self._has_reached = has_reached
        self._changed = threading.Condition()
        self._waits: list[_Wait] = []

    @property
    def need_target(self) -> bool:
        """Return whether a call waits for which the source was not polled yet."""
        return any(not wait.was_polled for wait in self._waits)

    @property
    def are_waiting(self) -> bool:
        """Return whether a call waits."""
        return bool(self._waits)

    def wait(self, is_active: Callable[[], bool], wake: Callable[[], None]) -> None:
        """Wait until every row that is readable now is committed; return if the query ends first.

        Args:
            is_active: whether the query runs.
            wake: makes the thread of the query check the waits.

        Raises:
            BaseException: the source could not find the end of these rows. The query continues.
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
                # Also if it was interrupted: the query does not rest while a call waits.
                wait.is_over = True
                self._remove_ended()
        if wait.error is not None:
            raise wait.error

    def begin_poll(self) -> None:
        """Record that the source is polled now; calls that come later need a later poll."""
        with self._changed:
            for wait in self._waits:
                wait.is_polled_for = True

    def fail_poll(self, error: BaseException) -> None:
        """Record that the poll failed: the calls that it was for raise the error."""
        with self._changed:
            for wait in self._waits:
                if wait.is_polled_for and not wait.was_polled:
                    wait.error, wait.is_over = error, True
            self._remove_ended()

    def set_target(self, target: Offset | None, reached: Offset) -> None:
        """Record the end of readable rows, for the calls that waited at `begin_poll`.

        Args:
            target: the end; None if the source does not know.
            reached: the committed offset; some calls may have their rows already.
        """
        with self._changed:
            for wait in self._waits:
                if wait.is_polled_for and not wait.was_polled:
                    wait.was_polled, wait.target, wait.since = True, target, time.monotonic()
            self._end(reached, None)

    def poll_again(self) -> None:
        """Record that the query was planned again: a target may be of a topic that was deleted, or recreated."""
        with self._changed:
            for wait in self._waits:
                wait.is_polled_for = wait.was_polled = False

    def committed(self, reached: Offset, idle_since: float | None) -> None:
        """Record a commit, and end the waits that are over with it.

        Args:
            reached: the committed offset.
            idle_since: when the epoch began, by the monotonic clock, if no lane had a row in it; None otherwise.
        """
        with self._changed:
            self._end(reached, idle_since)

    def wake(self) -> None:
        """Let every call check again whether the query runs."""
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
        self._remove_ended()

    def _remove_ended(self) -> None:
        self._waits = [wait for wait in self._waits if not wait.is_over]
        if not self._waits:
            # Here, and not when the call wakes up: the thread of the query would end another epoch before.
            self.end_wanted.clear()
        self._changed.notify_all()
