"""The ranges between two positions, and the records that are lost there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._connector.planning.data_loss import DataLoss, DataLossKind, deleted_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition


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
    starts = {**earliest_of_new, **start}
    new = [topic_partition for topic_partition in end if topic_partition not in start]
    ranges = [
        OffsetRange(topic_partition, starts[topic_partition], end[topic_partition])
        for topic_partition in sorted(end)
        if end[topic_partition] > starts.get(topic_partition, end[topic_partition])
    ]
    lost = find_lost_positions(start, end, group_id=group_id)
    return Plan(tuple(ranges), (*lost, *find_lost_beginnings(new, earliest_of_new)))


def find_lost_positions(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], *, group_id: str | None = None
) -> tuple[DataLoss, ...]:
    """Return the partitions of `start` that `end` lacks, and the partitions whose end is before their start.

    Args:
        start: next offset to read of each known partition.
        end: exclusive end of each existing partition.
        group_id: the query's `kafka.group.id`.
    """
    # At each trigger: a single pass if nothing is lost, as nearly always.
    lost = [topic_partition for topic_partition, offset in start.items() if end.get(topic_partition, -1) < offset]
    if not lost:
        return ()
    deleted, changed = deleted_kind(group_id), DataLossKind.PARTITION_OFFSET_CHANGED
    missing = [
        DataLoss(deleted, topic_partition, expected_offset=start[topic_partition], group_id=group_id)
        for topic_partition in sorted(lost)
        if topic_partition not in end
    ]
    back = [
        DataLoss(changed, topic_partition, expected_offset=start[topic_partition], found_offset=end[topic_partition])
        for topic_partition in sorted(lost)
        if topic_partition in end
    ]
    return (*missing, *back)


def find_lost_beginnings(new: Iterable[TopicPartition], earliest: Mapping[TopicPartition, int]) -> tuple[DataLoss, ...]:
    """Return the new partitions without a first offset, and the partitions whose first offset is not 0.

    Args:
        new: the partitions that are read for the first time.
        earliest: first offset of each; a partition without an entry counts as deleted.
    """
    findings = []
    for topic_partition in sorted(new):
        first = earliest.get(topic_partition)
        if first is None:
            findings.append(DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, topic_partition))
        elif first != 0:
            kind = DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO
            findings.append(DataLoss(kind, topic_partition, expected_offset=0, found_offset=first))
    return tuple(findings)
