"""The ranges between two positions, and the records that are lost there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.model import OffsetRange
from pyspark_kafka.planning.data_loss import DataLoss, DataLossKind, deleted_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a micro-batch.

    Attributes:
        ranges: one for each partition with offsets to read, by topic and partition; none is empty.
        findings: the lost records, which the ranges leave out.
    """

    ranges: tuple[OffsetRange, ...]
    findings: tuple[DataLoss, ...]


def plan_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest_of_new: Mapping[TopicPartition, int],
    *,
    group_id: str | None = None,
) -> Plan:
    """Plan the micro-batch `[start, end)`.

    A function of its arguments: a repeated plan has the same ranges, unless retention has moved the
    first offset of a new partition.

    Args:
        start: next offset to read of each known partition.
        end: exclusive end of each existing partition; partitions that are not in `start` are new.
        earliest_of_new: first offset of each new partition; a partition without an entry counts as deleted.
        group_id: the query's `kafka.group.id`; Spark has a condition of its own for partitions deleted with one.

    Source: Spark `KafkaOffsetReaderAdmin.getOffsetRangesFromResolvedOffsets`.
    """
    ranges: list[OffsetRange] = []
    deleted = deleted_kind(group_id)
    findings = [
        DataLoss(deleted, topic_partition, expected_offset=start[topic_partition], group_id=group_id)
        for topic_partition in sorted(start.keys() - end.keys())
    ]
    for topic_partition in sorted(end):
        start_offset = start.get(topic_partition)
        if start_offset is None:
            start_offset = earliest_of_new.get(topic_partition)
            if start_offset is None:
                findings.append(DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, topic_partition))
                continue
            if start_offset != 0:
                kind = DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO
                findings.append(DataLoss(kind, topic_partition, expected_offset=0, found_offset=start_offset))
        end_offset = end[topic_partition]
        if end_offset < start_offset:
            kind = DataLossKind.PARTITION_OFFSET_CHANGED
            findings.append(DataLoss(kind, topic_partition, expected_offset=start_offset, found_offset=end_offset))
        elif end_offset > start_offset:
            ranges.append(OffsetRange(topic_partition, start_offset, end_offset))
    return Plan(tuple(ranges), tuple(findings))
