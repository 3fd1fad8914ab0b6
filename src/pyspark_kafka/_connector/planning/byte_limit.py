"""The ends of a micro-batch with a limit of bytes. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition


def byte_limit(
    start: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    log_sizes: Mapping[TopicPartition, int],
    limit: int,
) -> dict[TopicPartition, int]:
    """Share `limit` bytes among partitions, each in proportion to its waiting bytes.

    The size of an offset is estimated: the bytes of a partition's log divided by the offsets in it. So the sum is near
    the limit if records have similar sizes, and differs more if their sizes vary. A partition with waiting
    offsets always advances by at least one.

    Args:
        start: next offset to read of each known partition.
        earliest: first offset of each partition of `latest`; new partitions start there.
        latest: end of each partition; only these are in the result.
        log_sizes: bytes of each log on its leader's disk. A log that is missing here or empty is read to its end.
        limit: bytes, at least 1.

    Returns:
        The exclusive end of each partition of `latest`, never beyond its latest offset.
    """
    if limit < 1:
        raise ValueError(f"a limit must be at least 1 byte, got {limit}")
    begins = {**earliest, **start}
    waiting = {
        topic_partition: end - begins[topic_partition]
        for topic_partition, end in latest.items()
        if end > begins.get(topic_partition, end) and log_sizes.get(topic_partition, 0) > 0
    }
    # Exact: offsets and bytes are 64-bit numbers, and their products are not.
    waiting_bytes = sum(
        (Fraction(count * log_sizes[tp], max(1, latest[tp] - earliest.get(tp, 0))) for tp, count in waiting.items()),
        Fraction(0),
    )
    if waiting_bytes <= limit:
        return dict(latest)
    part = Fraction(limit) / waiting_bytes
    return {
        topic_partition: min(end, begins[topic_partition] + max(1, int(waiting[topic_partition] * part)))
        if topic_partition in waiting
        else end
        for topic_partition, end in latest.items()
    }
