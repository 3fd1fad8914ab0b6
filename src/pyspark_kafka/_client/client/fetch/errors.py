"""Errors about a range that is read: lost records, no progress, positions that differ. Pure.

The builders return errors and raise nothing. The source decides what is done about lost records (`failOnDataLoss`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from pyspark_kafka._client.client.waiting.deadline import failure_text
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import BrokerError, CorruptRecordsError, DataLossError, DeadlineError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.fetch.topic_identity import TopicIdentity
    from pyspark_kafka.errors import ConnectorError


_Loss = TypeVar("_Loss", bound="LogTruncatedError")

_QUOTA_HINT = (
    "Raise the quota of this user or of option 'kafka.client.id' on the brokers (consumer_byte_rate, "
    "request_percentage), have fewer tasks and queries share it, or raise option 'kafkaConsumer.pollTimeoutMs'."
)


class OffsetOutOfRangeError(BrokerError):
    """The leader does not have the requested position: records are gone, or the log was truncated.

    Attributes:
        offset_range: the range that was read.
        requested_offset: the position; everything of the range before it was handed out.
        log_start_offset: the first offset that the partition still has.
        log_end_offset: the high watermark.
    """

    offset_range: OffsetRange
    requested_offset: int
    log_start_offset: int
    log_end_offset: int


class LogTruncatedError(DataLossError):
    """The log was truncated below the position: the log no longer has some records that were handed out.

    Attributes:
        offset_range: the range that was read.
        requested_offset: the position; everything of the range before it was handed out.
        truncated_to: the first offset whose record is gone or another one now.
    """

    offset_range: OffsetRange
    requested_offset: int
    truncated_to: int


class TopicRecreatedError(LogTruncatedError):
    """The topic was recreated: the position belongs to another log, from which nothing was read yet."""


class TopicDeletedError(LogTruncatedError):
    """The topic that the range was planned on does not exist any more."""


class RangeProgress(Protocol):
    """The attributes of a `Cursor` that errors name."""

    offset_range: OffsetRange
    topic_partition: TopicPartition
    position: int
    last_address: str
    log: tuple[int, int, int] | None
    topic: TopicIdentity

    @property
    def unread(self) -> bool:
        """Whether no record of the range was handed out."""

    @property
    def endless(self) -> bool:
        """Whether the range has no end."""


# After these, a fetcher continues with the other ranges, and with this one if it is resumed.
LOSSES = (OffsetOutOfRangeError, LogTruncatedError)


def handed_out(cursor: RangeProgress) -> str:
    """Return a sentence, without its full stop, about the records of a range that were handed out."""
    if cursor.unread:
        return "No record of the range was handed out"
    return f"Records before {cursor.position} were handed out"


def _handed_out_until(cursor: RangeProgress) -> str:
    """Return a sentence, without its full stop, about the records of a range that failed at its position."""
    if cursor.unread:
        return handed_out(cursor)
    return f"Records of the range before {cursor.position} were handed out, none from there on"


def fetch_refused(cursor: RangeProgress, code: int) -> BrokerError:
    """Build the error for a broker's code in a fetch response."""
    return broker_error(
        code,
        f"Fetching {cursor.offset_range} at offset {cursor.position} from {cursor.last_address} failed",
        consequence=f"{_handed_out_until(cursor)}.",
        rights=(Right("Read", "topic", cursor.topic_partition.topic),),
        topic=cursor.topic_partition.topic,
        partition=cursor.topic_partition.partition,
        offset=cursor.position,
        broker=cursor.last_address,
    )


def out_of_range(cursor: RangeProgress, log_start: int, log_end: int) -> OffsetOutOfRangeError:
    """Build the error for a position that the log does not have."""
    error = OffsetOutOfRangeError(
        f"Fetching {cursor.offset_range}: {cursor.last_address} does not have offset {cursor.position}; the log is "
        f"[{log_start}, {log_end}) now. {handed_out(cursor)}.",
        code=ErrorCode.OFFSET_OUT_OF_RANGE,
        condition="OFFSET_OUT_OF_RANGE",
        hint="Check whether retention removed the records, and whether the topic was recreated.",
        parameters={
            "topic": cursor.topic_partition.topic,
            "partition": cursor.topic_partition.partition,
            "offset": cursor.position,
            "log_start_offset": log_start,
            "log_end_offset": log_end,
            "broker": cursor.last_address,
        },
    )
    error.offset_range = cursor.offset_range
    error.requested_offset = cursor.position
    error.log_start_offset = log_start
    error.log_end_offset = log_end
    return error


def log_truncated(cursor: RangeProgress, position_epoch: int, leader_epoch: int, end_offset: int) -> LogTruncatedError:
    """Build the error for an epoch that ends before the position on its new leader."""
    position, truncated_to = cursor.position, max(end_offset, cursor.offset_range.start_offset)
    error = LogTruncatedError(
        f"The log of {cursor.topic_partition} was truncated while {cursor.offset_range} was read: records in "
        f"[{truncated_to}, {position}), {position - truncated_to} offsets, appended under leader epoch "
        f"{position_epoch}, were handed out, but the leader of epoch {leader_epoch} has that epoch up to {end_offset} "
        "only.",
        condition="KAFKA_DATA_LOSS.LOG_TRUNCATED",
        hint="Check unclean.leader.election.enable, and whether producers write with acks below all: a replica without "
        "these records became the leader. Run the batch again to read the current records of the log.",
        parameters={
            "range": cursor.offset_range,
            "truncated_to": truncated_to,
            "position": position,
            "leader_epoch": leader_epoch,
        },
    )
    return _located(error, cursor, truncated_to)


def topic_recreated(cursor: RangeProgress, found: UUID | None, leader_id: int) -> TopicRecreatedError:
    """Build the error for a topic that has another id now."""
    offset_range, known = cursor.offset_range, cursor.topic.known
    when = (
        f"after {offset_range} was planned"
        if cursor.unread and cursor.topic.planned
        else f"while {offset_range} was read"
    )
    error = TopicRecreatedError(
        f"Topic '{cursor.topic_partition.topic}' was recreated {when}: its id was {known}, and is {found} "
        f"(leader {leader_id}). {handed_out(cursor)}; {_rest(cursor)} of the former topic are gone, and the records of "
        "the recreated topic belong to another log.",
        condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
        hint="Move a streaming query to the beginning of the topic, with `pyspark-kafka checkpoint rewind` and "
        "--offsets (-2 is the beginning); plan a batch read again, by another load().",
        parameters={"range": offset_range, "expected": known, "found": found, "lost": _count_rest(cursor)},
    )
    return _located(error, cursor, offset_range.start_offset)


def topic_deleted(cursor: RangeProgress) -> TopicDeletedError:
    """Build the error for a planned topic that brokers do not know any more."""
    offset_range = cursor.offset_range
    error = TopicDeletedError(
        f"Topic '{cursor.topic_partition.topic}' (id {cursor.topic.planned}) was deleted after {offset_range} was "
        "planned, or this user may not describe it now: the brokers report UNKNOWN_TOPIC_OR_PARTITION (3). "
        f"{handed_out(cursor)}; {_rest(cursor)} are gone.",
        condition="KAFKA_DATA_LOSS.PARTITIONS_DELETED",
        hint="Set failOnDataLoss to false to continue with the others. If the topic comes back, move a streaming query "
        "to its beginning with `pyspark-kafka checkpoint rewind`.",
        parameters={"range": offset_range, "topic": cursor.topic_partition.topic, "lost": _count_rest(cursor)},
    )
    return _located(error, cursor, offset_range.start_offset)


def position_mismatch(
    cursor: RangeProgress, start_offset: int, scanned_offset: int, decoded_offset: int
) -> CorruptRecordsError:
    """Build the error for headers that end elsewhere than the verified content."""
    return CorruptRecordsError(
        f"Reading {cursor.offset_range}: the batches fetched at offset {start_offset} from {cursor.last_address} end "
        f"at {scanned_offset} by their headers, but at {decoded_offset} by their verified content. Records up to the "
        "smaller of the two were handed out.",
        condition="POSITION_MISMATCH",
        hint="If it repeats, inspect the partition's log with kafka-dump-log.",
        parameters={"range": cursor.offset_range, "expected": scanned_offset, "found": decoded_offset},
    )


def named_twice(cursor: RangeProgress) -> ProtocolError:
    """Build the error for a response that has several entries for a partition, with different content."""
    return ProtocolError(
        f"{cursor.last_address} responded to a fetch with several entries for {cursor.topic_partition} that differ. "
        f"None of them was used. {handed_out(cursor)}.",
        condition="RESPONSE_INVALID",
        parameters={"topic_partition": cursor.topic_partition, "broker": cursor.last_address},
    )


def misplaced(cursor: RangeProgress, reason: str) -> CorruptRecordsError:
    """Build the error for record batches that cannot be where their base offsets say."""
    return CorruptRecordsError(
        f"Reading {cursor.offset_range}: {cursor.last_address} returned record batches for offset {cursor.position} "
        f"several times that are corrupt: {reason}. Checksums do not cover base offsets. {handed_out(cursor)}.",
        condition="CORRUPT_RECORDS",
        hint="Read the partition again; if it fails at the same offset, the log or the network path is damaged.",
        parameters={"range": cursor.offset_range, "position": cursor.position, "broker": cursor.last_address},
    )


def no_progress(
    active: Sequence[RangeProgress],
    timeout_ms: float,
    last_error: ConnectorError | None,
    throttled: str = "",
    *,
    cut_short: bool,
) -> DeadlineError:
    """Build the error for ranges none of which moved for the time.

    Args:
        active: the ranges that are not done.
        timeout_ms: the time; under a quota it is longer than the option.
        last_error: why the last attempt failed; None if none did.
        throttled: the broker that throttled the client in that time, as a clause; empty without throttling.
        cut_short: whether the last attempt failed only because the time was over.
    """
    cursor = active[0]
    others = f" (and {len(active) - 1} other ranges)" if len(active) > 1 else ""
    log, hint = _describe_log(cursor)
    last = quota = ""
    if throttled:
        quota, log, hint = ", and time under a quota", f"{throttled}; {log}", _QUOTA_HINT
    if last_error is not None:
        last = f" Last failure: {failure_text(last_error)}"
        # A broker that has nothing visible to return keeps its response until the time of the read ends.
        if not (cut_short and _has_read_all_visible(cursor)):
            hint = last_error.hint or hint
    return DeadlineError(
        f"Reading {cursor.offset_range}{others}: no progress at offset {cursor.position} for {timeout_ms:.0f} ms "
        f"(kafkaConsumer.pollTimeoutMs{quota}), last asked {cursor.last_address or 'no broker'}; {log}. "
        f"{_handed_out_until(cursor)}.{last}",
        condition="FETCH_NO_PROGRESS",
        hint=hint,
        retriable=True,
        parameters={
            "topic": cursor.topic_partition.topic,
            "partition": cursor.topic_partition.partition,
            "offset": cursor.position,
            "broker": cursor.last_address,
            "timeout_ms": f"{timeout_ms:.0f}",
        },
    )


def _rest(cursor: RangeProgress) -> str:
    """Return the offsets of a range that were not handed out, as the subject of a sentence."""
    position, end = cursor.position, cursor.offset_range.end_offset
    return f"offsets from {position} on" if cursor.endless else f"the {end - position} offsets [{position}, {end})"


def _count_rest(cursor: RangeProgress) -> int | str:
    return "unknown" if cursor.endless else cursor.offset_range.end_offset - cursor.position


def _has_read_all_visible(cursor: RangeProgress) -> bool:
    """Return whether the log had no record after the committed position in the last response."""
    return cursor.log is not None and 0 <= cursor.log[2] <= cursor.position


def _describe_log(cursor: RangeProgress) -> tuple[str, str]:
    """Return the log's ends in the last response, and a hint."""
    if cursor.log is None:
        return (
            "no response about the log was received",
            "Check that the brokers run and that this machine may reach them.",
        )
    start, high_watermark, stable = cursor.log
    return (
        f"the log began at {start}, its high watermark was {high_watermark} and its last stable offset {stable}",
        "Look for an open transaction, or replicas that are behind: the end of the range may not be visible.",
    )


def _located(error: _Loss, cursor: RangeProgress, truncated_to: int) -> _Loss:
    error.offset_range = cursor.offset_range
    error.requested_offset = cursor.position
    error.truncated_to = truncated_to
    return error
