"""The maximum batch size of each topic, learned from refusals, and batches cut to that size. Pure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka.records import split_batch

if TYPE_CHECKING:
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch

    Bytes = bytes | bytearray | memoryview

_LOG = logging.getLogger(__name__)

_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class TopicLimits:
    """The maximum batch sizes of topics, learned from refusals.

    A request for a topic's limit takes rights, so it is found by halving: a batch is cut to at most half of what was
    refused.

    Runs on: executor and driver, one thread.

    Args:
        compression_level: of the parts; the same as of the whole batches.

    Attributes:
        learned: the most bytes of a batch, by topic.

    Source: Kafka `Sender.completeBatch`, `RecordAccumulator.splitAndReenqueue`.
    """

    def __init__(self, compression_level: int | None) -> None:
        self._level = compression_level
        self.learned: dict[str, int] = {}

    @staticmethod
    def splittable(batch: ProducerBatch, code: int) -> bool:
        """Return whether smaller batches help after a refusal.

        If the log holds the batch nevertheless, from an attempt before the topic's limit was lowered, the broker
        refuses the sequences of its parts.
        """
        return code in _TOO_LARGE and batch.record_count > 1

    def refused(self, batch: ProducerBatch) -> None:
        """Record a batch that was too large for its topic."""
        topic, size = batch.topic_partition.topic, batch.size
        if topic not in self.learned:
            _LOG.warning(
                "Topic '%s' does not take a record batch of %d bytes; batches are cut into smaller ones. Set option "
                "'kafka.batch.size' below the topic's max.message.bytes to spare the work.",
                topic,
                size,
            )
        self.learned[topic] = min(self.learned.get(topic, size), max(1, size // 2))

    def fits(self, batch: ProducerBatch) -> bool:
        """Return whether a batch is within its topic's learned limit, or cannot be smaller."""
        limit = self.learned.get(batch.topic_partition.topic)
        return limit is None or batch.size <= limit or batch.record_count == 1

    def cut(self, batch: ProducerBatch) -> list[tuple[Bytes, int]]:
        """Return the records of a batch in parts that its topic may accept."""
        limit = self.learned[batch.topic_partition.topic]
        done: list[tuple[Bytes, int]] = []
        todo: list[tuple[Bytes, int]] = [(batch.data, batch.record_count)]
        while todo:
            data, records = todo.pop()
            if len(data) <= limit or records == 1:
                done.append((data, records))
            else:
                # Records differ in size: a part may have to be cut again.
                todo += reversed(split_batch(data, -(-len(data) // limit), compression_level=self._level))
        return done
