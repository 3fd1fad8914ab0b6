"""What a producer knows of its batches: queues, sequences, what to send next, what an answer means.

A state machine without I/O and without a clock: times are arguments. It decides, `produce.py` does. Layer: client;
imports errors, model and the table of error codes only.

Order and exactly-once of one partition rest on these rules (docs/internals/transaction-rules.md, T1 to T9):

- A batch keeps its sequence for life; it is sent again with the bytes it was first sent with.
- After a failed attempt nothing of the partition is sent until every attempt under way has ended (answered, or its
  connection closed). Then the unacknowledged batches are sent again, oldest first.
- The first batch of a partition, and the first after a failure, travels alone. A broker that holds no state of a
  producer accepts any sequence: were a second batch under way, it could be appended where a first one was refused.
- Of a partition, no batch is sent that is more than four behind the oldest unacknowledged one: brokers remember the
  last five, to recognize duplicates. Batches in between count, also when they are acknowledged already.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.error_codes import ErrorCode
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.client.retry import Backoff
    from pyspark_kafka.model import TopicPartition

    Bytes = bytes | bytearray | memoryview

# Sequences are int32 and go on with 0 after the highest (KIP-98).
SEQUENCE_LIMIT = 1 << 31
# How many batches of a producer and partition a broker remembers (Kafka `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
MAX_IN_FLIGHT = 5
# Entries of delivered batches that are kept at least, so that they are dropped many at a time.
_EXPIRIES_KEPT = 1_000


# Answers given before anything is appended. Any other failure may follow an append: a leader that loses its office
# answers NOT_LEADER_OR_FOLLOWER to a write that it has appended but not yet replicated.
_PROVES_ABSENCE = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
    }
)


class Verdict(Enum):
    """What an answer means for a batch."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class SequenceStamp:
    """What the header of the next batch of a partition carries; -1 in every field without idempotence."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Records of a partition or of a producer, by what is known of them."""

    delivered: int = 0
    not_delivered: int = 0
    unknown: int = 0

    def __str__(self) -> str:
        return f"delivered {self.delivered}, not delivered {self.not_delivered}, unknown {self.unknown}"


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """One record batch on its way; mutable, owned by `ProducerState`.

    Attributes:
        number: which batch of its partition it is, counted from 0.
        expires_at: the moment, in seconds of the caller's choice, when delivery is given up.
        maybe_appended: an attempt ended without an answer that proves the batch absent from the log.
        delivered: it is done with: acknowledged, or cut into others.
    """

    topic_partition: TopicPartition
    data: Bytes
    record_count: int
    base_sequence: int
    expires_at: float
    size: int
    number: int = 0
    attempts: int = 0
    in_flight: bool = False
    maybe_appended: bool = False
    delivered: bool = False


@dataclass(slots=True)
class _Partition:
    """The unacknowledged batches of one partition, oldest first."""

    next_sequence: int = 0
    next_number: int = 0
    reserved: deque[SequenceStamp] = field(default_factory=deque)
    reserved_counts: deque[int] = field(default_factory=deque)
    batches: deque[ProducerBatch] = field(default_factory=deque)
    in_flight: int = 0
    queued: int = 0
    # Attempts under way end before anything is sent again.
    draining: bool = False
    # Batches after the first are sent only once an acknowledgement shows that the leader knows our sequences.
    confirmed: bool = False
    failures: int = 0
    not_before: float = 0.0
    delivered_records: int = 0


class ProducerState:
    """The batches of one producer.

    Runs on: executor, in one thread. Not picklable: it holds the bytes of batches.

    Args:
        idempotent: whether batches carry sequences.
        max_in_flight: the most batches of a partition under way; with idempotence never more than 5.
        backoff: the pauses before retries of a partition, by how many failures it has had in a row.

    Source: KIP-98, KIP-360; Kafka `ProducerStateManager`, `ProducerAppendInfo`.
    """

    def __init__(
        self,
        *,
        idempotent: bool,
        max_in_flight: int = MAX_IN_FLIGHT,
        backoff: Backoff,
    ) -> None:
        self.idempotent = idempotent
        self.producer_id = -1
        self.producer_epoch = -1
        self.unacknowledged_bytes = 0
        self.delivered_records = 0
        self.delivered_bytes = 0
        self.delivered_batches = 0
        self.retries = 0
        self._max_in_flight = min(max_in_flight, MAX_IN_FLIGHT) if idempotent else max_in_flight
        self._backoff = backoff
        self._partitions: dict[TopicPartition, _Partition] = {}
        # Partitions with something to send, in the order they got it: fairness, and no walk over idle partitions.
        self._queued: dict[TopicPartition, None] = {}
        # Those of them that may send now or after a pause; the others wait for answers. With a thousand partitions most
        # wait, and each `send` looks for what it may send.
        self._ready: dict[TopicPartition, None] = {}
        # All batches by when they expire; those that are acknowledged are dropped as they come to the front.
        self._expiries: list[tuple[float, int, ProducerBatch]] = []
        self._expiry_number = 0
        self._unacknowledged = 0

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """Take the identity that the brokers gave; once, before the first batch; it outlives tasks."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def begin_task(self) -> None:
        """Go on with identity and sequences, and forget all else: counts, pauses, and that leaders know the sequences.

        They may have forgotten them since, so the next batch of each partition travels alone again.

        Raises:
            ProtocolError: batches are not acknowledged, or sequences reserved and not used.
        """
        if self._unacknowledged or self.unused_reservation() is not None:
            raise ProtocolError(
                f"{self._unacknowledged} record batches are not acknowledged, so no other task can go on.",
                condition="PRODUCER_NOT_REUSABLE",
            )
        self.delivered_records = self.delivered_bytes = self.delivered_batches = self.retries = 0
        self._partitions = {
            topic_partition: _Partition(next_sequence=partition.next_sequence)
            for topic_partition, partition in self._partitions.items()
        }

    @property
    def known_partitions(self) -> int:
        """How many partitions there is a sequence for."""
        return len(self._partitions)

    # -- sequences

    def next_stamp(self, topic_partition: TopicPartition) -> SequenceStamp:
        """Give the stamp of the next batch that is not reserved, without taking it."""
        if not self.idempotent:
            return SequenceStamp(-1, -1, -1)
        return SequenceStamp(self.producer_id, self.producer_epoch, self._partition(topic_partition).next_sequence)

    def reserve(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Take the sequences of one batch; batches must then be appended in the order of their reservations."""
        stamp = self.next_stamp(topic_partition)
        partition = self._partition(topic_partition)
        partition.reserved.append(stamp)
        partition.reserved_counts.append(record_count)
        self._advance(partition, record_count)
        return stamp

    def expected_stamp(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Give the stamp that the batch appended next must carry: the oldest reservation's, else the next one.

        Raises:
            ProtocolError: the oldest reservation is for another number of records.
        """
        partition = self._partition(topic_partition)
        if not partition.reserved:
            return self.next_stamp(topic_partition)
        if partition.reserved_counts[0] != record_count:
            raise ProtocolError(
                f"{topic_partition}: a batch of {record_count} records was given where {partition.reserved_counts[0]} "
                f"were reserved, from sequence {partition.reserved[0].base_sequence} on. Nothing of it was sent.",
                condition="SEQUENCE_RESERVATION_MISMATCH",
                facts={"topic_partition": topic_partition, "records": record_count},
            )
        return partition.reserved[0]

    def unused_reservation(self) -> tuple[TopicPartition, SequenceStamp] | None:
        """Give a reservation that no batch has used, if there is one: later batches would leave a gap."""
        for topic_partition, partition in self._partitions.items():
            if partition.reserved:
                return topic_partition, partition.reserved[0]
        return None

    def _advance(self, partition: _Partition, record_count: int) -> None:
        partition.next_sequence = (partition.next_sequence + record_count) % SEQUENCE_LIMIT

    # -- batches

    def append(
        self, topic_partition: TopicPartition, data: Bytes, record_count: int, *, expires_at: float
    ) -> ProducerBatch:
        """Queue a batch behind the others of its partition; its stamp is `expected_stamp`'s."""
        partition = self._partition(topic_partition)
        base_sequence = self.expected_stamp(topic_partition, record_count).base_sequence
        if partition.reserved:
            partition.reserved.popleft()
            partition.reserved_counts.popleft()
        elif self.idempotent:
            self._advance(partition, record_count)
        batch = ProducerBatch(
            topic_partition, data, record_count, base_sequence, expires_at, len(data), partition.next_number
        )
        partition.next_number += 1
        partition.batches.append(batch)
        partition.queued += 1
        self._queued[topic_partition] = None
        self._sort(topic_partition, partition)
        self._note_expiry(batch)
        self._unacknowledged += 1
        self.unacknowledged_bytes += batch.size
        return batch

    def _note_expiry(self, batch: ProducerBatch) -> None:
        self._expiry_number += 1
        if len(self._expiries) > 2 * self._unacknowledged + _EXPIRIES_KEPT:
            # One batch that waits long must not keep what is known of all that were delivered meanwhile.
            self._expiries = [entry for entry in self._expiries if not entry[2].delivered]
            heapq.heapify(self._expiries)
        heapq.heappush(self._expiries, (batch.expires_at, self._expiry_number, batch))

    def _sort(self, topic_partition: TopicPartition, partition: _Partition) -> None:
        """Note whether a partition may send, as far as that does not hang on the time; call it after each change."""
        if not partition.queued:
            self._queued.pop(topic_partition, None)
            self._ready.pop(topic_partition, None)
        elif self._may_send(partition):
            self._ready.setdefault(topic_partition)
        else:
            self._ready.pop(topic_partition, None)

    def _may_send(self, partition: _Partition) -> bool:
        if not partition.queued or partition.draining:
            return False
        window = self._max_in_flight if partition.confirmed or not self.idempotent else 1
        return partition.in_flight < window

    def ready_partitions(self) -> Iterator[TopicPartition]:
        """Give the partitions that have something to send and wait for nothing but, perhaps, the end of a pause."""
        return iter(self._ready)

    def sendable(self, topic_partition: TopicPartition, now: float) -> ProducerBatch | None:
        """Give the batch of this partition to send now; None when there is none, or it has to wait."""
        partition = self._partitions[topic_partition]
        if now < partition.not_before or not self._may_send(partition):
            return None
        batch = next(batch for batch in partition.batches if not batch.in_flight)
        if self.idempotent and batch.number - partition.batches[0].number >= MAX_IN_FLIGHT:
            return None
        return batch

    def mark_sent(self, batch: ProducerBatch) -> None:
        """Note that the batch goes to a broker now."""
        partition = self._partitions[batch.topic_partition]
        batch.in_flight = True
        self.retries += batch.attempts > 0
        batch.attempts += 1
        partition.in_flight += 1
        partition.queued -= 1
        # To the end of the line: a partition with much to send does not starve the others.
        del self._queued[batch.topic_partition]
        self._ready.pop(batch.topic_partition, None)
        if partition.queued:
            self._queued[batch.topic_partition] = None
            self._sort(batch.topic_partition, partition)

    def judge(self, batch: ProducerBatch, code: int, *, retriable: bool) -> Verdict:
        """Say what a broker's answer means, without changing anything.

        Args:
            batch: a batch under way.
            code: the broker's error code.
            retriable: what the table of codes says of it.
        """
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return Verdict.DELIVERED
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # Behind an earlier batch that failed it is that batch's consequence. For the oldest it means that the log
            # lost records, or that the broker lost the state of this producer.
            first = self._partitions[batch.topic_partition].batches[0]
            return Verdict.FATAL if batch is first else Verdict.RETRY
        return Verdict.RETRY if retriable else Verdict.FATAL

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Forget a delivered batch."""
        partition = self._partitions[batch.topic_partition]
        if partition.batches[0] is batch:
            partition.batches.popleft()
        else:
            partition.batches.remove(batch)
        if not partition.draining:
            # Of a round with a failure nothing is concluded: what comes next after it still travels alone.
            partition.confirmed = True
            partition.failures = 0
        self._end_attempt(partition, batch)
        batch.delivered = True
        batch.data = b""
        partition.delivered_records += batch.record_count
        self._unacknowledged -= 1
        self.unacknowledged_bytes -= batch.size
        self.delivered_records += batch.record_count
        self.delivered_bytes += batch.size
        self.delivered_batches += 1

    def fail(self, batch: ProducerBatch, now: float, code: int | None = None) -> None:
        """Queue a batch again after a failed attempt.

        Args:
            batch: a batch under way.
            now: the caller's seconds; a pause is counted from it.
            code: the broker's answer; None when there was none (connection lost, time over).
        """
        partition = self._partitions[batch.topic_partition]
        if code not in _PROVES_ABSENCE:
            batch.maybe_appended = True
        if not partition.draining:
            # Once a round: the batches behind the first failed one fail because of it.
            partition.failures += 1
            partition.not_before = now + self._backoff.wait_s(partition.failures - 1)
        partition.draining = True
        partition.confirmed = False
        partition.queued += 1
        self._queued[batch.topic_partition] = None
        self._end_attempt(partition, batch)

    def split(self, batch: ProducerBatch, parts: list[tuple[Bytes, int]]) -> None:
        """Put parts into the place of a batch that is not under way, without a pause.

        Args:
            batch: a queued batch.
            parts: bytes and number of records of each, with all of the batch's records, and its sequences.
        """
        partition = self._partitions[batch.topic_partition]
        before, after, sequence = [], [], batch.base_sequence
        for other in partition.batches:
            if other.number < batch.number:
                before.append(other)
            elif other is not batch:
                other.number += len(parts) - 1
                after.append(other)
        for number, (data, records) in enumerate(parts, batch.number):
            part = ProducerBatch(batch.topic_partition, data, records, sequence, batch.expires_at, len(data), number)
            part.maybe_appended = batch.maybe_appended
            before.append(part)
            self._note_expiry(part)
            if self.idempotent:
                sequence = (sequence + records) % SEQUENCE_LIMIT
        partition.batches = deque([*before, *after])
        partition.next_number += len(parts) - 1
        partition.queued += len(parts) - 1
        partition.not_before = 0.0
        # Its parts stand for it.
        batch.delivered = True
        self._sort(batch.topic_partition, partition)
        self._unacknowledged += len(parts) - 1
        self.unacknowledged_bytes += sum(len(data) for data, _ in parts) - batch.size

    def refuse(self, batch: ProducerBatch, code: int) -> None:
        """Note a final refusal, so that `counts` tells it; the producer is of no use afterwards."""
        partition = self._partitions[batch.topic_partition]
        if code not in _PROVES_ABSENCE:
            batch.maybe_appended = True
        partition.queued += 1
        self._end_attempt(partition, batch)

    def postpone(self, topic_partition: TopicPartition, until: float) -> None:
        """Send nothing of a partition before `until`, as its leader is not known."""
        partition = self._partitions[topic_partition]
        partition.not_before = max(partition.not_before, until)

    def _end_attempt(self, partition: _Partition, batch: ProducerBatch) -> None:
        batch.in_flight = False
        partition.in_flight -= 1
        if not partition.in_flight:
            partition.draining = False
        self._sort(batch.topic_partition, partition)

    def _partition(self, topic_partition: TopicPartition) -> _Partition:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = _Partition()
        return partition

    # -- the whole

    @property
    def unacknowledged(self) -> int:
        """How many batches are queued or under way."""
        return self._unacknowledged

    def queued_batch(self, topic_partition: TopicPartition) -> ProducerBatch:
        """Give the oldest batch of a partition that is not under way; there must be one."""
        return next(batch for batch in self._partitions[topic_partition].batches if not batch.in_flight)

    def next_attempt_at(self, now: float) -> float | None:
        """Give the earliest end of a pause among partitions with something to send; None if none pauses."""
        pauses = (self._partitions[topic_partition].not_before for topic_partition in self._ready)
        return min((until for until in pauses if until > now), default=None)

    def next_expiry(self) -> float | None:
        """Give the earliest moment at which a batch has waited too long."""
        expiries = self._expiries
        while expiries and expiries[0][2].delivered:
            heapq.heappop(expiries)
        return expiries[0][0] if expiries else None

    def first_expired(self, now: float) -> ProducerBatch | None:
        """Give a batch, of a partition with something to send, whose time for delivery is over.

        Batches of a partition expire in their order. Those in flight are given up with their requests.
        """
        earliest = self.next_expiry()
        if earliest is None or earliest > now:
            return None
        for topic_partition in self._queued:
            batch = self._partitions[topic_partition].batches[0]
            if batch.expires_at <= now:
                return batch
        return None

    def counts(self, topic_partition: TopicPartition | None = None) -> RecordCounts:
        """Count the records of one partition, or of all, by what is known of their delivery."""
        delivered = not_delivered = unknown = 0
        partitions = list(self._partitions.values()) if topic_partition is None else [self._partition(topic_partition)]
        for partition in partitions:
            delivered += partition.delivered_records
            for batch in partition.batches:
                if batch.in_flight or batch.maybe_appended:
                    unknown += batch.record_count
                else:
                    not_delivered += batch.record_count
        return RecordCounts(delivered, not_delivered, unknown)
