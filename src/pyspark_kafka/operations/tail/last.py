"""Which records are the last ones of a topic: found backwards, window by window. Pure.

A partition is looked through from its end. A window that has too few records that are shown, because of holes, aborted
transactions or what was asked for, is followed by a larger one before it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pyspark_kafka.model import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark_kafka.model import TopicPartition

_GROWTH = 4
_MAX_WINDOW = 1 << 20
# Of each partition at first, although all together have enough: one of them may have most of the last records.
_LEAST_WINDOW = 100
# Records of windows that are read at once; more are kept only if more are asked for.
_KEPT = 100_000


def first_window(count: int, partitions: int) -> int:
    """Return how many offsets of each partition to look at first, so that all together have about what is asked for."""
    return min(count, max(_LEAST_WINDOW, -(-count // max(1, partitions))))


class LastRecords:
    """Finds where each partition is to be read from so that the last records are read, by time, and no others.

    A record counts with the time of the earliest record behind it in its partition, if that is earlier: so what is
    found of a partition is always its end.

    Args:
        count: how many records.
        logs: first offset and end of each partition.
        window: how many offsets of a partition are looked at first.
        kept: how many records of windows may be kept at once, besides those of one window.
    """

    def __init__(
        self, count: int, logs: Mapping[TopicPartition, tuple[int, int]], window: int, kept: int = _KEPT
    ) -> None:
        self._count = count
        self._begins = {where: begin for where, (begin, _) in logs.items()}
        # Behind what is still to be looked through.
        self._ends = {where: end for where, (_, end) in logs.items()}
        self._starts = dict(self._ends)
        self._found = dict.fromkeys(logs, 0)
        self._earliest_behind: dict[TopicPartition, int] = {}
        # Time, offset, partition: of the records found, the last ones.
        self._last: list[tuple[int, int, TopicPartition]] = []
        self._window = max(1, window)
        self._kept = max(count, kept)

    def groups(self) -> Iterator[list[OffsetRange]]:
        """Return windows to look through at once, until all is found; take each before the next group.

        A group has at most as many offsets as records may be kept, or as many partitions: of a window, no more than
        what is asked for in all need be kept.
        """
        while windows := self.next_windows():
            group: list[OffsetRange] = []
            room = self._kept
            for window in windows:
                size = min(window.size, self._count)
                if group and size > room:
                    yield group
                    group, room = [], self._kept
                # What was taken meanwhile may be enough, and brokers may be silent.
                if self._is_wanted(window.topic_partition):
                    group.append(window)
                    room -= size
            if group:
                yield group

    def next_windows(self) -> list[OffsetRange]:
        """Return what to look through next; nothing if all is found."""
        windows = [
            OffsetRange(where, max(self._begins[where], end - self._window), end)
            for where, end in self._ends.items()
            if self._is_wanted(where)
        ]
        self._window = min(self._window * _GROWTH, max(self._window, _MAX_WINDOW))
        return windows

    def take(self, window: OffsetRange, found: Iterable[tuple[int, int]]) -> None:
        """Note the offsets and times (ms) of the records of a window that are shown, in ascending order of offsets."""
        where = window.topic_partition
        for offset, time_ms in reversed(list(found)):
            earliest = min(time_ms, self._earliest_behind.get(where, time_ms))
            self._earliest_behind[where] = earliest
            self._found[where] += 1
            entry = (earliest, offset, where)
            if len(self._last) < self._count:
                heapq.heappush(self._last, entry)
            else:
                heapq.heappushpop(self._last, entry)
        self._ends[where] = window.start_offset

    def drop(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Look through these no more, because they cannot be read; what was found of them counts.

        Returns:
            Those that were still to be looked through.
        """
        dropped = sorted(where for where in partitions if where in self._ends and self._is_wanted(where))
        for where in dropped:
            self._ends[where] = self._begins[where]
        return dropped

    def starts(self) -> dict[TopicPartition, int]:
        """Return the offset of the first record to show, by partition; the end of the log if there is none."""
        starts = dict(self._starts)
        for _, offset, where in self._last:
            starts[where] = min(starts[where], offset)
        return starts

    def _is_wanted(self, where: TopicPartition) -> bool:
        return self._ends[where] > self._begins[where] and not self._is_done(where)

    def _is_done(self, where: TopicPartition) -> bool:
        if self._found[where] >= self._count:
            return True
        # No record before what was looked through counts as later than the earliest behind it.
        earliest = self._earliest_behind.get(where)
        return earliest is not None and len(self._last) >= self._count and earliest < self._last[0][0]
