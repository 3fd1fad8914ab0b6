"""How far a batch of a limited number of bytes goes in each partition. Layer: planning."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition


def byte_limit(
    start: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    log_bytes: Mapping[TopicPartition, int],
    limit: int,
) -> dict[TopicPartition, int]:
    """Share `limit` bytes among partitions, each in proportion to what it has waiting.

    What an offset takes is estimated: the bytes of a partition's log over the offsets in it. So the sum is near the
    limit where records are of a size, and off by as much as their sizes vary. A partition with anything waiting always
    moves on by one offset at least.

    Args:
        start: next offset to read of each known partition.
        earliest: first offset of each partition of `latest`; where new partitions start.
        latest: end of each partition; only these are in the result.
        log_bytes: what each log takes on its leader's disk. Of one that is missing or empty nothing is known: it goes
            to its end.
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
        if end > begins.get(topic_partition, end) and log_bytes.get(topic_partition, 0) > 0
    }
    # Exact: offsets and bytes are 64-bit numbers, and their products are not.
    waiting_bytes = sum(
        (
            Fraction(count * log_bytes[where], max(1, latest[where] - earliest.get(where, 0)))
            for where, count in waiting.items()
        ),
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
