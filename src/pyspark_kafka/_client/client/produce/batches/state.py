"""The batches of one producer: what to send next, and what each response changes. Pure.

It decides, `delivery/` does. The rules of order of one partition: `partition_queue`.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, RETRIES
from pyspark_kafka._client.client.produce.batches.partition_queue import MAX_IN_FLIGHT, PartitionQueue
from pyspark_kafka._client.client.produce.batches.producer_batch import (
    FINAL_STATES,
    BatchState,
    ProducerBatch,
    RecordCounts,
)
from pyspark_kafka._client.client.produce.batches.sequences import Sequences
from pyspark_kafka._client.client.produce.batches.verdicts import Verdict, judge_code, proves_absence
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.waiting.retry import Backoff

    Bytes = bytes | bytearray | memoryview


# Final batches leave the expiries in groups of at least this size.
_KEPT_EXPIRIES = 1_000
# How often a batch is sent that the broker finds damaged.
_CORRUPT_ATTEMPTS = 5


class ProducerState:
    """The state machine of one producer.

    Runs on: executor and driver, in one thread. Not picklable: it holds the bytes of batches.

    Args:
        idempotent: whether batches carry sequences.
        max_in_flight: how many batches of a partition are in flight at most; with idempotence never more than 5.
        backoff: the pauses before retries of a partition, by how many failures it has had in a row.

    Attributes:
        sequences: identity and sequences, which outlive tasks.
        unacknowledged: how many batches are pending or in flight.
        unacknowledged_bytes: bytes of batches that are pending or in flight.
        delivered_records: records acknowledged in this task.
        delivered_bytes: bytes acknowledged in this task.
        delivered_batches: batches acknowledged in this task.
        ready: the partitions that have something to send and wait for nothing but, perhaps, the end of a pause. The
            others wait for responses: with a thousand partitions most wait, and each `send_batch` looks for what it may
            send.
        retries: how often a batch was sent again in this task.

    Source: KIP-98, KIP-360; Kafka `ProducerStateManager`, `ProducerAppendInfo`.
    """

    def __init__(
        self,
        *,
        idempotent: bool,
        max_in_flight: int = MAX_IN_FLIGHT,
        backoff: Backoff,
    ) -> None:
        self.sequences = Sequences(idempotent=idempotent)
        self.unacknowledged_bytes = 0
        self.delivered_records = 0
        self.delivered_bytes = 0
        self.delivered_batches = 0
        self.retries = 0
        self._idempotent = idempotent
        self._window = min(max_in_flight, MAX_IN_FLIGHT) if idempotent else max_in_flight
        self._backoff = backoff
        self._partitions: dict[TopicPartition, PartitionQueue] = {}
        # Partitions with something to send, in the order they got it: fairness, and no walk over idle partitions.
        self._pending: dict[TopicPartition, None] = {}
        self.ready: dict[TopicPartition, None] = {}
        # By when they expire; final ones are dropped when they come to the front.
        self._expiries: deque[ProducerBatch] = deque()
        self.unacknowledged = 0

    def begin_task(self) -> None:
        """Continue with identity and sequences, and forget all else: counts, pauses, which leaders have the sequences.

        Leaders may have forgotten them since, so the next batch of each partition travels alone again.

        Raises:
            ProtocolError: batches are not acknowledged.
        """
        if self.unacknowledged:
            raise ProtocolError(
                f"{self.unacknowledged} record batches are not acknowledged, so no other task can go on.",
                condition="PRODUCER_NOT_REUSABLE",
            )
        self.delivered_records = self.delivered_bytes = self.delivered_batches = self.retries = 0
        self._partitions = {}

    # -- what to send

    def append(
        self, topic_partition: TopicPartition, data: Bytes, record_count: int, base_sequence: int, *, expires_at: float
    ) -> ProducerBatch:
        """Queue a batch behind the others of its partition; none that was queued before expires later."""
        partition = self._partitions.get(topic_partition) or self._partition(topic_partition)
        number = partition.next_number
        batch = ProducerBatch(topic_partition, data, record_count, base_sequence, expires_at, len(data), number)
        partition.next_number = number + 1
        partition.batches.append(batch)
        partition.pending += 1
        self._pending[topic_partition] = None
        self._sort(topic_partition, partition)
        if len(self._expiries) > 2 * self.unacknowledged + _KEPT_EXPIRIES:
            # One batch that waits long must not keep the entries of all that were delivered meanwhile.
            self._expiries = deque(other for other in self._expiries if other.state not in FINAL_STATES)
        self._expiries.append(batch)
        self.unacknowledged += 1
        self.unacknowledged_bytes += batch.size
        return batch

    def sendable(self, topic_partition: TopicPartition, now: float) -> ProducerBatch | None:
        """Return the batch of this partition to send now; None if there is none, or it has to wait."""
        partition = self._partitions[topic_partition]
        # Ready ones may send, apart from pauses.
        if now < partition.not_before or topic_partition not in self.ready:
            return None
        batch = partition.batches[0]
        if batch.state is not BatchState.PENDING:
            batch = partition.first_pending()
        if self._idempotent and batch.number - partition.batches[0].number >= MAX_IN_FLIGHT:
            return None
        return batch

    def mark_sent(self, batch: ProducerBatch) -> None:
        """Record that the batch is sent to a broker now."""
        partition = self._partitions[batch.topic_partition]
        if batch.attempts > 0:
            self.retries += 1
            COUNTERS.add_count(RETRIES)
        batch.state = BatchState.IN_FLIGHT
        batch.attempts += 1
        partition.in_flight += 1
        partition.pending -= 1
        # To the end of the line: a partition with much to send does not starve the others.
        del self._pending[batch.topic_partition]
        self.ready.pop(batch.topic_partition, None)
        if partition.pending:
            self._pending[batch.topic_partition] = None
            self._sort(batch.topic_partition, partition)

    def postpone(self, topic_partition: TopicPartition, until: float) -> None:
        """Send nothing of a partition before `until`, because its leader is not known or cannot be reached."""
        partition = self._partitions[topic_partition]
        partition.not_before = max(partition.not_before, until)

    def _sort(self, topic_partition: TopicPartition, partition: PartitionQueue) -> None:
        """Record whether a partition may send, apart from pauses; called after each change."""
        if not partition.pending:
            self._pending.pop(topic_partition, None)
            self.ready.pop(topic_partition, None)
        elif partition.draining or partition.in_flight >= (
            self._window if partition.confirmed or not self._idempotent else 1
        ):
            self.ready.pop(topic_partition, None)
        else:
            self.ready.setdefault(topic_partition)

    # -- what a response changes

    def judge_response(self, batch: ProducerBatch, code: int, *, retriable: bool) -> Verdict:
        """Return what a broker's response means for a batch in flight, without changing anything.

        Args:
            batch: a batch in flight.
            code: the broker's error code.
            retriable: what the table of codes says of it.
        """
        partition = self._partitions[batch.topic_partition]
        if code == ErrorCode.CORRUPT_MESSAGE:
            # Mostly a bit that flipped on the way: brokers check before they append. A batch that is damaged here stays
            # damaged; and behind a later batch that was taken, this one is out of order.
            is_late = self._idempotent and partition.has_delivered_after(batch)
            retriable = batch.attempts < _CORRUPT_ATTEMPTS and not is_late
        oldest = partition.batches[0] is batch
        return judge_code(code, retriable=retriable, oldest=oldest)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Forget a delivered batch; in a round with a failure it shows nothing: the next one still travels alone."""
        partition = self._partitions[batch.topic_partition]
        if partition.batches[0] is batch:
            partition.batches.popleft()
        else:
            partition.batches.remove(batch)
        if not partition.draining:
            partition.confirmed = True
            partition.failures = 0
        partition.delivered_records += batch.record_count
        batch.state = BatchState.ACKNOWLEDGED
        partition.in_flight -= 1
        if not partition.in_flight:
            partition.draining = False
        if partition.pending:
            self._sort(batch.topic_partition, partition)
        batch.data = b""
        self.unacknowledged -= 1
        self.unacknowledged_bytes -= batch.size
        self.delivered_records += batch.record_count
        self.delivered_bytes += batch.size
        self.delivered_batches += 1

    def fail(self, batch: ProducerBatch, now: float, code: int | None = None) -> None:
        """Queue a batch again after a failed attempt.

        Args:
            batch: a batch in flight.
            now: the caller's seconds; a pause is counted from it.
            code: the broker's error code; None if there was no response (connection lost, time over).
        """
        partition = self._partitions[batch.topic_partition]
        if not proves_absence(code):
            batch.maybe_appended = True
        partition.begin_draining(now, self._backoff)
        partition.pending += 1
        self._pending[batch.topic_partition] = None
        self._end_attempt(partition, batch, BatchState.PENDING)

    def split(self, batch: ProducerBatch, parts: list[tuple[Bytes, int]]) -> None:
        """Put parts into the place of a pending batch, without a pause.

        Args:
            batch: a pending batch.
            parts: bytes and number of records of each, with all of the batch's records; they get its sequences.
        """
        topic_partition, sequence = batch.topic_partition, batch.base_sequence
        partition = self._partitions[topic_partition]
        made = []
        for data, records in parts:
            part = ProducerBatch(topic_partition, data, records, sequence, batch.expires_at, len(data))
            part.maybe_appended = batch.maybe_appended
            made.append(part)
            insort(self._expiries, part, key=lambda other: other.expires_at)
            sequence = self.sequences.following(sequence, records)
        partition.replace(batch, made)
        partition.not_before = 0.0
        batch.state = BatchState.SPLIT
        self._sort(topic_partition, partition)
        self.unacknowledged += len(made) - 1
        self.unacknowledged_bytes += sum(part.size for part in made) - batch.size

    def refuse(self, batch: ProducerBatch, code: int) -> None:
        """Record a final refusal, so that `counts` includes it; the producer cannot be used afterwards."""
        if not proves_absence(code):
            batch.maybe_appended = True
        self._end_attempt(self._partitions[batch.topic_partition], batch, BatchState.REFUSED)

    def _end_attempt(self, partition: PartitionQueue, batch: ProducerBatch, state: BatchState) -> None:
        partition.end_attempt(batch, state)
        self._sort(batch.topic_partition, partition)

    def _partition(self, topic_partition: TopicPartition) -> PartitionQueue:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = PartitionQueue()
        return partition

    # -- questions about all batches

    def pending_batch(self, topic_partition: TopicPartition) -> ProducerBatch:
        """Return the oldest batch of a partition that is not in flight; there must be one."""
        return self._partitions[topic_partition].first_pending()

    def next_attempt_at(self, now: float) -> float | None:
        """Return the earliest end of a pause among partitions with something to send; None if none pauses."""
        pauses = (self._partitions[topic_partition].not_before for topic_partition in self.ready)
        return min((until for until in pauses if until > now), default=None)

    def next_expiry(self) -> float | None:
        """Return the earliest moment at which a batch has waited too long; None if there is no batch."""
        expiries = self._expiries
        while expiries and expiries[0].state in FINAL_STATES:
            expiries.popleft()
        return expiries[0].expires_at if expiries else None

    def first_expired(
        self, now: float, waits_in_line: Callable[[TopicPartition], bool] = lambda _: False
    ) -> ProducerBatch | None:
        """Return a batch, of a partition with something to send, whose time for delivery is over.

        Batches of a partition expire in their order. Those in flight are given up with their requests.

        Args:
            now: the caller's seconds.
            waits_in_line: returns whether a partition's batches wait for others only, which are acknowledged one by
                one: over a slow link that takes its time.
        """
        for topic_partition in self._pending:
            batch = self._partitions[topic_partition].batches[0]
            if batch.expires_at <= now and not waits_in_line(topic_partition):
                return batch
        return None

    def counts(self, topic_partition: TopicPartition | None = None) -> RecordCounts:
        """Count one partition's or all records, by the state of their delivery."""
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
