"""The positions that lag is measured from: of a checkpoint, or of a consumer group."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, fetch_group_offsets
from pyspark_kafka._connector.sink.source_positions import UNKNOWN_ID
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.text import span_text
from pyspark_kafka.errors import CheckpointError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint
    from pyspark_kafka.checkpoint.continuous_files import WaitingStep

# The read rate is the mean over this number of the checkpoint's batches.
_BATCHES_OF_RATE = 10
# For how long it says something about a query that has not finished another: a pause of a minute is usual.
_RATE_HOLDS_MS, _RATE_HOLDS_BATCHES = 60_000, 3


@dataclass(frozen=True, slots=True)
class LagPositions:
    """The positions of a reader, and its name.

    Attributes:
        origin: in words, such as `consumer group 'orders'`.
        partitions: the next offset to read, by partition.
        errors: why a position is not known, by partition.
        topic_ids: the ids of the source topics, by name; none if they were not kept.
        reached_at_ms: when the positions were reached, in ms since 1970-01-01 UTC; None if that is not known.
        consumed_per_s: records read per second of late, by partition; none if that is not known.
        consumed_until_ms: the end of that rate's validity, in ms since 1970-01-01 UTC: later, the query has paused or
            ended. None: it is always valid.
        lanes_group: the consumer group in which an exactly-once continuous query commits its positions, ahead of its
            checkpoint; None for other queries.
        lanes_partitions: the partitions with positions in that group.
        missing: the missing information about all positions, and the reason; sentences.
        waiting: the steps of a continuous query with open windows, or other timers that wait for event time.
    """

    origin: str
    partitions: Mapping[TopicPartition, int]
    errors: Mapping[TopicPartition, ConnectorError] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    reached_at_ms: int | None = None
    consumed_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    consumed_until_ms: int | None = None
    lanes_group: str | None = None
    lanes_partitions: frozenset[TopicPartition] = frozenset()
    missing: tuple[str, ...] = ()
    waiting: tuple[WaitingStep, ...] = ()


def group_positions(client: KafkaClient, group_id: str) -> LagPositions:
    """Return the positions of a consumer group.

    Runs on: driver and executor; blocks.

    Raises:
        ConnectorError: as `fetch_group_offsets`.
    """
    found = fetch_group_offsets(client, group_id)
    errors = {where: each for where, each in found.items() if isinstance(each, ConnectorError)}
    return LagPositions(f"consumer group '{group_id}'", _offsets(found), errors)


def _offsets(found: Mapping[TopicPartition, GroupPosition | ConnectorError]) -> dict[TopicPartition, int]:
    return {where: each.offset for where, each in found.items() if isinstance(each, GroupPosition)}


def checkpoint_positions(location: str) -> LagPositions:
    """Return the position of a checkpoint's query: the end of its last finished batch.

    If two of its sources read one partition, the source that is further behind counts.

    Runs on: any program; blocks on the file system.

    Raises:
        CheckpointError: there is no checkpoint, it cannot be read, or it has no position of a Kafka source.
    """
    checkpoint = read_checkpoint(location)
    positions = merge_positions(checkpoint.position().values())
    if not positions:
        raise CheckpointError(
            f"Checkpoint {checkpoint.location} has no position of a Kafka source: no batch is finished, or the query "
            "does not read Kafka. Nothing was measured.",
            condition="CHECKPOINT_WITHOUT_POSITIONS",
            hint="Name the checkpoint of a query that reads Kafka and has finished its first batch.",
            parameters={"location": checkpoint.location},
        )
    ids: dict[str, str] = {}
    for source in checkpoint.sources():
        ids |= checkpoint.topic_ids(source).ids
    lanes = checkpoint.lane_record()
    if lanes is not None:
        ids |= {tp.topic: topic_id for tp, topic_id in lanes.partitions.items() if topic_id != UNKNOWN_ID}
    reached_ms = _reached_ms(checkpoint)
    rates, apart_ms = _rates(checkpoint, positions)
    waiting, missing = _waiting(checkpoint)
    holds_ms = max(_RATE_HOLDS_MS, _RATE_HOLDS_BATCHES * apart_ms)
    return LagPositions(
        f"checkpoint {checkpoint.location}",
        positions,
        topic_ids=ids,
        reached_at_ms=reached_ms,
        consumed_per_s=rates,
        consumed_until_ms=None if reached_ms is None else reached_ms + holds_ms,
        lanes_group=None if lanes is None else lanes.group_id,
        lanes_partitions=frozenset() if lanes is None else frozenset(lanes.partitions),
        missing=missing,
        waiting=waiting,
    )


def _waiting(checkpoint: QueryCheckpoint) -> tuple[tuple[WaitingStep, ...], tuple[str, ...]]:
    """Return the waiting steps, and why they are not known."""
    try:
        return checkpoint.waiting_steps(), ()
    except CheckpointError as error:
        return (), (f"the topic-partitions that hold windows open: {error.message}",)


def ahead_of_checkpoint(client: KafkaClient, positions: LagPositions) -> LagPositions:
    """Return the positions, advanced to what lanes of an exactly-once continuous query have committed since.

    Lanes commit their positions with their records, so the group is right where it is ahead of the checkpoint. If it
    cannot be reached, the result has the positions of the checkpoint, and a note.

    Runs on: driver and executor; blocks.
    """
    if positions.lanes_group is None:
        return positions
    try:
        committed = _offsets(fetch_group_offsets(client, positions.lanes_group))
    except ConnectorError as error:
        reason = f"the positions of consumer group '{positions.lanes_group}', ahead of the checkpoint: {error.message}"
        return replace(positions, missing=(*positions.missing, reason))
    known = positions.partitions
    later = {tp: max(known.get(tp, 0), committed[tp]) for tp in positions.lanes_partitions if tp in committed}
    return replace(positions, partitions={**known, **later})


def without_old_rates(positions: LagPositions, now_ms: int, *, is_behind: bool) -> LagPositions:
    """Return the positions without rates of a query that has ended since, or pauses. Pure.

    Args:
        positions: of the query.
        now_ms: the time, in ms since 1970.
        is_behind: whether there is anything to read: of others nobody misses a rate.
    """
    until, reached = positions.consumed_until_ms, positions.reached_at_ms
    if not positions.consumed_per_s or until is None or reached is None or now_ms <= until:
        return positions
    ended = span_text(now_ms - reached)
    reason = f"the rate of reading: the last batch ended {ended} ago, so the query pauses or has ended"
    return replace(positions, consumed_per_s={}, missing=(*positions.missing, *([reason] if is_behind else [])))


def merge_positions(offsets: Iterable[KafkaSourceOffset]) -> dict[TopicPartition, int]:
    """Return the positions of several sources; of one that two sources read, the lower position. Pure."""
    merged: dict[TopicPartition, int] = {}
    for offset in offsets:
        for topic_partition, position in offset.partitions.items():
            merged[topic_partition] = min(position, merged.get(topic_partition, position))
    return merged


def _reached_ms(checkpoint: QueryCheckpoint) -> int | None:
    """Return the time when the last batch was finished; or planned, if its file has the time of a copy."""
    last = checkpoint.last_finished()
    if last is None:
        return None
    written, planned = checkpoint.history.written_ms(last.batch_id), last.planned_at_ms
    return planned if written is None or (planned is not None and written < planned) else written


def _rates(
    checkpoint: QueryCheckpoint, positions: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, float], int]:
    """Return the last batches' read rate in records a second, by partition, and the ms from one to the next.

    There are none if there are too few batches. What a rewind moved was not read: its batch is the first that counts.
    """
    history = checkpoint.history
    numbers = [each for each in history.finished[-_BATCHES_OF_RATE - 1 :] if history.is_begun(each)]
    # The files of a copied checkpoint have the times of the copy.
    batches: list[PlannedBatch] = []
    for number in reversed(numbers):
        batch = history.get(number)
        if batch is None or batch.planned_at_ms is None:
            break
        batches.insert(0, batch)
        if batch.is_moved:
            break
    if len(batches) < 2:
        return {}, 0
    first, last = batches[0], batches[-1]
    span_ms = (last.planned_at_ms or 0) - (first.planned_at_ms or 0)
    if span_ms <= 0:
        return {}, 0
    before = merge_positions(first.offsets.values())
    rates = {
        topic_partition: (position - before[topic_partition]) * 1000 / span_ms
        for topic_partition, position in positions.items()
        if topic_partition in before and position >= before[topic_partition]
    }
    return rates, span_ms // (len(batches) - 1)
