"""Transactions of anyone, for operators: listed and described by their coordinators.

Our own transactional id is `owner.py`; the commands that show these values are in `_ops/cli/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.fanout import call_brokers
from pyspark_kafka._client.client.transactions.coordinator import find_coordinator
from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka._client.client.wire.messages import (
    DescribeTransactionsRequest,
    ErrorCode,
    ListTransactionsRequest,
    broker_error,
)
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

# That number of ids makes a request of some 50 kB.
_IDS_OF_A_REQUEST = 500
_ABORT_HINT = "To abort its transactions, WRITE is needed, which includes DESCRIBE."


class TransactionState(str, Enum):
    """The state of a transactional id, as its coordinator returns it; the values are those on the wire.

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
        """Whether the transaction may still be open: it is not known to be ended."""
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
        state: its state; `UNKNOWN` for states that are newer than this client.
        producer_id: the identity under which its records are written.
        producer_epoch: incremented each time the transactional id gets a new owner.
        coordinator_id: the broker that keeps its state.
        coordinator: that broker's `host:port`.
        timeout_ms: the coordinator aborts the transaction if it is open for longer.
        began_at_ms: when its first partition joined, by the coordinator's clock, milliseconds since 1970-01-01 UTC;
            None if it holds no partition.
        partitions: the partitions that lack their control record, sorted; only of topics that this user may describe.
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
        """Return whether `other` describes the same transaction in the same state."""
        return other is not None and _identity(self) == _identity(other)


def _identity(found: TransactionDescription) -> tuple[object, ...]:
    return found.state, found.producer_id, found.producer_epoch, found.began_at_ms


def list_transactions(
    client: KafkaClient, *, prefix: str = "", open_only: bool = True, deadline: Deadline | None = None
) -> list[TransactionDescription]:
    """Return the transactions of every coordinator, with their descriptions.

    Transactional ids that this user may not describe are left out; brokers do not say so.

    Runs on: driver; blocks.

    Args:
        client: the cluster; not used by anyone else in the meantime.
        prefix: only transactional ids that begin with it are listed.
        open_only: leave out ended transactions; brokers remember them for days (`transactional.id.expiration.ms`).
        deadline: for all requests and attempts; None takes `api_timeout_ms`.

    Returns:
        Descriptions by transactional id, ascending.

    Raises:
        ProtocolError: a broker is older than Kafka 3.0 (condition UNSUPPORTED_VERSION).
        BrokerError: a broker refused.
        DeadlineError: no response in time; a list that lacks a broker would look as if nothing were open there.
        TransportError: a broker cannot be reached.

    Source: KIP-664.
    """

    def attempt(step: Deadline) -> list[TransactionDescription]:
        names = _fetch_names(client, prefix, step, open_only=open_only)
        found = _fetch_descriptions(client, names, step)
        # Some have ended since they were listed.
        return [found[name] for name in sorted(found) if not open_only or found[name].state.is_open]

    return client.retrying("Listing transactions", deadline or client.deadline(), attempt)


def describe_transaction(
    client: KafkaClient, transactional_id: str, deadline: Deadline | None = None
) -> TransactionDescription | None:
    """Return the coordinator's description of a transactional id; None for an unknown id. Creates none.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not describe the transactional id.
        ProtocolError: the coordinator is older than Kafka 3.0 (condition UNSUPPORTED_VERSION).
        BrokerError: the coordinator refused.
        DeadlineError: no response in time.
        TransportError: the coordinator cannot be reached.

    Source: KIP-664.
    """

    def attempt(step: Deadline) -> TransactionDescription | None:
        coordinator_id = find_coordinator(client, transactional_id, step)
        return _fetch_descriptions(client, {coordinator_id: [transactional_id]}, step).get(transactional_id)

    step = f"Describing transactional id '{transactional_id}'"
    return client.retrying(step, deadline or client.deadline(), attempt)


def _fetch_names(client: KafkaClient, prefix: str, deadline: Deadline, *, open_only: bool) -> dict[int, list[str]]:
    """Return the transactional ids that each broker coordinates, by broker id."""
    brokers = client.fetch_metadata((), deadline).brokers
    # Each with a request of its own: sending it writes the version into it.
    requests = {broker_id: _build_list_request(open_only=open_only) for broker_id in brokers}
    names: dict[int, list[str]] = {}
    for broker_id, done in sorted(call_brokers(client, requests, deadline).items()):
        if done.error is not None:
            raise _explain(done.error, done.address, ListTransactionsRequest)
        if done.response.error_code != ErrorCode.NONE:
            # No right is needed: names that the user may not describe are left out.
            what = f"Listing the transactions of {done.address} failed"
            raise broker_error(done.response.error_code, what, rights=())
        names[broker_id] = sorted(
            entry.transactional_id
            for entry in done.response.transaction_states
            if entry.transactional_id.startswith(prefix) and (not open_only or _state(entry.transaction_state).is_open)
        )
    return names


def _fetch_descriptions(
    client: KafkaClient, names: Mapping[int, list[str]], deadline: Deadline
) -> dict[str, TransactionDescription]:
    """Return each coordinator's descriptions of transactional ids; unknown ids are left out."""
    found: dict[str, TransactionDescription] = {}
    left = {broker_id: ids for broker_id, ids in names.items() if ids}
    while left:
        asked = {broker_id: ids[:_IDS_OF_A_REQUEST] for broker_id, ids in left.items()}
        requests = {broker_id: DescribeTransactionsRequest(transactional_ids=ids) for broker_id, ids in asked.items()}
        for broker_id, done in call_brokers(client, requests, deadline).items():
            if done.error is not None:
                raise _explain(done.error, done.address, DescribeTransactionsRequest)
            found |= _parse_descriptions(done.response, asked[broker_id], broker_id, done.address)
        left = {broker_id: ids[_IDS_OF_A_REQUEST:] for broker_id, ids in left.items() if len(ids) > _IDS_OF_A_REQUEST}
    return found


def _build_list_request(*, open_only: bool) -> Any:
    return ListTransactionsRequest(
        state_filters=_OPEN_ON_THE_WIRE if open_only else [],
        producer_id_filters=[],
        duration_filter=-1,
        transactional_id_pattern=None,
    )


def _explain(error: ConnectorError, address: str, request_class: Any) -> ConnectorError:
    """Return the error for a failed request to a broker; if it is too old, the hint names the first version."""
    if error.condition != "UNSUPPORTED_VERSION":
        return error
    return ProtocolError(
        f"{address} cannot tell about transactions: it does not know {request_class.name}.",
        condition="UNSUPPORTED_VERSION",
        hint="Use brokers of Kafka 3.0 or newer (KIP-664); some services leave these requests out.",
        parameters={"broker": address, "request": request_class.name},
    )


def _parse_descriptions(
    response: Any, asked: list[str], broker_id: int, address: str
) -> dict[str, TransactionDescription]:
    found: dict[str, TransactionDescription] = {}
    entries = ((entry.transactional_id, entry) for entry in response.transaction_states)
    for entry in match_entries(asked, entries, "DescribeTransactions", address).values():
        if entry.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        if entry.error_code != ErrorCode.NONE:
            raise broker_error(
                entry.error_code,
                f"Describing transactional id '{entry.transactional_id}' at {address} failed",
                hint=_ABORT_HINT if entry.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED else None,
                rights=(Right("Describe", "transactional-id", entry.transactional_id),),
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


def _state(name: str) -> TransactionState:
    try:
        return TransactionState(name)
    except ValueError:
        return TransactionState.UNKNOWN
