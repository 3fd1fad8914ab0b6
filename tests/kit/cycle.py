"""What one turn of a continuous read and write costs, in numbers that do not depend on the machine.

A turn is what the engine does without its epochs: `next`, `get`, `write` and `flushNow`, until the records of one fetch
are sent. Reader and writer are those of Kafka. The broker is a fake in other threads that responds to each fetch with
new records, and acknowledges writes between two steps. So a turn finds the same as the one before it, however long a
step takes.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import pyarrow as pa
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from kit.costs import without_collections
from kit.fakes.handlers.fetch import fetch
from kit.fakes.handlers.produce import produce
from kit.fakes.tcp_cluster import TcpCluster
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pyspark_kafka.connector import ContinuousPartitionReader

SOURCE, TARGET = "source", "target"
# Connections are made, leaders are known, caches are full.
_WARM_TURNS = 20
_TURNS = 30
_SENDS = frozenset({"send", "sendall", "sendmsg"})
_RECEIVES = frozenset({"recv", "recv_into", "recvmsg", "recvmsg_into"})
_WAITS = frozenset({"poll", "select", "epoll"})


@dataclass(frozen=True)
class Shape:
    """What arrives in a turn.

    Attributes:
        partitions: of the source, all of them with records in each turn; the target has as many.
        records: a partition and turn.
        record_batches: that they come in, a partition and turn.
        sides: `both`, `reader` or `writer`; the other one is not there.
        traces: the option `traceContext`; the records of the source have a `traceparent` unless it is empty.
        value_bytes: of each record.
    """

    partitions: int = 2
    records: int = 10
    record_batches: int = 1
    sides: str = "both"
    traces: str = ""
    value_bytes: int = 100

    def __str__(self) -> str:
        """Return the shape in words."""
        each = f"{self.records} records in {self.record_batches} batches"
        return f"{self.sides}: {self.partitions} partitions, {each}"


@dataclass
class Turn:
    """What one turn took.

    Attributes:
        python_calls: of functions of Python, and returns into generators.
        builtin_calls: of functions in C that Python reports; Cython's are not among them.
        sends, receives, waits: calls of sockets and of select or poll: system calls.
        requests: by name, as the broker got them.
        arrow_allocations, arrow_bytes: of Arrow's memory pool; 0 where pyarrow does not count them.
        cpu_ms: of this thread, without the counting; this one depends on the machine.
        by_module: Python calls by module.
    """

    python_calls: int = 0
    builtin_calls: int = 0
    sends: int = 0
    receives: int = 0
    waits: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    arrow_allocations: int = 0
    arrow_bytes: int = 0
    cpu_ms: float = 0.0
    by_module: Counter[str] = field(default_factory=Counter)


def count_turn(shape: Shape, *, turns: int = _TURNS) -> Turn:
    """Return the turn of several with the fewest Python calls: the one in which no timer was due."""
    with opened_cycle(shape) as cycle, without_collections():
        for _ in range(_WARM_TURNS):
            cycle.turn()
        cycle.send_all()
        began = time.thread_time()
        for _ in range(turns):
            cycle.turn()
        cpu_ms = (time.thread_time() - began) * 1000 / turns
        found = min((cycle.counted_turn() for _ in range(turns)), key=lambda turn: turn.python_calls)
    found.cpu_ms = cpu_ms
    return found


class Cycle:
    """Reader, writer and broker of one shape."""

    def __init__(self, shape: Shape, cluster: TcpCluster, answers: _Answers, resources: ExitStack) -> None:
        self._shape = shape
        self._cluster = cluster
        self._answers = answers
        for topic in (SOURCE, TARGET):
            cluster.add_topic(topic, partitions=shape.partitions)
        cluster.script(FetchRequest, self._fetch)
        cluster.script(ProduceRequest, self._produce)
        kafka = {"kafka.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in cluster.bootstrap_servers)}
        kafka |= {"traceContext": shape.traces} if shape.traces else {}
        resources.callback(close_clients)
        self.reader = self._open_reader(kafka, resources) if shape.sides != "writer" else None
        self._writer: KafkaDataWriter | None = None
        if shape.sides != "reader":
            options = parse_write_options(kafka | {"topic": TARGET}, streaming=True)
            self._writer = KafkaDataWriter(options, SinkColumns(key=0, value=1, partition=2))
            resources.callback(self._writer.close)
        self._given = [_rows(number, shape) for number in range(shape.partitions)]

    def _open_reader(self, kafka: dict[str, str], resources: ExitStack) -> ContinuousPartitionReader:
        stream = KafkaContinuousStream.from_options(kafka | {"subscribe": SOURCE, "startingOffsets": "earliest"})
        resources.callback(stream.stop)
        stream.prepareForTasks(1)
        (partition,) = stream.planInputPartitions(stream.initialOffset())
        reader = stream.createContinuousReaderFactory().createReader(partition)
        resources.callback(reader.close)
        return reader

    def _fetch(self, request: Any) -> Any:
        """Respond with the records of one turn, which nobody has seen before."""
        for number in range(self._shape.partitions):
            for batch in self._batches:
                self._cluster.logs[SOURCE, number].append(batch)
        return fetch(self._cluster, request)

    def _produce(self, request: Any) -> Any:
        """Acknowledge after the step that has sent it."""
        self._answers.wait_for_end_of_step()
        return produce(self._cluster, request)

    @cached_property
    def _batches(self) -> list[bytes]:
        return record_batches(self._shape)

    def turn(self, count: CallCount | None = None) -> None:
        """Take the records of one fetch, and send them."""
        left = self._shape.partitions * self._shape.records
        while left:
            self._answers.begin_step()
            with count or nullcontext():
                batch = self._next()
                if batch is not None and self._writer is not None:
                    self._writer.write(batch)
                # As the lane of a query does.
                if self._writer is not None and not (self.reader is not None and self.reader.hasMore()):
                    self._writer.flushNow()
            left -= 0 if batch is None else batch.num_rows
            self._answers.end_step()

    def send_all(self) -> None:
        """Send the backlog of turns before the connection, which another thread opens; counted turns would send it."""
        if self._writer is not None:
            self._writer.commit()

    def _next(self) -> pa.RecordBatch | None:
        if self.reader is None:
            self._given.append(self._given.pop(0))
            return self._given[-1]
        return self.reader.get().select(["key", "value", "partition"]) if self.reader.next() else None

    def counted_turn(self) -> Turn:
        """Take a turn, and return what it took."""
        seen, pool = len(self._cluster.seen), pa.default_memory_pool()
        allocations, allocated = _allocations(pool)
        counting = CallCount()
        self.turn(counting)
        counting.turn.arrow_allocations = _allocations(pool)[0] - allocations
        counting.turn.arrow_bytes = _allocations(pool)[1] - allocated
        counting.turn.requests = dict(Counter(request.name for request in self._cluster.seen[seen:]))
        return counting.turn


class _Answers:
    """Lets acknowledgements arrive between two steps, never in one, on a quick machine and on a slow one."""

    def __init__(self) -> None:
        self._between_steps = threading.Event()
        self._between_steps.set()
        self._changed = threading.Condition()
        self._answered = 0
        self._connections: list[Connection] = []

    def greet(self, accepted: socket.socket) -> socket.socket:
        """Return a socket that counts the responses."""
        # As brokers do: otherwise a second response waits for the acknowledgement of the first one.
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What a test broker calls of it: `makefile`, `sendall`, and the end of a `with` block.
        return cast("socket.socket", _CountedSocket(accepted, self))

    def note_answer(self) -> None:
        """Count a response that was sent."""
        with self._changed:
            self._answered += 1
            self._changed.notify_all()

    @contextmanager
    def of_all_connections(self) -> Iterator[None]:
        """Note the connections that are made in the block."""
        initialize = Connection.__init__

        def noted(connection: Connection, *arguments: Any, **named: Any) -> None:
            initialize(connection, *arguments, **named)
            # Behind it: another thread makes the connection, and this one asks each that is noted for its requests.
            self._connections.append(connection)

        with patch.object(Connection, "__init__", noted):
            yield

    def begin_step(self) -> None:
        """Hold acknowledgements from now on."""
        self._between_steps.clear()

    def wait_for_end_of_step(self) -> None:
        """Return between two steps; for the broker."""
        self._between_steps.wait(PATIENCE_S)

    def end_step(self) -> None:
        """Return when each request was answered: on the loopback, what was sent is there."""
        self._between_steps.set()
        sent = sum(connection._correlation_id for connection in self._connections)
        with self._changed:
            if not self._changed.wait_for(lambda: self._answered >= sent, PATIENCE_S):
                raise TimeoutError(f"{self._answered} of {sent} requests were answered")


class _CountedSocket:
    """The broker's side of a connection."""

    def __init__(self, accepted: socket.socket, answers: _Answers) -> None:
        self._accepted, self._answers = accepted, answers

    def __enter__(self) -> _CountedSocket:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._accepted.close()

    def makefile(self, mode: str) -> Any:
        return self._accepted.makefile(mode)  # type: ignore[call-overload]

    def sendall(self, data: bytes) -> None:
        self._accepted.sendall(data)
        self._answers.note_answer()


class CallCount:
    """Counts calls of this thread while it is entered; the turn adds up over several times."""

    def __init__(self) -> None:
        self.turn = Turn()

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        # The end of this block: itself, and the call in it.
        self.turn.python_calls -= 1
        self.turn.builtin_calls -= 1
        self.turn.by_module[__name__] -= 1

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        turn = self.turn
        if event == "call":
            turn.python_calls += 1
            turn.by_module[frame.f_globals.get("__name__", "")] += 1
        elif event == "c_call":
            turn.builtin_calls += 1
            name = argument.__name__
            turn.sends += name in _SENDS
            turn.receives += name in _RECEIVES
            turn.waits += name in _WAITS


@contextmanager
def opened_cycle(shape: Shape) -> Iterator[Cycle]:
    """Start broker, reader and writer."""
    answers = _Answers()
    with TcpCluster(greet=answers.greet) as cluster, answers.of_all_connections(), ExitStack() as resources:
        yield Cycle(shape, cluster, answers, resources)


def _rows(number: int, shape: Shape) -> pa.RecordBatch:
    """Return the rows that a writer alone is given for one partition."""
    count = shape.records
    columns = [[b"key"] * count, [b"v" * shape.value_bytes] * count, [number] * count]
    types = (pa.binary(), pa.binary(), pa.int32())
    return pa.record_batch(
        [pa.array(*pair) for pair in zip(columns, types, strict=True)], ["key", "value", "partition"]
    )


def _allocations(pool: pa.MemoryPool) -> tuple[int, int]:
    """Return how often the pool has allocated memory, and how much in all; zeros where pyarrow does not count."""
    if not hasattr(pool, "num_allocations"):
        return 0, 0
    return pool.num_allocations(), pool.total_bytes_allocated()


def record_batches(shape: Shape) -> list[bytes]:
    """Return the record batches of one partition and turn."""
    share, left = divmod(shape.records, shape.record_batches)
    headers = [("traceparent", f"00-{7:032x}-{8:016x}-01".encode())] if shape.traces else []
    value, found = b"v" * shape.value_bytes, []
    for number in range(shape.record_batches):
        builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 24)
        for _ in range(share + (number < left)):
            builder.append(timestamp=1_700_000_000_000, key=b"key", value=value, headers=headers)
        builder.close()
        found.append(bytes(builder.buffer()))
    return found
