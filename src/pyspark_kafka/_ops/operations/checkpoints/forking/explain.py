"""A plan in words: records that are read again, lost or skipped, and the effect on state, numbers and sinks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch, AtTime
from pyspark_kafka._ops.operations.checkpoints.forking.plan import StateHandling
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka.errors import listed, printable

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan

_SINKS_BY_NUMBER = (
    "A sink that tells by the number alone which batches it has would drop them: Spark's file sinks do "
    "(_spark_metadata in their directory), and functions of foreachBatch may. Write to another directory there."
)
_NEW_GROUP = (
    "Under the new id it has a group and transactions of its own, and starts at this checkpoint. If its writer sets "
    "offsetsGroupId or kafka.transactional.id, set others; with the former ones it is refused, or ends the former "
    "query. What the former query wrote stays, and records behind this place are written a second time."
)
_NEW_SINK = (
    "An exactly-once sink of this connector takes it for a new query: it skips no batch, and what the former query "
    "wrote behind this place is written a second time. If its writer sets kafka.transactional.id, set another one; "
    "with the former one it is refused (COMMIT_MARKER_OF_ANOTHER_QUERY)."
)
_SAME_SINK = (
    "An exactly-once sink of this connector has no commit marker of that number, so it skips no batch: what is read "
    "again is written a second time."
)


def describe_plan(plan: ForkPlan) -> list[str]:
    """Return the consequences of the plan for the user, most important first."""
    return [
        _place(plan),
        *plan.positions.notes,
        *_recreated(plan),
        *_records(plan),
        *_state(plan),
        *_identity(plan),
        *_sinks(plan),
        *_unfinished(plan),
    ]


def _place(plan: ForkPlan) -> str:
    place, snapshot = plan.request.place, plan.snapshot
    if isinstance(place, AtTime):
        where = f"at the first record of each partition from {place.said} on"
    elif isinstance(place, AfterBatch):
        where = f"where batch {place.batch_id} ended"
    else:
        where = "at the named offsets; partitions that are not named stay where they are"
    subject = (
        f"The query {snapshot.query_id} itself"
        if plan.request.in_place
        else f"A new query, made of {snapshot.query_id},"
    )
    others = plan.positions.others
    kept = f" The sources {listed(others)} are not Kafka's and start where that batch left them." if others else ""
    return f"{subject} starts {where}.{kept}"


def _recreated(plan: ForkPlan) -> list[str]:
    if not plan.recreated:
        return []
    said = (
        f"These topics were recreated since the query has read them: {listed(plan.recreated)}. Not each of their "
        "partitions gets an offset of the topic that there is now."
    )
    end = "KAFKA_DATA_LOSS.TOPIC_RECREATED, or reads them from their beginning if failOnDataLoss is false."
    return [f"{said} The query stops with {end}"]


def _records(plan: ForkPlan) -> list[str]:
    said, moves = [], plan.positions.moves
    again, skipped, lost = (sum(getattr(each, name) for each in moves) for name in ("read_again", "skipped", "lost"))
    if again:
        said.append(
            f"At most {again:,} records are read again, and what the query made of them is written again: a sink that "
            "has it already has it twice, unless it replaces rows by key."
        )
    if skipped:
        of = listed([f"{each.topic_partition} {each.skipped:,}" for each in moves if each.skipped], noun="partitions")
        said.append(f"At most {skipped:,} records are SKIPPED: the query never reads them ({of}).")
    if lost:
        of = listed([f"{each.topic_partition} {each.lost:,}" for each in moves if each.lost], noun="partitions")
        said.append(
            f"At most {lost:,} records from there on are LOST: the brokers have deleted them ({of}). The query stops "
            "with KAFKA_DATA_LOSS, or continues at the start of the log if failOnDataLoss is false."
        )
    beyond = [each.topic_partition for each in moves if each.end is not None and each.to > each.end]
    if beyond:
        said.append(
            f"The logs of {listed(beyond, noun='partitions')} end before that place: they were recreated or cut. The "
            "query stops with KAFKA_DATA_LOSS."
        )
    if not again and not skipped and not lost and not any(each.is_recreated for each in moves):
        said.append("That is where the query stands: nothing is read again, and nothing is skipped.")
    if moves and not plan.positions.is_asked:
        said.append("The brokers were not asked whether they still have these records.")
    return said


def _state(plan: ForkPlan) -> list[str]:
    if plan.state is StateHandling.CARRIED:
        return ["Its state is the one after that batch, file by file."]
    if plan.state is StateHandling.DROPPED:
        said = "Its state is DROPPED: sums and counts begin at zero, repeats of earlier records are not noticed, and"
        return [f"{said} joins find nothing from before. Records before the place count in no result."]
    return ["The query keeps no state; --drop-state changes nothing."] if plan.request.drop_state else []


def _identity(plan: ForkPlan) -> list[str]:
    snapshot = plan.snapshot
    if not plan.has_new_id:
        return [f"The query keeps its id; its next batch is {plan.next_batch}."]
    said = [f"Its id is {plan.query_id}. Its next batch is {plan.next_batch}."]
    if plan.next_batch <= snapshot.last_number:
        numbers = f"Batches {plan.next_batch} to {snapshot.last_number} have been before under these numbers."
        said.append(f"{numbers} {_SINKS_BY_NUMBER}")
    return said


def _sinks(plan: ForkPlan) -> list[str]:
    snapshot = plan.snapshot
    if snapshot.lane_record is not None:
        group = printable(snapshot.lane_record.group_id)
        return [f"The query writes exactly once, with positions in the consumer group '{group}'. {_NEW_GROUP}"]
    if snapshot.kind is CheckpointKind.SPARK_CONTINUOUS:
        return []
    return [_NEW_SINK if plan.has_new_id else _SAME_SINK]


def _unfinished(plan: ForkPlan) -> list[str]:
    snapshot = plan.snapshot
    if not snapshot.finished:
        return ["No batch of the query is known to be finished: its position is where the first one begins."]
    if snapshot.last_number > snapshot.finished[-1]:
        said = (
            f"Batch {snapshot.last_number} has begun and is not known to be finished: the sink may have records of it"
        )
        return [f"{said} beyond the position that is shown."]
    return []
