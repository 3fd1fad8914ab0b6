"""Commit markers: the record that each committed micro-batch of a sink leaves in its transaction. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pyspark_kafka._connector.sink.tasks.transactions import CommitDecision, TaskTransaction
from pyspark_kafka.errors import CheckpointError, CorruptRecordsError, DeliveryError

_VERSION = 1
# Of a marker with a decision, which a program that does not know it must not pass over.
_VERSION_OF_DECISIONS = 2
# How many lost ranges of offsets an error names; the marker names more.
_MAX_PLACES = 20


def batch_fingerprint(sources: Sequence[str], offsets: Sequence[str | None]) -> str:
    """Return the fingerprint of a micro-batch: a hash of where it ends in each source, as the checkpoint has it.

    Args:
        sources: the names of the sources.
        offsets: the JSON of the offset of each.
    """
    return hashlib.sha256(json.dumps([sources, offsets]).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """One committed micro-batch of a sink.

    Attributes:
        sink_id: whose marker it is: the transactional id of the sink.
        query_id: the streaming query's id, which its checkpoint keeps; of a batch write the id of the job.
        batch_id: the micro-batch.
        fingerprint: a hash of the source offsets of the batch; the same when the batch is run again.
        records: how many records it wrote.
        encoded_bytes: their size in record batches.
        committed_at_ms: the driver's clock, milliseconds since 1970-01-01 UTC; for people.
        partitions: how many partitions the commit topic had when it was written, which tells in which one it is; 0
            if the version that wrote it did not note that. Not compared.
        decision: which transactions of tasks are committed with it; None: the driver's alone, which holds all records.
            Not compared.
    """

    sink_id: str
    query_id: str
    batch_id: int
    fingerprint: str
    records: int = 0
    encoded_bytes: int = 0
    committed_at_ms: int = 0
    partitions: int = field(default=0, compare=False)
    decision: CommitDecision | None = field(default=None, compare=False)

    def to_bytes(self) -> bytes:
        """Return the value of the marker's record: JSON that people can read."""
        values = {name: getattr(self, name) for name in (*_FIELDS, "partitions")}
        if self.decision is None:
            values = {"version": _VERSION, **values}
        else:
            values = {"version": _VERSION_OF_DECISIONS, **values, "decision": self.decision.to_json()}
        return json.dumps(values, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, value: bytes, where: str) -> CommitMarker:
        """Read the value of a marker's record.

        Raises:
            CheckpointError: it was written by a newer version.
            CorruptRecordsError: it is not a commit marker.
        """
        try:
            fields: dict[str, Any] = json.loads(value)
            version = fields.pop("version")
            if isinstance(version, int) and version > _VERSION_OF_DECISIONS:
                raise CheckpointError(
                    f"The commit marker at {where} is of version {version}; this version of pyspark-kafka reads "
                    f"version {_VERSION_OF_DECISIONS}. Nothing was written.",
                    condition="COMMIT_MARKER_VERSION",
                    hint="Run the query with the version that wrote it, or a newer one.",
                )
            known = {name: kind(fields[name]) for name, kind in _FIELDS.items()}
            decision = CommitDecision.from_json(fields["decision"]) if "decision" in fields else None
            return cls(**known, partitions=int(fields.get("partitions", 0)), decision=decision)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CorruptRecordsError(
                f"The record at {where} is not a commit marker ({error!r}). Nothing was written.",
                condition="COMMIT_MARKER_INVALID",
                hint="Make sure that no other program writes to the topic of commit markers.",
            ) from error


_FIELDS: dict[str, type] = {
    "sink_id": str,
    "query_id": str,
    "batch_id": int,
    "fingerprint": str,
    "records": int,
    "encoded_bytes": int,
    "committed_at_ms": int,
}


class MarkerFinding(Enum):
    """Whether a micro-batch is committed, by the newest commit marker of its sink."""

    COMMITTED = "committed"
    NOT_COMMITTED = "not committed"


def judge_marker(found: CommitMarker | None, ours: CommitMarker) -> MarkerFinding:
    """Return whether a micro-batch is committed already.

    Args:
        found: the newest commit marker of the sink, read after its transactional id was fenced.
        ours: the commit marker that the batch is about to write.

    Raises:
        CheckpointError: the marker is another query's, or of a later batch, or of the same batch with other source
            offsets: to write would duplicate records, not to write would lose some. Or its decision is not complete.
        DeliveryError: a part of the batch is lost.
    """
    if found is None:
        return MarkerFinding.NOT_COMMITTED
    if found.decision is not None and not found.decision.is_complete:
        raise CheckpointError(
            f"Batch {found.batch_id} of the sink '{ours.sink_id}' is decided, and not all transactions of its tasks "
            "are ended. Nothing was written.",
            condition="SINK_COMMIT_OPEN",
            hint="Start the query with exactlyOnceCommit=tasks, which ends them, before it is switched to 'driver'.",
            parameters=_parameters(found, ours),
        )
    if found.query_id != ours.query_id:
        raise CheckpointError(
            f"The sink '{ours.sink_id}' belongs to query {found.query_id}, which has committed batch "
            f"{found.batch_id} at {found.committed_at_ms}; this is query {ours.query_id}. Nothing was written.",
            condition="COMMIT_MARKER_OF_ANOTHER_QUERY",
            hint="Set a 'kafka.transactional.id' of its own for each query; or, if this query replaces "
            "the other query permanently, a new one.",
            parameters=_parameters(found, ours),
        )
    if found.batch_id > ours.batch_id:
        raise CheckpointError(
            f"Query {ours.query_id} is about to write batch {ours.batch_id}, but the sink '{ours.sink_id}' has "
            f"committed batch {found.batch_id} of it already. Nothing was written.",
            condition="COMMIT_MARKER_OF_A_LATER_BATCH",
            hint="An older copy of the checkpoint was restored: restore the newest one. To write the batches again on "
            "purpose, set a new 'kafka.transactional.id'.",
            parameters=_parameters(found, ours),
        )
    if found.batch_id < ours.batch_id:
        return MarkerFinding.NOT_COMMITTED
    if found.fingerprint != ours.fingerprint:
        raise CheckpointError(
            f"Batch {ours.batch_id} of query {ours.query_id} was committed by the sink '{ours.sink_id}' with other "
            f"source offsets (fingerprint {found.fingerprint}) than it has now ({ours.fingerprint}). Nothing was "
            "written.",
            condition="COMMIT_MARKER_OF_OTHER_OFFSETS",
            hint="An older copy of the checkpoint was restored, and the batch was planned again: restore the newest "
            "one. To write the batch again on purpose, set a new 'kafka.transactional.id'.",
            parameters=_parameters(found, ours),
        )
    if found.decision is not None and found.decision.lost:
        raise incomplete(found)
    return MarkerFinding.COMMITTED


def incomplete(marker: CommitMarker) -> DeliveryError:
    """Build the error for a batch of which brokers have aborted a part after it was decided.

    Args:
        marker: the marker that names the lost transactions.
    """
    noted = () if marker.decision is None else marker.decision.lost
    lost = [task for task in noted if not task.is_forgotten]
    forgotten = [task for task in noted if task.is_forgotten]
    told = []
    if lost:
        told.append(
            f"Batch {marker.batch_id} of query {marker.query_id} is committed without {_records(lost)} of its records: "
            f"brokers had aborted {len(lost)} transactions of its tasks before the driver could end them. Their "
            f"records were written at, and are not visible: {', '.join(_places(lost))}."
        )
    if forgotten:
        told.append(
            f"Whether {_records(forgotten)} records of batch {marker.batch_id} of query {marker.query_id} are "
            f"committed is not known: brokers have forgotten {len(forgotten)} transactions of its tasks "
            "(transactional.id.expiration.ms), and the log does not show their outcome. Their records were written at: "
            f"{', '.join(_places(forgotten))}."
        )
    first = "Write the lost records again by other means, or do without them." if lost else ""
    look = "Look whether the records of forgotten transactions are visible." if forgotten else ""
    return DeliveryError(
        f"{' '.join(told)} The other records of the batch are visible.",
        condition="SINK_COMMIT_INCOMPLETE",
        hint=f"{' '.join(filter(None, (look, first)))} Then run `pyspark-kafka transactions resolve {marker.sink_id}`, "
        "after which the query continues with the next batch. Do not set a new 'kafka.transactional.id': the batch "
        "would be written again, and its visible records twice. Raise kafka.transaction.timeout.ms above the time for "
        "which a driver may be away.",
        parameters={
            "sink_id": marker.sink_id,
            "batch_id": marker.batch_id,
            "lost": len(noted),
            "records": _records(noted),
        },
    )


def _records(tasks: Iterable[TaskTransaction]) -> int:
    return sum(task.records for task in tasks)


def _places(tasks: Iterable[TaskTransaction]) -> list[str]:
    places = lost_places(tasks)
    more = [f"and {len(places) - _MAX_PLACES} more"] if len(places) > _MAX_PLACES else []
    return [*places[:_MAX_PLACES], *more] or ["too many partitions to name"]


def lost_places(tasks: Iterable[TaskTransaction]) -> list[str]:
    """Return the places of transactions' records, for people: one text a task and topic-partition."""
    return [
        f"{topic_partition} from {first} to {end - 1}"
        for task in tasks
        for topic_partition, (first, end) in sorted((task.offsets or {}).items())
    ]


def _parameters(found: CommitMarker, ours: CommitMarker) -> dict[str, object]:
    return {
        "sink_id": ours.sink_id,
        "query_id": ours.query_id,
        "batch_id": ours.batch_id,
        "found_query_id": found.query_id,
        "found_batch_id": found.batch_id,
    }
