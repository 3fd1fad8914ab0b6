"""A cluster of TCP servers that speak just enough of Kafka's protocol, with answers that a test scripts.

For faults that a real broker cannot be made to show. Requests are decoded and answers encoded with kafka-python.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import uuid
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import InitProducerIdRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from kit.reading import FAST, options_for
from pyspark_kafka.client.cluster.kafka_client import KafkaClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.options import ConnectionOptions

REQUESTS = {
    cls.API_KEY: cls
    for cls in (
        FetchRequest,
        ListOffsetsRequest,
        OffsetForLeaderEpochRequest,
        ApiVersionsRequest,
        MetadataRequest,
        FindCoordinatorRequest,
        ListTransactionsRequest,
        DescribeTransactionsRequest,
        InitProducerIdRequest,
        SaslHandshakeRequest,
        SaslAuthenticateRequest,
    )
}


class Close:
    """Instead of an answer: the connection is closed."""


class Silence:
    """Instead of an answer: nothing is sent, the connection stays open."""


@dataclass
class Raw:
    """Instead of an answer: these bytes, as they are."""

    data: bytes


# Close, Silence, Raw, a response, or a function that makes one of these from the request.
Answer = Any
Script = Any


@dataclass
class Seen:
    """A request as a broker got it."""

    broker_id: int
    name: str
    version: int
    request: Any


@dataclass
class TcpCluster:
    """Brokers 0 to count-1 on free ports of the loopback, sharing topics, scripts and the list of requests seen.

    `greet` gets every connection that was made and gives the one to go on with, or None to close it.

    Use as a context manager. `script(FetchRequest, a, b)` answers the first fetch with a and all others with b.
    """

    count: int = 1
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    racks: dict[int, str] = field(default_factory=dict)
    greet: Callable[[socket.socket], socket.socket | None] | None = None

    def __post_init__(self) -> None:
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.ends: dict[tuple[str, int], tuple[int, int]] = {}
        # What brokers advertise where it is not their own address.
        self.elsewhere: dict[int, tuple[str, int]] = {}
        self.seen: list[Seen] = []
        self.connections = 0
        self._lock = threading.Lock()
        self._scripts: dict[tuple[str, int | None], deque[Script]] = defaultdict(deque)
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(self.count)]
        self._open: list[socket.socket] = []
        self._open_of: dict[int, list[socket.socket]] = defaultdict(list)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> TcpCluster:  # noqa: PYI034 - typing.Self needs Python 3.11
        for broker_id in range(self.count):
            self._start(self._accept, broker_id, self._listeners[broker_id])
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            # shutdown wakes the thread in accept; close alone would leave it there.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join(timeout=5)

    def address(self, broker_id: int) -> tuple[str, int]:
        host, port = self._listeners[broker_id].getsockname()
        return str(host), int(port)

    @property
    def bootstrap_servers(self) -> tuple[tuple[str, int], ...]:
        return (self.address(0),)

    def options(self, **changes: Any) -> ConnectionOptions:
        """Return how to reach it, without pauses between attempts."""
        return options_for(self, **(FAST | changes))

    def client(self, **changes: Any) -> KafkaClient:
        """Return a client of it; use it in a `with` statement."""
        return KafkaClient(self.options(**changes))

    def add_topic(self, name: str, *, partitions: int = 1, leader: int = 0, topic_id: uuid.UUID | None = None) -> None:
        self.topic_ids[name] = topic_id or uuid.uuid4()
        for number in range(partitions):
            self.leaders[name, number] = (leader, 0)
            self.ends[name, number] = (0, 0)

    def script(self, request_class: Any, *scripts: Script, broker_id: int | None = None) -> None:
        with self._lock:
            self._scripts[request_class.name, broker_id] = deque(scripts)

    def requests(self, request_class: Any) -> list[Seen]:
        return [seen for seen in self.seen if seen.name == request_class.name]

    def drop_connections(self) -> None:
        with self._lock:
            dropped, self._open = self._open, []
        for connection in dropped:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def stop(self, broker_id: int) -> None:
        """End a broker for good: its connections are closed and its port refuses new ones."""
        with contextlib.suppress(OSError):
            self._listeners[broker_id].shutdown(socket.SHUT_RDWR)
        # Not closed, which would free the port for others.
        with self._lock:
            dropped = self._open_of.pop(broker_id, [])
        for connection in dropped:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, broker_id: int, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.append(connection)
                self._open_of[broker_id].append(connection)
            self._start(self._serve, broker_id, connection)

    def _serve(self, broker_id: int, accepted: socket.socket) -> None:
        connection: socket.socket | None = accepted
        with accepted, contextlib.suppress(OSError):
            connection = accepted if self.greet is None else self.greet(accepted)
            if connection is not None:
                self._converse(broker_id, connection)

    def _converse(self, broker_id: int, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
            while True:
                prefix = stream.read(4)
                if len(prefix) < 4:
                    return
                frame = stream.read(struct.unpack(">i", prefix)[0])
                api_key, version = struct.unpack_from(">hh", frame)
                request_class = REQUESTS[api_key]
                if api_key == ApiVersionsRequest.API_KEY and version > request_class.max_version:
                    raise ValueError(version)
                request = request_class.decode(frame, version=version, header=True)
                self.seen.append(Seen(broker_id, request_class.name, version, request))
                answer = self._answer(broker_id, request_class.name, request)
                if isinstance(answer, Close):
                    return
                if isinstance(answer, Silence):
                    continue
                if isinstance(answer, Raw):
                    connection.sendall(answer.data)
                    continue
                flexible = answer.flexible_version_q(version) and api_key != ApiVersionsRequest.API_KEY
                body = bytes(answer.encode(version=version if answer.version is None else answer.version))
                response = struct.pack(">i", request.header.correlation_id) + b"\x00" * flexible + body
                connection.sendall(struct.pack(">i", len(response)) + response)

    def _answer(self, broker_id: int, name: str, request: Any) -> Answer:
        with self._lock:
            for key in ((name, broker_id), (name, None)):
                scripts = self._scripts.get(key)
                if scripts:
                    script = scripts.popleft() if len(scripts) > 1 else scripts[0]
                    break
            else:
                script = {
                    "ApiVersionsRequest": self._api_versions,
                    "MetadataRequest": self.metadata,
                    "ListOffsetsRequest": self.list_offsets,
                    # Unless a test says otherwise, leaders cannot tell.
                    "OffsetForLeaderEpochRequest": epoch_end(-1, -1),
                }[name]
        # Classes are answers, too: Close and Silence may be given without parentheses.
        if isinstance(script, type):
            return script()
        return script(request) if callable(script) else script

    def _api_versions(self, _: Any) -> Any:
        keys = {key: cls.valid_versions for key, cls in REQUESTS.items()} | self.versions
        entry = ApiVersionsResponse.ApiVersion
        return ApiVersionsResponse(
            error_code=0,
            api_keys=[
                entry(api_key=key, min_version=low, max_version=high) for key, (low, high) in sorted(keys.items())
            ],
            throttle_time_ms=0,
        )

    def metadata(self, request: Any) -> Any:
        topic_class = MetadataResponse.MetadataResponseTopic
        names = list(self.topic_ids) if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in names:
            known = name in self.topic_ids
            partitions = [
                topic_class.MetadataResponsePartition(
                    error_code=0 if leader >= 0 else 5,
                    partition_index=number,
                    leader_id=leader,
                    leader_epoch=epoch,
                    replica_nodes=[],
                    isr_nodes=[],
                    offline_replicas=[],
                )
                for (topic, number), (leader, epoch) in self.leaders.items()
                if topic == name
            ]
            topics.append(
                topic_class(
                    error_code=0 if known else 3,
                    name=name,
                    topic_id=self.topic_ids.get(name, uuid.UUID(int=0)),
                    is_internal=False,
                    partitions=partitions if known else [],
                    authorized_operations=set(),
                )
            )
        addresses = {number: self.elsewhere.get(number) or self.address(number) for number in range(self.count)}
        nodes = [
            MetadataResponse.MetadataResponseBroker(
                node_id=broker_id, host=host, port=port, rack=self.racks.get(broker_id)
            )
            for broker_id, (host, port) in addresses.items()
        ]
        return MetadataResponse(
            throttle_time_ms=0, brokers=nodes, cluster_id="fake", controller_id=0, topics=topics, error_code=0
        )

    def list_offsets(self, request: Any, errors: dict[int, int] | None = None) -> Any:
        topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for topic in request.topics:
            entries = []
            for partition in topic.partitions:
                start, end = self.ends[topic.name, partition.partition_index]
                code = (errors or {}).get(partition.partition_index, 0)
                offset = {-1: end, -2: start}.get(partition.timestamp, -1)
                entries.append(
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=code,
                        timestamp=-1,
                        offset=-1 if code else offset,
                        leader_epoch=0,
                    )
                )
            topics.append(topic_class(name=topic.name, partitions=entries))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def record_batch(base_offset: int, values: list[bytes]) -> bytes:
    """Encode one record batch with kafka-python; the base offset stands outside of its checksum."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=1_700_000_000_000, key=None, value=value)
    builder.close()
    return struct.pack(">q", base_offset) + bytes(builder.buffer())[8:]


@dataclass
class FetchScript:
    """Builds answers to fetches of one partition from whatever is passed; callable as a script."""

    records: bytes = b""
    error_code: int = 0
    high_watermark: int = 1_000_000
    last_stable_offset: int = 1_000_000
    log_start_offset: int = 0
    preferred_read_replica: int = -1
    throttle_time_ms: int = 0
    aborted: tuple[tuple[int, int], ...] = ()

    def __call__(self, request: Any) -> Any:
        topic_class = FetchResponse.FetchableTopicResponse
        asked = request.topics[0]
        partition = topic_class.PartitionData(
            partition_index=asked.partitions[0].partition,
            error_code=self.error_code,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            log_start_offset=self.log_start_offset,
            aborted_transactions=[
                topic_class.PartitionData.AbortedTransaction(producer_id=pid, first_offset=first)
                for pid, first in self.aborted
            ],
            preferred_read_replica=self.preferred_read_replica,
            records=self.records,
        )
        return FetchResponse(
            throttle_time_ms=self.throttle_time_ms,
            error_code=0,
            session_id=0,
            responses=[topic_class(topic=asked.topic, topic_id=asked.topic_id, partitions=[partition])],
        )


@dataclass
class LogScript:
    """Answers fetches of one partition from a list of batches, as a broker does: the whole batch with the offset first.

    Attributes:
        batches: (base offset, next base offset, bytes), ascending.
        per_answer: how many batches an answer holds.
    """

    batches: list[tuple[int, int, bytes]]
    per_answer: int = 1

    def __call__(self, request: Any) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        found = [data for _, end, data in self.batches if end > offset][: self.per_answer]
        end = self.batches[-1][1] if self.batches else 0
        return FetchScript(b"".join(found), high_watermark=end, last_stable_offset=end)(request)


@dataclass
class BrokerLog:
    """Answers fetches of any number of partitions, as a broker does that keeps to the limits of a request.

    Partitions are filled in the order asked. The first one that has records gets a whole batch whatever the limits;
    the others get what fits, the last batch cut off, and nothing where not one whole batch fits.

    Attributes:
        batches: (base offset, next base offset, bytes) ascending, by topic and partition.
        visible: the high watermark and last stable offset, where it is not the end of the log.
        errors: the code, leader and leader epoch that a partition is refused with.
        nodes: addresses that come with an answer with errors.
    """

    batches: dict[tuple[str, int], list[tuple[int, int, bytes]]]
    topic_ids: dict[str, uuid.UUID]
    visible: dict[tuple[str, int], int] = field(default_factory=dict)
    errors: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)
    nodes: list[tuple[int, str, int]] = field(default_factory=list)

    def __call__(self, request: Any) -> Any:
        topic_class = FetchResponse.FetchableTopicResponse
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        left, first, responses = request.max_bytes, True, []
        for topic in request.topics:
            name, partitions = topic.topic or names[topic.topic_id], []
            for asked in topic.partitions:
                log = self.batches[name, asked.partition]
                end = self.visible.get((name, asked.partition), log[-1][1] if log else 0)
                code, leader_id, leader_epoch = self.errors.get((name, asked.partition), (0, -1, -1))
                found = [data for _, stop, data in log if asked.fetch_offset < stop <= end]
                records = b"" if code else b"".join(found)[: max(0, min(left, asked.partition_max_bytes))]
                if not code and found and len(records) < len(found[0]):
                    records = found[0] if first else b""
                first = first and not records
                left -= len(records)
                entry = topic_class.PartitionData(
                    partition_index=asked.partition,
                    error_code=code,
                    high_watermark=end,
                    last_stable_offset=end,
                    log_start_offset=0,
                    aborted_transactions=[],
                    preferred_read_replica=-1,
                    records=records,
                )
                if code:
                    entry.current_leader = topic_class.PartitionData.LeaderIdAndEpoch(
                        leader_id=leader_id, leader_epoch=leader_epoch
                    )
                partitions.append(entry)
            responses.append(topic_class(topic=name, topic_id=topic.topic_id, partitions=partitions))
        response = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)
        if self.nodes:
            response.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=None)
                for node_id, host, port in self.nodes
            ]
        return response


def epoch_end(end_offset: int, leader_epoch: int = 0, error_code: int = 0) -> Callable[[Any], Any]:
    """Give a script that answers every partition of an OffsetForLeaderEpoch request the same."""

    def answer(request: Any) -> Any:
        topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        return OffsetForLeaderEpochResponse(
            throttle_time_ms=0,
            topics=[
                topic_class(
                    topic=topic.topic,
                    partitions=[
                        topic_class.EpochEndOffset(
                            error_code=error_code,
                            partition=partition.partition,
                            leader_epoch=leader_epoch,
                            end_offset=end_offset,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    return answer


def batches_of(count: int, records_each: int = 10) -> list[tuple[int, int, bytes]]:
    """Give `count` adjacent batches from offset 0; values are the decimal offsets."""
    return [
        (base, base + records_each, record_batch(base, [b"%d" % (base + i) for i in range(records_each)]))
        for base in range(0, count * records_each, records_each)
    ]
