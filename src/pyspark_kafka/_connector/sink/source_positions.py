"""The source positions that an exactly-once continuous query keeps in its consumer group.

Lanes commit their positions to the group in the transactions of their records, so the group is right where checkpoint
and group differ. The record in the checkpoint names the positions that the group must have. Pure: no sockets, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.transactions.group_positions import GroupPosition

# The id of a topic if brokers return none; it is equal to any.
UNKNOWN_ID = "-"
# With a state, and without.
_VERSION, _VERSION_WITH_STATE = "v1", "v2"


@dataclass(frozen=True, slots=True)
class PositionNote:
    """The note beside each position in the group; it distinguishes this query's positions from any others.

    Attributes:
        query_id: the query that committed it.
        topic_id: the topic that it belongs to.
        epoch: the epoch that ends there; "-" where a run began.
        state: the engine's name for the state version that belongs to it; empty without state. It has no space.
    """

    query_id: str
    topic_id: str
    epoch: str = "-"
    state: str = ""

    def text(self) -> str:
        """Return it as the metadata of a position."""
        parts = [_VERSION, self.query_id, self.topic_id, self.epoch]
        if self.state:
            parts = [_VERSION_WITH_STATE, *parts[1:], self.state]
        return " ".join(parts)

    @classmethod
    def parse(cls, text: str) -> PositionNote | None:
        """Read the metadata of a position; None if nobody like us has written it."""
        version, *parts = text.split(" ")
        if len(parts) != {_VERSION: 3, _VERSION_WITH_STATE: 4}.get(version):
            return None
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """The checkpoint's record of a query's transactions.

    Attributes:
        owner: the driver that has taken over last.
        group_id: the consumer group.
        prefix: the transactional ids are this, a hyphen, and the number of the lane.
        lanes: the number of lanes that may have written.
        partitions: the partitions with a position in the group, and their topic ids.
        former: for partitions of recreated topics, the checkpoint's position in the former topic: while the checkpoint
            has that one, the group's position counts, though it may be less.
        left: partitions that the last plan did not have, and their topic ids: as long as the checkpoint has
            them, the group may be ahead of it, and their topics may be recreated.
    """

    owner: str
    group_id: str
    prefix: str
    lanes: int = 0
    partitions: Mapping[TopicPartition, str] = field(default_factory=dict)
    former: Mapping[TopicPartition, int] = field(default_factory=dict)
    left: Mapping[TopicPartition, str] = field(default_factory=dict)

    def tracked(self, checkpoint: Mapping[TopicPartition, int]) -> list[tuple[TopicPartition, str]]:
        """Return the partitions whose positions in the group count, with the ids of their topics, sorted."""
        left = {tp: topic_id for tp, topic_id in self.left.items() if tp in checkpoint}
        return sorted({**left, **self.partitions}.items())

    def planned(
        self, checkpoint: Mapping[TopicPartition, int], partitions: Mapping[TopicPartition, str], lanes: int
    ) -> LaneRecord:
        """Return the record for a run.

        Args:
            checkpoint: the position that the checkpoint has now.
            partitions: the partitions of the plan, with the ids of their topics.
            lanes: the number of lanes.
        """
        tracked = dict(self.tracked(checkpoint))
        former = {
            tp: before
            for tp, topic_id in partitions.items()
            if (before := checkpoint.get(tp)) is not None
            and (self.former.get(tp) == before or not is_same(tracked.get(tp, topic_id), topic_id))
        }
        left = {tp: topic_id for tp, topic_id in tracked.items() if tp in checkpoint and tp not in partitions}
        return replace(self, lanes=max(lanes, self.lanes), partitions=partitions, former=former, left=left)

    def known(self, checkpoint: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the positions of the checkpoint without the positions of former topics."""
        return {tp: offset for tp, offset in checkpoint.items() if self.former.get(tp) != offset}


def check_owned(group: Mapping[TopicPartition, GroupPosition], query_id: str, group_id: str) -> None:
    """Check that only this query has committed positions to its group.

    Raises:
        CheckpointError: something else has: two users of a group would overwrite each other's positions.
    """
    foreign = sorted(
        topic_partition
        for topic_partition, position in group.items()
        if (note := PositionNote.parse(position.metadata)) is None or note.query_id != query_id
    )
    if foreign:
        raise CheckpointError(
            f"Consumer group '{group_id}' has positions that query {query_id} has not written: "
            f"{listed(foreign, noun='partitions')}. Nothing was read.",
            condition="OFFSETS_GROUP_IN_USE",
            hint="Set option 'offsetsGroupId' of the writer to a group of the query alone, or leave it out.",
            parameters={"group_id": group_id, "query_id": query_id},
        )


def restored(record: LaneRecord, group: Mapping[TopicPartition, GroupPosition]) -> LaneRecord:
    """Return the record of a query; if the checkpoint has lost it, what the positions of the group say about it.

    Args:
        record: as the checkpoint has it; a record without partitions is of a query that has never run in this mode, or
            was lost.
        group: the positions of the group, all of this query.
    """
    if record.partitions:
        return record
    notes = {topic_partition: PositionNote.parse(position.metadata) for topic_partition, position in group.items()}
    partitions = {topic_partition: note.topic_id for topic_partition, note in notes.items() if note is not None}
    # A lane has a partition at least.
    return replace(record, lanes=max(record.lanes, len(partitions)), partitions=partitions)


def merge_positions(
    checkpoint: Mapping[TopicPartition, int],
    group: Mapping[TopicPartition, GroupPosition],
    record: LaneRecord | None,
    topic_ids: Mapping[str, str],
) -> dict[TopicPartition, int]:
    """Return the positions where the source continues: for each partition the later one of checkpoint and group.

    Positions of partitions that the record does not name are ignored: the query has not read these partitions in this
    mode since, so the checkpoint is right about them. Positions of a former topic of the same name are ignored, too;
    the source handles the loss of that topic.

    Args:
        checkpoint: where the checkpoint says that the source continues.
        group: the positions of the group, all of this query.
        record: of the former run; None if there was none in this mode.
        topic_ids: the ids of the topics that there are now, by name.

    Raises:
        CheckpointError: the group has lost positions, so that records could be written twice.
    """
    start = dict(checkpoint)
    known = checkpoint if record is None else record.known(checkpoint)
    lost: list[TopicPartition] = []
    for topic_partition, recorded in () if record is None else record.tracked(checkpoint):
        now = topic_ids.get(topic_partition.topic)
        if now is not None and not is_same(now, recorded):
            continue
        position = group.get(topic_partition)
        note = None if position is None else PositionNote.parse(position.metadata)
        if position is not None and note is not None and is_same(note.topic_id, recorded):
            start[topic_partition] = max(known.get(topic_partition, 0), position.offset)
        elif now is not None:
            # Brokers remove the positions of a deleted topic; these were removed for another reason.
            lost.append(topic_partition)
    if lost and record is not None:
        raise _expired(lost, record.group_id)
    return start


def committed_states(
    checkpoint: Mapping[TopicPartition, int],
    group: Mapping[TopicPartition, GroupPosition],
    record: LaneRecord,
    topic_ids: Mapping[str, str],
    epoch: int,
) -> dict[TopicPartition, str | None]:
    """Return the state for the positions of `merge_positions`, where it differs from the checkpoint's state.

    The state goes with its position. Where both are at the same position the later epoch decides: a state may change
    although no record was read.

    Args:
        checkpoint: where the checkpoint says that the source continues.
        group: the positions of the group, all of this query.
        record: of the former run.
        topic_ids: the ids of the topics that there are now, by name.
        epoch: the last one of the checkpoint; -1 for none.

    Returns:
        The text that was committed with the position; empty if there was none. None for a state that begins empty, as
        its topic was recreated.
    """
    states: dict[TopicPartition, str | None] = {}
    known = record.known(checkpoint)
    for topic_partition, recorded in record.tracked(checkpoint):
        now = topic_ids.get(topic_partition.topic)
        if now is not None and not is_same(now, recorded):
            states[topic_partition] = None
            continue
        position = group.get(topic_partition)
        note = None if position is None else PositionNote.parse(position.metadata)
        if position is None or note is None or not is_same(note.topic_id, recorded):
            continue
        before = known.get(topic_partition, -1)
        is_later = note.epoch.isdecimal() and int(note.epoch) > epoch
        if position.offset > before or (position.offset == before and is_later):
            states[topic_partition] = note.state
    return states


def is_same(first: str, second: str) -> bool:
    """Return whether two ids belong to one topic, as far as they are known."""
    return first == second or UNKNOWN_ID in (first, second)


def _expired(lost: list[TopicPartition], group_id: str) -> CheckpointError:
    return CheckpointError(
        f"Consumer group '{group_id}' has no position any more for {listed(lost, noun='partitions')}, which the query "
        "has read exactly once before. Without them it may write records a second time. Nothing was read.",
        condition="OFFSETS_GROUP_EXPIRED",
        hint="Brokers remove positions that were not renewed for offsets.retention.minutes (7 days where it is not "
        "set), or someone deleted them. If the query was ended by stop(), its checkpoint has every position: delete "
        "the checkpoint's file continuous/transactions and start it again; it continues at the checkpoint where the "
        "group has no position. Otherwise the last epoch may be written again.",
        parameters={"group_id": group_id, "partitions": len(lost)},
    )
