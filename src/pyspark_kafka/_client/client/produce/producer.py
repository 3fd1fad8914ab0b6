"""Writes record batches to the brokers: pipelined, in order, without duplicates, in the caller's thread.

`batches/` decides what is sent and what responses mean, `delivery/` sends and waits. Here are the calls: what each of
them needs before its batches can be delivered, and what an error leaves behind.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce import errors as produce_errors
from pyspark_kafka._client.client.produce.batches.size_limits import TopicLimits
from pyspark_kafka._client.client.produce.batches.state import ProducerState
from pyspark_kafka._client.client.produce.delivery.loop import DeliveryLoop
from pyspark_kafka._client.client.produce.delivery.parts import DeliveryClock, DeliveryParts
from pyspark_kafka._client.client.produce.identity import WriteMode
from pyspark_kafka._client.client.produce.leaders import PartitionLeaders
from pyspark_kafka._client.client.produce.partition_counts import PartitionCounts
from pyspark_kafka._client.client.produce.stamps import stamp_batch
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.stalls import Stall, contact_of
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, ConnectorError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.options import ProducerOptions

    Bytes = bytes | bytearray | memoryview

MIB = 1 << 20
# The most bytes of batches that wait for their acknowledgement: `send_batch` blocks above it. As Java's buffer.memory.
BUFFER_BYTES = 32 * MIB
# How long a topic that was never seen is looked up: a new one is known to all brokers after some seconds.
TOPIC_TIMEOUT_MS = 15_000


class _Guard:
    """Surrounds each call of a producer; not a generator, because a call may be one of a thousand in a second.

    Attributes:
        error: what has ended a call; it ends all later ones.
        closed: whether no call may follow.
    """

    def __init__(
        self, clock: DeliveryClock, waiting: Stall, state: ProducerState, fail: Callable[[BaseException], None]
    ) -> None:
        self._clock, self._waiting, self._state, self._fail = clock, waiting, state, fail
        self.error: BaseException | None = None
        self.closed = False

    def __enter__(self) -> None:
        if self.error is not None:
            raise self.error
        if self.closed:
            raise ProtocolError("The producer is closed.", condition="PRODUCER_CLOSED")
        clock = self._clock
        clock.outside_s += clock.wall() - clock.left_at
        if not self._state.unacknowledged:
            self._waiting.progress()
        self._waiting.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.__exit__(kind, error, trace)
        if error is not None:
            self._fail(error)
        self._clock.left_at = self._clock.wall()


@dataclass(frozen=True, slots=True)
class ProducerMetrics:
    """Acknowledged records, bytes and batches of a producer, and its batches sent again."""

    records: int
    bytes: int
    batches: int
    retries: int


class Producer:
    """Delivers record batches; with idempotence each once and in the order given, within a topic-partition.

    Brokers drop what a retry of an idempotent producer sends twice; see `WriteMode`.

    All I/O happens inside of the calls: `send_batch` returns as soon as the batch is queued and the buffer has room,
    `flush` returns when everything is acknowledged. So the time between calls does not count for delivery. The bytes of
    a batch are not copied; they must not change until then.
    After an error the producer cannot be used: every later call raises the same error.

    A batch of several records that is too large for its topic is cut into smaller ones, as are the topic's later ones.

    Runs on: executor and driver; one thread, one task at a time (`pool` keeps it for the next). Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        producer: acknowledgements, sizes, times.
        transaction: what the batches are part of; their partitions have joined it. None: they are of none.
        buffer_bytes: how many bytes wait for their acknowledgement at most.
        topic_timeout_ms: how long a topic that is not there yet is waited for.
        outage_timeout_ms: how long an outage is waited out if nothing is to be delivered yet: for an identity, and
            for how many partitions a topic has. 0: not at all.
        bulk: whether much is sent together, and then flushed: small batches wait for company until there is half a
            request of them, also if nothing is in flight. Brokers take one large request with less work.
        clock: monotonic seconds; tests pass their own.
        sleep: waits seconds; tests pass their own.

    Raises:
        DeliveryError: by every method: records could not be delivered; the text counts them.
        AccessError: by every method: the brokers refused the user.

    Source: KIP-98; Kafka `Sender`, `TransactionManager`.
    """

    def __init__(
        self,
        client: KafkaClient,
        producer: ProducerOptions,
        *,
        transaction: OpenTransaction | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        topic_timeout_ms: int = TOPIC_TIMEOUT_MS,
        outage_timeout_ms: int = 0,
        bulk: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.created_in = os.getpid()
        self._options = producer
        self._mode = WriteMode.of(producer, transaction)
        self._buffer_bytes = buffer_bytes
        self._unknown_topic_ms = min(topic_timeout_ms, producer.delivery_timeout_ms)
        self._clock = DeliveryClock(clock, sleep)
        # What outlives a task.
        self._state = ProducerState(
            idempotent=self._mode.idempotent, max_in_flight=producer.max_in_flight, backoff=client.backoff()
        )
        self._leaders = PartitionLeaders(client, clock)
        contact = contact_of(client.options.bootstrap_servers)
        # A task that may wait belongs to a query that has reached the cluster.
        self._outage_retry = OutageRetry(outage_timeout_ms, contact, reached=lambda: True, clock=clock, sleep=sleep)
        self._waiting = Stall(self._describe, contact, why=self._why_slow)
        self._guard = _Guard(self._clock, self._waiting, self._state, self._fail)
        self._parts = DeliveryParts(
            client,
            producer,
            self._mode,
            self._state,
            TopicLimits(producer.compression_level),
            self._leaders,
            self._waiting,
            self._clock,
            bulk=bulk,
            unknown_topic_ms=self._unknown_topic_ms,
            outage_timeout_ms=outage_timeout_ms,
        )
        self._begin(client)

    def _begin(self, client: KafkaClient) -> None:
        """Create the objects of one task."""
        self._client = client
        self._loop = DeliveryLoop(replace(self._parts, client=client))
        self._partition_counts = PartitionCounts(
            client,
            self._leaders,
            self._outage_retry,
            self._unknown_topic_ms,
            records=self._state.counts,
            clock=self._clock.wall,
            sleep=self._clock.sleep,
        )
        self._guard.error, self._guard.closed = None, False
        # Whether the last thing that happened to its records was a flush that succeeded.
        self._flushed = False

    def _describe(self) -> str:
        # Later than `_loop`: it is another one in each task.
        return self._loop.describe()

    def _why_slow(self) -> str:
        return self._loop.why_slow()

    def __enter__(self) -> Producer:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def metrics(self) -> ProducerMetrics:
        """The counts of acknowledged records, bytes and batches."""
        state = self._state
        return ProducerMetrics(state.delivered_records, state.delivered_bytes, state.delivered_batches, state.retries)

    @property
    def reusable(self) -> bool:
        """Whether another task can continue with this producer: it has flushed its batches, and has not failed."""
        return self._flushed and self._guard.error is None

    @property
    def known_partitions(self) -> int:
        """The number of partitions with a sequence."""
        return len(self._state.sequences)

    def reopen(self, client: KafkaClient) -> None:
        """Continue after `close`, for another task: with the same identity and sequences, and with counts from zero.

        Args:
            client: of the same cluster and user; not used by anyone else meanwhile.

        Raises:
            ProtocolError: the producer is not closed, or not `reusable`.
        """
        if not (self._guard.closed and self.reusable):
            raise ProtocolError(
                "A producer was to be used again that has failed or is still in use.", condition="PRODUCER_NOT_REUSABLE"
            )
        self._state.begin_task()
        self._leaders.ask(client)
        self._begin(client)

    def continue_in(self, transaction: OpenTransaction) -> None:
        """Write to the next transaction of the same owner from here on, with the same connections.

        Args:
            transaction: as `TransactionalId.end` has returned it.

        Raises:
            ProtocolError: batches of the previous transaction are not acknowledged.
        """
        with self._guard:
            self._state.begin_task()
            identity = transaction.identity
            self._state.sequences.continue_as(identity.producer_id, identity.producer_epoch)

    # -- partitions

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Return how many partitions a topic has; see `PartitionCounts.partition_count`."""
        with self._guard:
            return self._partition_counts.partition_count(topic, beyond=beyond)

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Return the partitions that can be written to, as far as this producer knows; sends nothing."""
        return self._partition_counts.available_partitions(topic)

    # -- delivery

    def send_batch(
        self, topic_partition: TopicPartition, data: Bytes, record_count: int, *, at_once: bool = True
    ) -> None:
        """Queue one record batch; blocks only while the buffer is full.

        It gets its stamp here.

        Args:
            topic_partition: where it goes.
            data: one batch of format 2, base offset 0; kept, not copied, until it is acknowledged. A stamp is written
                into a bytearray in place; other kinds of bytes are copied for it.
            record_count: how many records it holds, one for each of its offsets.
            at_once: False leaves a small batch to the next `send_batch`, `poll` or `flush`, so that both share a
                request.

        Raises:
            ProtocolError: the bytes are not such a batch, or carry another stamp.
        """
        with self._guard:
            self._queue(topic_partition, data, record_count)
            if at_once or self._loop.fills_a_request:
                self._loop.step(everything=False, wait=False)

    def send_batches(self, batches: Iterable[tuple[TopicPartition, Bytes, int]]) -> None:
        """Queue record batches as `send_batch` does, then send what can be sent, as `poll` does: one request a broker.

        Args:
            batches: where each goes, its bytes, and how many records it holds.
        """
        with self._guard:
            for topic_partition, data, record_count in batches:
                self._queue(topic_partition, data, record_count)
            if self._state.unacknowledged:
                self._loop.step(everything=True, wait=False)

    def _queue(self, topic_partition: TopicPartition, data: Bytes, record_count: int) -> None:
        """Queue one record batch; blocks while the buffer is full."""
        self._flushed = False
        state, sequences = self._state, self._state.sequences
        if sequences.producer_id < 0:
            self._identify(topic_partition)
        base_sequence = sequences.take_sequence(topic_partition, record_count)
        data = stamp_batch(
            topic_partition,
            data,
            record_count,
            producer_id=sequences.producer_id,
            producer_epoch=sequences.producer_epoch,
            base_sequence=base_sequence,
            transactional=self._mode.transaction is not None,
        )
        size = len(data)
        if size > self._options.max_request_size:
            raise produce_errors.too_large(state, topic_partition, size, self._options.max_request_size)
        while state.unacknowledged and state.unacknowledged_bytes + size > self._buffer_bytes:
            # In bulk, small batches for many brokers may be all that fills the buffer.
            self._loop.step(everything=self._parts.bulk, wait=True)
        expires_at = self._clock.now() + self._options.delivery_timeout_ms / 1000
        batch = state.append(topic_partition, data, record_count, base_sequence, expires_at=expires_at)
        self._loop.unseen_bytes += size
        limits = self._parts.limits
        if limits.learned and not limits.fits(batch):
            # Its topic is known to take no batch as large.
            state.split(batch, limits.cut(batch))

    def last_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return where the batch of a partition that was acknowledged last begins in its log; None if unknown."""
        return self._loop.last_offset(topic_partition)

    def first_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return where the first batch of a partition that was acknowledged begins in its log; None if unknown."""
        return self._loop.first_offset(topic_partition)

    def poll(self, *, everything: bool = True) -> None:
        """Take the responses that are there and send what can be sent, without waiting for responses.

        For callers that pause between batches. It blocks only if a leader has to be looked up, and does nothing if
        everything is acknowledged.

        Args:
            everything: also what is small and could wait for company while another request is in flight.
        """
        if not (self._state.unacknowledged or self._guard.closed or self._guard.error):
            return
        with self._guard:
            self._loop.step(everything=everything, wait=False)

    def flush(self) -> None:
        """Wait until every batch is acknowledged.

        Raises:
            ProtocolError: sequences were reserved and not used.
        """
        with self._guard:
            while self._state.unacknowledged:
                self._loop.step(everything=True, wait=True)
            self._flushed = True

    def settle(self, seconds: float) -> bool:
        """Wait, for at most this long, until nothing is in flight; send nothing more.

        For an abort: a write that arrives after its transaction's abort may still be appended.

        Returns:
            Whether it is known of every batch that was sent whether a broker has appended it.
        """
        with self._guard:
            return self._loop.settle(seconds)

    def close(self) -> None:
        """Return the connections; what is not flushed is dropped. Safe to call again."""
        self._guard.closed = True
        self._loop.lanes.close()

    def _identify(self, topic_partition: TopicPartition) -> None:
        if self._mode.idempotent and self._state.sequences.producer_id < 0:
            identity = self._mode.fetch_identity(self._client, self._outage_retry, topic_partition.topic)
            self._state.sequences.identify(identity.producer_id, identity.producer_epoch)

    def _fail(self, error: BaseException) -> None:
        """Remember what has ended a call: it ends all later ones; give up the connections with it."""
        if isinstance(error, ConnectorError):
            if isinstance(error, AccessError):
                name_user(error, self._client.options)
            self._guard.error = error
        else:
            # A frame may be half sent, a batch half noted: nothing here can be relied on any more.
            self._guard.error = ProtocolError(
                f"The producer was interrupted by {type(error).__name__}. "
                f"Records of this task: {self._state.counts()}.",
                condition="PRODUCER_INTERRUPTED",
            )
            self._loop.lanes.close_connections()
        self.close()
