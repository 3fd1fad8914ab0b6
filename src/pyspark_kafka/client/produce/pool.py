"""Producers kept between the tasks of one worker process: the next task goes on under their identity.

Without it each task asks for an identity, which brokers remember for a day, and for the topic's partitions, before it
sends a row: at a few small batches a second, most of what is asked of the brokers. Layer: client.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.pool import borrow_client
from pyspark_kafka.client.produce.producer import IdempotentProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.options import ConnectionOptions, ProducerOptions

# Brokers forget what they know of a producer that is silent for a day (producer.id.expiration.ms); be gone long before.
_IDLE_SECONDS = 300.0
# A worker runs one task at a time, mostly of one query.
_KEPT = 8
# A producer knows a sequence for each partition it has written to. One with more of them is not kept.
_MOST_PARTITIONS = 10_000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """What a producer is made from; equal settings may share one, one task after the other.

    Attributes:
        connection: cluster and user.
        producer: acknowledgements, sizes, times.
        buffer_bytes: the most bytes that wait for their acknowledgement.
        topic_timeout_ms: how long a topic that is not there yet is waited for.
        outage_timeout_ms: how long an outage is waited out, before there are records to deliver.
    """

    connection: ConnectionOptions
    producer: ProducerOptions
    buffer_bytes: int
    topic_timeout_ms: int
    outage_timeout_ms: int = 0


class ProducerPool:
    """Keeps producers whose last task ended well; they hold no connection meanwhile.

    A producer that has failed, or was left before its rows were flushed, does not come back: nobody knows what the
    brokers have of it. Safe to use from threads. After a fork the child starts empty: two processes under one identity
    would drop each other's records as duplicates.

    Runs on: executor.

    Args:
        idle_seconds: producers unused for so long are dropped.
        kept: how many rest at the most; the longest unused ones go first.
        clock: monotonic seconds; tests give their own.
    """

    def __init__(
        self, *, idle_seconds: float = _IDLE_SECONDS, kept: int = _KEPT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_seconds = idle_seconds
        self._kept = kept
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        # Longest unused first.
        self._resting: list[tuple[ProducerSettings, IdempotentProducer, float]] = []

    def _leave_parent(self) -> None:
        if self._process_id != os.getpid():
            self._reset()

    def __len__(self) -> int:
        """How many producers rest."""
        self._leave_parent()
        return len(self._resting)

    @contextmanager
    def borrow(self, settings: ProducerSettings) -> Iterator[IdempotentProducer]:
        """Lend a producer with a client of its own; connections are made at the first use.

        It is kept for the next borrower if its last call was a `flush` that succeeded.
        """
        self._leave_parent()
        with borrow_client(settings.connection) as client:
            producer = self._take(settings)
            if producer is None:
                producer = IdempotentProducer(
                    client,
                    settings.producer,
                    buffer_bytes=settings.buffer_bytes,
                    topic_timeout_ms=settings.topic_timeout_ms,
                    outage_timeout_ms=settings.outage_timeout_ms,
                )
            else:
                producer.reopen(client)
            try:
                yield producer
            finally:
                producer.close()
            # Not where the block ended by an error.
            self._put(settings, producer)

    def clear(self) -> None:
        """Drop all resting producers; the pool can be used again."""
        self._leave_parent()
        with self._lock:
            self._resting.clear()

    def _take(self, settings: ProducerSettings) -> IdempotentProducer | None:
        oldest = self._clock() - self._idle_seconds
        with self._lock:
            self._resting = [entry for entry in self._resting if entry[2] >= oldest]
            for place in reversed(range(len(self._resting))):
                if self._resting[place][0] == settings:
                    return self._resting.pop(place)[1]
        return None

    def _put(self, settings: ProducerSettings, producer: IdempotentProducer) -> None:
        if not producer.reusable or producer.known_partitions > _MOST_PARTITIONS:
            return
        if producer.created_in != os.getpid() or self._process_id != os.getpid():
            return
        with self._lock:
            self._resting.append((settings, producer, self._clock()))
            del self._resting[: -self._kept]


_POOL = ProducerPool()


@contextmanager
def borrow_producer(settings: ProducerSettings) -> Iterator[IdempotentProducer]:
    """Lend a producer of this process's pool; see `ProducerPool.borrow`."""
    with _POOL.borrow(settings) as producer:
        yield producer


def drop_producers() -> None:
    """Drop the producers that rest in this process's pool."""
    _POOL.clear()
