"""The starts and ends of a continuous read, and the partitions that share a task. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._connector.planning.data_loss import DataLoss, DataLossKind, deleted_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ContinuousPlan:
    """The plan of a continuous read, until it is planned again.

    Attributes:
        starts: where each partition starts, sorted.
        findings: the lost records, which the starts leave out.
    """

    starts: Mapping[TopicPartition, int]
    findings: tuple[DataLoss, ...]


def plan_continuous(
    start: Mapping[TopicPartition, int],
    assigned: Collection[TopicPartition],
    earliest_of_new: Mapping[TopicPartition, int],
    *,
    group_id: str | None = None,
) -> ContinuousPlan:
    """Plan to read from `start` on.

    New partitions start at their first offset. A new partition that is deleted before its first
    offset is known is left out: nothing of it was read, and if it is created again it is new.

    Args:
        start: next offset to read of each known partition.
        assigned: the existing partitions; partitions that are not in `start` are new.
        earliest_of_new: first offset of each new partition; a partition without an entry does not exist any more.
        group_id: the query's `kafka.group.id`; Spark has a condition of its own for partitions deleted with one.

    Source: Spark `KafkaContinuousStream.planInputPartitions`.
    """
    exists = frozenset(assigned)
    kind = deleted_kind(group_id)
    findings = tuple(
        DataLoss(kind, topic_partition, expected_offset=start[topic_partition], group_id=group_id)
        for topic_partition in sorted(start.keys() - exists)
    )
    starts = {
        tp: start[tp] if tp in start else earliest_of_new[tp]
        for tp in sorted(exists)
        if tp in start or tp in earliest_of_new
    }
    return ContinuousPlan(starts, findings)


@dataclass(frozen=True, slots=True)
class EndedPlan:
    """The plan of a continuous read with an end.

    Attributes:
        starts: where each partition starts, sorted.
        ends: the exclusive end of each partition; never before its start.
        findings: logs that end before the start.
    """

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    findings: tuple[DataLoss, ...]

    @property
    def is_read(self) -> bool:
        """Return whether everything is read."""
        return self.starts == self.ends


def end_plan(
    starts: Mapping[TopicPartition, int],
    known: Collection[TopicPartition],
    ends: Mapping[TopicPartition, int],
) -> EndedPlan:
    """Return the end of each planned partition.

    A new partition without an end is left out, for the next query. A known partition without an end stays as it is,
    so that its position is not lost. A log that ends before the position is data loss; the position becomes that end.

    Args:
        starts: of a plan.
        known: the partitions that were read before; the others are new.
        ends: the ends of all partitions when the query began.
    """
    kept: dict[TopicPartition, int] = {}
    found: dict[TopicPartition, int] = {}
    findings = []
    for topic_partition, start in starts.items():
        end = ends.get(topic_partition)
        if end is None and topic_partition not in known:
            continue
        if end is not None and end < start and topic_partition in known:
            kind = DataLossKind.PARTITION_OFFSET_CHANGED
            findings.append(DataLoss(kind, topic_partition, expected_offset=start, found_offset=end))
            kept[topic_partition] = found[topic_partition] = end
        else:
            kept[topic_partition] = start
            found[topic_partition] = start if end is None else max(start, end)
    return EndedPlan(kept, found, tuple(findings))


def share_partitions(
    partitions: Iterable[TopicPartition], *, tasks: int | None = None, max_partitions: int = 1
) -> tuple[tuple[TopicPartition, ...], ...]:
    """Group partitions into long-running tasks.

    The sorted partitions go to the tasks in turn: sizes of tasks differ by at most one, and each topic is spread.

    Args:
        partitions: to group.
        tasks: the maximum number of groups; None: the number that follows from `max_partitions`.
        max_partitions: without `tasks`, the maximum number of partitions in a group.

    Returns:
        The groups, none of them empty, each sorted.
    """
    wanted = sorted(partitions)
    if tasks is None and max_partitions == 1:
        return tuple((topic_partition,) for topic_partition in wanted)
    count = min(len(wanted), tasks if tasks is not None else -(-len(wanted) // max_partitions))
    return tuple(tuple(wanted[first::count]) for first in range(count))
