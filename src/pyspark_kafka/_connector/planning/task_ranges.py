"""From ranges to tasks: large ranges are split, small ranges share a task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka.errors import OptionError

# Far more than a job can use; with more, the plan alone would fill the memory of the driver.
MAX_TASKS = 1_000_000


def split_ranges(
    ranges: Sequence[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> tuple[OffsetRange, ...]:
    """Split large ranges; the parts of a range follow each other without a gap.

    First by `max_records`, then towards `min_partitions`, in proportion to sizes. The second limit is a hint: by
    rounding there may be a few ranges more or fewer. Empty ranges are dropped. A function of its arguments: a
    repeated plan splits at the same offsets.

    Args:
        ranges: what to read.
        min_partitions: the approximate minimum of ranges in the result; None: no minimum.
        max_records: the maximum number of offsets in a range of the result; None: no limit.

    Returns:
        The ranges in the given order, the parts of each range by offset.

    Raises:
        OptionError: more than a million ranges would result (condition TOO_MANY_TASKS).

    Source: Spark `KafkaOffsetRangeCalculator.getRanges`.

    Example:
        >>> from pyspark_kafka._base.model import TopicPartition
        >>> split_ranges([OffsetRange(TopicPartition("t", 0), 0, 10)], min_partitions=3)
        (OffsetRange(t-0 [0, 3)), OffsetRange(t-0 [3, 6)), OffsetRange(t-0 [6, 10)))
    """
    filled = [offset_range for offset_range in ranges if offset_range.size > 0]
    if max_records is not None:
        filled = _split(filled, [-(-offset_range.size // max_records) for offset_range in filled])
    if min_partitions is not None and min_partitions > len(filled):
        filled = _split(filled, _shares(filled, min_partitions))
    return tuple(filled)


def _shares(ranges: Sequence[OffsetRange], wanted: int) -> list[int]:
    """Return the number of parts per range, so that there are about `wanted` in total."""
    total = sum(offset_range.size for offset_range in ranges)
    small = [_share(offset_range.size, total, wanted) == 1 for offset_range in ranges]
    # Whole ranges take more or less than their share of tasks; the others divide the rest.
    total -= sum(offset_range.size for offset_range, whole in zip(ranges, small, strict=True) if whole)
    wanted = max(wanted - sum(small), 1)
    return [
        1 if whole else _share(offset_range.size, total, wanted)
        for offset_range, whole in zip(ranges, small, strict=True)
    ]


def _share(size: int, total: int, wanted: int) -> int:
    # Rounded half up, in whole numbers: floating point is not exact for large sizes.
    return max((2 * size * wanted + total) // (2 * total), 1)


def _split(ranges: Sequence[OffsetRange], parts: Sequence[int]) -> list[OffsetRange]:
    tasks = sum(parts)
    if tasks > MAX_TASKS:
        raise OptionError(
            f"Options 'maxRecordsPerPartition' and 'minPartitions' would split {len(ranges)} ranges of "
            f"{sum(offset_range.size for offset_range in ranges)} offsets into {tasks} tasks, more than the "
            f"{MAX_TASKS} that one read may have. Nothing was read.",
            condition="TOO_MANY_TASKS",
            hint="Raise 'maxRecordsPerPartition' or lower 'minPartitions'; a stream can also take less at a time by "
            "'maxOffsetsPerTrigger'.",
            parameters={"tasks": tasks, "limit": MAX_TASKS},
        )
    return [piece for offset_range, count in zip(ranges, parts, strict=True) for piece in _pieces(offset_range, count)]


def _pieces(offset_range: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Cut a range into equal parts; the later ones are one offset longer if it does not divide."""
    start_offset = offset_range.start_offset
    for remaining_parts in range(parts, 0, -1):
        end_offset = start_offset + (offset_range.end_offset - start_offset) // remaining_parts
        if end_offset > start_offset:
            yield OffsetRange(offset_range.topic_partition, start_offset, end_offset)
        start_offset = end_offset


def pack_ranges(
    ranges: Iterable[OffsetRange], *, max_ranges: int = 1, max_offsets: int = 0
) -> tuple[tuple[OffsetRange, ...], ...]:
    """Group ranges into tasks; with the defaults each range is a task, as in Spark's connector.

    A function of its arguments, never of the cluster's size: a repeated plan has the same tasks.
    Ranges keep their order. Ranges of one partition never share a task, because a fetch request has a partition once.

    Args:
        ranges: what to read, none of them empty.
        max_ranges: the maximum number of ranges in a task.
        max_offsets: the maximum sum of offsets in the ranges of a task; a larger range has a task of its own.

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
        if tasks and len(tasks[-1]) < max_ranges and offsets <= max_offsets and apart:
            tasks[-1].append(offset_range)
        else:
            tasks.append([offset_range])
            offsets = offset_range.size
            partitions.clear()
        partitions.add(offset_range.topic_partition)
    return tuple(map(tuple, tasks))
