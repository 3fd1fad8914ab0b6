"""Timers of a key group in the order of their times: all of them in the store, the next ones in memory. Pure.

`step_time` takes due timers; `task/stages.py` calls the function with them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from pyspark_kafka.continuous.state.times import MAX_TIME_MS

_TIME_BYTES = 8
# Times before 1970 are negative, and sort before the others.
_ZERO = 2**63


def timer_of(time_ms: int, key: bytes) -> bytes:
    """Return a timer as bytes that sort by its time, then by its key."""
    return (time_ms + _ZERO).to_bytes(_TIME_BYTES, "big") + key


def time_of(timer: bytes) -> int:
    """Return the time of a timer."""
    return int.from_bytes(timer[:_TIME_BYTES], "big") - _ZERO


def key_of(timer: bytes) -> bytes:
    """Return the key of a timer."""
    return timer[_TIME_BYTES:]


def first_after(time_ms: int) -> bytes:
    """Return a key that sorts after every timer up to a time, and before or with all later ones."""
    return timer_of(min(time_ms + 1, MAX_TIME_MS), b"")


class NearTimers:
    """The next timers of one key group.

    Memory is bounded: later timers are read from the store when the next ones have expired.

    Args:
        stored: returns all timers of the store from one on, in their order, including timers that were set a moment
            ago.
        maximum: of the timers that are read at a time; at most twice as many are in memory.
        max_bytes: of the same timers, likewise; one timer is read, however large it is.
    """

    def __init__(self, stored: Callable[[bytes], Iterator[bytes]], maximum: int, max_bytes: int) -> None:
        self._stored, self._maximum, self._max_bytes = stored, maximum, max_bytes
        self._timers: set[bytes] = set()
        # Also has timers that were removed or taken.
        self._heap: list[bytes] = []
        # Of both.
        self._bytes = self._heap_bytes = 0
        # Timers from here on are in the store only; None if all are in memory.
        self._end: bytes | None = b""

    def add_timers(self, timers: Iterable[bytes]) -> None:
        """Record timers that are in the store now."""
        for timer in timers:
            if (self._end is None or timer < self._end) and timer not in self._timers:
                self._timers.add(timer)
                heapq.heappush(self._heap, timer)
                self._bytes += len(timer)
                self._heap_bytes += len(timer)
        if len(self._timers) > 1 and (len(self._timers) > 2 * self._maximum or self._bytes > 2 * self._max_bytes):
            self._end = self._keep(sorted(self._timers))

    def lacks(self, timer: bytes) -> bool:
        """Return whether a timer is known not to be in the store."""
        return (self._end is None or timer < self._end) and timer not in self._timers

    def remove(self, timers: Iterable[bytes]) -> None:
        """Record timers that are no longer in the store. Timers that were never set are not an error."""
        gone = self._timers.intersection(timers)
        self._timers -= gone
        self._bytes -= sum(map(len, gone))
        is_long = len(self._heap) > 2 * (len(self._timers) + self._maximum)
        if is_long or self._heap_bytes > 2 * (self._bytes + self._max_bytes):
            self._heap, self._heap_bytes = sorted(self._timers), self._bytes

    def take_due(self, end: bytes, limit: int, max_bytes: int) -> list[bytes]:
        """Return the next timers before `end`. The caller removes them from the store.

        Args:
            end: of the due timers.
            limit: of timers.
            max_bytes: of timers; one more timer is returned, however large it is.
        """
        taken: list[bytes] = []
        size = 0
        while len(taken) < limit and size < max_bytes and (timer := self.first()) is not None and timer < end:
            taken.append(timer)
            size += len(timer)
            self._timers.discard(timer)
            self._bytes -= len(timer)
        return taken

    def first(self) -> bytes | None:
        """Return the next timer; None if there is none."""
        while True:
            while self._heap and self._heap[0] not in self._timers:
                self._heap_bytes -= len(heapq.heappop(self._heap))
            if self._heap or self._end is None:
                return self._heap[0] if self._heap else None
            # All before the end have expired or are being taken. A store reads removed keys to leave them out, so
            # it does not begin with those.
            self._end = self._keep(self._stored(self._end))

    def last(self, end: bytes) -> bytes | None:
        """Return the last timer before `end`; None if there is none. Reads all later timers of the store."""
        found = max((timer for timer in self._timers if timer < end), default=None)
        for timer in () if self._end is None else self._stored(self._end):
            if timer >= end:
                break
            found = timer
        return found

    def _keep(self, timers: Iterable[bytes]) -> bytes | None:
        """Have the first ones of timers in memory; return the next one, None if there is none."""
        near: list[bytes] = []
        size, end = 0, None
        for timer in timers:
            if near and (len(near) == self._maximum or size + len(timer) > self._max_bytes):
                end = timer
                break
            near.append(timer)
            size += len(timer)
        self._timers, self._heap = set(near), near
        self._bytes = self._heap_bytes = size
        return end
