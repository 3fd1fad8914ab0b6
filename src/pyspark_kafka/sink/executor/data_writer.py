"""Writes the rows of one task at least once: record batches to the brokers as they are encoded. Layer: sink."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.produce.pool import ProducerSettings, borrow_producer
from pyspark_kafka.connector import DataWriter, WriterCommitMessage
from pyspark_kafka.sink.executor.record_batch_encoder import RecordBatchEncoder

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pyspark_kafka.client.produce.producer import Producer
    from pyspark_kafka.options import WriteOptions
    from pyspark_kafka.sink.columns import SinkColumns
    from pyspark_kafka.sink.executor.identity_headers import TaskOrigin
    from pyspark_kafka.sink.executor.record_batch_encoder import EncodedBatch


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

    Args:
        options: topic, producer, sizes.
        columns: where the sink's columns are.
        origin: whose rows they are, to be said in headers; None where records do not say it.

    Raises:
        RecordError: a row cannot be sent: null topic, null header key, too large, a partition that does not exist.
        DeliveryError: rows were not acknowledged in time, or refused.

    Source: Spark `KafkaDataWriter`, `KafkaRowWriter`.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns, origin: TaskOrigin | None = None) -> None:
        self._options = options
        self._encoder = RecordBatchEncoder(options, columns, self._open_producer, origin)
        self._resources = ExitStack()
        self._producer: Producer | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows; they are sent when enough are gathered, or at `commit`."""
        if self._producer is not None:
            # Whoever makes the rows may have taken long: answers are there, and small batches can follow.
            self._producer.poll(everything=False)
        self._send(self._encoder.add(batch))

    def commit(self) -> KafkaCommitMessage:
        """Send what is left and wait for every acknowledgement."""
        self._send(self._encoder.finish())
        if self._producer is not None:
            self._producer.flush()
        return KafkaCommitMessage(self._encoder.records, self._encoder.encoded_bytes)

    def abort(self) -> None:
        """Drop what is gathered. What is acknowledged already stays in its topic."""
        self._encoder.drop()

    def close(self) -> None:
        """Give connection and producer back. Safe to call again."""
        self._resources.close()
        self._producer = None

    def _open_producer(self) -> Producer:
        if self._producer is None:
            options = self._options
            settings = ProducerSettings(
                options.connection,
                options.producer,
                options.max_unacknowledged_bytes,
                topic_timeout_ms=options.max_block_ms,
                outage_timeout_ms=options.outage_timeout_ms,
            )
            self._producer = self._resources.enter_context(borrow_producer(settings))
        return self._producer

    def _send(self, batches: Iterable[EncodedBatch]) -> None:
        for topic_partition, data, record_count in batches:
            self._open_producer().send(topic_partition, data, record_count)
