"""Reads the planned ranges of one task on an executor: fetch, decode, return rows as Arrow batches."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.fetch.errors import (
    LOSSES,
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._connector.source.executor.assembler import Assemblers
from pyspark_kafka._connector.source.executor.range_decoder import decode_range, leave_deleted, resume_or_raise
from pyspark_kafka.connector import PartitionReader
from pyspark_kafka.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import pyarrow as pa

    from pyspark_kafka._base.model import IsolationLevel, OffsetRange
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._connector.planning.open_ends import OpenEnds
    from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler
    from pyspark_kafka._connector.source.read_settings import ReadSettings


class KafkaPartitionReader(PartitionReader):
    """Returns the visible records of ranges `[start_offset, end_offset)` as Arrow batches.

    Records of a partition come in offset order; a batch holds records of one partition; batches of several partitions
    come in any order. The result depends on the ranges only: it discovers nothing, resets nothing and commits nothing.
    A range is done when its *position* reaches the end: control records, aborted records and compaction holes take
    offsets and are not rows. Open ends of a range are looked up at the first `next()`, and do not change afterwards.

    Runs on: executor; blocks on the network, at most `kafkaConsumer.pollTimeoutMs` without progress.

    Shape: the schema of the settings; about 1 MiB or 10,000 rows a batch. Memory: a few fetches, for any size of range.

    Raises:
        DataLossError: records of the range are gone and `failOnDataLoss` is true.
        OptionError: an open end was found on the wrong side of the other end.
        CorruptRecordsError: a record batch fails its checksum or is malformed.
        RecordError: a typed key or value is bad in mode FAILFAST, or more of them than `maxCorruptRatio` allows.
        RegistryError: a schema cannot be looked up.
        DeadlineError, TransportError, BrokerError: no broker could be read.

    Source: Spark `KafkaDataConsumer`; it returns and skips the same records.
    """

    def __init__(
        self,
        settings: ReadSettings,
        *offset_ranges: OffsetRange,
        open_ends: OpenEnds | None = None,
        topic_ids: Mapping[str, str] | None = None,
        sampler: HeaderSampler | None = None,
    ) -> None:
        self._settings = settings
        self._open_ends = open_ends
        self._topic_ids = topic_ids
        self._sampler = sampler
        self._assemblers = Assemblers(settings.schema, settings.formats)
        self._batches = self._read(offset_ranges)
        self._current: pa.RecordBatch | None = None
        # Whether no response with records has arrived yet.
        self._unread = True

    def next(self) -> bool:
        """Move to the next batch of records."""
        self._current = next(self._batches, None)
        return self._current is not None

    def get(self) -> pa.RecordBatch:
        """Return the batch that `next()` moved to."""
        if self._current is None:
            raise RuntimeError("get() before next(), or after next() returned False")
        return self._current

    def close(self) -> None:
        """Return the connections."""
        self._batches.close()

    def _read(self, offset_ranges: tuple[OffsetRange, ...]) -> Generator[pa.RecordBatch, None, None]:
        looked_again = False
        with closing(self._assemblers), borrow_client(self._settings.connection) as client:
            while True:
                ranges = self._close_ranges(client, offset_ranges)
                with Fetcher(client, ranges, self._settings.fetch, topic_ids=self._topic_ids) as fetcher:
                    try:
                        yield from self._read_ranges(fetcher, ranges)
                    except TopicRecreatedError:
                        # This worker knew the topic's former id, or it was recreated after the look-up. If nothing was
                        # read yet, open ends apply to the new topic too.
                        if looked_again or self._open_ends is None or not self._open_ends.both_open or not self._unread:
                            raise
                        looked_again = True
                    else:
                        self._assemblers.finish()
                        return

    def _close_ranges(self, client: KafkaClient, offset_ranges: tuple[OffsetRange, ...]) -> tuple[OffsetRange, ...]:
        """Resolve open ends, which only a single range has; a deleted topic leaves no range if loss is tolerated."""
        if self._open_ends is None:
            return offset_ranges
        (planned,) = offset_ranges
        try:
            return (close_range(client, planned, self._open_ends, self._settings.fetch.isolation_level),)
        except BrokerError as error:
            if error.condition != "UNKNOWN_TOPIC":
                raise
            leave_deleted(planned.topic_partition, fail_on_data_loss=self._settings.fail_on_data_loss)
            return ()

    def _read_ranges(
        self, fetcher: Fetcher, offset_ranges: tuple[OffsetRange, ...]
    ) -> Generator[pa.RecordBatch, None, None]:
        ranges = {offset_range.topic_partition: offset_range for offset_range in offset_ranges}
        while True:
            try:
                topic_partition, fetched = next(fetcher)
            except StopIteration:
                return
            except LOSSES as error:
                lost = error.offset_range
                fetcher.resume(lost.topic_partition, self._resume_or_raise(error, lost))
                continue
            self._unread = False
            if self._sampler is not None:
                self._sampler.look(fetched, ranges[topic_partition])
            assembler, position = self._assemblers.assembler(topic_partition), fetched.start_offset
            columns = assembler.decoded_columns
            for decoded in decode_range(fetched, ranges[topic_partition], columns, self._settings.fetch):
                position = decoded.next_offset
                if decoded.batch.num_rows and (batch := assembler.assemble(decoded)).num_rows:
                    yield batch
            fetcher.confirm(topic_partition, position)

    def _resume_or_raise(self, error: OffsetOutOfRangeError | LogTruncatedError, offset_range: OffsetRange) -> int:
        return resume_or_raise(
            error,
            offset_range,
            fail_on_data_loss=self._settings.fail_on_data_loss,
            # Open until something was read, even if the log's first offset moves several times.
            open_start=self._open_ends is not None and self._open_ends.start_from is not None and self._unread,
            leaves_recreated=self._settings.leaves_recreated,
        )


def close_range(
    client: KafkaClient, planned: OffsetRange, open_ends: OpenEnds, isolation_level: IsolationLevel
) -> OffsetRange:
    """Resolve the open ends of a range as they are now.

    Runs on: executor, when a task starts; one request for each needed end, mostly one request in total.

    Raises:
        OptionError: an end was found on the wrong side of the end that an option names.
        ConnectorError: the look-up failed.
    """
    topic_partition = planned.topic_partition
    first_offset = log_end = None
    # The start first: a log never ends before a start that it had earlier.
    if open_ends.asks_first_offset(planned):
        first_offset = list_offsets(client, {topic_partition: Earliest()}, isolation_level)[topic_partition]
    if open_ends.end_by is not None:
        log_end = list_offsets(client, {topic_partition: Latest()}, isolation_level)[topic_partition]
    return open_ends.close(planned, first_offset, log_end)
