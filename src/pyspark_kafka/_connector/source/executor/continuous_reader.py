"""Reads topic-partitions, mostly without an end, on an executor: poll, decode, return rows as they arrive."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import NO_END, OffsetRange
from pyspark_kafka._base.traces.link_sample import LinkSample
from pyspark_kafka._base.traces.roles import SamplesLinks
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.fetch.errors import LOSSES, TopicDeletedError, TopicRecreatedError
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._connector.source.executor.assembler import Assemblers
from pyspark_kafka._connector.source.executor.columns import sample_times
from pyspark_kafka._connector.source.executor.partition_offset import KafkaSourcePartitionOffset
from pyspark_kafka._connector.source.executor.range_decoder import decode_range, resume_or_raise
from pyspark_kafka.connector import ContinuousPartitionReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.traces.roles import Attribute
    from pyspark_kafka._connector.source.executor.assembler import Assembler
    from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler
    from pyspark_kafka._connector.source.read_settings import ReadSettings
    from pyspark_kafka.records import Decoded

# The maximum wait of `next` for rows.
_WAIT_MS = 100
# The maximum size of a batch. Larger than in a micro-batch, which the JVM reads row by row: a sink fills
# more record batches from one Arrow batch, which saves client and broker a sixth of their time.
_BATCH_BYTES, _BATCH_ROWS = 4 << 20, 40_000


class KafkaContinuousPartitionReader(ContinuousPartitionReader, SamplesLinks):
    """Returns the visible records of topic-partitions from given offsets on, as they arrive, with or without an end.

    Records of a partition come in offset order; a batch holds records of one partition; batches of several partitions
    come in the order in which brokers return them. Brokers hold the requests until there are records, so rows are
    returned when they are written. Without new records, a request goes to each broker about every
    `kafka.fetch.max.wait.ms`.

    The position passes control records and aborted records, which are not rows, as soon as they were read: a reader
    that has read everything has no lag. Without calls of `next` there are no fetches.

    If `failOnDataLoss` is false, a topic that is deleted or recreated in the meantime is no longer read; its last
    position is still reported, and the next plan notices. Aged-out records are skipped.

    Runs on: executor, for as long as the query runs. `next` waits about 100 ms for rows, longer only if a leader must
    be looked up. One thread; `close` may be called from another thread, and returns after `next`.

    Shape: the schema of the settings; at most about 4 MiB or 40,000 rows a batch. Memory: a few fetches.

    Raises:
        DataLossError: records are gone and `failOnDataLoss` is true.
        CorruptRecordsError: a record batch fails its checksum or is malformed.
        RecordError: a typed key or value is bad in mode FAILFAST, or more of them than `maxCorruptRatio` allows.
        RegistryError: a schema cannot be looked up.
        DeadlineError, TransportError, BrokerError: no broker could be read for `outageTimeout`.

    Source: Spark `KafkaContinuousPartitionReader`.
    """

    def __init__(
        self,
        settings: ReadSettings,
        starts: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, str],
        ends: Mapping[TopicPartition, int],
        sampler: HeaderSampler | None = None,
    ) -> None:
        self._settings = settings
        self._sampler = sampler
        self._endless = not ends
        self._ranges = {tp: OffsetRange(tp, start, ends.get(tp, NO_END)) for tp, start in starts.items()}
        self._topic_ids = topic_ids
        self._positions = dict(starts)
        self._resources = ExitStack()
        self._fetcher: Fetcher | None = None
        self._assemblers = Assemblers(settings.schema, settings.formats)
        # The response that is decoded: its partition, its assembler, its remaining pieces, the
        # position after the last piece; and the position after all of them by the batch headers.
        self._topic_partition: TopicPartition | None = None
        self._assembler: Assembler | None = None
        self._pieces: Iterator[Decoded] | None = None
        self._decoded_to = self._scanned_to = 0
        # The batch that `next` moved to. Its position counts after `get` has returned it.
        self._current: pa.RecordBatch | None = None
        self._current_at: tuple[TopicPartition, int] | None = None
        # Of the batch that `get` returned last: topic-partition, first offset, offset after the last.
        self._returned: tuple[TopicPartition, int, int] | None = None
        self._timestamps = settings.schema.get_field_index("timestamp")
        # Held by `next`, so that `close` waits for it.
        self._reading = threading.Lock()
        self._is_closing = False

    def next(self) -> bool:
        """Move to the next batch of rows; False if there are none yet."""
        with self._reading:
            if self._is_closing:
                raise RuntimeError("the reader is closed")
            self._current = self._current_at = None
            began = monotonic()
            left_ms: float = _WAIT_MS
            while True:
                if self._pieces is None:
                    self._poll(left_ms)
                if self._pieces is not None and self._decode(self._pieces):
                    return True
                # Checked after each step: many records that are not rows may arrive.
                left_ms = _WAIT_MS - (monotonic() - began) * 1000
                if left_ms <= 0 or self._is_closing or self.hasEnded():
                    return False

    def hasEnded(self) -> bool:
        """Return whether every topic-partition is read to its end."""
        if self._endless or self._pieces is not None:
            return False
        if self._fetcher is None:
            return all(each.size <= 0 for each in self._ranges.values())
        return self._fetcher.is_done

    def hasMore(self) -> bool:
        """Return whether the last response has more records."""
        return self._pieces is not None or (self._fetcher is not None and self._fetcher.holds_records)

    def get(self) -> pa.RecordBatch:
        """Return the batch that `next()` moved to."""
        if self._current is None:
            raise RuntimeError("get() before next(), or after next() returned False")
        if self._current_at is not None:
            topic_partition, position = self._current_at
            if self._positions[topic_partition] != position:
                # Not the second call for the same batch.
                self._returned = topic_partition, self._positions[topic_partition], position
                self._positions[topic_partition] = position
        return self._current

    def describeRows(self) -> str:
        """Return topic-partition and offsets of the last batch."""
        return "" if self._returned is None else str(OffsetRange(*self._returned))

    def getOffset(self) -> KafkaSourcePartitionOffset:
        """Return the positions of all the task's partitions."""
        return KafkaSourcePartitionOffset(dict(self._positions))

    def getLatestOffset(self) -> KafkaSourcePartitionOffset | None:
        """Return the ends of the partitions by the last responses; with constant traffic they are a moment old.

        Partitions without a response yet are left out. None if no partition has one.
        """
        fetcher = self._fetcher
        if fetcher is None:
            return None
        found = {}
        for topic_partition, position in self._positions.items():
            end = fetcher.known_end(topic_partition)
            if end is not None:
                found[topic_partition] = max(end, position)
        return KafkaSourcePartitionOffset(found) if found else None

    def getRowTimes(self) -> Sequence[float]:
        """Return the timestamps of a few records of the batch that `get` returned; empty without that column."""
        batch = self._current
        if batch is None or not batch.num_rows or self._timestamps < 0:
            return ()
        return sample_times(batch.column(self._timestamps))

    def keyGroup(self) -> str:
        """Return the topic-partition of the rows that `get` returned last."""
        if self._current_at is None:
            raise RuntimeError("keyGroup() before get()")
        return str(self._current_at[0])

    def span_attributes(self) -> dict[str, Attribute]:
        """Return what OpenTelemetry calls the source."""
        from pyspark_kafka._base.traces.steps import messaging_attributes  # noqa: PLC0415 - few queries have spans

        return messaging_attributes("process", "process", self._settings.topic)

    def take_sample(self) -> LinkSample:
        """Return what the headers of a few records have said since the last call; empty for a query without spans."""
        sampler = self._sampler
        if sampler is None:
            return LinkSample()
        sample, sampler.sample = sampler.sample, LinkSample()
        return sample

    def close(self) -> None:
        """Return the connections, and abandon requests in flight. Safe to call again, and from another thread."""
        self._is_closing = True
        with self._reading:
            self._pieces = None
            self._assemblers.close()
            self._resources.close()

    def _open(self) -> Fetcher:
        client = self._resources.enter_context(borrow_client(self._settings.connection))
        return self._resources.enter_context(
            Fetcher(client, self._ranges.values(), self._settings.fetch, topic_ids=self._topic_ids)
        )

    def _poll(self, timeout_ms: float) -> None:
        """Wait for a response with records, or for the time limit."""
        if self._fetcher is None:
            self._fetcher = self._open()
        try:
            found = self._fetcher.poll(timeout_ms)
        except LOSSES as error:
            lost = error.offset_range
            position = resume_or_raise(
                error, lost, fail_on_data_loss=self._settings.fail_on_data_loss, leaves_recreated=True
            )
            self._fetcher.resume(lost.topic_partition, position)
            # The position in a deleted topic is still reported; the next plan decides about the topic.
            if not isinstance(error, (TopicDeletedError, TopicRecreatedError)):
                self._positions[lost.topic_partition] = position
            return
        if found is None:
            return
        topic_partition, fetched = found
        if self._sampler is not None:
            self._sampler.look(fetched, self._ranges[topic_partition])
        self._topic_partition = topic_partition
        self._assembler = self._assemblers.assembler(topic_partition)
        self._decoded_to = fetched.start_offset
        self._scanned_to = min(fetched.scanned_offset, self._ranges[topic_partition].end_offset)
        self._pieces = decode_range(
            fetched,
            self._ranges[topic_partition],
            self._assembler.decoded_columns,
            self._settings.fetch,
            target_bytes=_BATCH_BYTES,
            target_rows=_BATCH_ROWS,
        )

    def _decode(self, pieces: Iterator[Decoded]) -> bool:
        """Decode the next piece; return whether it has rows."""
        topic_partition, assembler, fetcher = self._topic_partition, self._assembler, self._fetcher
        if topic_partition is None or assembler is None or fetcher is None:
            raise RuntimeError("nothing was fetched")
        decoded = next(pieces, None)
        if decoded is None:
            self._finish_response(topic_partition, fetcher)
            return False
        self._decoded_to = decoded.next_offset
        if not decoded.batch.num_rows or not (batch := assembler.assemble(decoded)).num_rows:
            self._positions[topic_partition] = decoded.next_offset
            return False
        self._current = batch
        self._current_at = topic_partition, decoded.next_offset
        if decoded.next_offset >= self._scanned_to:
            self._finish_response(topic_partition, fetcher)
        return True

    def _finish_response(self, topic_partition: TopicPartition, fetcher: Fetcher) -> None:
        self._pieces = None
        fetcher.confirm(topic_partition, self._decoded_to)
        if not self._endless and fetcher.is_done:
            self._assemblers.finish()
