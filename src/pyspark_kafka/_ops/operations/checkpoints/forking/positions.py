"""The offsets of all sources' partitions at a place, and the effect on their records. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch, AtTime
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka.errors import CheckpointError, OptionError, listed

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import PartitionEdge
    from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import LogBounds
    from pyspark_kafka._ops.operations.checkpoints.forking.places import AtOffsets, Place
    from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import CheckpointSnapshot


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """The start of one partition, and its present position.

    Attributes:
        source: the name of the source.
        topic_partition: the partition.
        now: the position of the query; None if it has not read the partition.
        to: the start of the other checkpoint.
        earliest: the first offset of the log; None if it was not looked up, or the partition was deleted.
        end: the end of the log; None as above.
        stays: whether it keeps its position, because no offset of it was named or could be looked up.
        is_new: whether the other checkpoint lacks it: the query finds it, and reads it from its beginning.
        is_recreated: whether it starts in a recreated topic: `now` belongs to the former topic.
    """

    source: str
    topic_partition: TopicPartition
    now: int | None
    to: int
    earliest: int | None = None
    end: int | None = None
    stays: bool = False
    is_new: bool = False
    is_recreated: bool = False

    @property
    def read_again(self) -> int:
        """Return the number of offsets that will be read again: at least the number of the records."""
        return 0 if self.now is None or self.is_recreated else max(0, self.now - max(self.to, self.earliest or 0))

    @property
    def skipped(self) -> int:
        """Return the number of unread offsets that will never be read."""
        if self.is_recreated:
            return max(0, self.to - (self.earliest or 0))
        return 0 if self.now is None else max(0, self.to - self.now)

    @property
    def lost(self) -> int:
        """Return the number of offsets from the start on that are no longer in the log."""
        return 0 if self.earliest is None else max(0, self.earliest - self.to)


@dataclass(frozen=True, slots=True)
class Positions:
    """The start of another checkpoint.

    Attributes:
        moves: by source and partition.
        sources: the Kafka sources. A source may have no partition, if its topics did not exist yet.
        others: other sources, which keep their positions after a batch.
        notes: notes for the user about the place.
        is_asked: whether the log bounds were requested from brokers.
    """

    moves: tuple[PartitionMove, ...]
    sources: tuple[str, ...]
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_asked: bool = False

    def offsets(self) -> dict[str, KafkaSourceOffset]:
        """Return the offset of each Kafka source."""
        found: dict[str, dict[TopicPartition, int]] = {source: {} for source in self.sources}
        for move in self.moves:
            if not move.is_new:
                found[move.source][move.topic_partition] = move.to
        return {source: KafkaSourceOffset(partitions) for source, partitions in found.items()}


def resolve_place(snapshot: CheckpointSnapshot, place: Place, bounds: LogBounds | None) -> Positions:
    """Return the start of each partition.

    Args:
        snapshot: of the checkpoint.
        place: as the user named it.
        bounds: of the checkpoint's partitions; None without requests to brokers.

    Raises:
        CheckpointError: the batch does not exist, or no batch is finished and the checkpoint lacks the start of the
            first one (condition CHECKPOINT_PLACE_INVALID), or the query has other sources than Kafka
            (CHECKPOINT_OTHER_SOURCES).
        OptionError: offsets of other partitions than the query reads, or outside of the log.
    """
    if isinstance(place, AfterBatch):
        return _after_batch(snapshot, place.batch_id, bounds)
    others = [name for name, end in snapshot.last.ends.items() if end.is_other]
    if others:
        raise CheckpointError(
            f"The query of checkpoint {snapshot.location} also reads sources that are not Kafka's: {listed(others)}. "
            "Where they stood at another place only their own batches tell.",
            condition="CHECKPOINT_OTHER_SOURCES",
            hint=f"Use --batch N, where all sources are as they were. {_kept(snapshot)}",
            parameters={"location": snapshot.location, "sources": listed(others)},
        )
    unknown = [
        name for name, end in snapshot.last.ends.items() if end.offset is not None and name not in snapshot.position
    ]
    if unknown:
        # Without a position only the end of the batch would remain, and its records would count as read.
        raise CheckpointError(
            f"No batch of the query of checkpoint {snapshot.location} is finished, and the checkpoint does not keep "
            f"where the first one begins in source {listed(unknown)}: records of that batch would be skipped.",
            condition="CHECKPOINT_PLACE_INVALID",
            hint="Start the query with a new checkpointLocation, and startingTimestamp or startingOffsets; or let it "
            "finish its first batch.",
            parameters={"location": snapshot.location, "sources": listed(unknown)},
        )
    if isinstance(place, AtTime):
        return _at_time(snapshot, place, _asked(bounds))
    return _at_offsets(snapshot, place, bounds)


def partitions_of(snapshot: CheckpointSnapshot) -> set[TopicPartition]:
    """Return the partitions of all sources, now and at the requested batch."""
    now = {each for offset in snapshot.position.values() for each in offset.partitions}
    ends = () if snapshot.wanted is None else snapshot.wanted.ends.values()
    return now.union(*(end.offset.partitions for end in ends if end.offset is not None))


def _after_batch(snapshot: CheckpointSnapshot, batch_id: int, bounds: LogBounds | None) -> Positions:
    if snapshot.wanted is None:
        raise CheckpointError(
            f"Batch {batch_id} is not kept as a finished one by checkpoint {snapshot.location}.",
            condition="CHECKPOINT_PLACE_INVALID",
            hint=f"{_kept(snapshot)} Spark keeps the number of batches that spark.sql.streaming.minBatchesToRetain "
            "sets; --at and --offsets need no batches.",
            parameters={"location": snapshot.location, "batch_id": batch_id},
        )
    restarted = {source: after for source, after in snapshot.restarts.items() if after >= batch_id}
    if restarted:
        topics = sorted({topic for source in restarted for topic in snapshot.topic_ids[source].restarted})
        raise CheckpointError(
            f"After batch {batch_id} these topics were recreated: {listed(topics)}. The offsets of the batch belong to "
            "the former topics, whose records are gone.",
            condition="CHECKPOINT_PLACE_INVALID",
            hint="Use --at or --offsets, which read the current topics.",
            parameters={"location": snapshot.location, "batch_id": batch_id},
        )
    moves, sources, others = [], [], []
    for source, end in snapshot.wanted.ends.items():
        if end.offset is None:
            others.extend([source] if end.text is not None else [])
            continue
        sources.append(source)
        now = snapshot.position[source].partitions if source in snapshot.position else {}
        moves += [_move(source, each, now.get(each), to, bounds) for each, to in end.offset.partitions.items()]
        moves += [
            _move(source, each, done, _start_of_new(snapshot, each, bounds), bounds, is_new=True)
            for each, done in now.items()
            if each not in end.offset.partitions and (bounds is None or each not in bounds.gone)
        ]
    notes = [] if bounds is None else [*_gone(bounds, {each.topic_partition for each in moves})]
    new = [each.topic_partition for each in moves if each.is_new]
    if new:
        named = listed(new, noun="partitions")
        notes.append(f"The query had not found these partitions yet, and reads them from their beginning: {named}.")
    return Positions(tuple(moves), tuple(sources), tuple(others), tuple(notes), bounds is not None)


def _start_of_new(snapshot: CheckpointSnapshot, topic_partition: TopicPartition, bounds: LogBounds | None) -> int:
    """Return the start of a query in a new partition.

    For micro-batches a log that does not begin at 0 has lost records. Continuous queries begin at its first offset.
    """
    return 0 if bounds is None or snapshot.kind is CheckpointKind.MICRO_BATCH else bounds.earliest[topic_partition]


def _at_time(snapshot: CheckpointSnapshot, place: AtTime, bounds: LogBounds) -> Positions:
    moves, at_start = [], []
    notes: list[str] = []
    if place.is_future:
        notes.append("The time has not come yet: every partition starts at the end of its log.")
    for source, each, now in _partitions(snapshot):
        last = bounds.last_start(each)
        to = now if last is None else min(bounds.at.get(each, last), last)
        moves.append(_in_topic_of_now(snapshot, _move(source, each, now, to, bounds, stays=last is None), bounds))
        if last is not None and 0 < bounds.earliest[each] == to:
            at_start.append(each)
    if at_start:
        starts = listed(at_start, lambda each: f"{each} at {bounds.earliest[each]}", noun="partitions")
        notes.append(
            f"The log begins there: {starts}. Records before that are deleted: those between the time and the first "
            "one that is kept, if there were any, are lost."
        )
    notes += [*_recreated(moves), *_gone(bounds)]
    return Positions(tuple(moves), tuple(snapshot.position), notes=tuple(notes), is_asked=True)


def _at_offsets(snapshot: CheckpointSnapshot, place: AtOffsets, bounds: LogBounds | None) -> Positions:
    named = place.offsets
    known = list(_partitions(snapshot))
    topics = {each.topic for _, each, _ in known}
    others = {str(each) for each in named.partitions.keys() - {each for _, each, _ in known}}
    unknown = sorted(others | named.topics.keys() - topics)
    if unknown:
        raise OptionError(
            f"--offsets names what the query of checkpoint {snapshot.location} has not read: {listed(unknown)}. It has "
            f"read {listed(sorted({each for _, each, _ in known}), noun='partitions')}.",
            condition="CHECKPOINT_OFFSETS_INVALID",
            hint="Name partitions that it has read; others are read from their beginning as soon as they are found.",
            parameters={"unknown": listed(unknown)},
        )
    moves, wrong, open_behind = [], [], []
    for source, each, now in known:
        edge: PartitionEdge | None = named.partitions.get(each, named.topics.get(each.topic))
        to = now if edge is None else _edge(each, edge, bounds)
        is_there = bounds is None or each in bounds.latest
        move = _move(source, each, now, to, bounds, stays=edge is None or not is_there)
        move = _in_topic_of_now(snapshot, move, bounds)
        moves.append(move)
        if edge is not None and move.end is not None and move.earliest is not None:
            wrong += [] if move.earliest <= to <= move.end else [move]
            open_behind += [each] if bounds is not None and to > (bounds.last_start(each) or 0) else []
    if wrong:
        texts = listed(wrong, lambda move: f"{move.topic_partition} has {move.earliest} to {move.end}, not {move.to}")
        raise OptionError(
            f"--offsets names offsets that the logs do not have: {texts}.",
            condition="CHECKPOINT_OFFSETS_INVALID",
            hint="Use an offset within the log, -2 for its start, or -1 for its end.",
            parameters={"partitions": len(wrong)},
        )
    notes = () if bounds is None else (*_recreated(moves), *_gone(bounds))
    if open_behind:
        note = (
            f"Transactions are open before the offsets of {listed(open_behind, noun='partitions')}: a query with "
            "kafka.isolation.level read_committed waits there until they end. Spark's connector reports lost records."
        )
        notes = (*notes, note)
    return Positions(tuple(moves), tuple(snapshot.position), notes=notes, is_asked=bounds is not None)


def _edge(topic_partition: TopicPartition, edge: PartitionEdge, bounds: LogBounds | None) -> int:
    if isinstance(edge, int):
        return edge
    looked_up = _asked(bounds)
    is_start = isinstance(edge, Earliest)
    found = looked_up.earliest.get(topic_partition) if is_start else looked_up.last_start(topic_partition)
    if found is None:
        raise OptionError(
            f"--offsets names the {'start' if is_start else 'end'} of {topic_partition}, which does not exist.",
            condition="CHECKPOINT_OFFSETS_INVALID",
            hint="Leave it out: its position stays unchanged, and failOnDataLoss decides about the loss.",
            parameters={"topic_partition": topic_partition},
        )
    return found


def _asked(bounds: LogBounds | None) -> LogBounds:
    if bounds is None:
        raise OptionError(
            "The place is looked up at the brokers, and no broker is named.",
            condition="OPTION_MISSING",
            hint="Pass --bootstrap-servers host:port, set PYSPARK_KAFKA_BOOTSTRAP_SERVERS, or put bootstrap.servers "
            "into the file of --config.",
        )
    return bounds


def _partitions(snapshot: CheckpointSnapshot) -> list[tuple[str, TopicPartition, int]]:
    return [
        (source, each, now) for source, offset in snapshot.position.items() for each, now in offset.partitions.items()
    ]


def _move(
    source: str,
    topic_partition: TopicPartition,
    now: int | None,
    to: int,
    bounds: LogBounds | None,
    *,
    stays: bool = False,
    is_new: bool = False,
) -> PartitionMove:
    earliest = None if bounds is None else bounds.earliest.get(topic_partition)
    end = None if bounds is None else bounds.latest.get(topic_partition)
    return PartitionMove(source, topic_partition, now, to, earliest, end, stays, is_new)


def _in_topic_of_now(snapshot: CheckpointSnapshot, move: PartitionMove, bounds: LogBounds | None) -> PartitionMove:
    """Return a move, marked if it goes from a deleted topic to the present topic of its name."""
    if move.stays or bounds is None or move.source not in snapshot.topic_ids:
        return move
    topic = move.topic_partition.topic
    kept, now = snapshot.topic_ids[move.source].ids.get(topic), bounds.topic_ids.get(topic)
    return move if kept is None or now is None or kept == now else replace(move, is_recreated=True)


def _recreated(moves: Collection[PartitionMove]) -> tuple[str, ...]:
    topics = sorted({each.topic_partition.topic for each in moves if each.is_recreated})
    if not topics:
        return ()
    said = (
        f"These topics were recreated since the query has read them: {listed(topics)}. Its positions there are of the "
        "former topics: nothing of those is read again, and what was not read of them is gone."
    )
    return (said,)


def _gone(bounds: LogBounds, partitions: Collection[TopicPartition] | None = None) -> tuple[str, ...]:
    """Return the note about partitions that do not exist: all requested ones, or some of them."""
    found = sorted(bounds.gone if partitions is None else bounds.gone.intersection(partitions))
    if not found:
        return ()
    gone = listed(found, noun="partitions")
    return (f"These partitions do not exist any more: {gone}. Their positions stay; the query says what that means.",)


def _kept(snapshot: CheckpointSnapshot) -> str:
    if not snapshot.finished:
        return "No batch is finished."
    first, last = snapshot.finished[0], snapshot.finished[-1]
    if last - first + 1 == len(snapshot.finished):
        return f"Batch {first} is there." if first == last else f"Batches {first} to {last} are there."
    return f"These batches are there: {listed(snapshot.finished[::-1])}."
