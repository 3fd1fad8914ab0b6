"""From ranges to tasks. Layer: planning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.model import OffsetRange


def pack_ranges(
    ranges: Iterable[OffsetRange], *, most_ranges: int = 1, most_offsets: int = 0
) -> tuple[tuple[OffsetRange, ...], ...]:
    """Group ranges into tasks; with the defaults, a task each, as Spark's connector has it.

    A pure function of the ranges and its bounds, never of the cluster's size: a batch that is planned again gives the
    same tasks. Ranges keep their order; ranges of one partition never share a task, for a fetch request has a
    partition once.

    Args:
        ranges: what to read, none of them empty.
        most_ranges: how many ranges a task may have.
        most_offsets: how many offsets the ranges of a task may span together; a larger range has a task of its own.

    Returns:
        The ranges of each task, at least one.
    """
    tasks: list[tuple[OffsetRange, ...]] = []
    for offset_range in ranges:
        last = tasks[-1] if tasks else ()
        offsets = sum(known.size for known in last) + offset_range.size
        apart = all(known.topic_partition != offset_range.topic_partition for known in last)
        if last and len(last) < most_ranges and offsets <= most_offsets and apart:
            tasks[-1] = (*last, offset_range)
        else:
            tasks.append((offset_range,))
    return tuple(tasks)
