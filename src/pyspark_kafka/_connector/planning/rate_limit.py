"""The ends of a micro-batch with a limit of offsets. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition


def rate_limit(
    start: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    limit: int,
) -> dict[TopicPartition, int]:
    """Share `limit` offsets among partitions, each in proportion to its waiting offsets.

    A share of less than one offset is rounded up, any other is rounded down. So a partition with waiting offsets always
    advances, and the sum may be above the limit (many small partitions) or below it.

    Args:
        start: next offset to read of each known partition.
        earliest: first offset of each partition that is not in `start`. A partition in neither keeps its latest offset;
            `plan_ranges` reports it.
        latest: end of each partition; only these are in the result. An end below its start is kept as it is.
        limit: offsets, at least 1: with less a stream would never advance.

    Returns:
        The exclusive end of each partition of `latest`, never beyond its latest offset.

    Source: Spark `KafkaMicroBatchStream.rateLimit`.

    Example:
        >>> from pyspark_kafka._base.model import TopicPartition
        >>> latest = {TopicPartition("t", 0): 101, TopicPartition("t", 1): 11, TopicPartition("t", 2): 1}
        >>> list(rate_limit({}, dict.fromkeys(latest, 0), latest, 10).values())
        [8, 1, 1]
    """
    if limit < 1:
        raise ValueError(f"a limit must be at least 1 offset, got {limit}")
    begins = {**earliest, **start}
    sizes = {
        topic_partition: end - begins[topic_partition]
        for topic_partition, end in latest.items()
        if end > begins.get(topic_partition, end)
    }
    total = sum(sizes.values())
    # Whole numbers only: the product can exceed 64 bits, and a floating-point quotient can be just below the exact
    # whole number.
    return {
        topic_partition: min(end, begins[topic_partition] + max(1, limit * sizes[topic_partition] // total))
        if topic_partition in sizes
        else end
        for topic_partition, end in latest.items()
    }
