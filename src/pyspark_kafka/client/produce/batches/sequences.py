"""The identity of a producer and its sequences, which outlive tasks. Pure.

Sequences of a topic-partition count its records. Under one identity they are never restarted: brokers recognize by them
what a retry sends twice (docs/internals/transaction-rules.md).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from pyspark_kafka.model import TopicPartition

# Sequences are int32 and continue with 0 after the highest (KIP-98).
SEQUENCE_LIMIT = 1 << 31


class SequenceStamp(NamedTuple):
    """What the header of the next batch of a partition carries; -1 in every field without idempotence."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


_NO_STAMP = SequenceStamp(-1, -1, -1)


@dataclass(slots=True)
class _PartitionSequences:
    """The next sequence that is free, and the reserved ones with their numbers of records, oldest first."""

    next_sequence: int = 0
    reserved: deque[tuple[SequenceStamp, int]] = field(default_factory=deque)


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
        self._partitions: dict[TopicPartition, _PartitionSequences] = {}

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

    def next_stamp(self, topic_partition: TopicPartition) -> SequenceStamp:
        """Return the stamp of the next batch that is not reserved, without taking it."""
        return self._next(self._partition(topic_partition))

    def reserve(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Take the sequences of one batch; batches must then be sent in the order of their reservations."""
        partition = self._partition(topic_partition)
        stamp = self._next(partition)
        partition.reserved.append((stamp, record_count))
        partition.next_sequence = self.following(partition.next_sequence, record_count)
        return stamp

    def expected_stamp(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Return the stamp that the batch sent next must carry: the oldest reservation's, otherwise the next one.

        Raises:
            ProtocolError: the oldest reservation is for another number of records.
        """
        partition = self._partitions.get(topic_partition) or self._partition(topic_partition)
        if not partition.reserved:
            return self._next(partition)
        stamp, reserved_count = partition.reserved[0]
        if reserved_count != record_count:
            raise ProtocolError(
                f"{topic_partition}: a batch of {record_count} records was sent where {reserved_count} were reserved, "
                f"from sequence {stamp.base_sequence} on. Nothing of it was sent.",
                condition="SEQUENCE_RESERVATION_MISMATCH",
                parameters={"topic_partition": topic_partition, "records": record_count},
            )
        return stamp

    def take(self, topic_partition: TopicPartition, record_count: int) -> int:
        """Take the sequences of the batch sent next, as `expected_stamp` has returned them; return the first one."""
        partition = self._partitions.get(topic_partition) or self._partition(topic_partition)
        if partition.reserved:
            stamp = self.expected_stamp(topic_partition, record_count)
            partition.reserved.popleft()
            return stamp.base_sequence
        if not self.idempotent:
            return -1
        sequence = partition.next_sequence
        partition.next_sequence = (sequence + record_count) % SEQUENCE_LIMIT
        return sequence

    def unused_reservation(self) -> tuple[TopicPartition, SequenceStamp] | None:
        """Return a reservation that no batch has used, if there is one: later batches would leave a gap."""
        for topic_partition, partition in self._partitions.items():
            if partition.reserved:
                return topic_partition, partition.reserved[0][0]
        return None

    def following(self, sequence: int, record_count: int) -> int:
        """Return the sequence behind a batch."""
        return (sequence + record_count) % SEQUENCE_LIMIT if self.idempotent else sequence

    def _next(self, partition: _PartitionSequences) -> SequenceStamp:
        if not self.idempotent:
            return _NO_STAMP
        return SequenceStamp(self.producer_id, self.producer_epoch, partition.next_sequence)

    def _partition(self, topic_partition: TopicPartition) -> _PartitionSequences:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = _PartitionSequences()
        return partition
