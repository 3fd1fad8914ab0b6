"""Producers that the tasks of one worker process share: the next task continues under their identity.

Without it each task requests an identity, which brokers keep for a day, and for the topic's partitions, before it
sends a row: at a few small batches a second, most requests to the brokers. When an idle producer is dropped:
`_client/client/reuse/idle_pool.py`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, PRODUCERS_IDLE, PRODUCERS_LENT
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.reuse.idle_pool import IDLE_SECONDS, IdlePool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions

# A worker runs one task at a time, usually of one query.
_KEPT = 8
# A producer has a sequence for each written partition. One with more of them is not kept.
_MAX_PARTITIONS = 10_000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of a producer; tasks with equal settings share one, one task after the other.

    Attributes:
        connection: cluster and user.
        producer: acknowledgements, sizes, times.
        buffer_bytes: how many bytes wait for their acknowledgement at most.
        topic_timeout_ms: how long a topic that does not exist yet is waited for.
        outage_timeout_ms: how long an outage is waited out, before there are records to deliver.
    """

    connection: ConnectionOptions
    producer: ProducerOptions
    buffer_bytes: int
    topic_timeout_ms: int
    outage_timeout_ms: int = 0


class ProducerPool:
    """Lends producers, and keeps those whose last task ended well; an idle producer holds no connection.

    A producer that has failed, or was left before its rows were flushed, does not come back: it is unknown which
    batches the brokers have. Nor does one that was lent before a fork: two processes under one identity would drop
    each other's records as duplicates.

    Runs on: executor; any thread.

    Args:
        idle_seconds: how long a producer is kept without a borrower.
        kept: how many are kept at most.
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(
        self, *, idle_seconds: float = IDLE_SECONDS, kept: int = _KEPT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle: IdlePool[ProducerSettings, Producer] = IdlePool(
            max_values=kept, idle_seconds=idle_seconds, clock=clock
        )

    def __len__(self) -> int:
        """Return how many producers are idle."""
        return len(self._idle)

    @contextmanager
    def borrow(self, settings: ProducerSettings) -> Iterator[Producer]:
        """Lend a producer with a client of its own; connections are opened at the first use.

        It is kept for the next borrower if its last call was a `flush` that succeeded.
        """
        with borrow_client(settings.connection) as client:
            producer = self._idle.take_value(settings)
            if producer is None:
                producer = Producer(
                    client,
                    settings.producer,
                    buffer_bytes=settings.buffer_bytes,
                    topic_timeout_ms=settings.topic_timeout_ms,
                    outage_timeout_ms=settings.outage_timeout_ms,
                )
            else:
                producer.reopen(client)
            self._count(1)
            try:
                yield producer
            finally:
                producer.close()
                self._count(-1)
            # Not where the block ended by an error.
            if producer.reusable and producer.known_partitions <= _MAX_PARTITIONS:
                self._idle.put_back(settings, producer)
                self._count(0)

    def _count(self, lent: int) -> None:
        COUNTERS.add_count(PRODUCERS_LENT, lent)
        COUNTERS.set(PRODUCERS_IDLE, len(self._idle))

    def clear(self) -> None:
        """Drop all idle producers. The pool can be used again."""
        self._idle.close()


_POOL = ProducerPool()


@contextmanager
def borrow_producer(settings: ProducerSettings) -> Iterator[Producer]:
    """Lend a producer of this process's pool; see `ProducerPool.borrow`."""
    with _POOL.borrow(settings) as producer:
        yield producer


def drop_producers() -> None:
    """Drop the idle producers of this process's pool."""
    _POOL.clear()
