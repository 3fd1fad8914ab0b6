"""The last records of a topic, found backwards, window by window. Pure.

A partition is searched from its end. If a window has too few shown records, because of holes, aborted
transactions or filters, a larger window before it is searched.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark_kafka._base.model import TopicPartition

_GROWTH = 4
_MAX_WINDOW = 1 << 20
# The minimum of the first window of a partition: a single partition may have most of the last records.
_LEAST_WINDOW = 100
# The maximum of kept records of windows that are read together, unless the request wants more records.
_KEPT = 100_000


def first_window(count: int, partitions: int) -> int:
    """Return the size of the first window of each partition: all together have about the requested number."""
    return min(count, max(_LEAST_WINDOW, -(-count // max(1, partitions))))


class LastRecords:
    """Finds the start of each partition for exactly the last records by time.

    If a later record of the partition has an earlier time, a record counts with that time: so the found
    records of a partition are always its last ones.

    Args:
        count: the number of records.
        logs: first offset and end of each partition.
        window: the number of offsets in the first window of a partition.
        kept: the maximum number of kept records of windows, in addition to the records of one window.
    """

    def __init__(
        self, count: int, logs: Mapping[TopicPartition, tuple[int, int]], window: int, kept: int = _KEPT
    ) -> None:
        self._count = count
        self._begins = {where: begin for where, (begin, _) in logs.items()}
        # The end of the part that is not searched yet.
        self._ends = {where: end for where, (_, end) in logs.items()}
        self._starts = dict(self._ends)
        self._found = dict.fromkeys(logs, 0)
        self._earliest_behind: dict[TopicPartition, int] = {}
        # Time, offset, partition of the last found records.
        self._last: list[tuple[int, int, TopicPartition]] = []
        self._window = max(1, window)
        self._kept = max(count, kept)

    def groups(self) -> Iterator[list[OffsetRange]]:
        """Return groups of windows to search, until all records are found; the caller searches a group before the next.

        The number of offsets in a group, or of its partitions, is at most `kept`: at most the requested number of
        records of a window is kept.
        """
        while windows := self.next_windows():
            group: list[OffsetRange] = []
            room = self._kept
            for window in windows:
                size = min(window.size, self._count)
                if group and size > room:
                    yield group
                    group, room = [], self._kept
                # The records that were found in the meantime may be enough, and brokers may be silent.
                if self._is_wanted(window.topic_partition):
                    group.append(window)
                    room -= size
            if group:
                yield group

    def next_windows(self) -> list[OffsetRange]:
        """Return the next windows to search; none if all records are found."""
        windows = [
            OffsetRange(where, max(self._begins[where], end - self._window), end)
            for where, end in self._ends.items()
            if self._is_wanted(where)
        ]
        self._window = min(self._window * _GROWTH, max(self._window, _MAX_WINDOW))
        return windows

    def note_window(self, window: OffsetRange, found: Iterable[tuple[int, int]]) -> None:
        """Record offsets and times (ms) of a window's shown records, in ascending order of offsets."""
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
        """Stop the search of these partitions, which cannot be read; their found records count.

        Returns:
            The partitions whose search was not complete.
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
        # No record before the searched part counts as later than the earliest record in it.
        earliest = self._earliest_behind.get(where)
        return earliest is not None and len(self._last) >= self._count and earliest < self._last[0][0]
