"""The coordinator of a transactional id: fence, join partitions, end. No records pass here.

What lives here: one method a request, with the meaning of each answer. What must not: when to do which (`sink/`), and
the records of a transaction (`produce.py`). Layer: client.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.client.cluster.any_broker import call_any_broker
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.wire.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    ErrorCode,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    broker_error,
)
from pyspark_kafka.client.wire.versions import MAX_ADD_VERSION, MAX_FIND_VERSION, MAX_INIT_VERSION, MAX_PRODUCE_VERSION
from pyspark_kafka.errors import BrokerError, ConnectorError, DeadlineError, OptionError, ProtocolError, TransportError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.net.connection import Connection

_T = TypeVar("_T")

_TRANSACTION_KEY = 1
# From these on partitions join by being written to, and the end gives the epoch of the next transaction (KIP-890).
_PRODUCE_OF_V2 = 12
_END_OF_V2 = 5
_MAX_PRODUCE_VERSION_V1 = 11
# From this one on InitProducerId says who asks (KIP-360).
_INIT_OF_OWNER = 3
_FEATURE = "transaction.version"
_FEATURE_V2 = 2

# Codes after which the coordinator has to be looked up again.
_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Generation(Enum):
    """How a cluster does transactions.

    Source: KIP-98; KIP-890, part 2.
    """

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class TransactionIdentity:
    """Who writes in a transaction: what every batch of it carries."""

    producer_id: int
    producer_epoch: int
    generation: Generation


_NOBODY = TransactionIdentity(-1, -1, Generation.V1)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One transaction, as who writes its records sees it.

    Attributes:
        name: the transactional id.
        identity: who writes.
    """

    name: str
    identity: TransactionIdentity

    @property
    def max_produce_version(self) -> int:
        """The newest version to write with: from 12 on, partitions join a transaction by being written to."""
        return MAX_PRODUCE_VERSION if self.identity.generation is Generation.V2 else _MAX_PRODUCE_VERSION_V1


class TransactionInDoubtError(ConnectorError):
    """Whether a transaction was committed cannot be known from the answer; a look at what it wrote can tell."""


class TransactionLostError(ConnectorError):
    """The transaction was ended, or its id taken over, by someone else: this owner can neither go on nor commit.

    What it tried to commit before may be committed nevertheless; a look at what it wrote can tell.
    """


class TransactionalId:
    """One transactional id, from the side of who owns it.

    The first transaction begins with `fence`: the owner before, if there is one, can write no more, and what it left
    open is aborted. A later one begins with `renew`, which gives up what is open in whatever state it is, but only as
    long as nobody else has taken over: two owners who fence each other would never finish.

    Runs on: driver; one thread; methods block, each within `api_timeout_ms` unless it says otherwise. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        name: the transactional id.
        timeout_ms: after so long the coordinator aborts an open transaction by itself.

    Source: KIP-98, KIP-360, KIP-890; Kafka `TransactionManager`.
    """

    def __init__(self, client: KafkaClient, name: str, timeout_ms: int) -> None:
        self._client = client
        self.name = name
        self._timeout_ms = timeout_ms
        self._coordinator: int | None = None
        self._joined: set[TopicPartition] = set()

    def fence(self) -> OpenTransaction:
        """Become the only owner; abort what was open, and wait until it is aborted, or its commit is complete.

        Raises:
            OptionError: the timeout is above what the brokers allow.
            AccessError: the user may not use this transactional id.
            ProtocolError: the brokers know no transactions.
            DeadlineError: not done in time: what was open is still being ended, or the coordinator is away.
            TransportError: no broker can be reached.
        """
        return self._begin(f"Taking over transactional id '{self.name}'", _NOBODY)

    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        """Give up a transaction of this owner and begin another one, unless someone else has taken over.

        What was open is aborted. A commit that is being applied is completed first, so a look at what was written
        tells afterwards what became of it.

        Raises:
            TransactionLostError: someone else has taken over, or (first generation) the coordinator has ended the
                transaction after its timeout. Nothing of theirs is touched.
            AccessError: the user may not use this transactional id.
            DeadlineError: not done in time.
            TransportError: no broker can be reached.

        Source: KIP-360. An InitProducerId with the own epoch alone would not do: where a transaction is open the
        coordinator aborts it before it compares epochs (`TransactionCoordinator.prepareInitProducerIdTransit`), also
        that of whoever has taken over. EndTxn compares first.
        """
        what = f"Giving up the transaction of '{self.name}'"

        def attempt(step: Deadline) -> None:
            connection = self._connect(step)
            code = self._send_end(connection, transaction, step, commit=False)
            # Nothing is open: it was committed or aborted already, or nothing was written.
            if code != ErrorCode.INVALID_TXN_STATE:
                self._check(code, "Giving up the transaction of", connection.address, lost=True)

        self._client.retrying(what, self._client.deadline(), self._again(attempt))
        return self._begin(f"Renewing transactional id '{self.name}'", transaction.identity)

    def _begin(self, what: str, owner: TransactionIdentity) -> OpenTransaction:
        """Get the next epoch: for anyone, or for `owner` if it is still the owner."""
        self._joined = set()

        def attempt(step: Deadline) -> OpenTransaction:
            connection = self._connect(step)
            # Before version 3 nothing can be said of the owner (KIP-360, Kafka 2.5).
            named = connection.api_version(InitProducerIdRequest) >= _INIT_OF_OWNER
            request = InitProducerIdRequest(
                transactional_id=self.name,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=owner.producer_id if named else -1,
                producer_epoch=owner.producer_epoch if named else -1,
            )
            answer = connection.call(request, step, max_version=MAX_INIT_VERSION)
            if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise OptionError(
                    f"Option 'kafka.transaction.timeout.ms' is {self._timeout_ms}, more than the brokers allow: "
                    f"{connection.address} refused it. Nothing was written.",
                    condition="TRANSACTION_TIMEOUT_TOO_LARGE",
                    hint="Lower it, or raise the brokers' transaction.max.timeout.ms (15 minutes where it is not set).",
                    facts={"timeout_ms": self._timeout_ms, "broker": connection.address},
                )
            self._check(answer.error_code, "Taking over", connection.address, lost=owner is not _NOBODY)
            identity = TransactionIdentity(answer.producer_id, answer.producer_epoch, _generation(connection))
            return OpenTransaction(self.name, identity)

        # A commit that is being applied, or an abort, ends in about the time of a request to every leader.
        deadline = Deadline(self._client.options.api_timeout_ms)
        return self._client.retrying(what, deadline, self._again(attempt))

    def join(self, transaction: OpenTransaction, partitions: Iterable[TopicPartition]) -> None:
        """Make partitions part of the transaction, before anything is written to them; in V2 they join by themselves.

        Raises:
            TransactionLostError: someone else has fenced this owner, or the transaction was aborted.
            AccessError: the user may not write to one of them; it is named.
            DeadlineError: not done in time.
        """
        identity = transaction.identity
        new = sorted(set(partitions) - self._joined)
        if identity.generation is Generation.V2 or not new:
            return

        def attempt(step: Deadline) -> None:
            connection = self._connect(step)
            topics: dict[str, list[int]] = {}
            for topic_partition in new:
                topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
            topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=identity.producer_id,
                v3_and_below_producer_epoch=identity.producer_epoch,
                v3_and_below_topics=[topic_class(name=name, partitions=found) for name, found in topics.items()],
            )
            answer = connection.call(request, step, max_version=MAX_ADD_VERSION)
            refused: list[tuple[int, TopicPartition]] = []
            for topic in answer.results_by_topic_v3_and_below:
                for entry in topic.results_by_partition:
                    if entry.partition_error_code != ErrorCode.NONE:
                        where = TopicPartition(topic.name, entry.partition_index)
                        refused.append((entry.partition_error_code, where))
            # One refusal refuses all; the others then say "not attempted", which explains nothing.
            for code, where in sorted(refused, key=lambda found: found[0] == ErrorCode.OPERATION_NOT_ATTEMPTED):
                what = f"Joining {where} to the transaction of"
                self._check(code, what, connection.address, partition=where, lost=True)

        step = f"Joining {len(new)} partitions to the transaction of '{self.name}'"
        self._client.retrying(step, self._client.deadline(), self._again(attempt))
        self._joined.update(new)

    def end(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """Commit or abort; when it returns the decision is on disk, and readers see it soon.

        Raises:
            TransactionInDoubtError: the answer is missing, or does not tell. Renew, then look whether it was committed.
            AccessError: the user may not use this transactional id.
        """

        def attempt(step: Deadline) -> None:
            connection = self._connect(step)
            code = self._send_end(connection, transaction, step, commit=commit)
            if code in _DOUBTFUL:
                raise self._doubt(f"{connection.address} answered {_DOUBTFUL[code]}")
            self._check(code, "Ending the transaction of", connection.address)

        try:
            self._client.retrying(
                f"Ending the transaction of '{self.name}'", self._client.deadline(), self._again(attempt, once=True)
            )
        except (DeadlineError, TransportError) as error:
            raise self._doubt(f"no answer to its end arrived ({error.condition})") from error

    @staticmethod
    def _send_end(connection: Connection, transaction: OpenTransaction, step: Deadline, *, commit: bool) -> int:
        identity = transaction.identity
        request = EndTxnRequest(
            transactional_id=transaction.name,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=commit,
        )
        highest = _END_OF_V2 if identity.generation is Generation.V2 else _END_OF_V2 - 1
        return int(connection.call(request, step, max_version=highest).error_code)

    def _connect(self, step: Deadline) -> Connection:
        if self._coordinator is None:
            request = FindCoordinatorRequest(key=self.name, key_type=_TRANSACTION_KEY)
            answer, connection = call_any_broker(self._client, request, step, max_version=MAX_FIND_VERSION)
            if not connection.supports(InitProducerIdRequest):
                raise ProtocolError(
                    f"{connection.address} knows no transactions. Nothing was written.",
                    condition="UNSUPPORTED_VERSION",
                    hint="Exactly-once writes need Kafka 0.11 or newer.",
                    facts={"broker": connection.address},
                )
            self._check(answer.error_code, "Looking up the coordinator of", connection.address)
            self._coordinator = answer.node_id
        return self._client.connection_to(self._coordinator, step)

    def _again(self, attempt: Callable[[Deadline], _T], *, once: bool = False) -> Callable[[Deadline], _T]:
        """Look the coordinator up again after a failure that may mean that it moved.

        With `once` an answer that is lost is not asked for again: what follows may be another transaction's.
        """

        def guarded(step: Deadline) -> _T:
            try:
                return attempt(step.within(self._client.options.answer_timeout_ms))
            except ConnectorError as error:
                lost = isinstance(error, (TransportError, DeadlineError))
                if lost or (isinstance(error, BrokerError) and error.code in _MOVED):
                    self._coordinator = None
                if lost and once:
                    raise self._doubt(f"no answer to its end arrived ({error.condition})") from error
                raise

        return guarded

    def _check(
        self, code: int, what: str, address: str, *, partition: TopicPartition | None = None, lost: bool = False
    ) -> None:
        """Raise what a code means; with `lost` some of them mean that this owner is none any more."""
        if code == ErrorCode.NONE:
            return
        if lost and code in _ENDED:
            raise TransactionLostError(
                f"{what} transactional id '{self.name}' at {address} failed: the broker answered {_ENDED[code]}.",
                condition="TRANSACTION_LOST",
                facts={"transactional_id": self.name, "broker": address, "cause": _ENDED[code].partition(":")[0]},
            )
        facts: dict[str, Any] = {"transactional_id": self.name, "broker": address}
        if partition is not None:
            facts["topic_partition"] = partition
        raise broker_error(code, f"{what} transactional id '{self.name}' at {address} failed", **facts)

    def _doubt(self, reason: str) -> TransactionInDoubtError:
        return TransactionInDoubtError(
            f"Whether the transaction of '{self.name}' was committed is not known: {reason}.",
            condition="TRANSACTION_IN_DOUBT",
            facts={"transactional_id": self.name, "reason": reason},
        )


# Who asks is not, or no longer, the owner of a transaction that is open.
_ENDED: dict[int, str] = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "INVALID_PRODUCER_EPOCH: another owner has taken over",
    ErrorCode.INVALID_TXN_STATE: "INVALID_TXN_STATE: it was ended already, probably after its timeout",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "INVALID_PRODUCER_ID_MAPPING: the id has expired or was taken over",
    ErrorCode.UNKNOWN_PRODUCER_ID: "UNKNOWN_PRODUCER_ID: the id has expired",
    ErrorCode.PRODUCER_FENCED: "PRODUCER_FENCED: another owner has taken over",
    ErrorCode.TRANSACTION_ABORTABLE: "TRANSACTION_ABORTABLE",
}
# Answers to an end: that may have come after it was committed.
_DOUBTFUL: dict[int, str] = {ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN_SERVER_ERROR", **_ENDED}


def _generation(connection: Connection) -> Generation:
    able = (
        connection.features.get(_FEATURE, 0) >= _FEATURE_V2
        and connection.api_version(ProduceRequest) >= _PRODUCE_OF_V2
        and connection.api_version(EndTxnRequest) >= _END_OF_V2
    )
    return Generation.V2 if able else Generation.V1
