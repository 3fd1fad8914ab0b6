"""The consequence of a broker's error code for a batch. Pure."""

from __future__ import annotations

from enum import Enum

from pyspark_kafka._client.client.wire.error_codes import ErrorCode

# Codes of checks before anything is appended. Any other failure may follow an append: a leader that loses its office
# returns NOT_LEADER_OR_FOLLOWER for a write that it has appended but not yet replicated.
_PROVES_ABSENCE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
    }
)


class Verdict(Enum):
    """The consequence of a response for a batch."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FATAL = "fatal"


def judge_code(code: int, *, retriable: bool, oldest: bool) -> Verdict:
    """Return what an error code means for a batch.

    Args:
        code: the broker's error code.
        retriable: what the table of codes says of it.
        oldest: whether the batch is the oldest unacknowledged one of its partition.
    """
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.DELIVERED
    if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        # Behind an earlier batch that failed it is that batch's consequence. For the oldest it means that the log
        # lost records, or that the broker lost the state of this producer.
        return Verdict.FATAL if oldest else Verdict.RETRY
    return Verdict.RETRY if retriable else Verdict.FATAL


def proves_absence(code: int | None) -> bool:
    """Return whether this code proves that a batch is not in the log; None means no response."""
    return code in _PROVES_ABSENCE
