"""Reads one planned range of one partition on an executor: fetch, decode, hand on."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.fetch import FetchedRecords, OffsetOutOfRangeError, PartitionFetcher
from pyspark_kafka.client.pool import borrow_client
from pyspark_kafka.errors import ConnectorError, DataLossError
from pyspark_kafka.model import OffsetRange
from pyspark_kafka.records import iter_decode
from pyspark_kafka.source.columns import BatchAssembler
from pyspark_kafka.streaming import InputPartition, PartitionReader, PartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa

    from pyspark_kafka.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.records import Decoded

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KafkaInputPartition(InputPartition):
    """The range of one topic-partition that one task reads: `[start_offset, end_offset)`."""

    offset_range: OffsetRange


@dataclass(frozen=True, slots=True)
class KafkaPartitionReaderFactory(PartitionReaderFactory):
    """Makes the readers of a batch on executors. Plain data: connections are made where they are used.

    Attributes:
        connection: how to reach the brokers.
        fetch: sizes, waits and isolation of the fetch requests.
        schema: the exact Arrow schema of the batches to give.
        fail_on_data_loss: whether records that are gone are an error or are skipped with a warning.
    """

    connection: ConnectionOptions
    fetch: FetchOptions
    schema: pa.Schema
    fail_on_data_loss: bool

    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of one range; it connects at the first `next()`."""
        if not isinstance(partition, KafkaInputPartition):
            raise TypeError(f"expected a KafkaInputPartition, got {type(partition).__name__}")
        return KafkaPartitionReader(self, partition.offset_range)


class KafkaPartitionReader(PartitionReader):
    """Gives the visible records of `[start_offset, end_offset)` as Arrow batches, in offset order.

    A function of the range only: it discovers nothing, resets nothing and commits nothing. It is done when the
    *position* reaches the end: markers, aborted records and compaction holes take offsets and give no rows.

    Runs on: executor; blocks on the network, at most `kafkaConsumer.pollTimeoutMs` without progress.

    Shape: the factory's schema; about 1 MiB or 10,000 rows a batch. Memory: a few fetches, whatever the range.

    Raises:
        DataLossError: records of the range are gone and `failOnDataLoss` is true.
        CorruptRecordsError: a record batch fails its checksum or is malformed.
        DeadlineError, TransportError, BrokerError: the brokers could not be read from.

    Source: Spark `KafkaDataConsumer`, whose row counts and skips it equals.
    """

    def __init__(self, factory: KafkaPartitionReaderFactory, offset_range: OffsetRange) -> None:
        self._factory = factory
        self._range = offset_range
        self._assembler = BatchAssembler(offset_range.topic_partition, factory.schema)
        self._batches = self._read()
        self._current: pa.RecordBatch | None = None

    def next(self) -> bool:
        """Move to the next batch of records."""
        self._current = next(self._batches, None)
        return self._current is not None

    def get(self) -> pa.RecordBatch:
        """Give the batch that `next()` moved to."""
        if self._current is None:
            raise RuntimeError("get() before next(), or after next() gave False")
        return self._current

    def close(self) -> None:
        """Give the connection back."""
        self._batches.close()

    def _read(self) -> Generator[pa.RecordBatch, None, None]:
        position, end = self._range.start_offset, self._range.end_offset
        with borrow_client(self._factory.connection) as client:
            while position < end:
                remaining = OffsetRange(self._range.topic_partition, position, end)
                with PartitionFetcher(client, remaining, self._factory.fetch) as fetcher:
                    try:
                        for fetched in fetcher:
                            for decoded in self._decode(fetched, position):
                                position = decoded.next_offset
                                if decoded.batch.num_rows:
                                    yield self._assembler.assemble(decoded)
                            fetcher.advance(position)
                    except OffsetOutOfRangeError as error:
                        position = self._after_data_loss(error)

    def _decode(self, fetched: FetchedRecords, position: int) -> Iterator[Decoded]:
        try:
            for decoded in self._pieces(fetched, fetched.records, position):
                position = decoded.next_offset
                yield decoded
        except ConnectorError as error:
            if "position" in error.facts:
                # The codec had batches before the bad one in a piece that was not full yet: they are whole.
                yield from self._pieces(fetched, fetched.records[: int(error.facts["position"])], position)
            # The codec knows offsets only; which log they are of is known here.
            raise error.located(
                f"Reading {self._range}, topic '{self._range.topic_partition.topic}', "
                f"partition {self._range.topic_partition.partition}"
            ) from error

    def _pieces(self, fetched: FetchedRecords, records: memoryview, position: int) -> Iterator[Decoded]:
        fetch = self._factory.fetch
        return iter_decode(
            records,
            start_offset=position,
            end_offset=self._range.end_offset,
            isolation_level=fetch.isolation_level.value,
            aborted_transactions=fetched.aborted_transactions,
            columns=self._assembler.decoded_columns,
            max_decompressed_bytes=fetch.max_decompressed_bytes,
            check_crcs=fetch.check_crcs,
        )

    def _after_data_loss(self, error: OffsetOutOfRangeError) -> int:
        """Give the position to go on from, or raise."""
        lost_from, end = error.requested_offset, self._range.end_offset
        resume = min(error.log_start_offset, end) if error.log_start_offset > lost_from else end
        message = (
            f"Offsets [{lost_from}, {resume}) of {self._range} cannot be read: the log of "
            f"{self._range.topic_partition} is now [{error.log_start_offset}, {error.log_end_offset}). The records may "
            "have been removed by retention, or the topic was deleted and made again. "
            f"Records of the range before {lost_from} were emitted."
        )
        if self._factory.fail_on_data_loss:
            raise DataLossError(
                message,
                condition="KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
                hint="set failOnDataLoss=false to go on behind the gap, or restart with a new checkpoint.",
                facts={"range": self._range, "lost_from": lost_from, "resume": resume},
            ) from error
        logger.warning("%s The read goes on at %d, because 'failOnDataLoss' is false.", message, resume)
        return resume
