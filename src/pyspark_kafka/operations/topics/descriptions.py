"""One topic as brokers describe it: its partitions, their logs, its configuration. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pyspark_kafka.client.admin.topic_configs import TopicConfig
    from pyspark_kafka.client.cluster.metadata import PartitionMetadata, TopicMetadata
    from pyspark_kafka.model import TopicPartition


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition, and where its log begins and ends.

    Attributes:
        number: of the partition.
        leader_id: -1 if it has no leader.
        replica_ids: the brokers that have a copy.
        in_sync_ids: those whose copy is complete.
        begin: the first offset; None if it was not found out.
        end: the offset behind the last record; None if it was not found out.
    """

    number: int
    leader_id: int
    replica_ids: tuple[int, ...]
    in_sync_ids: tuple[int, ...]
    begin: int | None
    end: int | None

    @property
    def records(self) -> int | None:
        """How many records there are at most: offsets of control records and of removed records count as well."""
        return None if self.begin is None or self.end is None else max(0, self.end - self.begin)

    @property
    def behind_ids(self) -> tuple[int, ...]:
        """The replicas that are not in sync."""
        return tuple(each for each in self.replica_ids if each not in self.in_sync_ids)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic.

    Attributes:
        name: the topic.
        topic_id: None if the brokers do not tell.
        is_internal: whether it is one of the brokers' own.
        partitions: by number.
        brokers: addresses by broker id.
        configs: the values that are not defaults; None if they were not found out.
        missing: sentences about what was not found out.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[DescribedPartition, ...]
    brokers: Mapping[int, str]
    configs: tuple[TopicConfig, ...] | None
    missing: tuple[str, ...]

    @property
    def records(self) -> int | None:
        """How many records there are at most; None if one partition's are not known."""
        counts = [each.records for each in self.partitions]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def describe(
    topic: TopicMetadata,
    brokers: Mapping[int, str],
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    configs: Sequence[TopicConfig] | None,
    missing: Sequence[str],
) -> TopicDescription:
    """Put together what was found out about a topic.

    Args:
        topic: its metadata.
        brokers: addresses by broker id.
        begins: first offsets, of some partitions.
        ends: offsets behind the last records, of some partitions.
        configs: the values that are not defaults; None if they were not found out.
        missing: sentences about what was not found out.
    """

    def partition(each: PartitionMetadata) -> DescribedPartition:
        where = each.topic_partition
        return DescribedPartition(
            where.partition, each.leader_id, each.replica_ids, each.in_sync_ids, begins.get(where), ends.get(where)
        )

    return TopicDescription(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(map(partition, topic.partitions)),
        brokers=brokers,
        configs=None if configs is None else tuple(configs),
        missing=tuple(missing),
    )
