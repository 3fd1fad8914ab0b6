"""The one table of broker error codes, and the errors that are built from it. Pure: no socket, no clock.

Names and *retriable* come from kafka-python. A module apart from the classes of requests, which a caller that only
judges failures does not need.
"""
# ruff: noqa: E402 - kafka-python's clients are not to be imported with its errors

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.kafka_package import defer_clients

defer_clients()

from kafka.errors import kafka_errors as _kafka_errors

from pyspark_kafka._client.client.wire.missing_rights import grant_sentence, missing_sentence
from pyspark_kafka.errors import AccessError, BrokerError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.wire.missing_rights import ResourceKind, Right

# Brokers explain themselves in a sentence or two; nothing on the wire keeps them from more.
_MAX_DETAIL = 1_000


@unique
class ErrorCode(IntEnum):
    """The broker codes that this package treats by name; `error_kind` knows all others."""

    NONE = 0
    UNKNOWN_SERVER_ERROR = -1
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    NOT_CONTROLLER = 41
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    OFFSET_NOT_AVAILABLE = 78
    INVALID_RECORD = 87
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTIONAL_ID_NOT_FOUND = 105
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    TRANSACTION_ABORTABLE = 120


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row of the table.

    Attributes:
        name: Kafka's name, or `UNKNOWN_CODE_<number>` for codes newer than the table.
        retriable: whether the same request may succeed later.
        refreshes_metadata: whether the leader or the topic has to be looked up again before.
    """

    code: int
    name: str
    retriable: bool
    refreshes_metadata: bool


# Where kafka-python keeps a name that Kafka's own `Errors` has since changed.
_RENAMED = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    6: "NOT_LEADER_OR_FOLLOWER",
    ErrorCode.MESSAGE_TOO_LARGE: "MESSAGE_TOO_LARGE",
    12: "OFFSET_METADATA_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    38: "INVALID_REPLICATION_FACTOR",
    39: "INVALID_REPLICA_ASSIGNMENT",
}

_KINDS: dict[int, ErrorKind] = {
    code: ErrorKind(code, _RENAMED.get(code, cls.message), bool(cls.retriable), bool(cls.invalid_metadata))
    for code, cls in _kafka_errors.items()
    if code is not None
}

# Authentication or authorization was refused.
_ACCESS_CODES = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_EXPIRED,
    }
)

# What a code says is missing is a right on a resource of this kind.
_RESOURCES: dict[int, ResourceKind] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}

_HINTS: dict[int, str] = {
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "Check kafka.sasl.mechanism.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "Check the user name and the password (kafka.sasl.jaas.config).",
    ErrorCode.ILLEGAL_SASL_STATE: "This is probably a listener without SASL; check kafka.security.protocol.",
    ErrorCode.MESSAGE_TOO_LARGE: "Raise message.max.bytes of the topic, or lower kafka.max.request.size.",
}


def error_kind(code: int) -> ErrorKind:
    """Return what is known of a broker code; an unknown one keeps its number and is not retriable."""
    kind = _KINDS.get(code)
    return (
        kind if kind is not None else ErrorKind(code, f"UNKNOWN_CODE_{code}", retriable=False, refreshes_metadata=False)
    )


def _shown(detail: str) -> str:
    return printable(detail if len(detail) <= _MAX_DETAIL else f"{detail[:_MAX_DETAIL]}…")


def broker_error(
    code: int,
    what: str,
    *,
    detail: str | None = None,
    consequence: str = "",
    hint: str | None = None,
    rights: Iterable[Right] = (),
    **parameters: object,
) -> BrokerError:
    """Build the error for an error code in a broker's response; it is not raised here.

    Args:
        code: the number on the wire.
        what: what failed and where, without a full stop: "Listing offsets of orders-3 at kafka-1:9092 failed".
        detail: the broker's own message, if it sent one; shown in one line, cut after 1,000 characters.
        consequence: what happened to the data, as a sentence.
        hint: the next action; None takes the table's.
        rights: what the request needs; if the code means a missing right, the error names the candidates, and the hint
            is how to grant them.
        **parameters: values that the text names.

    Returns:
        An AccessError for refused authentication or authorization, else a BrokerError; not yet raised.
    """
    kind = error_kind(code)
    said = f' The broker said: "{_shown(detail)}".' if detail else ""
    ending = f" {consequence}" if consequence else ""
    cls = AccessError if code in _ACCESS_CODES else BrokerError
    missing = tuple(right for right in rights if right.kind == _RESOURCES.get(code))
    grant = ""
    if missing:
        ending = f" {missing_sentence(missing)}{ending}"
        grant = grant_sentence(missing)
        hint = f"{grant} {hint}" if hint else grant
        parameters = {**parameters, "missing": "; ".join(map(str, missing))}
    error = cls(
        f"{what}: the broker answered {kind.name} ({code}).{said}{ending}",
        code=int(code),
        condition=kind.name,
        hint=_HINTS.get(code, "") if hint is None else hint,
        retriable=kind.retriable,
        parameters=parameters,
    )
    if isinstance(error, AccessError):
        error.rights, error.grant = missing, grant
    return error
