"""Decodes the fetched bytes of one range, and decides about its lost records. Pure."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import NO_END
from pyspark_kafka._client.client.fetch.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicDeletedError,
    TopicRecreatedError,
)
from pyspark_kafka.errors import ConnectorError, CorruptRecordsError, DataLossError
from pyspark_kafka.records import DEFAULT_TARGET_BYTES, DEFAULT_TARGET_ROWS, iter_decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.options import FetchOptions
    from pyspark_kafka.records import Decoded

_LOG = logging.getLogger(__name__)

_MOVE = (
    "Accept this loss once: move a streaming query to offsets that the log has, with `pyspark-kafka checkpoint rewind` "
    "and --offsets (-2 is the beginning of a log)."
)


def decode_range(
    fetched: FetchedRecords,
    offset_range: OffsetRange,
    columns: Sequence[str],
    fetch: FetchOptions,
    *,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    target_rows: int = DEFAULT_TARGET_ROWS,
) -> Iterator[Decoded]:
    """Decode the fetched records of a range, up to its end, in pieces of about `target_bytes` or `target_rows`.

    Raises:
        CorruptRecordsError: a batch is damaged; whole batches before it were returned. It names the range.
        RecordError: a record cannot be represented. It names the range.
    """
    position = fetched.start_offset
    decode = partial(
        iter_decode,
        end_offset=None if offset_range.end_offset >= NO_END else offset_range.end_offset,
        isolation_level=fetch.isolation_level,
        aborted_transactions=fetched.aborted_transactions,
        columns=columns,
        max_decompressed_bytes=fetch.max_decompressed_bytes,
        check_crcs=fetch.check_crcs,
        target_bytes=target_bytes,
        target_rows=target_rows,
    )
    try:
        for decoded in decode(fetched.records, start_offset=position):
            position = decoded.next_offset
            yield decoded
    except ConnectorError as error:
        if isinstance(error, CorruptRecordsError) and error.whole_bytes is not None:
            # The codec had batches before the damaged one in a piece that was not full yet.
            yield from decode(fetched.records[: error.whole_bytes], start_offset=position)
        # The codec knows offsets only; the topic-partition is known here.
        topic_partition = offset_range.topic_partition
        raise error.located(
            f"Reading {offset_range}, topic '{topic_partition.topic}', partition {topic_partition.partition}"
        ) from error


def resume_or_raise(
    error: OffsetOutOfRangeError | LogTruncatedError,
    offset_range: OffsetRange,
    *,
    fail_on_data_loss: bool,
    open_start: bool = False,
    leaves_recreated: bool = False,
) -> int:
    """Return the position after a tolerated loss, which is logged; or raise.

    A range without an end continues at the start of its log, or at its end if that is below the position. A
    recreated or deleted topic ends the range.

    Args:
        error: the loss, as the fetcher raised it.
        offset_range: the range.
        fail_on_data_loss: whether the loss is not tolerated.
        open_start: whether nothing was read yet of a range that starts at the log's first offset; a later first offset
            is not a loss then.
        leaves_recreated: whether a recreated topic is left to a later batch, so that no record is read twice.

    Raises:
        DataLossError: the loss is not tolerated, or the topic was recreated before anything was read from its open
            start.
    """
    if isinstance(error, TopicRecreatedError) and open_start:
        # The ends of the look-up may belong to the former topic.
        raise error
    if isinstance(error, LogTruncatedError):
        if fail_on_data_loss:
            raise error
        if leaves_recreated and isinstance(error, TopicRecreatedError):
            _LOG.warning(
                "[%s] %s Nothing of the recreated topic is read here, because 'failOnDataLoss' is false; the next "
                "%s begins it.",
                *_for_log(error),
                "plan" if offset_range.end_offset >= NO_END else "batch",
            )
            return offset_range.end_offset
        if isinstance(error, TopicDeletedError):
            _LOG.warning("[%s] %s The read continues without it, because 'failOnDataLoss' is false.", *_for_log(error))
            return offset_range.end_offset
        # Emitted records stay emitted, and no record is emitted twice.
        _LOG.warning(
            "[%s] %s The read continues at %d, because 'failOnDataLoss' is false.",
            *_for_log(error),
            error.requested_offset,
        )
        return error.requested_offset
    lost_from, end = error.requested_offset, offset_range.end_offset
    if end >= NO_END and error.log_start_offset <= lost_from:
        return _return_or_raise(error, offset_range, fail_on_data_loss=fail_on_data_loss)
    if open_start and error.log_start_offset > lost_from:
        return min(error.log_start_offset, end)
    resume = min(error.log_start_offset, end) if error.log_start_offset > lost_from else end
    emitted = f"Records of the range before {lost_from} were emitted"
    if lost_from == offset_range.start_offset:
        emitted = "No record of the range was emitted"
    message = (
        f"Offsets [{lost_from}, {resume}) of {offset_range} cannot be read: the log of "
        f"{offset_range.topic_partition} is now [{error.log_start_offset}, {error.log_end_offset}). Retention may have "
        f"removed the records, or the topic was recreated. {emitted}; {resume - lost_from} offsets are lost."
    )
    parameters = {"range": offset_range, "lost_from": lost_from, "resume": resume}
    return _tolerate_or_raise(
        message,
        hint=f"{_MOVE} Or accept every loss: set failOnDataLoss to false to continue after the gap.",
        parameters=parameters,
        resume=resume,
        fail_on_data_loss=fail_on_data_loss,
    )


def _return_or_raise(error: OffsetOutOfRangeError, offset_range: OffsetRange, *, fail_on_data_loss: bool) -> int:
    """Return the end of a log that ends before the position of a range without an end, or raise."""
    position, end = error.requested_offset, error.log_end_offset
    message = (
        f"{offset_range} cannot be read on at offset {position}: the log of {offset_range.topic_partition} is now "
        f"[{error.log_start_offset}, {end}), which ends {position - end} offsets before it. A replica that lacked "
        "them may have become the leader, the topic was recreated, or the starting offset was too high."
    )
    parameters = {"range": offset_range, "lost_from": end, "resume": end}
    return _tolerate_or_raise(
        message,
        hint=f"{_MOVE} Or accept every loss: set failOnDataLoss to false to continue where the log ends.",
        parameters=parameters,
        resume=end,
        fail_on_data_loss=fail_on_data_loss,
    )


def _tolerate_or_raise(
    message: str,
    *,
    hint: str,
    parameters: Mapping[str, object],
    resume: int,
    fail_on_data_loss: bool,
) -> int:
    """Return the position after a tolerated loss, and log it; or raise."""
    if fail_on_data_loss:
        # Without the broker's error as its cause, which the message repeats: a reader needs the hint first.
        raise DataLossError(
            message, condition="KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE", hint=hint, parameters=parameters
        ) from None
    _LOG.warning("%s The read continues at %d, because 'failOnDataLoss' is false.", message, resume)
    return resume


def leave_deleted(topic_partition: TopicPartition, *, fail_on_data_loss: bool) -> None:
    """Raise or log the loss of a partition that was deleted before a task has looked up its ends.

    Raises:
        DataLossError: the loss is not tolerated.
    """
    message = (
        f"{topic_partition} was deleted after the read was planned, or this user may not describe it now: the brokers "
        "report UNKNOWN_TOPIC_OR_PARTITION (3). Nothing of it was read."
    )
    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"
    if fail_on_data_loss:
        raise DataLossError(
            message,
            condition=condition,
            hint="Plan the read again, by another load(); set failOnDataLoss=false to read the remaining records.",
            parameters={"topic": topic_partition.topic, "partition": topic_partition.partition},
        ) from None
    _LOG.warning("[%s] %s The read continues without it, because 'failOnDataLoss' is false.", condition, message)


def _for_log(error: ConnectorError) -> tuple[str, str]:
    """Return condition and message without the hint, which advises what was done."""
    return error.condition, error.message
