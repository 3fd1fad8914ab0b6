"""From the fetched bytes of one range to batches of rows, and what is done where records of it are gone. No I/O."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka.client.fetch.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicDeletedError,
    TopicRecreatedError,
)
from pyspark_kafka.errors import ConnectorError, CorruptRecordsError, DataLossError
from pyspark_kafka.records import iter_decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka.client.fetch.cursor import FetchedRecords
    from pyspark_kafka.errors import BrokerError
    from pyspark_kafka.model import OffsetRange, TopicPartition
    from pyspark_kafka.options import FetchOptions
    from pyspark_kafka.records import Decoded

logger = logging.getLogger(__name__)


def decode_range(
    fetched: FetchedRecords, offset_range: OffsetRange, columns: Sequence[str], fetch: FetchOptions
) -> Iterator[Decoded]:
    """Decode the fetched records of a range, up to its end.

    Raises:
        CorruptRecordsError: a batch is damaged; whole batches before it were returned. It names the range.
        RecordError: a record cannot be represented. It names the range.
    """
    position = fetched.start_offset
    try:
        for decoded in _pieces(fetched, fetched.records, offset_range, position, columns, fetch):
            position = decoded.next_offset
            yield decoded
    except ConnectorError as error:
        if isinstance(error, CorruptRecordsError) and error.whole_bytes is not None:
            # The codec had batches before the damaged one in a piece that was not full yet.
            whole = fetched.records[: error.whole_bytes]
            yield from _pieces(fetched, whole, offset_range, position, columns, fetch)
        # The codec knows offsets only; which log they belong to is known here.
        topic_partition = offset_range.topic_partition
        raise error.located(
            f"Reading {offset_range}, topic '{topic_partition.topic}', partition {topic_partition.partition}"
        ) from error


def _pieces(
    fetched: FetchedRecords,
    records: memoryview,
    offset_range: OffsetRange,
    position: int,
    columns: Sequence[str],
    fetch: FetchOptions,
) -> Iterator[Decoded]:
    return iter_decode(
        records,
        start_offset=position,
        end_offset=offset_range.end_offset,
        isolation_level=fetch.isolation_level.value,
        aborted_transactions=fetched.aborted_transactions,
        columns=columns,
        max_decompressed_bytes=fetch.max_decompressed_bytes,
        check_crcs=fetch.check_crcs,
    )


def resume_or_raise(
    error: OffsetOutOfRangeError | LogTruncatedError,
    offset_range: OffsetRange,
    *,
    fail_on_data_loss: bool,
    open_start: bool = False,
    leaves_recreated: bool = False,
) -> int:
    """Give the position to go on from where the loss is tolerated; it is logged.

    Args:
        error: what the brokers answered.
        offset_range: what is read.
        fail_on_data_loss: whether the loss is not tolerated.
        open_start: whether nothing was read yet of a range that starts wherever the log does: that it starts later by
            now is no loss.
        leaves_recreated: whether a topic that was made anew is left to a later batch, so that nothing is read twice.

    Raises:
        DataLossError: it is not, or the topic was made anew before anything was read from its open start.
    """
    if isinstance(error, TopicRecreatedError) and open_start:
        # The ends that were looked up may be the former topic's.
        raise error
    if isinstance(error, LogTruncatedError):
        if fail_on_data_loss:
            raise error
        if leaves_recreated and isinstance(error, TopicRecreatedError):
            logger.warning(
                "[%s] %s Nothing is read of the new topic here, because 'failOnDataLoss' is false; the next batch "
                "begins it anew.",
                *_told(error),
            )
            return offset_range.end_offset
        if isinstance(error, TopicDeletedError):
            logger.warning("[%s] %s The read goes on without it, because 'failOnDataLoss' is false.", *_told(error))
            return offset_range.end_offset
        # What was emitted stays emitted; nothing is emitted twice.
        logger.warning(
            "[%s] %s The read goes on at %d, because 'failOnDataLoss' is false.", *_told(error), error.requested_offset
        )
        return error.requested_offset
    lost_from, end = error.requested_offset, offset_range.end_offset
    if open_start and error.log_start_offset > lost_from:
        return min(error.log_start_offset, end)
    resume = min(error.log_start_offset, end) if error.log_start_offset > lost_from else end
    emitted = f"Records of the range before {lost_from} were emitted"
    if lost_from == offset_range.start_offset:
        emitted = "No record of the range was emitted"
    message = (
        f"Offsets [{lost_from}, {resume}) of {offset_range} cannot be read: the log of "
        f"{offset_range.topic_partition} is now [{error.log_start_offset}, {error.log_end_offset}). The records may "
        "have been removed by retention, or the topic was deleted and made again. "
        f"{emitted}; {resume - lost_from} offsets are lost."
    )
    if fail_on_data_loss:
        raise DataLossError(
            message,
            condition="KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
            hint="Set failOnDataLoss=false to go on behind the gap, or restart with a new checkpoint.",
            facts={"range": offset_range, "lost_from": lost_from, "resume": resume},
        ) from error
    logger.warning("%s The read goes on at %d, because 'failOnDataLoss' is false.", message, resume)
    return resume


def leave_deleted(error: BrokerError, topic_partition: TopicPartition, *, fail_on_data_loss: bool) -> None:
    """Take it for data loss that a partition is gone before a task has looked up its ends; tolerated, it is logged.

    Raises:
        DataLossError: it is not tolerated.
    """
    message = (
        f"{topic_partition} was deleted after the read was planned, or this user may not describe it now: the brokers "
        "answer UNKNOWN_TOPIC_OR_PARTITION (3). Nothing of it was read."
    )
    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"
    if fail_on_data_loss:
        raise DataLossError(
            message,
            condition=condition,
            hint="Plan the read anew, by another load(); set failOnDataLoss=false to read what is there.",
            facts={"topic": topic_partition.topic, "partition": topic_partition.partition},
        ) from error
    logger.warning("[%s] %s The read goes on without it, because 'failOnDataLoss' is false.", condition, message)


def _told(error: ConnectorError) -> tuple[str, str]:
    """Give an error for the log, without its hint: what that advises was done."""
    return error.condition, error.message
