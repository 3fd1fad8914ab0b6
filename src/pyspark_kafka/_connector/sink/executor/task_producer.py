"""The producer of one task, borrowed when it is first needed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce.pool import ProducerSettings, borrow_producer

if TYPE_CHECKING:
    from pyspark_kafka._client.client.produce.producer import Producer
    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka._connector.sink.executor.record_batch_encoder import EncodedBatch


class TaskProducer:
    """A producer that is borrowed with the first row, so that a task without rows needs no connection.

    It also tells the encoder which partitions there are (`TopicPartitions`), because it looks topics up itself.

    Runs on: executor; one thread; methods block on the network.

    Args:
        options: topic, producer, sizes.

    Raises:
        DeliveryError: by every method: rows were not acknowledged in time, or refused; or there is no such topic.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._settings = ProducerSettings(
            options.connection,
            options.producer,
            options.max_unacknowledged_bytes,
            topic_timeout_ms=options.max_block_ms,
            outage_timeout_ms=options.outage_timeout_ms,
        )
        self._resources = ExitStack()
        self._borrowed: Producer | None = None

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Return the partition count of a topic; see `Producer.partition_count`."""
        return self._producer().partition_count(topic, beyond=beyond)

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Return the partitions with a leader, in order, if they are known; sends no request."""
        return self._producer().available_partitions(topic)

    def send_batch(self, batch: EncodedBatch, *, at_once: bool = True) -> None:
        """Queue one record batch; blocks only while the buffer is full. See `Producer.send_batch`."""
        topic_partition, data, record_count = batch
        self._producer().send_batch(topic_partition, data, record_count, at_once=at_once)

    def send_batches(self, batches: list[EncodedBatch]) -> None:
        """Queue record batches and send what can be sent; see `Producer.send_batches`."""
        if batches or self._borrowed is not None:
            self._producer().send_batches(batches)

    def poll(self, *, everything: bool = False) -> None:
        """Process available responses, and send as much as they have made room for; see `Producer.poll`."""
        if self._borrowed is not None:
            self._borrowed.poll(everything=everything)

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        if self._borrowed is not None:
            self._borrowed.flush()

    def close(self) -> None:
        """Return the producer. Safe to call again."""
        self._resources.close()
        self._borrowed = None

    def _producer(self) -> Producer:
        if self._borrowed is None:
            self._borrowed = self._resources.enter_context(borrow_producer(self._settings))
        return self._borrowed
