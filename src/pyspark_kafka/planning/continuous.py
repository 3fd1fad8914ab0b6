"""Where the ranges of a continuous read start and end, and which of them share a task. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.planning.data_loss import DataLoss, DataLossKind, deleted_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark_kafka.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ContinuousPlan:
    """What a continuous read reads until it is planned again.

    Attributes:
        starts: where each partition starts, sorted.
        findings: what is lost; the starts leave it out.
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

    New partitions start at their first offset, whichever that is. A new partition that is gone again before its first
    offset is known is left out: nothing of it was read, and if it comes back it is new.

    Args:
        start: next offset to read of each known partition.
        assigned: the partitions that exist; those that are not in `start` are new.
        earliest_of_new: first offset of each new partition; one without an entry does not exist any more.
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
    """What a continuous read with an end reads.

    Attributes:
        starts: where each partition starts, sorted.
        ends: where it ends, exclusive; never before its start.
        findings: logs that end before the start.
    """

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    findings: tuple[DataLoss, ...]

    @property
    def is_read(self) -> bool:
        """Return whether nothing is left to read."""
        return self.starts == self.ends


def end_plan(
    starts: Mapping[TopicPartition, int],
    known: Collection[TopicPartition],
    ends: Mapping[TopicPartition, int],
) -> EndedPlan:
    """Return where each partition of a plan ends.

    A new partition that has no end is left out, for the next query. One that is known and has no end stays as it is,
    so that its position is not lost. A log that ends before the position is data loss; the position goes back there.

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
    """Group partitions into tasks that read them for as long as they run.

    The sorted partitions are dealt out in turn: no task has two more than another one, and those of a topic are spread.

    Args:
        partitions: to group.
        tasks: how many groups there are at most; None: as many as `max_partitions` asks for.
        max_partitions: without `tasks`, how many partitions a group has at most.

    Returns:
        The groups, none of them empty, each sorted.
    """
    wanted = sorted(partitions)
    if tasks is None and max_partitions == 1:
        return tuple((topic_partition,) for topic_partition in wanted)
    count = min(len(wanted), tasks if tasks is not None else -(-len(wanted) // max_partitions))
    return tuple(tuple(wanted[first::count]) for first in range(count))
