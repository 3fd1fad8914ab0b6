"""Writes record batches to the brokers: pipelined, in order, without duplicates, in the caller's thread.

What lives here: connections, waiting, time. What must not: the rules of sequences and retries (`batches/`), the
bytes of requests (`request`), texts (`errors`). Layer: client.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.lookups.missing_topics import cluster_text, find_nearest_topic
from pyspark_kafka.client.outage import Patience, is_weather
from pyspark_kafka.client.produce import errors as produce_errors
from pyspark_kafka.client.produce.batches.size_limits import TopicLimits
from pyspark_kafka.client.produce.batches.state import ProducerState
from pyspark_kafka.client.produce.batches.verdicts import Verdict
from pyspark_kafka.client.produce.dials import ProducerDials
from pyspark_kafka.client.produce.identity import request_identity
from pyspark_kafka.client.produce.lanes import DeliveryClock, InFlightRequest, ProduceLane
from pyspark_kafka.client.produce.leaders import PartitionLeaders
from pyspark_kafka.client.produce.request import ProduceFrame
from pyspark_kafka.client.produce.response import parse_produce_response
from pyspark_kafka.client.produce.stamps import stamp_batch
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.client.waiting import Wait, contact_of
from pyspark_kafka.client.wire.messages import broker_error, error_kind
from pyspark_kafka.client.wire.versions import MAX_PRODUCE_VERSION
from pyspark_kafka.errors import AccessError, ConnectorError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka.client.produce.batches.sequences import SequenceStamp
    from pyspark_kafka.client.produce.identity import ProducerIdentity
    from pyspark_kafka.client.produce.response import ProducePartitionResponse
    from pyspark_kafka.client.transactions.open_transaction import OpenTransaction, TransactionIdentity
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import ProducerOptions

    Bytes = bytes | bytearray | memoryview

logger = logging.getLogger(__name__)

MIB = 1 << 20
# The most bytes of batches that wait for their acknowledgement: `send` blocks above it. As Java's buffer.memory.
BUFFER_BYTES = 32 * MIB
# While another request is under way, fewer bytes than this wait for company: small batches share a request.
_WORTH_A_REQUEST_BYTES = 256 * 1024
# How often what waits in bulk is walked over while a request's worth of it is queued.
_BULK_LOOKS = 8
# How long a topic that was never seen is looked up: one made a moment ago is known to all brokers after some seconds.
TOPIC_TIMEOUT_MS = 15_000
# Look-ups of such a topic, about 0.7 s, before it is said that it is waited for.
_LOOKS_IN_SILENCE = 3
# With several brokers to hear, one is listened to for so long at a time.
_LISTEN_SLICE_S = 0.002


@dataclass(frozen=True, slots=True)
class ProducerMetrics:
    """What a producer has done so far: acknowledged records, bytes and batches, and batches sent again."""

    records: int
    bytes: int
    batches: int
    retries: int


class Producer:
    """Delivers record batches: each once and in the order given, within a topic-partition.

    With `idempotence` brokers drop what a retry sends twice. Without it a retry may duplicate and, as several requests
    are under way, reorder; with acks=0 nothing is known of delivery at all.

    All I/O happens inside of the calls: `send` returns as soon as the batch is queued and the buffer has room, `flush`
    returns when everything is acknowledged. So the time between calls does not count for delivery. The bytes of a batch
    are not copied; they must not change until then.
    After an error the producer is of no use: every later call raises the same error.

    A batch of several records that is too large for its topic is cut into smaller ones, as are the topic's later ones.

    Runs on: executor; one thread, one task at a time (`producer_pool` keeps it for the next). Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        producer: acknowledgements, sizes, times.
        transaction: what the batches are part of; their partitions have joined it. None: they are of none.
        buffer_bytes: the most bytes that wait for their acknowledgement.
        topic_timeout_ms: how long a topic that is not there yet is waited for.
        outage_timeout_ms: how long an outage is waited out where nothing is to be delivered yet: for an identity, and
            for how many partitions a topic has. 0: not at all.
        bulk: whether much is sent at once, and then flushed: small batches wait for company until there is half a
            request of them, also where nothing is in flight. Brokers take one large request with less work.
        clock: monotonic seconds; tests give their own.
        sleep: waits so many seconds; tests give their own.

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
        self._client = client
        self._options = producer
        self._transaction = transaction
        self._buffer_bytes = buffer_bytes
        self._bulk = bulk
        # What was queued since the last walk over it.
        self._unseen_bytes = 0
        most_waiting = producer.max_request_size // 2
        self._worth_a_request = most_waiting if bulk else min(_WORTH_A_REQUEST_BYTES, most_waiting)
        self._clock = clock
        self._delivery_clock = DeliveryClock(clock)
        self._sleep = sleep
        self._idempotent = (producer.idempotence and producer.acks == -1) or transaction is not None
        self._state = ProducerState(
            idempotent=self._idempotent,
            max_in_flight=producer.max_in_flight,
            backoff=client.backoff(),
        )
        self._lanes: dict[int, ProduceLane] = {}
        self._dials = ProducerDials(client)
        self._metadata_backoff = client.backoff()
        self._leaders = PartitionLeaders(client, clock)
        self._limits = TopicLimits(producer.compression_level)
        self._unknown_topic_ms = min(topic_timeout_ms, producer.delivery_timeout_ms)
        self._outage_timeout_ms = outage_timeout_ms
        contact = contact_of(client.options.bootstrap_servers)
        # A task that is told to wait belongs to a query that has reached the cluster.
        self._patience = Patience(outage_timeout_ms, contact, reached=lambda: True, clock=clock, sleep=sleep)
        self._waiting = Wait(self._describe, contact)
        # Why, and at which broker, a partition's last attempt failed.
        self._last_failure: dict[TopicPartition, tuple[ConnectorError, str | None]] = {}
        self._last_offsets: dict[TopicPartition, int] = {}
        self._error: BaseException | None = None
        self._closed = False
        # Whether the last thing that happened to its records was a flush that succeeded.
        self._flushed = False

    def __enter__(self) -> Producer:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def metrics(self) -> ProducerMetrics:
        """What was acknowledged so far."""
        state = self._state
        return ProducerMetrics(state.delivered_records, state.delivered_bytes, state.delivered_batches, state.retries)

    @property
    def reusable(self) -> bool:
        """Whether another task can go on with this producer: it has flushed what it was given, and has not failed."""
        return self._flushed and self._error is None

    @property
    def known_partitions(self) -> int:
        """How many partitions it keeps a sequence for."""
        return len(self._state.sequences)

    def reopen(self, client: KafkaClient) -> None:
        """Go on, for another task, after `close`: with the same identity and sequences, and with counts from zero.

        Args:
            client: of the same cluster and user; not used by anyone else meanwhile.

        Raises:
            ProtocolError: the producer is not closed, or not `reusable`.
        """
        if not (self._closed and self.reusable):
            raise ProtocolError(
                "A producer was to be used again that has failed or is still in use.", condition="PRODUCER_NOT_REUSABLE"
            )
        self._state.begin_task()
        self._client = client
        self._dials = ProducerDials(client)
        self._leaders.ask(client)
        self._metadata_backoff = client.backoff()
        self._last_failure.clear()
        self._last_offsets.clear()
        self._flushed = False
        self._closed = False

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Give how many partitions a topic has; asked again when it is older than `metadata_max_age_ms`.

        A topic that is not there yet is waited for, at most `topic_timeout_ms`.

        Args:
            topic: its name.
            beyond: a partition that rows are for; where it is not known, the cluster is asked again.

        Raises:
            DeliveryError: there is no such topic.
        """
        with self._guarded():
            deadline = Deadline(self._unknown_topic_ms, clock=self._clock, sleep=self._sleep)
            backoff = self._client.backoff()
            while True:
                found = self._patience.ride_out(
                    f"looking up the partitions of topic {topic}", lambda: self._leaders.count(topic, beyond=beyond)
                )
                if isinstance(found, int):
                    return found
                if found.condition != "UNKNOWN_TOPIC" and decide(found).action is Action.FAIL:
                    raise found
                cluster = cluster_text(self._client.options)
                if deadline.expired:
                    waited_ms, nearest = deadline.elapsed_ms(), find_nearest_topic(self._client, topic)
                    raise produce_errors.no_such_topic(
                        self._state, topic, waited_ms, cluster=cluster, nearest=nearest
                    ) from found
                if backoff.attempts == _LOOKS_IN_SILENCE:
                    logger.warning(
                        "Topic '%s' does not exist in %s, or this user may not describe it. It is waited for, %d ms in "
                        "all (option 'kafka.max.block.ms'), as a new one is known to all brokers after some seconds.",
                        topic, cluster, self._unknown_topic_ms,
                    )  # fmt: skip
                deadline.pause(backoff.next_s())

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Give the partitions that can be written to, as far as this producer knows; asks nobody."""
        return self._leaders.available(topic)

    def next_stamp(self, topic_partition: TopicPartition) -> SequenceStamp:
        """Give what the header of the batch after all reserved ones has to carry, without reserving it.

        A batch that is encoded with it and sent next is not touched again.
        """
        with self._guarded():
            self._identify()
            return self._state.sequences.next_stamp(topic_partition)

    def reserve(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Take the sequences of a batch of exactly `record_count` records, which must then be sent.

        Batches of a partition are sent in the order of their reservations.
        """
        with self._guarded():
            self._flushed = False
            self._identify()
            return self._state.sequences.reserve(topic_partition, record_count)

    def send(self, topic_partition: TopicPartition, data: Bytes, record_count: int) -> None:
        """Queue one record batch; blocks only while the buffer is full.

        A batch whose header names no producer gets the next stamp; one that was encoded with a stamp must carry the
        one that is due.

        Args:
            topic_partition: where it goes.
            data: one batch of format 2, base offset 0; kept, not copied, until it is acknowledged. A stamp is written
                into a bytearray in place; other kinds of bytes are copied for it.
            record_count: how many records it holds, one for each of its offsets.

        Raises:
            ProtocolError: the bytes are not such a batch, or carry another stamp.
        """
        with self._guarded():
            self._flushed = False
            self._identify()
            due = self._state.sequences.expected_stamp(topic_partition, record_count)
            data = stamp_batch(topic_partition, data, record_count, due, transactional=self._transaction is not None)
            size = len(data)
            state = self._state
            if size > self._options.max_request_size:
                raise produce_errors.too_large(state, topic_partition, size, self._options.max_request_size)
            while state.unacknowledged and state.unacknowledged_bytes + size > self._buffer_bytes:
                # In bulk, small batches for many brokers may be all that fills the buffer.
                self._step(everything=self._bulk, wait=True)
            expires_at = self._delivery_clock.now() + self._options.delivery_timeout_ms / 1000
            batch = state.append(topic_partition, data, record_count, expires_at=expires_at)
            self._unseen_bytes += size
            if not self._limits.fits(batch):
                state.split(batch, self._limits.cut(batch))
            self._step(everything=False, wait=False)

    def last_offset(self, topic_partition: TopicPartition) -> int | None:
        """Give where the batch of a partition that was acknowledged last begins in its log; None if it is not known."""
        offset = self._last_offsets.get(topic_partition, -1)
        return offset if offset >= 0 else None

    def poll(self, *, everything: bool = True) -> None:
        """Take the answers that are there and send what can be sent, without waiting for answers.

        For callers that pause between batches. It blocks only where a leader has to be looked up, and does nothing
        where everything is acknowledged.

        Args:
            everything: also what is small and could wait for company while another request is in flight.
        """
        if not (self._state.unacknowledged or self._closed or self._error):
            return
        with self._guarded():
            self._step(everything=everything, wait=False)

    def flush(self) -> None:
        """Wait until every batch is acknowledged.

        Raises:
            ProtocolError: sequences were reserved and not used.
        """
        with self._guarded():
            unused = self._state.sequences.unused_reservation()
            if unused is not None:
                raise ProtocolError(
                    f"{unused[0]}: sequences from {unused[1].base_sequence} on were reserved, but no batch was sent "
                    "with them: the brokers would refuse what follows.",
                    condition="SEQUENCE_RESERVATION_UNUSED",
                    hint="This is a defect of this package; please report it.",
                    facts={"topic_partition": unused[0]},
                )
            while self._state.unacknowledged:
                self._step(everything=True, wait=True)
            self._flushed = True

    def close(self) -> None:
        """Give the connections back; what is not flushed is dropped. Safe to call again."""
        self._closed = True
        self._dials.close()
        lanes, self._lanes = list(self._lanes.values()), {}
        for lane in lanes:
            self._client.give_back(lane.broker_id, lane.connection)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Refuse a call after an error; remember what ends this one, and give up the connections with it."""
        if self._error is not None:
            raise self._error
        if self._closed:
            raise ProtocolError("The producer is closed.", condition="PRODUCER_CLOSED")
        self._delivery_clock.enter()
        if not self._state.unacknowledged:
            self._waiting.progress()
        try:
            with self._waiting:
                yield
        except ConnectorError as error:
            self._error = error
            self.close()
            raise
        except BaseException as error:
            # A frame may be half sent, a batch half noted: nothing here can be relied on any more.
            self._error = ProtocolError(
                f"The producer was interrupted by {type(error).__name__}. "
                f"Records of this task: {self._state.counts()}.",
                condition="PRODUCER_INTERRUPTED",
            )
            for lane in self._lanes.values():
                lane.connection.close()
            self.close()
            raise
        finally:
            self._delivery_clock.leave()

    def _identify(self) -> None:
        if self._idempotent and self._state.sequences.producer_id < 0:
            if self._transaction is None:
                identity: ProducerIdentity | TransactionIdentity = self._patience.ride_out(
                    "asking for a producer id", lambda: request_identity(self._client)
                )
            else:
                identity = self._transaction.identity
            self._state.sequences.identify(identity.producer_id, identity.producer_epoch)

    # -- the loop

    def _step(self, *, everything: bool, wait: bool) -> None:
        """Take answers, give up what is late, send what can be sent; with `wait` not before something has happened."""
        heard = self._take_connected()
        heard |= self._hear()
        heard |= self._leave_silent()
        now = self._clock()
        late = self._state.first_expired(self._delivery_clock.now())
        if late is not None:
            cause, broker = self._last_failure.get(late.topic_partition) or self._why_unconnected(late)
            timeout_ms = self._options.delivery_timeout_ms
            raise produce_errors.expired(self._state, late, timeout_ms, broker, cause) from cause
        # In bulk, a walk over what waits for each small batch would take longer than sending it.
        due = everything or heard or not self._bulk or self._unseen_bytes * _BULK_LOOKS >= self._worth_a_request
        sent = due and self._dispatch(now, everything=everything)
        if wait and not heard and not sent:
            self._wait()

    def _wait(self) -> None:
        """Sleep until an answer arrives, a connection is made, or a time is over that something hangs on."""
        now = self._clock()
        listening = [lane for lane in self._lanes.values() if lane.requests]
        until = [min(lane.ends_at, lane.look_at) for lane in listening]
        until += [lane.throttled_until for lane in self._lanes.values() if lane.throttled_until > now]
        pause = self._state.next_attempt_at(now)
        if pause is not None:
            until.append(pause)
        expiry = self._state.next_expiry()
        if expiry is not None and self._delivery_clock.on_the_wall(expiry) > now:
            # One that has expired is in flight, and is given up with its request.
            until.append(self._delivery_clock.on_the_wall(expiry))
        timeout_s = max(0.0, min(until, default=now) - now)
        if not listening and len(self._dials):
            self._dials.wait(timeout_s)
        elif not listening:
            self._sleep(timeout_s)
        elif len(listening) == 1 and not len(self._dials):
            listening[0].connection.readable(timeout_s)
        else:
            oldest = min(listening, key=lambda lane: lane.ends_at)
            oldest.connection.readable(min(timeout_s, _LISTEN_SLICE_S))

    # -- answers

    def _hear(self) -> bool:
        """Take every answer that has arrived; drop connections that are silent for too long."""
        heard = False
        for lane in list(self._lanes.values()):
            while lane.requests:
                try:
                    if not lane.connection.readable(0.0):
                        break
                    remaining_ms = (lane.ends_at - self._clock()) * 1000
                    # Something is there: at least a moment is given to read it.
                    response = lane.connection.receive(Deadline(max(remaining_ms, 1_000)))
                except ConnectorError as error:
                    self._lose(lane, error)
                else:
                    lane.heard_at = self._clock()
                    self._take_answer(lane, lane.requests.popleft(), response)
                heard = True
            now = self._clock()
            if lane.requests and lane.ends_at <= now:
                timeout = Deadline(self._options.request_timeout_ms, clock=self._clock)
                self._lose(lane, timeout.error(f"Waiting for {lane.connection.address} to acknowledge a write"))
                heard = True
        return heard

    def _leave_silent(self) -> bool:
        """Ask the cluster who leads what silent brokers were sent; leave those of which others lead some of it now.

        A broker that stands still, or is gone without a word, closes nothing. Its batches are sent to the new leader
        under the sequences that they have, so that what it did store before is not stored twice.

        Returns:
            Whether a broker was left.
        """
        now = self._clock()
        silent = [lane for lane in self._lanes.values() if lane.requests and lane.look_at <= now]
        if not silent:
            return False
        for lane in silent:
            lane.looked_at = now
        sent = {lane.broker_id: [tp for request in lane.requests for tp in request.batches] for lane in silent}
        deadline = self._client.deadline().within(self._client.options.answer_timeout_ms)
        try:
            self._leaders.look_up({tp for partitions in sent.values() for tp in partitions}, deadline)
        except ConnectorError as error:
            # The silent ones may answer yet, and are given up when their time is over.
            self._waiting.failed(error)
            return False
        left = False
        for lane in silent:
            moved = [tp for tp in sent[lane.broker_id] if self._leaders.get(tp) not in (None, lane.broker_id)]
            if moved:
                self._lose(lane, produce_errors.left_silent(lane.connection.address, moved[0], lane.silent_s(now)))
                self._client.drop_idle_connections(lane.broker_id)
                left = True
        return left

    def _take_answer(self, lane: ProduceLane, request: InFlightRequest, response: Any) -> None:
        now = self._clock()
        fatal: tuple[ProducerBatch, ProducePartitionResponse] | None = None
        for answer in parse_produce_response(response):
            batch = request.batches.pop(answer.topic_partition, None)
            if batch is None:
                continue  # not asked for, or answered twice
            kind = error_kind(answer.code)
            verdict = self._state.judge(batch, answer.code, retriable=kind.retriable)
            if verdict is Verdict.DELIVERED:
                self._state.acknowledge(batch)
                self._waiting.progress()
                self._last_offsets[batch.topic_partition] = answer.base_offset
                self._last_failure.pop(batch.topic_partition, None)
            elif self._limits.splittable(batch, answer.code):
                self._state.fail(batch, now, answer.code)
                self._limits.refused(batch)
                self._state.split(batch, self._limits.cut(batch))
            elif verdict is Verdict.FATAL:
                self._state.refuse(batch, answer.code)
                fatal = fatal or (batch, answer)
            else:
                self._state.fail(batch, now, answer.code)
                what = f"{lane.connection.address} did not take a record batch for {batch.topic_partition}"
                cause = broker_error(answer.code, what, detail=answer.message)
                self._note_failure(batch.topic_partition, cause, lane.connection.address)
                if kind.refreshes_metadata:
                    self._leaders.forget(batch.topic_partition)
        if request.batches:
            silent = ProtocolError(
                f"{lane.connection.address} answered a write without a word on "
                f"{', '.join(map(str, list(request.batches)[:5]))}.",
                condition="RESPONSE_INCOMPLETE",
                facts={"broker": lane.connection.address},
            )
            self._fail_request(request, silent, lane.connection.address)
        if response.throttle_time_ms > 0:
            # The broker does not read from this connection meanwhile (KIP-219): neither send, nor call it silent.
            pause_s = response.throttle_time_ms / 1000
            lane.throttled_until = now + pause_s
            for waiting in lane.requests:
                waiting.ends_at += pause_s
        if fatal is not None:
            raise produce_errors.refused(
                self._state,
                *fatal,
                lane.connection.address,
                max_request_size=self._options.max_request_size,
                transactional_id=None if self._transaction is None else self._transaction.name,
            )

    def _lose(self, lane: ProduceLane, error: ConnectorError) -> None:
        """Close a lane; what was under way is sent again, on another connection."""
        lane.connection.close()
        self._lanes.pop(lane.broker_id, None)
        requests, lane.requests = list(lane.requests), deque()
        for request in requests:
            self._fail_request(request, error, lane.connection.address)

    def _fail_request(self, request: InFlightRequest, error: ConnectorError, broker: str) -> None:
        now = self._clock()
        for topic_partition, batch in request.batches.items():
            self._state.fail(batch, now)
            self._note_failure(topic_partition, error, broker)
            self._leaders.forget(topic_partition)

    def _note_failure(self, topic_partition: TopicPartition, error: ConnectorError, broker: str | None) -> None:
        self._last_failure[topic_partition] = (error, broker)
        self._waiting.failed(error)

    def _describe(self) -> str:
        """Say what is waited for."""
        counts = self._state.counts()
        where = next(iter(self._last_failure), None)
        unknown = "" if where is None else f", {where} among them"
        return f"delivery of {counts.not_delivered + counts.unknown} records{unknown}"

    def _outlasts(self, error: ConnectorError) -> bool:
        """Tell whether a failure that is final at first contact is one of an outage here."""
        return self._outage_timeout_ms > 0 and is_weather(error)

    # -- requests

    def _dispatch(self, now: float, *, everything: bool) -> bool:
        """Send what can be sent; `everything` also sends requests that are small."""
        self._unseen_bytes = 0
        if not everything and self._lanes and not any(self._has_room(lane, now) for lane in self._lanes.values()):
            return False  # a walk over what is queued would find nothing to do
        sent = False
        while True:
            by_broker: dict[int, list[ProducerBatch]] = {}
            leaderless: list[TopicPartition] = []
            for topic_partition in self._state.ready_partitions():
                batch = self._state.sendable(topic_partition, now)
                if batch is None:
                    continue
                leader_id = self._leaders.get(topic_partition)
                if leader_id is None:
                    leaderless.append(topic_partition)
                else:
                    by_broker.setdefault(leader_id, []).append(batch)
            progress = False
            for broker_id, batches in by_broker.items():
                progress |= self._dispatch_to(broker_id, batches, now, everything=everything)
            if leaderless:
                # Only after the others were served: a look-up blocks.
                progress |= self._find_leaders(leaderless)
            if not progress:
                return sent
            sent = True

    def _has_room(self, lane: ProduceLane, now: float) -> bool:
        return len(lane.requests) < self._options.max_in_flight and now >= lane.throttled_until

    def _dispatch_to(self, broker_id: int, batches: list[ProducerBatch], now: float, *, everything: bool) -> bool:
        lane = self._lanes.get(broker_id)
        if lane is not None and not self._has_room(lane, now):
            return False
        taken: list[ProducerBatch] = []
        size = 0
        for batch in batches:
            if taken and size + batch.size > self._options.max_request_size:
                break
            taken.append(batch)
            size += batch.size
        idle = (lane is None or not lane.requests) and not self._bulk
        if not (everything or idle) and size < self._worth_a_request:
            return False
        if lane is None:
            lane = self._open_lane(broker_id, batches)
            if lane is None:
                return False
        self._send_request(lane, taken)
        return True

    def _open_lane(self, broker_id: int, batches: list[ProducerBatch]) -> ProduceLane | None:
        """Give a lane to a broker; None while it is connected to, which holds up nothing for other brokers."""
        limit_ms = (min(batch.expires_at for batch in batches) - self._delivery_clock.now()) * 1000
        try:
            connection = self._dials.begin(broker_id, self._client.deadline().within(max(1.0, limit_ms)))
        except ConnectorError as error:
            self._unconnected(broker_id, [batch.topic_partition for batch in batches], error)
            return None
        if connection is None:
            return None
        lane = self._lanes[broker_id] = ProduceLane(broker_id, connection)
        return lane

    def _take_connected(self) -> bool:
        """Take over connections that have been made, and put off what was to go to brokers without one."""
        finished = self._dials.take()
        for broker_id, outcome in finished:
            if not isinstance(outcome, ConnectorError):
                self._lanes[broker_id] = ProduceLane(broker_id, outcome)
                continue
            waiting = [tp for tp in self._state.ready_partitions() if self._leaders.get(tp) == broker_id]
            if waiting:
                self._unconnected(broker_id, waiting, outcome)
        return bool(finished)

    def _unconnected(self, broker_id: int, topic_partitions: list[TopicPartition], error: ConnectorError) -> None:
        address = self._address(broker_id)
        self._put_off(topic_partitions, f"connecting to {address}", error, address)

    def _why_unconnected(self, late: ProducerBatch) -> tuple[ConnectorError | None, str | None]:
        """Give why a batch that has never failed is late: its broker does not let itself be connected to."""
        leader_id = self._leaders.get(late.topic_partition)
        if leader_id is None or leader_id not in self._dials:
            return None, None
        address = self._address(leader_id)
        return Deadline(self._options.delivery_timeout_ms).error(f"Connecting to {address}"), address

    def _address(self, broker_id: int) -> str:
        node = self._client.cached_broker(broker_id)
        return node.address if node is not None else f"broker {broker_id}"

    def _send_request(self, lane: ProduceLane, batches: list[ProducerBatch]) -> None:
        frame = ProduceFrame(
            self._options.acks,
            self._options.request_timeout_ms,
            ((batch.topic_partition, batch.data) for batch in batches),
            None if self._transaction is None else self._transaction.name,
        )
        now = self._clock()
        expires_at = self._delivery_clock.on_the_wall(min(batch.expires_at for batch in batches))
        ends_at = min(now + self._options.request_timeout_ms / 1000, expires_at)
        request = InFlightRequest({batch.topic_partition: batch for batch in batches}, ends_at, now)
        lane.requests.append(request)
        for batch in batches:
            self._state.mark_sent(batch)
        try:
            timeout_ms = max(1.0, (ends_at - now) * 1000)
            highest = MAX_PRODUCE_VERSION if self._transaction is None else self._transaction.max_produce_version
            lane.connection.send(frame, max_version=highest, timeout_ms=timeout_ms)
        except ConnectorError as error:
            self._lose(lane, error)
            if decide(error).action is Action.FAIL:
                tp = batches[0].topic_partition
                raise produce_errors.unreachable(self._state, tp, "sending a request", error) from error
            return
        if not frame.has_response:
            lane.requests.pop()
            for batch in batches:
                self._state.acknowledge(batch)

    # -- leaders

    def _find_leaders(self, topic_partitions: list[TopicPartition]) -> bool:
        """Ask the cluster who leads; gives whether one of the leaders is known now."""
        soonest = min(self._state.pending_batch(topic_partition).expires_at for topic_partition in topic_partitions)
        deadline = self._client.deadline().within(max(1.0, (soonest - self._delivery_clock.now()) * 1000))
        try:
            missing = self._leaders.look_up(topic_partitions, deadline)
        except ConnectorError as error:
            self._put_off(topic_partitions, "looking up its leader", error, None)
            return False
        for topic_partition, why in missing.items():
            self._note_failure(topic_partition, why, None)
            waited_ms = self._leaders.unknown_for_ms(topic_partition, why, self._delivery_clock.now())
            if waited_ms >= self._unknown_topic_ms:
                known = self._leaders.known_count(topic_partition.topic)
                raise produce_errors.no_such_partition(self._state, topic_partition, waited_ms, known) from why
            if why.condition != "UNKNOWN_TOPIC" and decide(why).action is Action.FAIL:
                self._put_off([topic_partition], "looking up its leader", why, None)
        if missing:
            self._postpone(missing)
        else:
            self._metadata_backoff.reset()
        return len(missing) < len(topic_partitions)

    def _put_off(
        self, topic_partitions: list[TopicPartition], step: str, error: ConnectorError, broker: str | None
    ) -> None:
        """Try again later, or fail if later makes no difference."""
        first = topic_partitions[0]
        if isinstance(error, AccessError):
            raise produce_errors.refused_access(self._state, first, step, error) from error
        if decide(error).action is Action.FAIL and not self._outlasts(error):
            raise produce_errors.unreachable(self._state, first, step, error) from error
        for topic_partition in topic_partitions:
            self._note_failure(topic_partition, error, broker)
            self._leaders.forget(topic_partition)
        self._postpone(topic_partitions)

    def _postpone(self, topic_partitions: Iterable[TopicPartition]) -> None:
        until = self._clock() + self._metadata_backoff.next_s()
        for topic_partition in topic_partitions:
            self._state.postpone(topic_partition, until)
