"""Transactions from outside, for people who operate them: what the coordinators know, whoever began them.

What lives here: listing and describing. What must not: a transaction of one's own (`transactions.py`), and anything
that is shown (`cli/`). Layer: client.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.cluster.any_broker import call_any_broker
from pyspark_kafka.client.cluster.exchanges import call_brokers
from pyspark_kafka.client.wire.messages import (
    DescribeTransactionsRequest,
    ErrorCode,
    FindCoordinatorRequest,
    ListTransactionsRequest,
    broker_error,
)
from pyspark_kafka.client.wire.versions import MAX_FIND_VERSION
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

_TRANSACTION_KEY = 1
# So many ids are a request of some 50 kB.
_IDS_OF_A_REQUEST = 500


class TransactionState(str, Enum):
    """What a coordinator says of a transactional id; the values are those on the wire.

    Source: Kafka `TransactionState`.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    UNKNOWN = "Unknown"

    def __str__(self) -> str:
        return self.value

    @property
    def is_open(self) -> bool:
        """Whether records may still wait for a marker: nothing of it is known to be ended."""
        return self not in _ENDED


_ENDED = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
        TransactionState.DEAD,
    }
)
_OPEN_ON_THE_WIRE = [
    TransactionState.ONGOING.value,
    TransactionState.PREPARE_COMMIT.value,
    TransactionState.PREPARE_ABORT.value,
    TransactionState.PREPARE_EPOCH_FENCE.value,
]


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """The newest transaction of a transactional id.

    Attributes:
        transactional_id: the name.
        state: where it stands; `UNKNOWN` for states that are newer than this client.
        producer_id: who writes…
        producer_epoch: …and as the how-manieth owner.
        coordinator_id: the broker that decides about it.
        coordinator: that broker's `host:port`.
        timeout_ms: after so long the coordinator aborts it by itself.
        began_at_ms: when its first partition joined, by the coordinator's clock, milliseconds since 1970-01-01 UTC;
            None where there is none.
        partitions: what it holds, sorted: those that lack their marker, as far as this user may describe the topics.
    """

    transactional_id: str
    state: TransactionState
    producer_id: int
    producer_epoch: int
    coordinator_id: int
    coordinator: str
    timeout_ms: int
    began_at_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def same_transaction(self, other: TransactionDescription | None) -> bool:
        """Whether both are looks at one transaction, which has not gone on meanwhile."""
        return other is not None and _identity(self) == _identity(other)


def _identity(found: TransactionDescription) -> tuple[object, ...]:
    return found.state, found.producer_id, found.producer_epoch, found.began_at_ms


def list_transactions(
    client: KafkaClient, *, prefix: str = "", open_only: bool = True, deadline: Deadline | None = None
) -> list[TransactionDescription]:
    """Ask every broker which transactions it coordinates, and what they are.

    Transactional ids that this user may not describe are left out; brokers do not say so.

    Runs on: driver; blocks.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        prefix: how the transactional ids begin.
        open_only: leave out those that are ended; brokers remember them for days (`transactional.id.expiration.ms`).
        deadline: for all requests; None takes `api_timeout_ms`.

    Returns:
        Descriptions by transactional id, ascending.

    Raises:
        ProtocolError: a broker is older than Kafka 3.0 (condition UNSUPPORTED_VERSION).
        BrokerError: a broker refused.
        DeadlineError: not answered in time; a list that lacks a broker would look as if nothing were open there.
        TransportError: a broker cannot be reached.

    Source: KIP-664.
    """

    def attempt(step: Deadline) -> list[TransactionDescription]:
        # Each with a request of its own: sending it writes the version into it.
        asked = {broker_id: _list_request(open_only=open_only) for broker_id in client.fetch_metadata((), step).brokers}
        listed = call_brokers(client, asked, step)
        names: dict[int, list[str]] = {}
        for broker_id, answer in sorted(listed.items()):
            if answer.error is not None:
                raise _explained(answer.error, answer.address, ListTransactionsRequest)
            if answer.response.error_code != ErrorCode.NONE:
                code = answer.response.error_code
                raise broker_error(code, f"Listing the transactions of {answer.address} failed")
            names[broker_id] = sorted(
                entry.transactional_id
                for entry in answer.response.transaction_states
                if entry.transactional_id.startswith(prefix)
                and (not open_only or _state(entry.transaction_state).is_open)
            )
        found: dict[str, TransactionDescription] = {}
        while names := {broker_id: left for broker_id, left in names.items() if left}:
            requests = {
                broker_id: DescribeTransactionsRequest(transactional_ids=left[:_IDS_OF_A_REQUEST])
                for broker_id, left in names.items()
            }
            for broker_id, answer in call_brokers(client, requests, step).items():
                if answer.error is not None:
                    raise _explained(answer.error, answer.address, DescribeTransactionsRequest)
                found |= _parse_descriptions(answer.response, broker_id, answer.address)
                names[broker_id] = names[broker_id][_IDS_OF_A_REQUEST:]
        # Some have ended since they were listed.
        return [found[name] for name in sorted(found) if not open_only or found[name].state.is_open]

    return client.retrying("Listing transactions", deadline or client.deadline(), attempt)


def describe_transaction(
    client: KafkaClient, transactional_id: str, deadline: Deadline | None = None
) -> TransactionDescription | None:
    """Ask the coordinator of a transactional id what it knows; None where it knows no such id. Creates none.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not describe the transactional id.
        ProtocolError: the coordinator is older than Kafka 3.0 (condition UNSUPPORTED_VERSION).
        BrokerError: the coordinator refused.
        DeadlineError: not answered in time.
        TransportError: the coordinator cannot be reached.

    Source: KIP-664.
    """

    def attempt(step: Deadline) -> TransactionDescription | None:
        request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION_KEY)
        answer, connection = call_any_broker(client, request, step, max_version=MAX_FIND_VERSION)
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(
                answer.error_code,
                f"Looking up the coordinator of transactional id '{transactional_id}' at {connection.address} failed",
            )
        described = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        told = call_brokers(client, {answer.node_id: described}, step)[answer.node_id]
        if told.error is not None:
            raise _explained(told.error, told.address, DescribeTransactionsRequest)
        return _parse_descriptions(told.response, answer.node_id, told.address).get(transactional_id)

    step = f"Describing transactional id '{transactional_id}'"
    return client.retrying(step, deadline or client.deadline(), attempt)


def _list_request(*, open_only: bool) -> Any:
    return ListTransactionsRequest(
        state_filters=_OPEN_ON_THE_WIRE if open_only else [],
        producer_id_filters=[],
        duration_filter=-1,
        transactional_id_pattern=None,
    )


def _explained(error: ConnectorError, address: str, request_class: Any) -> ConnectorError:
    """Give the error for a broker that could not be asked: where it is too old, one that says since when it can be."""
    if error.condition != "UNSUPPORTED_VERSION":
        return error
    return ProtocolError(
        f"{address} cannot tell about transactions: it does not know {request_class.name}.",
        condition="UNSUPPORTED_VERSION",
        hint="Brokers tell about transactions since Kafka 3.0 (KIP-664); some services leave it out.",
        facts={"broker": address, "request": request_class.name},
    )


def _parse_descriptions(answer: Any, broker_id: int, address: str) -> dict[str, TransactionDescription]:
    found: dict[str, TransactionDescription] = {}
    for entry in answer.transaction_states:
        if entry.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        if entry.error_code != ErrorCode.NONE:
            raise broker_error(
                entry.error_code,
                f"Describing transactional id '{entry.transactional_id}' at {address} failed",
                hint=_DESCRIBE_HINT if entry.error_code == _ID_AUTHORIZATION_FAILED else None,
            )
        partitions = (TopicPartition(topic.topic, number) for topic in entry.topics for number in topic.partitions)
        found[entry.transactional_id] = TransactionDescription(
            transactional_id=entry.transactional_id,
            state=_state(entry.transaction_state),
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            coordinator_id=broker_id,
            coordinator=address,
            timeout_ms=entry.transaction_timeout_ms,
            began_at_ms=entry.transaction_start_time_ms if entry.transaction_start_time_ms >= 0 else None,
            partitions=tuple(sorted(partitions)),
        )
    return found


_ID_AUTHORIZATION_FAILED = 53
_DESCRIBE_HINT = "Grant the principal DESCRIBE on the transactional id, and to abort its transactions WRITE."


def _state(name: str) -> TransactionState:
    try:
        return TransactionState(name)
    except ValueError:
        return TransactionState.UNKNOWN
