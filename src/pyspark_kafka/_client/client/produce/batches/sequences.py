"""The identity of a producer and its sequences, which outlive tasks. Pure.

Sequences of a topic-partition count its records. Under one identity they are never restarted: brokers recognize by them
what a retry sends twice (docs/internals/transaction-rules.md). `produce/pool.py` keeps both between tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition

# Sequences are int32 and continue with 0 after the highest (KIP-98).
SEQUENCE_LIMIT = 1 << 31


class Sequences:
    """The sequences of one producer.

    Args:
        idempotent: whether batches carry any.

    Attributes:
        idempotent: whether batches carry any.
        producer_id: -1 until the brokers have assigned one.
        producer_epoch: -1 until then.

    Source: KIP-98.
    """

    def __init__(self, *, idempotent: bool) -> None:
        self.idempotent = idempotent
        self.producer_id = -1
        self.producer_epoch = -1
        # What is next.
        self._partitions: dict[TopicPartition, int] = {}

    def __len__(self) -> int:
        """Return for how many partitions there is a sequence."""
        return len(self._partitions)

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """Take the identity that the brokers have assigned; once, before the first batch."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def continue_as(self, producer_id: int, producer_epoch: int) -> None:
        """Take the identity of the next transaction of the same owner: sequences begin with 0 if it is another one."""
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self._partitions = {}
            self.identify(producer_id, producer_epoch)

    def take_sequence(self, topic_partition: TopicPartition, record_count: int) -> int:
        """Take the sequences of one batch; return the first one, -1 without idempotence."""
        if not self.idempotent:
            return -1
        first = self._partitions.get(topic_partition, 0)
        self._partitions[topic_partition] = (first + record_count) % SEQUENCE_LIMIT
        return first

    def following(self, sequence: int, record_count: int) -> int:
        """Return the sequence behind a batch."""
        return (sequence + record_count) % SEQUENCE_LIMIT if self.idempotent else sequence
