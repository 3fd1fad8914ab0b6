"""Reads the planned ranges of one task on an executor: fetch, decode, hand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.pool import borrow_client
from pyspark_kafka.client.fetch.fetcher import MultiPartitionFetcher
from pyspark_kafka.client.fetch.partition_fetcher import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    PartitionFetcher,
    TopicRecreatedError,
)
from pyspark_kafka.connector import PartitionReader
from pyspark_kafka.errors import BrokerError
from pyspark_kafka.model import OffsetRange
from pyspark_kafka.source.executor.columns import BatchAssembler
from pyspark_kafka.source.executor.open_ends import close_range
from pyspark_kafka.source.executor.range_decoding import decode_range, leave_deleted, resume_or_raise

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import pyarrow as pa

    from pyspark_kafka.client.fetch.partition_fetcher import FetchedRecords
    from pyspark_kafka.planning.open_ends import OpenEnds
    from pyspark_kafka.source.handoff import KafkaPartitionReaderFactory


class KafkaPartitionReader(PartitionReader):
    """Gives the visible records of ranges `[start_offset, end_offset)` as Arrow batches.

    Records of a partition come in offset order; a batch holds records of one partition; batches of several partitions
    come in any order. A function of the ranges only: it discovers nothing, resets nothing and commits nothing. A range
    is done when its *position* reaches the end: markers, aborted records and compaction holes take offsets and give
    no rows. Open ends of a range are looked up at the first `next()`, and stay where they are then.

    Runs on: executor; blocks on the network, at most `kafkaConsumer.pollTimeoutMs` without progress.

    Shape: the factory's schema; about 1 MiB or 10,000 rows a batch. Memory: a few fetches, whatever the range.

    Raises:
        DataLossError: records of the range are gone and `failOnDataLoss` is true.
        OptionError: an open end was found on the wrong side of the other one.
        CorruptRecordsError: a record batch fails its checksum or is malformed.
        DeadlineError, TransportError, BrokerError: the brokers could not be read from.

    Source: Spark `KafkaDataConsumer`, whose row counts and skips it equals.
    """

    def __init__(
        self,
        factory: KafkaPartitionReaderFactory,
        *offset_ranges: OffsetRange,
        open_ends: OpenEnds | None = None,
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        self._factory = factory
        self._topic_ids = topic_ids
        # One at a time, however many partitions there are: it keeps columns of the partition's name and number.
        self._assembler = BatchAssembler(offset_ranges[0].topic_partition, factory.schema)
        if open_ends is not None:
            self._batches = self._read_open_ends(offset_ranges[0], open_ends)
        elif len(offset_ranges) == 1:
            self._batches = self._read_one(offset_ranges[0])
        else:
            self._batches = self._read_many(offset_ranges)
        self._current: pa.RecordBatch | None = None
        # Whether no answer of the first range has come yet.
        self._unread = True

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

    def _read_open_ends(self, planned: OffsetRange, open_ends: OpenEnds) -> Generator[pa.RecordBatch, None, None]:
        looked_again = False
        while True:
            try:
                with borrow_client(self._factory.connection) as client:
                    offset_range = close_range(client, planned, open_ends, self._factory.fetch.isolation_level)
            except BrokerError as error:
                if error.condition != "UNKNOWN_TOPIC":
                    raise
                leave_deleted(error, planned.topic_partition, fail_on_data_loss=self._factory.fail_on_data_loss)
                return
            try:
                yield from self._read_one(offset_range, open_start=open_ends.start_from is not None)
            except TopicRecreatedError:
                # This worker knew the topic's former id, or it was made anew after the look-up. Open ends are as good
                # there, as long as nothing was read.
                if looked_again or not open_ends.both_open or not self._unread:
                    raise
                looked_again = True
            else:
                return

    def _read_one(
        self, offset_range: OffsetRange, *, open_start: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        position = offset_range.start_offset
        ids = self._topic_ids
        with borrow_client(self._factory.connection) as client:
            while position < offset_range.end_offset:
                remaining = OffsetRange(offset_range.topic_partition, position, offset_range.end_offset)
                with PartitionFetcher(client, remaining, self._factory.fetch, topic_ids=ids) as fetcher:
                    try:
                        for fetched in fetcher:
                            position = yield from self._emit(fetched, offset_range, position)
                            fetcher.advance(position)
                    except (OffsetOutOfRangeError, LogTruncatedError) as error:
                        # Open until something was read, however often the log's first offset moves.
                        position = self._after_loss(error, offset_range, open_start=open_start and self._unread)
                        if isinstance(error, TopicRecreatedError):
                            # Gone on from in the topic that there is now.
                            ids = None

    def _read_many(self, offset_ranges: tuple[OffsetRange, ...]) -> Generator[pa.RecordBatch, None, None]:
        ranges = {offset_range.topic_partition: offset_range for offset_range in offset_ranges}
        positions = {offset_range.topic_partition: offset_range.start_offset for offset_range in offset_ranges}
        current = offset_ranges[0].topic_partition
        with (
            borrow_client(self._factory.connection) as client,
            MultiPartitionFetcher(client, offset_ranges, self._factory.fetch, topic_ids=self._topic_ids) as fetcher,
        ):
            while True:
                try:
                    topic_partition, fetched = next(fetcher)
                except StopIteration:
                    return
                except (OffsetOutOfRangeError, LogTruncatedError) as error:
                    lost = error.offset_range
                    positions[lost.topic_partition] = self._after_loss(error, lost)
                    fetcher.resume(lost.topic_partition, positions[lost.topic_partition])
                    continue
                if topic_partition != current:
                    current = topic_partition
                    self._assembler = BatchAssembler(topic_partition, self._factory.schema)
                positions[current] = yield from self._emit(fetched, ranges[current], positions[current])
                fetcher.advance(positions[current])

    def _emit(
        self, fetched: FetchedRecords, offset_range: OffsetRange, position: int
    ) -> Generator[pa.RecordBatch, None, int]:
        """Give the rows of an answer; returns the position behind them."""
        columns = self._assembler.decoded_columns
        self._unread = False
        for decoded in decode_range(fetched, offset_range, position, columns, self._factory.fetch):
            position = decoded.next_offset
            if decoded.batch.num_rows:
                yield self._assembler.assemble(decoded)
        return position

    def _after_loss(
        self, error: OffsetOutOfRangeError | LogTruncatedError, offset_range: OffsetRange, *, open_start: bool = False
    ) -> int:
        return resume_or_raise(
            error,
            offset_range,
            fail_on_data_loss=self._factory.fail_on_data_loss,
            open_start=open_start,
            leaves_recreated=self._factory.leaves_recreated,
        )
