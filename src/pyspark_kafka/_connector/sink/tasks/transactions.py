"""Task transactions of a micro-batch, and the decision to commit them, as a commit marker holds it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._connector.sink.transactional_ids import task_prefix

_POOL = r"(\d+)\.(\d+)"
_RANDOM = re.compile("[0-9a-f]{32}")
_TASK = re.compile(rf"{_POOL}-{_RANDOM.pattern}")
# Of a decision with the offsets of its tasks: a record of brokers' default size, 1 MiB, has room for it.
_MAX_BYTES = 900_000


@dataclass(frozen=True, slots=True)
class TaskTransaction:
    """The uncommitted transaction of one task.

    Attributes:
        transaction: its transactional id and identity; nobody has used this identity for another transaction.
        records: the number of its records.
        encoded_bytes: their size in record batches.
        offsets: the first offset, and the offset after the last one, by topic-partition; None: too many to be named.
            Other producers' records may be between them.
        timeout_ms: after which brokers abort it automatically; None: they do not, because it is part of a two-phase
            commit (KIP-939), or it was read from a marker, which does not hold the timeout.
        is_forgotten: for a lost transaction, whether brokers have forgotten its outcome, so it may be visible.
    """

    transaction: OpenTransaction
    records: int = 0
    encoded_bytes: int = 0
    offsets: dict[TopicPartition, tuple[int, int]] | None = None
    timeout_ms: int | None = None
    is_forgotten: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the value in a commit marker."""
        identity = self.transaction.identity
        value: dict[str, Any] = {
            "id": self.transaction.name,
            "producer": [identity.producer_id, identity.producer_epoch, identity.generation.value],
            "records": self.records,
        }
        if self.offsets is not None:
            by_topic: dict[str, dict[str, list[int]]] = {}
            for topic_partition, bounds in sorted(self.offsets.items()):
                by_topic.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = list(bounds)
            value["offsets"] = by_topic
        if self.is_forgotten:
            value["forgotten"] = True
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TaskTransaction:
        """Read the value in a commit marker; raises ValueError, KeyError or TypeError if it is malformed."""
        offsets = None
        if "offsets" in value:
            offsets = {
                TopicPartition(topic, int(number)): (int(first), int(end))
                for topic, bounds in value["offsets"].items()
                for number, (first, end) in bounds.items()
            }
        return cls(
            OpenTransaction(str(value["id"]), _identity(value["producer"])),
            int(value["records"]),
            offsets=offsets,
            is_forgotten=bool(value.get("forgotten", False)),
        )


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """The decision to commit task transactions, and its progress.

    Attributes:
        pool: the pool of the tasks' transactional ids; see `continue_pool`. Empty if it must not be used again.
        identity: of the sink's transactional id, when this was written.
        tasks: the transactions; none once all are ended.
        is_complete: whether all are ended, and nobody uses an id of the micro-batch any more.
        lost: the transactions that brokers had aborted before they could be committed, or have forgotten.
        until_ms: when it may be committed for the last time, by the driver's clock, because brokers abort the
            transactions soon after; None: at any time. Not in the record.
    """

    pool: str
    identity: TransactionIdentity
    tasks: tuple[TaskTransaction, ...] = ()
    is_complete: bool = False
    lost: tuple[TaskTransaction, ...] = ()
    until_ms: int | None = field(default=None, compare=False)

    def completed(self, lost: Iterable[TaskTransaction], *, pool: str) -> CommitDecision:
        """Return the decision to write when every transaction is ended, with the pool that may be used again."""
        return replace(self, pool=pool, tasks=(), is_complete=True, lost=tuple(lost), until_ms=None)

    def to_json(self) -> dict[str, Any]:
        """Return the value in a commit marker; without offsets if a record has no room for them."""
        identity = self.identity
        value: dict[str, Any] = {
            "pool": self.pool,
            "by": [identity.producer_id, identity.producer_epoch, identity.generation.value],
            "complete": self.is_complete,
            "tasks": [task.to_json() for task in self.tasks],
            "lost": [task.to_json() for task in self.lost],
        }
        if len(json.dumps(value)) > _MAX_BYTES:
            for task in (*value["tasks"], *value["lost"]):
                task.pop("offsets", None)
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> CommitDecision:
        """Read the value in a commit marker; raises ValueError, KeyError or TypeError if it is malformed."""
        return cls(
            str(value["pool"]),
            _identity(value["by"]),
            tuple(TaskTransaction.from_json(task) for task in value["tasks"]),
            bool(value["complete"]),
            tuple(TaskTransaction.from_json(task) for task in value["lost"]),
        )


@dataclass(frozen=True, slots=True)
class Planning:
    """The planning of a micro-batch: its tasks carry it, and return it to the driver's commit. Plain data.

    Attributes:
        transaction: of the sink's transactional id, under which the decision is written; nobody has taken over before.
        pool: of the tasks' transactional ids.
        planned_at_ms: the driver's clock before any of their transactions began, and when the planning was done,
            milliseconds since 1970-01-01 UTC.
    """

    transaction: OpenTransaction
    pool: str
    planned_at_ms: int


def _identity(value: list[int]) -> TransactionIdentity:
    producer_id, epoch, generation = value
    return TransactionIdentity(int(producer_id), int(epoch), Generation(generation))


def new_pool(planned: TransactionIdentity) -> str:
    """Return the name of a pool that nobody has used: of the identity that the sink's transactional id got now."""
    return f"{planned.producer_id}.{planned.producer_epoch}"


def continue_pool(found: CommitDecision | None, planned: TransactionIdentity) -> str | None:
    """Return the pool of the newest decision, if nobody can be using it still; None if a new one is needed.

    Nobody can if the micro-batch is complete and nobody has taken the sink's transactional id over since, which its
    epoch tells: each takeover raises it. A driver that was stopped in between, however long, has taken it over, so the
    pool that it may be about to abort is not used again.

    Args:
        found: the newest one, read after the takeover.
        planned: the identity that the takeover has returned.

    Source: docs/internals/transaction-rules.md, T28.
    """
    if found is None or not found.is_complete or not found.pool:
        return None
    # In V2 the end of the transaction that wrote it has raised the epoch as well.
    step = 2 if found.identity.generation is Generation.V2 else 1
    expected = replace(found.identity, producer_epoch=found.identity.producer_epoch + step)
    return found.pool if planned == expected else None


def is_of_pool(name: str, sink_id: str, pool: str) -> bool:
    """Whether a transactional id is of a task that uses a pool, and not of another sink whose name begins so."""
    prefix = task_prefix(sink_id, pool)
    return name.startswith(prefix) and _RANDOM.fullmatch(name.removeprefix(prefix)) is not None


def is_abandoned(
    name: str, sink_id: str, planned: TransactionIdentity, pool: str, newest: CommitDecision | None = None
) -> bool:
    """Whether a transactional id is of a task whose driver was replaced: its transaction can be aborted.

    Pools that began before the sink's transactional id was taken over, and are not continued, are of drivers that can
    decide nothing any more. A younger pool is of a driver that has taken over since: it is left alone.

    Args:
        name: the transactional id.
        sink_id: the sink's.
        planned: the identity that this driver's takeover has returned.
        pool: that this driver uses.
        newest: the newest decision, written before this driver's takeover.
    """
    found = _TASK.fullmatch(name.removeprefix(f"{sink_id}-")) if name.startswith(f"{sink_id}-") else None
    if found is None or name.startswith(task_prefix(sink_id, pool)):
        return False
    producer_id, epoch = int(found[1]), int(found[2])
    if producer_id == planned.producer_id:
        return epoch < planned.producer_epoch
    # The numbers of producers are in no order. The sink's id gets another one when its epochs are used up, after about
    # 10,000 micro-batches, and the former one never again.
    former = {newest.identity.producer_id, _producer_of(newest.pool)} if newest is not None else set()
    return producer_id in former


def _producer_of(pool: str) -> int | None:
    found = re.fullmatch(_POOL, pool)
    return None if found is None else int(found[1])
