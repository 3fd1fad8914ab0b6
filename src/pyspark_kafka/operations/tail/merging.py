"""The order in which records of several partitions are shown: by time, and within a partition by offset. Pure."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.operations.tail.shown import ShownRecord


def merge_by_time(by_partition: Mapping[TopicPartition, Iterable[ShownRecord]]) -> Iterator[ShownRecord]:
    """Return records of several partitions by their time; those of one partition stay in the order of their offsets.

    Records without a time come as early as their partition allows.
    """
    streams = [iter(records) for _, records in sorted(by_partition.items())]
    heap: list[tuple[int, int, ShownRecord]] = []
    for number, stream in enumerate(streams):
        if (first := next(stream, None)) is not None:
            heap.append((_time(first), number, first))
    heapq.heapify(heap)
    while heap:
        _, number, record = heap[0]
        yield record
        following = next(streams[number], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (_time(following), number, following))


def _time(record: ShownRecord) -> int:
    return -1 if record.timestamp_ms is None else record.timestamp_ms
