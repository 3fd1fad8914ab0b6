"""Filters on topic, partition, offset and time, as bounds of a read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._connector.planning.open_ends import NO_END

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition

_V = TypeVar("_V", str, int)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Bounds of the records that pass all filters of a query; without arguments, all records pass.

    Attributes:
        topics: only in these topics; None: in any topic.
        other_topics: not in these topics.
        partitions: only in partitions of these numbers; None: in any partition.
        other_partitions: not in partitions of these numbers.
        partition_from, partition_by: numbers `[partition_from, partition_by)`.
        offset_from, offset_by: offsets `[offset_from, offset_by)`.
        not_before_ms: timestamps of this time or later (milliseconds since 1970-01-01 UTC); None: any.
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
        """Return the bounds of the records that pass both."""
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
        """The time of the look-up of a first offset; None if all records pass.

        In the protocol negative times have other meanings (-1 is the log's end, -2 its start).
        """
        return self.not_before_ms if self.not_before_ms is not None and self.not_before_ms > 0 else None


NOTHING = RecordFilter(topics=frozenset())
"""The filter of a contradiction: no record passes."""


def _both(one: frozenset[_V] | None, other: frozenset[_V] | None) -> frozenset[_V] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
