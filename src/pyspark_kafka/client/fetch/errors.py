"""What can be wrong with a range that is read, for the source to decide on: lost records, no progress. No I/O.

Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import BrokerError, DataLossError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.client.fetch.cursor import PartitionRead
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.model import OffsetRange


class OffsetOutOfRangeError(BrokerError):
    """The leader does not have the position that was asked for: records are gone, or the log was cut.

    What is done about it is the source's to decide (`failOnDataLoss`).

    Attributes:
        offset_range: the range that was read.
        requested_offset: the position; everything of the range before it was handed out.
        log_start_offset: the first offset that the partition still has.
        log_end_offset: the end of the log under the isolation level of the read.
    """

    offset_range: OffsetRange
    requested_offset: int
    log_start_offset: int
    log_end_offset: int


class LogTruncatedError(DataLossError):
    """The log was cut below the position: records that were handed out are not the ones that the log has now.

    Attributes:
        offset_range: the range that was read.
        requested_offset: the position; everything of the range before it was handed out.
        truncated_to: the first offset whose record is gone or another one now.
    """

    offset_range: OffsetRange
    requested_offset: int
    truncated_to: int


class TopicRecreatedError(LogTruncatedError):
    """The topic was deleted and made again: the position is one of another log, of which nothing was read yet."""


class TopicDeletedError(LogTruncatedError):
    """The topic that the range was planned on does not exist any more."""


def no_progress(active: Sequence[PartitionRead], timeout_ms: float, last_error: ConnectorError | None) -> DeadlineError:
    """Build the error for ranges none of which moved for the time; it is not raised here."""
    read = active[0]
    others = f" (and {len(active) - 1} other ranges)" if len(active) > 1 else ""
    log, hint = read.describe_log()
    last = f" Last failure: {last_error}" if last_error is not None else ""
    return DeadlineError(
        f"Reading {read.offset_range}{others}: no progress at offset {read.position} for {timeout_ms:.0f} ms "
        f"(kafkaConsumer.pollTimeoutMs), last asked {read.last_address or 'no broker'}; {log}. Records of the range "
        f"before {read.position} were handed out, none from there on.{last}",
        condition="FETCH_NO_PROGRESS",
        hint=hint,
        retriable=True,
        facts={
            "topic": read.topic_partition.topic,
            "partition": read.topic_partition.partition,
            "offset": read.position,
            "broker": read.last_address,
            "timeout_ms": f"{timeout_ms:.0f}",
        },
    )
