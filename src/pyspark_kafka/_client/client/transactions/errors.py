"""Errors about a transactional id: the meaning of codes for its owner. Pure: no sockets, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.wire.messages import ErrorCode, broker_error
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.wire.missing_rights import Right


class TransactionInDoubtError(ConnectorError):
    """The response does not show whether a transaction was committed; a look at what it wrote can."""


class TransactionLostError(ConnectorError):
    """The transaction was ended, or its id taken over, by someone else: this owner can neither continue nor commit.

    What it tried to commit before may be committed nevertheless; a look at what it wrote shows it.
    """


# Codes for an owner that has lost its transaction.
_LOST = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "INVALID_PRODUCER_EPOCH: another owner has taken over, or it has timed out",
    ErrorCode.INVALID_TXN_STATE: "INVALID_TXN_STATE: it was ended already, probably after its timeout",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "INVALID_PRODUCER_ID_MAPPING: the id has expired or was taken over",
    ErrorCode.UNKNOWN_PRODUCER_ID: "UNKNOWN_PRODUCER_ID: the id has expired",
    ErrorCode.PRODUCER_FENCED: "PRODUCER_FENCED: another owner has taken over, or it has timed out",
    ErrorCode.TRANSACTION_ABORTABLE: "TRANSACTION_ABORTABLE",
}
# Codes in the response to an end of a transaction whose id brokers have forgotten (transactional.id.expiration.ms), or
# which has another producer id since: they say nothing of its outcome.
FORGOTTEN = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID})
# Codes in the response to an end of a transaction that is not there: of this identity.
NOT_OWNED = frozenset(_LOST) - FORGOTTEN - {ErrorCode.TRANSACTION_ABORTABLE}
# Codes in the response to an end of a transaction, all of which a broker may send after it was committed.
_IN_DOUBT = {ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN_SERVER_ERROR", **_LOST}


def raise_for_code(
    code: int,
    what: str,
    name: str,
    address: str,
    *,
    rights: Iterable[Right],
    topic_partition: TopicPartition | None = None,
    owned: bool = False,
) -> None:
    """Raise the error of a code; return if it means none.

    Args:
        code: the code in a response.
        what: what was done to the id, for a sentence "… transactional id 'name' at address failed".
        name: the transactional id.
        address: the broker.
        rights: what the request needs.
        topic_partition: the topic-partition of the code.
        owned: whether the request named an owner: then some codes mean that it is the owner no longer.

    Raises:
        TransactionLostError: the owner that the request named has lost its transaction.
        AccessError: the user may not use the transactional id.
        BrokerError: any other code.
    """
    if code == ErrorCode.NONE:
        return
    if owned and code in _LOST:
        text = _LOST[ErrorCode(code)]
        raise TransactionLostError(
            f"{what} transactional id '{name}' at {address} failed: the broker answered {text}.",
            condition="TRANSACTION_LOST",
            parameters={"transactional_id": name, "broker": address, "cause": text.partition(":")[0]},
        )
    parameters: dict[str, Any] = {"transactional_id": name, "broker": address}
    if topic_partition is not None:
        parameters["topic_partition"] = topic_partition
    raise broker_error(code, f"{what} transactional id '{name}' at {address} failed", rights=rights, **parameters)


def raise_if_in_doubt(code: int, name: str, address: str) -> None:
    """Raise if a code in the response to an end of a transaction leaves open whether it was committed.

    Raises:
        TransactionInDoubtError: it does.
    """
    if code in _IN_DOUBT:
        raise in_doubt(name, f"{address} answered {_IN_DOUBT[ErrorCode(code)]}")


def in_doubt(name: str, reason: str) -> TransactionInDoubtError:
    """Build the error for a transaction whose outcome is unknown."""
    return TransactionInDoubtError(
        f"Whether the transaction of '{name}' was committed is not known: {reason}.",
        condition="TRANSACTION_IN_DOUBT",
        parameters={"transactional_id": name, "reason": reason},
    )
