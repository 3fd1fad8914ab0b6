"""A cluster of TCP servers that speak just enough of Kafka's protocol, with responses that a test may script.

For faults that a real broker cannot be made to show. Requests are decoded and responses encoded with kafka-python.
Without a script a request is answered by `handlers/`, from logs in memory; `tests/contract` holds them to what a real
broker answers.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from kit.fakes.handlers import HANDLERS
from kit.fakes.handlers.list_offsets import list_offsets
from kit.fakes.handlers.metadata import api_versions, metadata
from kit.fakes.handlers.transactions import Transaction
from kit.fakes.logs import PartitionLog
from kit.fakes.scripts import Close, Drip, Raw, Response, Script, Silence
from kit.reading import FAST, options_for
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ConnectionOptions

REQUESTS = {
    cls.API_KEY: cls
    for cls in (
        FetchRequest,
        ListOffsetsRequest,
        OffsetForLeaderEpochRequest,
        ApiVersionsRequest,
        MetadataRequest,
        FindCoordinatorRequest,
        DescribeConfigsRequest,
        DescribeLogDirsRequest,
        ListTransactionsRequest,
        DescribeTransactionsRequest,
        InitProducerIdRequest,
        AddOffsetsToTxnRequest,
        AddPartitionsToTxnRequest,
        EndTxnRequest,
        ProduceRequest,
        TxnOffsetCommitRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
        SaslHandshakeRequest,
        SaslAuthenticateRequest,
    )
}


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

    `greet` gets every connection that was made and returns the one to continue with, or None to close it.

    Use as a context manager. `script(FetchRequest, a, b)` answers the first fetch with a and all others with b.
    """

    known_requests = REQUESTS

    count: int = 1
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    racks: dict[int, str] = field(default_factory=dict)
    greet: Callable[[socket.socket], socket.socket | None] | None = None

    def __post_init__(self) -> None:
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        # First and end offset of partitions whose log a test does not fill.
        self.ends: dict[tuple[str, int], tuple[int, int]] = {}
        self.transactions: dict[str, Transaction] = {}
        # Position and metadata of each partition, by group.
        self.groups: dict[str, dict[tuple[str, int], tuple[int, str | None]]] = defaultdict(dict)
        self.max_message_bytes: dict[str, int] = {}
        self._producer_ids = itertools.count(1_000)
        # What brokers advertise where it is not their own address.
        self.elsewhere: dict[int, tuple[str, int]] = {}
        self.seen: list[Seen] = []
        self.connections = 0
        self._closing = threading.Event()
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
        self._closing.set()
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
            self.logs[name, number] = PartitionLog()

    def new_producer_id(self) -> int:
        """Return an id that no producer has."""
        return next(self._producer_ids)

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
                drip = answer if isinstance(answer, Drip) else None
                answer = answer if drip is None else drip.response
                flexible = answer.flexible_version_q(version) and api_key != ApiVersionsRequest.API_KEY
                body = bytes(answer.encode(version=version if answer.version is None else answer.version))
                response = struct.pack(">i", request.header.correlation_id) + b"\x00" * flexible + body
                response = struct.pack(">i", len(response)) + response
                if drip is None:
                    connection.sendall(response)
                elif not self._send_slowly(connection, response, drip):
                    return

    def _send_slowly(self, connection: socket.socket, response: bytes, drip: Drip) -> bool:
        """Send a response in pieces; return whether all of it was sent."""
        for at in range(0, min(len(response), drip.most_bytes), drip.piece_bytes):
            connection.sendall(response[at : at + drip.piece_bytes])
            self._closing.wait(drip.pause_s)
        return len(response) <= drip.most_bytes

    def _answer(self, broker_id: int, name: str, request: Any) -> Response:
        with self._lock:
            for key in ((name, broker_id), (name, None)):
                scripts = self._scripts.get(key)
                if scripts:
                    script = scripts.popleft() if len(scripts) > 1 else scripts[0]
                    break
            else:
                return HANDLERS[name](self, request) or Silence()
        # Classes are answers, too: Close and Silence may be given without parentheses.
        if isinstance(script, type):
            return script()
        return script(request) if callable(script) else script

    def api_versions(self, request: Any) -> Any:
        """Answer a request for versions, as the fake does without a script."""
        return api_versions(self, request)

    def metadata(self, request: Any) -> Any:
        """Answer a metadata request, as the fake does without a script."""
        return metadata(self, request)

    def list_offsets(self, request: Any, errors: dict[int, int] | None = None) -> Any:
        """Answer a request for offsets, some partitions with an error code."""
        return list_offsets(self, request, errors)
