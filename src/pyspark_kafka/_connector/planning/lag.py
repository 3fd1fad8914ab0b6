"""The lag of positions in offsets: the one computation for sources, metrics and operations. Pure."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka._connector.planning.retention import RetentionPolicy, headroom_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._connector.planning.retention import Headroom

# Of a topic with an unknown policy: under each policy, a caught-up position is caught up and a lost one is lost.
_ANY = RetentionPolicy()


def offsets_behind(
    position: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the number of offsets between a position and the end of each partition.

    A partition that is not in `position` is counted from 0, for any first offset. The number is negative for a
    partition whose end is below the position.

    Source: Spark `KafkaMicroBatchStream.delayBatch` and `metrics`.
    """
    return {topic_partition: end - position.get(topic_partition, 0) for topic_partition, end in latest.items()}


def most_behind(behind: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, int]:
    """Return at most `count` partitions, with the largest lag; all of them have lag."""
    waiting = ((topic_partition, offsets) for topic_partition, offsets in behind.items() if offsets > 0)
    return dict(heapq.nlargest(count, waiting, key=lambda item: item[1]))


class OffsetsBehind(NamedTuple):
    """The lag of a source's partitions, in offsets.

    Attributes:
        min: the lag of the partition with the smallest lag.
        max: the lag of the partition with the largest lag.
        avg: the mean over all partitions.
    """

    min: int
    max: int
    avg: float

    @classmethod
    def of(cls, behind: Mapping[TopicPartition, int]) -> OffsetsBehind:
        """Return the lag of these partitions; at least one is needed."""
        lags = behind.values()
        return cls(min(lags), max(lags), sum(lags) / len(lags))

    def to_metrics(self) -> dict[str, str]:
        """Return the metrics of a source in a progress report, with the names and in the text form of Spark.

        Source: Spark `KafkaMicroBatchStream.metrics`.
        """
        return {
            "minOffsetsBehindLatest": str(self.min),
            "maxOffsetsBehindLatest": str(self.max),
            "avgOffsetsBehindLatest": str(self.avg),
        }


def lag_metrics(
    consumed: Mapping[TopicPartition, int] | None, latest: Mapping[TopicPartition, int] | None
) -> dict[str, str]:
    """Return `OffsetsBehind.to_metrics`; empty if an argument is None or has no partitions.

    Args:
        consumed: next offset to read of each partition; 0 if it is missing.
        latest: end of each partition.

    Example:
        >>> from pyspark_kafka._base.model import TopicPartition
        >>> one, other = TopicPartition("t", 0), TopicPartition("t", 1)
        >>> lag_metrics({one: 3, other: 5}, {one: 9, other: 5})
        {'minOffsetsBehindLatest': '0', 'maxOffsetsBehindLatest': '6', 'avgOffsetsBehindLatest': '3.0'}
    """
    return OffsetsBehind.of(offsets_behind(consumed, latest)).to_metrics() if consumed and latest else {}


@dataclass(frozen=True, slots=True)
class Log:
    """The known state of a partition's log.

    Attributes:
        start: its first offset.
        end: its end, exclusive.
        newest_ms: the latest time of its records, in ms since 1970; None or negative: unknown.
        size: its bytes on the disk of the leader; None: unknown.
        policy: the rules by which brokers delete its records; None: unknown.
        position_time_ms: the time of the record at the position, in ms since 1970; None or negative: unknown.
    """

    start: int
    end: int
    newest_ms: int | None = None
    size: int | None = None
    policy: RetentionPolicy | None = None
    position_time_ms: int | None = None

    def first_unread(self, position: int) -> int:
        """Return the first offset at or after a position that the log still has."""
        return max(position, self.start)

    def records_behind(self, position: int) -> int:
        """Return the number of offsets that the log still has, from a position on; 0 after its end."""
        return max(0, self.end - self.first_unread(position))

    def bytes_of(self, records: int) -> int | None:
        """Return the approximate bytes of some of the log's records; None if the log size is unknown."""
        if not records:
            return 0
        return None if self.size is None else self.size * records // (self.end - self.start)

    def headroom(self, position: int, now_ms: int, records_per_s: float | None = None) -> Headroom | None:
        """Return the time until brokers may delete the record at a position; None if their rules are unknown.

        Args:
            position: the next offset to read.
            now_ms: the time, in ms since 1970.
            records_per_s: records written per second between two lookups; None: there was one lookup. The time of a
                record is not a measure of it, because producers choose the time.
        """
        if self.policy is None and self.start <= position < self.end:
            return None
        bytes_per_s = None
        if self.size is not None and records_per_s is not None and self.end > self.start:
            bytes_per_s = records_per_s * self.size / (self.end - self.start)
        return headroom_ms(
            self.policy or _ANY,
            position=position,
            log_start=self.start,
            log_end=self.end,
            now_ms=now_ms,
            record_ms=self.position_time_ms,
            log_bytes=self.size,
            bytes_per_s=bytes_per_s,
        )

    @property
    def lacks_only_rate(self) -> bool:
        """Whether only the rate of writing is missing for the headroom by size."""
        return self.size is not None and self.policy is not None and not self.policy.is_tiered


def catch_up_s(behind: int, produced_per_s: float | None, consumed_per_s: float | None) -> float | None:
    """Return the time in s until the lag is 0; infinite if reading is not faster than writing; None if unknown."""
    if not behind:
        return 0.0
    if produced_per_s is None or consumed_per_s is None:
        return None
    gained = consumed_per_s - produced_per_s
    return behind / gained if gained > 0 else math.inf
