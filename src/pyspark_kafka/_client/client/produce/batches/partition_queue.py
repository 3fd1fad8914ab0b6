"""The unacknowledged batches of one topic-partition, and when the next one may be sent. Pure.

Order and exactly-once of one partition rest on these rules (docs/internals/transaction-rules.md, T1 to T9):

- A batch keeps its sequence for life; it is sent again with the bytes it was first sent with.
- After a failed attempt nothing of the partition is sent until every attempt in flight has ended: by a response, or
  because its connection is closed. Then the unacknowledged batches are sent again, oldest first.
- The first batch of a partition, and the first after a failure, travels alone. A broker that holds no state of a
  producer accepts any sequence: if a second batch were in flight, it could be appended where a first one was refused.
- Of a partition, no batch is sent that is more than four behind the oldest unacknowledged one: brokers remember the
  last five, to recognize duplicates. Batches in between count, also if they are acknowledged already.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce.batches.producer_batch import BatchState

if TYPE_CHECKING:
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka._client.client.waiting.retry import Backoff

# How many batches of a producer and partition a broker remembers (Kafka `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
MAX_IN_FLIGHT = 5


@dataclass(slots=True)
class PartitionQueue:
    """The batches of one partition, oldest first; changed by `ProducerState` only.

    Attributes:
        batches: the batches that are PENDING, IN_FLIGHT or REFUSED.
        next_number: the number of the next batch.
        pending: how many are PENDING.
        in_flight: how many are IN_FLIGHT.
        draining: whether an attempt has failed and others are still in flight: they end before anything is sent again.
        confirmed: whether an acknowledgement shows that the leader has our sequences.
        failures: failed rounds in a row.
        not_before: until when the partition pauses.
        delivered_records: how many of its records are acknowledged.
    """

    batches: deque[ProducerBatch] = field(default_factory=deque)
    next_number: int = 0
    pending: int = 0
    in_flight: int = 0
    draining: bool = False
    confirmed: bool = False
    failures: int = 0
    not_before: float = 0.0
    delivered_records: int = 0

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Put parts into the place of a pending batch; those behind it get the numbers that follow."""
        before = [other for other in self.batches if other.number < batch.number]
        after = [other for other in self.batches if other.number > batch.number]
        for number, part in enumerate(parts, batch.number):
            part.number = number
        for other in after:
            other.number += len(parts) - 1
        self.batches = deque([*before, *parts, *after])
        self.next_number += len(parts) - 1
        self.pending += len(parts) - 1

    def has_delivered_after(self, batch: ProducerBatch) -> bool:
        """Return whether a later batch was acknowledged."""
        behind = sum(other.number > batch.number for other in self.batches)
        return behind < self.next_number - 1 - batch.number

    def first_pending(self) -> ProducerBatch:
        """Return the oldest batch that is not in flight; there must be one."""
        oldest = self.batches[0]
        if oldest.state is BatchState.PENDING:
            return oldest
        return next(batch for batch in self.batches if batch.state is BatchState.PENDING)

    def end_attempt(self, batch: ProducerBatch, state: BatchState) -> None:
        """Record the state of a batch that is no longer in flight."""
        batch.state = state
        self.in_flight -= 1
        if not self.in_flight:
            self.draining = False

    def begin_draining(self, now: float, backoff: Backoff) -> None:
        """Record a failed attempt; a pause begins with the first one of a round.

        The batches behind the first failed one fail because of it.
        """
        if not self.draining:
            self.not_before = now + backoff.wait_s(self.failures)
            self.failures += 1
        self.draining = True
        self.confirmed = False
