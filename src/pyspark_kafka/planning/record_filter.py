"""Filters on topic, partition, offset and time, as bounds of a read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.planning.open_ends import NO_END

if TYPE_CHECKING:
    from pyspark_kafka.model import TopicPartition

_V = TypeVar("_V", str, int)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Bounds of the records that all filters of a query let through; without arguments there are none.

    Attributes:
        topics: only in these topics; None: in any.
        other_topics: in none of these.
        partitions: only in partitions of these numbers; None: of any.
        other_partitions: in none of these numbers.
        partition_from, partition_by: numbers `[partition_from, partition_by)`.
        offset_from, offset_by: offsets `[offset_from, offset_by)`.
        not_before_ms: timestamps of this or later (milliseconds since 1970-01-01 UTC); None: of any.
    """

    topics: frozenset[str] | None = None
    other_topics: frozenset[str] = frozenset()
    partitions: frozenset[int] | None = None
    other_partitions: frozenset[int] = frozenset()
    partition_from: int = 0
    partition_by: int = NO_END
    offset_from: int = 0
    offset_by: int = NO_END
    not_before_ms: int | None = None

    def __and__(self, other: RecordFilter) -> RecordFilter:
        """Return the bounds of the records that both let through."""
        times = [bound for bound in (self.not_before_ms, other.not_before_ms) if bound is not None]
        return RecordFilter(
            topics=_both(self.topics, other.topics),
            other_topics=self.other_topics | other.other_topics,
            partitions=_both(self.partitions, other.partitions),
            other_partitions=self.other_partitions | other.other_partitions,
            partition_from=max(self.partition_from, other.partition_from),
            partition_by=min(self.partition_by, other.partition_by),
            offset_from=max(self.offset_from, other.offset_from),
            offset_by=min(self.offset_by, other.offset_by),
            not_before_ms=max(times, default=None),
        )

    def takes(self, topic_partition: TopicPartition) -> bool:
        """Return whether a partition can have such records."""
        topic, number = topic_partition.topic, topic_partition.partition
        return (
            (self.topics is None or topic in self.topics)
            and topic not in self.other_topics
            and (self.partitions is None or number in self.partitions)
            and number not in self.other_partitions
            and self.partition_from <= number < self.partition_by
            and self.offset_from < self.offset_by
        )

    @property
    def seek_ms(self) -> int | None:
        """The time to look up a first offset by; None if every record is of that time or later.

        Negative times are words of the protocol (-1 is the log's end, -2 its start), not times.
        """
        return self.not_before_ms if self.not_before_ms is not None and self.not_before_ms > 0 else None


NOTHING = RecordFilter(topics=frozenset())
"""The filter of a contradiction: no record passes."""


def _both(one: frozenset[_V] | None, other: frozenset[_V] | None) -> frozenset[_V] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
