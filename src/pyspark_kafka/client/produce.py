"""Writes record batches to the brokers: pipelined, in order, without duplicates, in the caller's thread.

What lives here: connections, waiting, time. What must not: the rules of sequences and retries (`producer_state`), the
bytes of requests (`produce_protocol`), texts (`produce_errors`). Layer: client.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client import produce_errors
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.metadata import unknown_topic
from pyspark_kafka.client.produce_protocol import (
    MAX_INIT_VERSION,
    MAX_PRODUCE_VERSION,
    InitProducerIdRequest,
    ProduceFrame,
    parse_answers,
    parse_batch_start,
)
from pyspark_kafka.client.producer_state import Batch, ProducerState, SequenceStamp, Verdict
from pyspark_kafka.client.protocol import ErrorCode, broker_error, error_kind
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.errors import AccessError, ConnectorError, ProtocolError
from pyspark_kafka.records import patch_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.connection import Connection
    from pyspark_kafka.client.metadata import ClusterMetadata
    from pyspark_kafka.client.produce_protocol import PartitionAnswer
    from pyspark_kafka.errors import BrokerError
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options.connection import ProducerOptions

    Bytes = bytes | bytearray | memoryview

MIB = 1 << 20
# The most bytes of batches that wait for their acknowledgement: `send` blocks above it. As Java's buffer.memory.
BUFFER_BYTES = 32 * MIB
# While another request is under way, fewer bytes than this wait for company: small batches share a request.
_WORTH_A_REQUEST_BYTES = 256 * 1024
# How long a topic that was never seen is looked up: one made a moment ago is known to all brokers after some seconds.
_UNKNOWN_TOPIC_MS = 15_000
# With several brokers to hear, one is listened to for so long at a time.
_LISTEN_SLICE_S = 0.002


@dataclass(frozen=True, slots=True)
class ProducerMetrics:
    """What a producer has done so far: acknowledged records, bytes and batches, and batches sent again."""

    records: int
    bytes: int
    batches: int
    retries: int


@dataclass(slots=True)
class _Request:
    """A request under way and when it is given up."""

    batches: dict[TopicPartition, Batch]
    ends_at: float


@dataclass(slots=True)
class _Lane:
    """The conversation with one broker."""

    broker_id: int
    connection: Connection
    requests: deque[_Request] = field(default_factory=deque)
    throttled_until: float = 0.0


class IdempotentProducer:
    """Delivers record batches: each once and in the order given, within a topic-partition.

    With `idempotence` brokers drop what a retry sends twice. Without it a retry may duplicate and, as several requests
    are under way, reorder; with acks=0 nothing is known of delivery at all.

    All I/O happens inside of the calls: `send` returns as soon as the batch is queued and the buffer has room, `flush`
    returns when everything is acknowledged. The bytes of a batch are not copied; they must not change until then.
    After an error the producer is of no use: every later call raises the same error.

    Runs on: executor; one thread, one task. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        producer: acknowledgements, sizes, times.
        buffer_bytes: the most bytes that wait for their acknowledgement.
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
        buffer_bytes: int = BUFFER_BYTES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._options = producer
        self._buffer_bytes = buffer_bytes
        self._clock = clock
        self._sleep = sleep
        self._idempotent = producer.idempotence and producer.acks == -1
        self._state = ProducerState(
            idempotent=self._idempotent,
            max_in_flight=producer.max_in_flight,
            backoff_ms=client.options.retry_backoff_ms,
            backoff_max_ms=client.options.retry_backoff_max_ms,
        )
        self._lanes: dict[int, _Lane] = {}
        self._metadata_backoff = client.backoff()
        self._partition_counts: dict[str, int] = {}
        # Kept until a broker says otherwise, not for the age of metadata: a write to a former leader is refused.
        self._leaders: dict[TopicPartition, int] = {}
        self._unknown_since: dict[TopicPartition, float] = {}
        # Why, and at which broker, a partition's last attempt failed.
        self._last_failure: dict[TopicPartition, tuple[ConnectorError, str | None]] = {}
        self._error: BaseException | None = None
        self._closed = False

    def __enter__(self) -> IdempotentProducer:  # noqa: PYI034 - typing.Self needs Python 3.11
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

    def partition_count(self, topic: str) -> int:
        """Give how many partitions a topic has; asked once and kept for the life of this producer.

        A topic that is not there yet is waited for, at most 15 s.

        Raises:
            DeliveryError: there is no such topic.
        """
        with self._guarded():
            count = self._partition_counts.get(topic)
            return self._wait_for_topic(topic) if count is None else count

    def next_stamp(self, topic_partition: TopicPartition) -> SequenceStamp:
        """Give what the header of the batch after all reserved ones has to carry, without reserving it.

        A batch that is encoded with it and sent next is not touched again.
        """
        with self._guarded():
            self._identify()
            return self._state.next_stamp(topic_partition)

    def reserve(self, topic_partition: TopicPartition, record_count: int) -> SequenceStamp:
        """Take the sequences of a batch of exactly `record_count` records, which must then be sent.

        Batches of a partition are sent in the order of their reservations.
        """
        with self._guarded():
            self._identify()
            return self._state.reserve(topic_partition, record_count)

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
            self._identify()
            data = self._stamped(topic_partition, data, record_count)
            size = len(data)
            state = self._state
            if size > self._options.max_request_size:
                raise produce_errors.too_large(state, topic_partition, size, self._options.max_request_size)
            while state.unacknowledged and state.unacknowledged_bytes + size > self._buffer_bytes:
                self._step(everything=False, wait=True)
            expires_at = self._clock() + self._options.delivery_timeout_ms / 1000
            state.append(topic_partition, data, record_count, expires_at=expires_at)
            self._step(everything=False, wait=False)

    def poll(self) -> None:
        """Take the answers that are there and send what can be sent; does not block. For callers that pause."""
        with self._guarded():
            self._step(everything=True, wait=False)

    def flush(self) -> None:
        """Wait until every batch is acknowledged.

        Raises:
            ProtocolError: sequences were reserved and not used.
        """
        with self._guarded():
            unused = self._state.unused_reservation()
            if unused is not None:
                raise ProtocolError(
                    f"{unused[0]}: sequences from {unused[1].base_sequence} on were reserved, but no batch was sent "
                    "with them: the brokers would refuse what follows.",
                    condition="SEQUENCE_RESERVATION_UNUSED",
                    hint="this is a defect of this package; please report it.",
                    facts={"topic_partition": unused[0]},
                )
            while self._state.unacknowledged:
                self._step(everything=True, wait=True)

    def close(self) -> None:
        """Give the connections back; what is not flushed is dropped. Safe to call again."""
        self._closed = True
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
        try:
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

    # -- identity and stamps

    def _identify(self) -> None:
        if not self._idempotent or self._state.producer_id >= 0:
            return

        def attempt(step: Deadline) -> Any:
            connection = self._client.any_connection(step)
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
            response = connection.call(request, step, max_version=MAX_INIT_VERSION)
            if response.error_code != ErrorCode.NONE:
                raise broker_error(
                    response.error_code,
                    f"Asking {connection.address} for a producer id failed",
                    consequence="Nothing was written.",
                    broker=connection.address,
                )
            return response

        found = self._client.retrying("Asking for a producer id", self._client.deadline(), attempt)
        self._state.identify(found.producer_id, found.producer_epoch)

    def _stamped(self, topic_partition: TopicPartition, data: Bytes, record_count: int) -> Bytes:
        start = parse_batch_start(topic_partition, data)
        due = self._state.expected_stamp(topic_partition, record_count)
        found = SequenceStamp(start.producer_id, start.producer_epoch, start.base_sequence)
        if start.record_count != record_count or start.last_offset_delta != record_count - 1:
            raise ProtocolError(
                f"{topic_partition}: a batch said to hold {record_count} records has {start.record_count} and a last "
                f"offset delta of {start.last_offset_delta} in its header. Nothing of it was sent.",
                condition="RECORD_BATCH_INVALID",
                hint="this is a defect of this package; please report it.",
                facts={"topic_partition": topic_partition, "records": record_count},
            )
        if found == due:
            return data
        if start.producer_id != -1:
            raise ProtocolError(
                f"{topic_partition}: a batch carries {found}, but {due} is due. Nothing of it was sent.",
                condition="SEQUENCE_STAMP_MISMATCH",
                hint="this is a defect of this package; please report it.",
                facts={"topic_partition": topic_partition},
            )
        batch = data if isinstance(data, bytearray) else bytearray(data)
        patch_header(
            batch,
            producer_id=due.producer_id,
            producer_epoch=due.producer_epoch,
            base_sequence=due.base_sequence,
        )
        return batch

    # -- the loop

    def _step(self, *, everything: bool, wait: bool) -> None:
        """Take answers, give up what is late, send what can be sent; with `wait` not before something has happened."""
        heard = self._hear()
        now = self._clock()
        late = self._state.first_expired(now)
        if late is not None:
            cause, broker = self._last_failure.get(late.topic_partition, (None, None))
            raise produce_errors.expired(self._state, late, self._options.delivery_timeout_ms, broker, cause)
        sent = self._dispatch(now, everything=everything)
        if wait and not heard and not sent:
            self._wait()

    def _wait(self) -> None:
        """Sleep until an answer arrives, or a time is over that something hangs on."""
        now = self._clock()
        listening = [lane for lane in self._lanes.values() if lane.requests]
        until = [lane.requests[0].ends_at for lane in listening]
        until += [lane.throttled_until for lane in self._lanes.values() if lane.throttled_until > now]
        pause = self._state.next_attempt_at(now)
        if pause is not None:
            until.append(pause)
        expiry = self._state.next_expiry()
        if expiry is not None:
            until.append(expiry)
        timeout_s = max(0.0, min(until, default=now) - now)
        if not listening:
            self._sleep(timeout_s)
        elif len(listening) == 1:
            listening[0].connection.readable(timeout_s)
        else:
            oldest = min(listening, key=lambda lane: lane.requests[0].ends_at)
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
                    remaining_ms = (lane.requests[0].ends_at - self._clock()) * 1000
                    # Something is there: at least a moment is given to read it.
                    response = lane.connection.receive(Deadline(max(remaining_ms, 1_000)))
                except ConnectorError as error:
                    self._lose(lane, error)
                else:
                    self._take_answer(lane, lane.requests.popleft(), response)
                heard = True
            now = self._clock()
            if lane.requests and lane.requests[0].ends_at <= now:
                timeout = Deadline(self._options.request_timeout_ms, clock=self._clock)
                self._lose(lane, timeout.error(f"Waiting for {lane.connection.address} to acknowledge a write"))
                heard = True
        return heard

    def _take_answer(self, lane: _Lane, request: _Request, response: Any) -> None:
        now = self._clock()
        fatal: tuple[Batch, PartitionAnswer] | None = None
        for answer in parse_answers(response):
            batch = request.batches.pop(answer.topic_partition, None)
            if batch is None:
                continue  # R14, R15: not asked for, or answered twice
            kind = error_kind(answer.code)
            verdict = self._state.judge(batch, answer.code, retriable=kind.retriable)
            if verdict is Verdict.DELIVERED:
                self._state.acknowledge(batch)
                self._last_failure.pop(batch.topic_partition, None)
            elif verdict is Verdict.FATAL:
                self._state.refuse(batch, answer.code)
                fatal = fatal or (batch, answer)
            else:
                self._state.fail(batch, now, answer.code)
                what = f"{lane.connection.address} did not take a record batch for {batch.topic_partition}"
                cause = broker_error(answer.code, what, detail=answer.message)
                self._note_failure(batch.topic_partition, cause, lane.connection.address)
                if kind.refreshes_metadata:
                    self._leaders.pop(batch.topic_partition, None)
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
            limit = self._options.max_request_size
            raise produce_errors.refused(self._state, *fatal, lane.connection.address, max_request_size=limit)

    def _lose(self, lane: _Lane, error: ConnectorError) -> None:
        """Close a lane; what was under way is sent again, on another connection."""
        lane.connection.close()
        self._lanes.pop(lane.broker_id, None)
        requests, lane.requests = list(lane.requests), deque()
        for request in requests:
            self._fail_request(request, error, lane.connection.address)

    def _fail_request(self, request: _Request, error: ConnectorError, broker: str) -> None:
        now = self._clock()
        for topic_partition, batch in request.batches.items():
            self._state.fail(batch, now)
            self._note_failure(topic_partition, error, broker)
            self._leaders.pop(topic_partition, None)

    def _note_failure(self, topic_partition: TopicPartition, error: ConnectorError, broker: str | None) -> None:
        self._last_failure[topic_partition] = (error, broker)

    # -- requests

    def _dispatch(self, now: float, *, everything: bool) -> bool:
        """Send what can be sent; `everything` also sends requests that are small."""
        if not everything and self._lanes and not any(self._has_room(lane, now) for lane in self._lanes.values()):
            return False  # a walk over what is queued would find nothing to do
        sent = False
        while True:
            by_broker: dict[int, list[Batch]] = {}
            leaderless: list[TopicPartition] = []
            for topic_partition in self._state.queued_partitions():
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

    def _has_room(self, lane: _Lane, now: float) -> bool:
        return len(lane.requests) < self._options.max_in_flight and now >= lane.throttled_until

    def _dispatch_to(self, broker_id: int, batches: list[Batch], now: float, *, everything: bool) -> bool:
        lane = self._lanes.get(broker_id)
        if lane is not None and not self._has_room(lane, now):
            return False
        taken: list[Batch] = []
        size = 0
        for batch in batches:
            if taken and size + batch.size > self._options.max_request_size:
                break
            taken.append(batch)
            size += batch.size
        idle = lane is None or not lane.requests
        if not (everything or idle) and size < min(_WORTH_A_REQUEST_BYTES, self._options.max_request_size // 2):
            return False
        if lane is None:
            lane = self._open_lane(broker_id, batches)
            if lane is None:
                return False
        self._send_request(lane, taken)
        return True

    def _open_lane(self, broker_id: int, batches: list[Batch]) -> _Lane | None:
        limit_ms = (min(batch.expires_at for batch in batches) - self._clock()) * 1000
        try:
            connection = self._client.borrow(broker_id, self._client.deadline().within(max(1.0, limit_ms)))
        except ConnectorError as error:
            node = self._client.broker(broker_id)
            address = node.address if node is not None else f"broker {broker_id}"
            self._put_off([batch.topic_partition for batch in batches], f"connecting to {address}", error, address)
            return None
        lane = self._lanes[broker_id] = _Lane(broker_id, connection)
        return lane

    def _send_request(self, lane: _Lane, batches: list[Batch]) -> None:
        frame = ProduceFrame(
            self._options.acks,
            self._options.request_timeout_ms,
            ((batch.topic_partition, batch.data) for batch in batches),
        )
        now = self._clock()
        ends_at = min(now + self._options.request_timeout_ms / 1000, *(batch.expires_at for batch in batches))
        request = _Request({batch.topic_partition: batch for batch in batches}, ends_at)
        lane.requests.append(request)
        for batch in batches:
            self._state.mark_sent(batch)
        try:
            timeout_ms = max(1.0, (ends_at - now) * 1000)
            lane.connection.send(frame, max_version=MAX_PRODUCE_VERSION, timeout_ms=timeout_ms)
            lane.connection.send_frame(*frame.rest, timeout_ms=timeout_ms)
        except ConnectorError as error:
            self._lose(lane, error)
            if decide(error).action is Action.FAIL:
                tp = batches[0].topic_partition
                raise produce_errors.unreachable(self._state, tp, "sending a request", error) from error
            return
        if not frame.expect_response():
            lane.requests.pop()
            for batch in batches:
                self._state.acknowledge(batch)

    # -- leaders

    def _find_leaders(self, topic_partitions: list[TopicPartition]) -> bool:
        """Ask the cluster who leads; gives whether one of the leaders is known now."""
        soonest = min(self._state.queued_batch(topic_partition).expires_at for topic_partition in topic_partitions)
        deadline = self._client.deadline().within(max(1.0, (soonest - self._clock()) * 1000))
        try:
            found = self._client.metadata({topic_partition.topic for topic_partition in topic_partitions}, deadline)
        except ConnectorError as error:
            self._put_off(topic_partitions, "looking up its leader", error, None)
            return False
        self._learn(found)
        now = self._clock()
        missing: list[TopicPartition] = []
        for topic_partition in topic_partitions:
            if topic_partition in self._leaders:
                self._unknown_since.pop(topic_partition, None)
                continue
            missing.append(topic_partition)
            why = _why_leaderless(found, topic_partition)
            self._note_failure(topic_partition, why, None)
            if why.condition == "UNKNOWN_TOPIC":
                self._check_unknown(topic_partition, now)
            elif decide(why).action is Action.FAIL:
                raise self._refused_topic(topic_partition, why)
        if missing:
            self._postpone(missing)
        else:
            self._metadata_backoff.reset()
        return len(missing) < len(topic_partitions)

    def _learn(self, found: ClusterMetadata) -> None:
        for topic in found.topics.values():
            if topic.error is not None or not topic.partitions:
                continue
            self._partition_counts[topic.name] = len(topic.partitions)
            for partition in topic.partitions:
                if partition.has_leader:
                    self._leaders[partition.topic_partition] = partition.leader_id
                else:
                    self._leaders.pop(partition.topic_partition, None)

    def _check_unknown(self, topic_partition: TopicPartition, now: float) -> None:
        known = self._partition_counts.get(topic_partition.topic, 0)
        if topic_partition.partition < known:
            return  # it was there: `delivery_timeout_ms` is the bound for its coming back
        since = self._unknown_since.setdefault(topic_partition, now)
        if (now - since) * 1000 >= min(_UNKNOWN_TOPIC_MS, self._options.delivery_timeout_ms):
            raise produce_errors.no_such_partition(self._state, topic_partition, int((now - since) * 1000), known)

    def _wait_for_topic(self, topic: str) -> int:
        budget_ms = min(_UNKNOWN_TOPIC_MS, self._options.delivery_timeout_ms)
        deadline = Deadline(budget_ms, clock=self._clock, sleep=self._sleep)
        backoff = self._client.backoff()
        while True:
            found = self._client.metadata([topic])
            self._learn(found)
            count = self._partition_counts.get(topic)
            if count is not None:
                return count
            described = found.topics.get(topic)
            error = unknown_topic(topic) if described is None or described.error is None else described.error
            if error.condition != "UNKNOWN_TOPIC" and decide(error).action is Action.FAIL:
                raise error
            if deadline.expired:
                raise produce_errors.no_such_topic(self._state, topic, deadline.elapsed_ms()) from error
            deadline.pause(backoff.next_s())

    def _refused_topic(self, topic_partition: TopicPartition, error: BrokerError) -> ConnectorError:
        if isinstance(error, AccessError):
            return broker_error(
                error.code,
                f"Writing to {topic_partition} failed: {error.message.rstrip('.')}",
                consequence=produce_errors.consequence(self._state, topic_partition),
                hint=f"grant the principal WRITE and DESCRIBE on topic '{topic_partition.topic}'.",
                topic_partition=topic_partition,
            )
        return produce_errors.unreachable(self._state, topic_partition, "looking up its leader", error)

    def _put_off(
        self, topic_partitions: list[TopicPartition], step: str, error: ConnectorError, broker: str | None
    ) -> None:
        """Try again later, or fail if later makes no difference."""
        first = topic_partitions[0]
        if isinstance(error, AccessError):
            raise error.located(f"Writing to {first} failed, {step}") from error
        if decide(error).action is Action.FAIL:
            raise produce_errors.unreachable(self._state, first, step, error) from error
        for topic_partition in topic_partitions:
            self._note_failure(topic_partition, error, broker)
            self._leaders.pop(topic_partition, None)
        self._postpone(topic_partitions)

    def _postpone(self, topic_partitions: Iterable[TopicPartition]) -> None:
        until = self._clock() + self._metadata_backoff.next_s()
        for topic_partition in topic_partitions:
            self._state.postpone(topic_partition, until)


def _why_leaderless(found: ClusterMetadata, topic_partition: TopicPartition) -> BrokerError:
    topic = found.topics.get(topic_partition.topic)
    described = unknown_topic(topic_partition.topic) if topic is None else topic.error
    if described is not None:
        return described
    known = found.partition(topic_partition)
    if known is None:
        return unknown_topic(topic_partition.topic, partition=topic_partition.partition)
    return broker_error(known.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"{topic_partition} has no leader")
