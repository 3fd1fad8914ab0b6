"""From ranges to tasks. Pure. Layer: planning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.model import OffsetRange, TopicPartition


def pack_ranges(
    ranges: Iterable[OffsetRange], *, most_ranges: int = 1, most_offsets: int = 0
) -> tuple[tuple[OffsetRange, ...], ...]:
    """Group ranges into tasks; with the defaults each range is a task, as in Spark's connector.

    A function of its arguments, never of the cluster's size: a micro-batch that is planned again has the same tasks.
    Ranges keep their order. Ranges of one partition never share a task, because a fetch request has a partition once.

    Args:
        ranges: what to read, none of them empty.
        most_ranges: how many ranges a task may have.
        most_offsets: how many offsets the ranges of a task may span together; a larger range has a task of its own.

    Returns:
        The ranges of each task, at least one.
    """
    tasks: list[list[OffsetRange]] = []
    # Of the last task.
    offsets = 0
    partitions: set[TopicPartition] = set()
    for offset_range in ranges:
        offsets += offset_range.size
        apart = offset_range.topic_partition not in partitions
        if tasks and len(tasks[-1]) < most_ranges and offsets <= most_offsets and apart:
            tasks[-1].append(offset_range)
        else:
            tasks.append([offset_range])
            offsets = offset_range.size
            partitions.clear()
        partitions.add(offset_range.topic_partition)
    return tuple(map(tuple, tasks))
