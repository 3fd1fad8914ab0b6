"""Writes the rows of one task at least once: record batches to the brokers as they are encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.buffers import keep_freed_memory
from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage
from pyspark_kafka._connector.sink.executor.record_batch_encoder import RecordBatchEncoder
from pyspark_kafka._connector.sink.executor.task_producer import TaskProducer
from pyspark_kafka.connector import DataWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.executor.identity_headers import TaskOrigin


class KafkaDataWriter(DataWriter):
    """Sends the rows of one task and waits until they are acknowledged.

    The connection is made at the first row, so a task without rows needs none. Rows of one task and one
    topic-partition keep their order.

    Runs on: executor; blocks on the network. Memory: at most twice `kafka.buffer.memory`, for rows that are gathered
    and cut, and for unacknowledged record batches.

    Shape: batches with the columns that `columns` points at; see `sink.columns`.

    Args:
        options: topic, producer, sizes.
        columns: the positions of the sink's columns.
        origin: the task, for identity headers; None without them.

    Raises:
        RecordError: a row cannot be sent: null topic, null header key, too large, a partition that does not exist.
        DeliveryError: rows were not acknowledged in time, or refused.

    Source: Spark `KafkaDataWriter`, `KafkaRowWriter`.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns, origin: TaskOrigin | None = None) -> None:
        keep_freed_memory()
        self._producer = TaskProducer(options)
        self._encoder = RecordBatchEncoder(options, columns, self._producer, origin)
        # Whether the caller flushes, which polls as well.
        self._is_flushed = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are sent when enough are gathered, or at `commit`."""
        if not self._is_flushed:
            # Spark may have taken long to make the rows: responses are there, and small batches can follow.
            self._producer.poll()
        for encoded in self._encoder.gather_rows(batch):
            self._producer.send_batch(encoded)

    def flushNow(self) -> None:
        """Send the gathered rows; their acknowledgements are waited for at `commit`."""
        self._is_flushed = True
        # Also beside requests in flight: nobody knows when the next call comes that could send it.
        self._producer.send_batches(list(self._encoder.finish()))

    def commit(self) -> KafkaCommitMessage:
        """Send what is left and wait for every acknowledgement."""
        for encoded in self._encoder.finish():
            self._producer.send_batch(encoded)
        self._producer.flush()
        return KafkaCommitMessage(self._encoder.records, self._encoder.encoded_bytes)

    def abort(self) -> None:
        """Drop the gathered rows. What is acknowledged already stays in its topic."""
        self._encoder.drop()

    def close(self) -> None:
        """Return connection and producer. Safe to call again."""
        self._producer.close()
