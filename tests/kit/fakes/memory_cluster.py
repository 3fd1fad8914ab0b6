"""A cluster in memory for producers: connections without sockets, a clock that a test moves, faults in a script.

Requests arrive as the bytes that a socket would get and are decoded with kafka-python, so their encoding is checked on
the way. What is produced is kept in the logs of `logs.py`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from kafka.protocol.producer import InitProducerIdResponse, ProduceRequest

from kit.fakes.clock import Clock
from kit.fakes.logs import PartitionLog
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
from pyspark_kafka._client.client.net.errors import forgotten
from pyspark_kafka._client.client.net.idleness import IDLE_S, doubt_after_s
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.produce.response import ProducePartitionResponse, ProduceResponse
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import Backoff
from pyspark_kafka._client.client.wire.framed_request import FramedRequest
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions
from pyspark_kafka.errors import ConnectorError, TransportError
from pyspark_kafka.records import encode

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def batch_of(*values: bytes, size: int = 0) -> bytearray:
    """Encode one record batch; `size` pads the first value."""
    padded = [values[0].ljust(size, b"."), *values[1:]]
    return bytearray(encode(pa.record_batch({"value": pa.array(padded, pa.binary())}), timestamp_ms=0))


@dataclass(frozen=True)
class Fault:
    """What happens to one produce request instead of the usual.

    Attributes:
        appends: whether the records get into the log.
        code: what is answered for every partition of the request; None takes the log's own answer.
        answer: whether it is answered at all…
        closes: …or the connection is closed instead.
        only: the partition that `code` is for; the others are treated as usual.
    """

    appends: bool = True
    code: int | None = None
    answer: bool = True
    closes: bool = False
    only: int | None = None
    message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()
    throttle_ms: int = 0


LOST_REPLY = Fault(answer=False, closes=True)
LOST_REQUEST = Fault(appends=False, answer=False, closes=True)
SILENCE = Fault(answer=False)
NOT_LEADER = Fault(appends=False, code=6)


class FakeConnection:
    """A connection to one broker of a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.address = f"broker-{broker_id}:9092"
        self.closed = False
        self.session_is_old = False
        self.doubt_at = float("inf")
        self.has_begun = False
        self.heard_at = cluster.clock.now
        self._answers: deque[tuple[float, Any]] = deque()
        self._hangs = False
        self._busy_until = 0.0

    def send_request(self, request: FramedRequest, *, max_version: int, timeout_ms: float) -> None:
        assert timeout_ms > 0
        assert not self.session_is_old
        self._check_open()
        if not self._answers:
            self.doubt_at = self.cluster.clock.now + doubt_after_s(
                self.cluster.clock.now - self.heard_at, was_lent=False
            )
        version = min(max_version, self.cluster.produce_version)
        frame = b"".join(map(bytes, request.build(version, 7, "test")))
        assert len(frame) == struct.unpack_from(">i", frame)[0] + 4
        decoded = ProduceRequest.decode(frame, version=version, header=True, framed=True)
        self.cluster.requests.append((self.broker_id, decoded))
        if self._hangs:
            return
        # The requests travel one after the other.
        travels_s = len(frame) / self.cluster.bytes_per_s
        self._busy_until = max(self._busy_until, self.cluster.clock.now) + travels_s
        answer = self.cluster.produce(self.broker_id, decoded, self)
        if answer is not None:
            self._arrive(answer)

    def readable(self, timeout_s: float) -> bool:
        self._check_open()
        clock = self.cluster.clock
        until = clock.now + timeout_s
        arrival = self._answers[0][0] if self._answers else float("inf")
        if timeout_s > 0:
            clock.now = max(clock.now, min(arrival, max(until, clock.now + 1e-4)))
        return arrival <= clock.now

    def receive(self, deadline: Deadline | None) -> Any:
        assert deadline is None
        if not self.readable(0.0):
            return None
        _, answer = self._answers.popleft()
        if isinstance(answer, ConnectorError):
            self.closed = True
            raise answer
        self.doubt_at, self.heard_at = float("inf"), self.cluster.clock.now
        return answer

    @property
    def was_idle(self) -> bool:
        """Whether it was idle for so long that it is not trusted."""
        return self.cluster.clock.now - self.heard_at >= IDLE_S

    def give_up(self) -> ConnectorError:
        """Close, as the real one does."""
        self.closed = True
        return forgotten(self.address, self.cluster.clock.now - self.heard_at)

    @property
    def session(self) -> str | None:
        """What is not None if the login does not count for ever."""
        return "a session" if self.session_is_old else None

    @property
    def pending(self) -> int:
        """How many responses have not been received."""
        return len(self._answers)

    def supports(self, request_class: Any) -> bool:
        assert request_class.name == "InitProducerIdRequest"
        return self.cluster.gives_producer_ids

    def call(self, request: Any, deadline: Deadline, *, max_version: int) -> Any:
        assert not deadline.expired
        assert request.transactional_id is None
        assert max_version == 5
        code = self.cluster.init_codes.popleft() if self.cluster.init_codes else 0
        return InitProducerIdResponse(
            error_code=code, producer_id=self.cluster.producer_id, producer_epoch=0, throttle_time_ms=0
        )

    def close(self) -> None:
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise TransportError(f"The connection to {self.address} is closed.", condition="CONNECTION_CLOSED")

    def hang(self) -> None:
        """Handle nothing any more: brokers take the requests of a connection one after the other."""
        self._hangs = True

    def _arrive(self, answer: Any) -> None:
        self._answers.append((max(self._busy_until, self.cluster.clock.now) + self.cluster.latency_s, answer))

    def lose(self) -> None:
        """Let the reader find the end of the stream."""
        self._hangs = True
        self._arrive(
            TransportError(f"The connection to {self.address} was lost.", condition="CONNECTION_LOST", retriable=True)
        )


class FakeDials:
    """Connections that are being made to brokers of a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self._under_way: dict[int, float] = {}

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, broker_id: int, host: str, port: int, deadline: Deadline) -> None:
        assert (host, port) == (f"broker-{broker_id}", 9092)
        assert not deadline.expired
        self._under_way[broker_id] = self.cluster.connecting_until.get(broker_id, 0.0)

    def take_outcomes(self) -> list[tuple[int, FakeConnection | ConnectorError]]:
        taken: list[tuple[int, FakeConnection | ConnectorError]] = []
        for broker_id, until in list(self._under_way.items()):
            if until > self.cluster.clock.now:
                continue
            del self._under_way[broker_id]
            if self.cluster.borrow_errors:
                taken.append((broker_id, self.cluster.borrow_errors.popleft()))
            else:
                self.cluster.opened.append(FakeConnection(self.cluster, broker_id))
                taken.append((broker_id, self.cluster.opened[-1]))
        return taken

    def wait(self, timeout_s: float) -> None:
        """Let the time pass until a connection is there, or is over; for `ProducerDials.wait`."""
        clock = self.cluster.clock
        soonest = min(self._under_way.values()) - clock.now
        clock.sleep(max(0.0, min(timeout_s, soonest)))

    def close(self) -> None:
        self._under_way.clear()


class FakeAnyBroker:
    """Connections to any broker: the first one."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def connect(self, deadline: Deadline) -> FakeConnection:
        assert not deadline.expired
        return FakeConnection(self._cluster, 0)


class MemoryCluster:
    """Brokers, topics and logs; `faults` are taken one a produce request, in order."""

    def __init__(self, partitions: int = 2, *, topic: str = "orders", brokers: int = 1) -> None:
        self.clock = Clock()
        self.topic = topic
        self.partitions = partitions
        self.leaders = {TopicPartition(topic, number): number % brokers for number in range(partitions)}
        self.brokers = dict.fromkeys(range(brokers))
        self.logs: dict[TopicPartition, PartitionLog] = {
            TopicPartition(topic, number): PartitionLog() for number in range(partitions)
        }
        self.faults: deque[Fault | None] = deque()
        self.requests: list[tuple[int, Any]] = []
        self.opened: list[FakeConnection] = []
        # Asked for connections, as those of a client.
        self.connections = self
        self.any_broker = FakeAnyBroker(self)
        self.given_back: list[FakeConnection] = []
        self.init_codes: deque[int] = deque()
        self.metadata_errors: deque[ConnectorError] = deque()
        self.topic_codes: deque[int] = deque()
        self.borrow_errors: deque[ConnectorError] = deque()
        # Brokers to which a connection takes until then.
        self.connecting_until: dict[int, float] = {}
        self.before_produce: Callable[[], None] | None = None
        self.producer_id = 4711
        self.produce_version = 12
        self.lookups = 0
        self.latency_s = 0.0
        # Of the link of each connection.
        self.bytes_per_s = float("inf")
        self.gives_producer_ids = True
        self.max_message_bytes = 1 << 30

    def values(self, number: int) -> list[bytes]:
        """Return the values in one partition's log, in their order and without the padding of `batch_of`."""
        return [value.rstrip(b".") for value in self.logs[TopicPartition(self.topic, number)].values()]

    def sequences(self, number: int) -> list[tuple[int, int]]:
        """Return the first and last sequences that a partition's leader remembers of the producer."""
        known = self.logs[TopicPartition(self.topic, number)].producers.get(self.producer_id)
        return [] if known is None else [(first, last) for first, last, _ in known.last]

    # What KafkaClient offers to a producer.

    @property
    def options(self) -> ConnectionOptions:
        return ConnectionOptions((("broker-0", 9092),))

    def as_client(self) -> KafkaClient:
        return cast("KafkaClient", self)

    def backoff(self) -> Backoff:
        return Backoff(100, 1_000, rng=lambda: 0.5)

    def deadline(self) -> Deadline:
        return Deadline(25_000, clock=self.clock, sleep=self.clock.sleep)

    def fetch_metadata(self, topics: Iterable[str] | None, deadline: Deadline | None = None) -> ClusterMetadata:
        assert deadline is None or not deadline.expired
        self.lookups += 1
        if self.metadata_errors:
            raise self.metadata_errors.popleft()
        found = {}
        for name in [self.topic] if topics is None else topics:
            code = self.topic_codes.popleft() if self.topic_codes else 0
            if name != self.topic:
                code = 3
            partitions = tuple(
                PartitionMetadata(topic_partition, leader) for topic_partition, leader in sorted(self.leaders.items())
            )
            found[name] = TopicMetadata(name, partitions=() if code else partitions, error_code=code)
        return ClusterMetadata({key: BrokerNode(key, f"broker-{key}", 9092) for key in self.brokers}, found)

    def cached_broker(self, broker_id: int) -> BrokerNode:
        return BrokerNode(broker_id, f"broker-{broker_id}", 9092)

    def take_idle(self, broker_id: int) -> FakeConnection | None:
        if self.borrow_errors or broker_id in self.connecting_until:
            return None
        connection = FakeConnection(self, broker_id)
        self.opened.append(connection)
        return connection

    def find_broker(self, broker_id: int, deadline: Deadline) -> BrokerNode:
        assert not deadline.expired
        return self.cached_broker(broker_id)

    def connect(self, dials: FakeDials, broker_id: int, deadline: Deadline, idle: FakeConnection | None = None) -> None:
        assert idle is None
        node = self.find_broker(broker_id, deadline)
        dials.start(broker_id, node.host, node.port, deadline)

    def dials(self) -> FakeDials:
        return FakeDials(self)

    def explain_unreachable(self, node: BrokerNode, error: ConnectorError) -> ConnectorError:
        assert node
        return error

    def give_back(self, broker_id: int, connection: FakeConnection) -> None:
        assert broker_id == connection.broker_id
        assert not connection.session_is_old or not connection.pending
        self.given_back.append(connection)

    def drop_idle(self, broker_id: int) -> None:
        assert broker_id in self.brokers

    def retrying(self, step: str, deadline: Deadline, attempt: Callable[[Deadline], Any]) -> Any:
        assert step
        while True:
            try:
                return attempt(deadline)
            except ConnectorError as error:
                if not error.retriable:
                    raise
                deadline.pause(0.1)

    # The broker's side.

    def produce(self, broker_id: int, request: Any, connection: FakeConnection) -> Any:
        if self.before_produce is not None:
            self.before_produce()
        fault = (self.faults.popleft() if self.faults else None) or Fault()
        partitions = [
            self._produce_one(broker_id, TopicPartition(topic.name, entry.index), bytes(entry.records), fault)
            for topic in request.topic_data
            for entry in topic.partition_data
        ]
        if fault.closes:
            connection.lose()
            return None
        if not fault.answer:
            connection.hang()
            return None
        if request.acks == 0:
            return None
        return ProduceResponse(partitions, fault.throttle_ms)

    def _produce_one(
        self, broker_id: int, topic_partition: TopicPartition, data: bytes, fault: Fault
    ) -> ProducePartitionResponse:
        if fault.only not in (None, topic_partition.partition):
            fault = Fault()
        code = 0
        if topic_partition not in self.leaders:
            code = 3
        elif self.leaders[topic_partition] != broker_id:
            code = 6
        elif len(data) > self.max_message_bytes:
            code = 10
        elif fault.appends:
            assert struct.unpack_from(">qh", data, 43) in ((self.producer_id, 0), (-1, -1))
            code, _ = self.logs[topic_partition].append(data)
        code = code if fault.code is None else fault.code
        return ProducePartitionResponse(topic_partition, code, fault.message, fault.record_errors)


def make_producer(
    cluster: MemoryCluster,
    buffer_bytes: int = 32 << 20,
    *,
    bulk: bool = False,
    transaction: OpenTransaction | None = None,
    **options: Any,
) -> Producer:
    """Return a producer of that cluster, in its time."""
    return Producer(
        cluster.as_client(),
        ProducerOptions(**options),
        transaction=transaction,
        buffer_bytes=buffer_bytes,
        bulk=bulk,
        clock=cluster.clock,
        sleep=cluster.clock.sleep,
    )


def send_numbered(producer: Producer, topic_partition: TopicPartition, *numbers: int, size: int = 0) -> None:
    """Send a batch for each number; `size` pads it."""
    for number in numbers:
        producer.send_batch(topic_partition, batch_of(b"%d" % number, size=size), 1)


def numbers(*values: int) -> list[bytes]:
    """Return what the log holds of them."""
    return [b"%d" % value for value in values]


def partitions_of(request: Any) -> list[int]:
    """Return the partitions that a request writes to."""
    return [entry.index for topic in request.topic_data for entry in topic.partition_data]
