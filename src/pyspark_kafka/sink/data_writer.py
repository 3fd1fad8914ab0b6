"""Writes the rows of one task: rows to partitions, partitions to record batches, record batches to the brokers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.client.pool import borrow_client
from pyspark_kafka.client.produce import IdempotentProducer
from pyspark_kafka.errors import RecordError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.records import RecordColumns, encode_rows, group_by_partition
from pyspark_kafka.sink.partitioner import Partitioner
from pyspark_kafka.streaming import DataWriter, WriterCommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.options import WriteOptions
    from pyspark_kafka.sink.columns import SinkColumns

# Rows are gathered to so many bytes before they are cut into record batches: with many partitions, the batches would
# otherwise be as small as an Arrow batch divided by their number.
_GATHERED_BYTES_PER_PARTITION = 256 * 1024
_MIN_GATHERED_BYTES = 2 << 20
_MAX_GATHERED_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class KafkaCommitMessage(WriterCommitMessage):
    """What a task wrote.

    Attributes:
        records: how many records were acknowledged.
        encoded_bytes: their size in record batches, compressed.
    """

    records: int
    encoded_bytes: int


class KafkaDataWriter(DataWriter):
    """Sends the rows of one task and waits until they are acknowledged.

    The connection is made at the first row, so a task without rows needs none. Rows of one task and one partition keep
    their order.

    Runs on: executor; blocks on the network. Memory: the rows being gathered (16 MiB at the most) and
    `kafka.buffer.memory` of encoded ones.

    Shape: batches with the columns that `columns` points at; see `sink.columns`.

    Raises:
        RecordError: a row cannot be sent: null topic, null header key, too large, a partition that does not exist.
        DeliveryError: rows were not acknowledged in time, or refused.

    Source: Spark `KafkaDataWriter`, `KafkaRowWriter`.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns
        self._resources = ExitStack()
        self._producer: IdempotentProducer | None = None
        self._partitioners: dict[str, Partitioner] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._records = 0
        self._encoded_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows; they are sent when enough are gathered, or at `commit`."""
        if not batch.num_rows:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._gather_limit():
            self._send_gathered()

    def commit(self) -> KafkaCommitMessage:
        """Send what is left and wait for every acknowledgement."""
        self._send_gathered()
        if self._producer is not None:
            self._producer.flush()
        return KafkaCommitMessage(self._records, self._encoded_bytes)

    def abort(self) -> None:
        """Drop what is gathered. What is acknowledged already stays in its topic."""
        self._gathered.clear()

    def close(self) -> None:
        """Give the connection back. Safe to call again."""
        self._resources.close()
        self._producer = None

    def _gather_limit(self) -> int:
        partitions = sum(partitioner.partition_count for partitioner in self._partitioners.values())
        return min(max(partitions * _GATHERED_BYTES_PER_PARTITION, _MIN_GATHERED_BYTES), _MAX_GATHERED_BYTES)

    def _open_producer(self) -> IdempotentProducer:
        if self._producer is None:
            client = self._resources.enter_context(borrow_client(self._options.connection))
            self._producer = IdempotentProducer(
                client,
                self._options.producer,
                buffer_bytes=self._options.buffer_bytes,
                topic_timeout_ms=self._options.max_block_ms,
            )
            self._resources.callback(self._producer.close)
        return self._producer

    def _send_gathered(self) -> None:
        if not self._gathered:
            return
        rows = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        producer = self._open_producer()
        for topic, of_topic in self._by_topic(rows):
            self._send_rows(producer, topic, of_topic)

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        topics = rows.column(self._columns.topic)
        if topics.null_count:
            raise RecordError(
                f"{topics.null_count} of {len(topics)} rows have null in column 'topic', and the option 'topic' is not "
                "set. None of these rows was sent; earlier rows of the task may have been.",
                condition="KAFKA_NULL_TOPIC_IN_DATA",
                hint="set the option 'topic' for all rows, or fill or filter the nulls.",
            )
        named = topics.dictionary_encode()
        if len(named.dictionary) == 1:
            yield named.dictionary[0].as_py(), rows
            return
        for number, topic in enumerate(named.dictionary.to_pylist()):
            yield topic, rows.filter(pc.equal(named.indices, number))

    def _send_rows(self, producer: IdempotentProducer, topic: str, rows: pa.RecordBatch) -> None:
        partitioner = self._partitioner(producer, topic)
        keys, chosen = self._column(rows, self._columns.key), self._column(rows, self._columns.partition)
        partitions = partitioner.partitions(rows.num_rows, rows.nbytes, keys, chosen)
        try:
            indices, bounds = group_by_partition(partitions, partitioner.partition_count)
            encodable = RecordColumns(
                keys, rows.column(self._columns.value), headers=self._column(rows, self._columns.headers)
            )
            for partition in range(partitioner.partition_count):
                topic_partition = TopicPartition(topic, partition)
                position, stop = bounds[partition], bounds[partition + 1]
                while position < stop:
                    encoded, taken = self._encode(encodable, indices, position, stop)
                    producer.send(topic_partition, encoded, taken)
                    position += taken
                    self._records += taken
                    self._encoded_bytes += len(encoded)
        except RecordError as error:
            raise error.located(f"Writing to topic '{topic}'") from error

    def _encode(self, rows: RecordColumns, indices: memoryview, start: int, stop: int) -> tuple[bytearray, int]:
        producer = self._options.producer
        limit = min(producer.batch_size, producer.max_request_size)

        def encode(stop: int, limit: int) -> tuple[bytearray, int]:
            return encode_rows(
                rows,
                indices,
                start,
                stop,
                max_batch_bytes=limit,
                compression=producer.compression,
                compression_level=producer.compression_level,
            )

        try:
            return encode(stop, limit)
        except RecordError as error:
            if error.condition != "RECORD_TOO_LARGE" or limit >= producer.max_request_size:
                raise
        # `batch.size` bounds batches, not records: a larger record has a batch of its own.
        return encode(start + 1, producer.max_request_size)

    def _partitioner(self, producer: IdempotentProducer, topic: str) -> Partitioner:
        known = self._partitioners.get(topic)
        if known is None:
            options = self._options.producer
            sticky_bytes = min(options.batch_size, options.max_request_size)
            known = self._partitioners[topic] = Partitioner(producer.partition_count(topic), sticky_bytes)
        return known

    @staticmethod
    def _column(rows: pa.RecordBatch, position: int) -> pa.Array | None:
        return None if position < 0 else rows.column(position)
