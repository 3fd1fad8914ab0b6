"""Offsets that wait to be read: enough for a micro-batch, and how far a query is behind. Pure. Layer: planning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition


def waiting_offsets(position: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets between a position and the ends of all partitions.

    A partition that is not in `position` is counted from 0, whatever its first offset is. A partition whose end is
    below the position lowers the sum.

    Source: Spark `KafkaMicroBatchStream.delayBatch`.
    """
    return sum(end - position.get(topic_partition, 0) for topic_partition, end in latest.items())


def offsets_behind_latest(
    consumed: Mapping[TopicPartition, int] | None, latest: Mapping[TopicPartition, int] | None
) -> dict[str, str]:
    """Return the metrics of a source in a progress report: least, greatest and mean lag of a partition.

    Args:
        consumed: next offset to read of each partition; 0 if it is missing.
        latest: end of each partition.

    Returns:
        `minOffsetsBehindLatest`, `maxOffsetsBehindLatest` (whole numbers), `avgOffsetsBehindLatest` (with a decimal
        point), as text; empty if one of the arguments is not known or there is no partition.

    Source: Spark `KafkaMicroBatchStream.metrics`.

    Example:
        >>> from pyspark_kafka.model import TopicPartition
        >>> one, other = TopicPartition("t", 0), TopicPartition("t", 1)
        >>> offsets_behind_latest({one: 3, other: 5}, {one: 9, other: 5})
        {'minOffsetsBehindLatest': '0', 'maxOffsetsBehindLatest': '6', 'avgOffsetsBehindLatest': '3.0'}
    """
    if not consumed or not latest:
        return {}
    lags = [end - consumed.get(topic_partition, 0) for topic_partition, end in latest.items()]
    return {
        "minOffsetsBehindLatest": str(min(lags)),
        "maxOffsetsBehindLatest": str(max(lags)),
        "avgOffsetsBehindLatest": str(sum(lags) / len(lags)),
    }
