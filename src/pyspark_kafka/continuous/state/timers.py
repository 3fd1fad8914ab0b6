"""Timers of a key group in the order of their times: all of them in the store, the next ones in memory. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

_TIME_BYTES = 8
# Times before 1970 are negative, and sort before the others.
_ZERO = 2**63
MIN_TIME_MS, MAX_TIME_MS = -(2**63), 2**63 - 1


def milliseconds(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return times as milliseconds since 1970: timestamps of any unit, or times that are milliseconds already."""
    if pa.types.is_timestamp(times.type):
        times = pc.cast(times, pa.timestamp("ms", tz=times.type.tz), safe=False).cast(pa.int64())
    return times


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
    """Return what sorts after every timer up to a time, and before or with all later ones."""
    return timer_of(min(time_ms + 1, MAX_TIME_MS), b"")


class NearTimers:
    """The next timers of one key group.

    Memory is bounded: later timers are read from the store when the next ones have expired.

    Args:
        stored: returns all timers of the store from one on, in their order, including timers that were set a moment
            ago.
        maximum: of the timers that are read at a time; at most twice as many are in memory.
    """

    def __init__(self, stored: Callable[[bytes], Iterator[bytes]], maximum: int) -> None:
        self._stored, self._maximum = stored, maximum
        self._timers: set[bytes] = set()
        # Also has timers that were removed or taken.
        self._heap: list[bytes] = []
        # Timers from here on are in the store only; None if all are in memory.
        self._end: bytes | None = b""

    def add(self, timers: Iterable[bytes]) -> None:
        """Take note of timers that are in the store now."""
        for timer in timers:
            if (self._end is None or timer < self._end) and timer not in self._timers:
                self._timers.add(timer)
                heapq.heappush(self._heap, timer)
        if len(self._timers) > 2 * self._maximum:
            near = heapq.nsmallest(self._maximum + 1, self._timers)
            self._end = near.pop()
            self._timers, self._heap = set(near), near

    def remove(self, timers: Iterable[bytes]) -> None:
        """Take note of timers that are not in the store any more. Timers that nobody has set are not an error."""
        self._timers.difference_update(timers)
        if len(self._heap) > 2 * (len(self._timers) + self._maximum):
            self._heap = sorted(self._timers)

    def is_due(self, end: bytes) -> bool:
        """Return whether there is a timer before `end`."""
        timer = self._next()
        return timer is not None and timer < end

    def take(self, end: bytes, limit: int) -> list[bytes]:
        """Return the next timers before `end`, at most `limit`. The caller removes them from the store."""
        taken: list[bytes] = []
        while len(taken) < limit and (timer := self._next()) is not None and timer < end:
            taken.append(timer)
            self._timers.discard(timer)
        return taken

    def _next(self) -> bytes | None:
        while True:
            while self._heap and self._heap[0] not in self._timers:
                heapq.heappop(self._heap)
            if self._heap or self._end is None:
                return self._heap[0] if self._heap else None
            # All before the end have expired or are being taken. A store reads removed keys to leave them out, so
            # it does not begin with those.
            near = list(islice(self._stored(self._end), self._maximum + 1))
            self._end = near.pop() if len(near) > self._maximum else None
            self._timers, self._heap = set(near), near
