"""A steady load on a topic, and readers that note when records arrive: each in a process of its own.

Records carry the moment at which they were due, in nanoseconds of the machine's monotonic clock, in the first 8 bytes
of their value: a generator that is held up makes latencies longer, not records fewer. `Reader` is kafka-python's
consumer, so what is measured is not what measures; `ArrowReader` takes 50,000 records/s with a tenth of its CPU time.
"""

from __future__ import annotations

import multiprocessing
import signal
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka.records import RecordColumns, encode_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from pyspark_kafka.connector import ContinuousPartitionReader

_CREATED = struct.Struct(">q")
_VALUE_BYTES = 90
# How often records are made; a record waits for nothing else before it is sent.
_TICK_NS = 5_000_000
_MAX_LATE_TURNS = 2_000
_BATCH_ROWS = 5_000
# A process that does not end in this time is killed.
_END_S = 10.0
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records as they were read, of one topic; nanoseconds of the monotonic clock."""

    created_ns: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)

    def latencies_ms(self, since_ns: int, until_ns: int) -> list[float]:
        """Return the sorted latencies of the records that were created in a window."""
        pairs = zip(self.created_ns, self.arrived_ns, strict=True)
        return sorted((arrived - created) / 1e6 for created, arrived in pairs if since_ns <= created < until_ns)


@dataclass(frozen=True, slots=True)
class Lateness:
    """The turns of a generator: when each was due, in ns of the monotonic clock, and how much later it was sent."""

    due_ns: list[int] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)

    def sorted_ms(self, since_ns: int, until_ns: int) -> list[float]:
        """Return the sorted delays of the turns that were due in a window."""
        pairs = zip(self.due_ns, self.late_ns, strict=True)
        return sorted(late / 1e6 for due, late in pairs if since_ns <= due < until_ns)


class Generator:
    """Makes records at an even rate, to the partitions of a topic in turns, until it is closed.

    Every 5 ms those that are due; all of a turn are due at the same moment. They are sent as one record batch a
    partition and turn, or by librdkafka with `linger.ms=0`, which makes many record batches of a few records.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, *, partitions: int, records_per_s: int, librdkafka: bool = False
    ) -> None:
        self._process = _Process(_generate, bootstrap_servers, topic, partitions, records_per_s, librdkafka)

    def __enter__(self) -> Generator:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._process.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def finish(self) -> Lateness:
        """Stop; return how late each turn was handed to the broker's connection."""
        found: Lateness = self._process.end()
        return found


class Reader:
    """Reads topics from their ends on, from when it is built until `finish`."""

    def __init__(self, bootstrap_servers: str, topics: list[str]) -> None:
        self._process = _Process(_read, bootstrap_servers, topics)

    def __enter__(self) -> Reader:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._process.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def finish(self) -> dict[str, Arrivals]:
        """Stop reading; return what was read, by topic."""
        found: dict[str, Arrivals] = self._process.end()
        return found


class ArrowReader:
    """Reads a topic from its end on with this package's client, committed records only, until `finish`."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._process = _Process(_read_arrow, bootstrap_servers, topic)

    def __enter__(self) -> ArrowReader:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._process.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def has_records(self, seconds: float) -> bool:
        """Wait for the first record; return whether there is one."""
        return self._process.wait(seconds)

    def finish(self) -> ArrowArrivals:
        """Stop reading; return what was read."""
        found: ArrowArrivals = self._process.end()
        return found


@dataclass(frozen=True, slots=True)
class ArrowArrivals:
    """Records as they were read; nanoseconds of the monotonic clock."""

    created_ns: np.ndarray
    arrived_ns: np.ndarray

    def latencies_ms(self, since_ns: int, until_ns: int) -> list[float]:
        """Return the sorted latencies of the records that were due in a window."""
        chosen = (self.created_ns >= since_ns) & (self.created_ns < until_ns)
        found: list[float] = np.sort((self.arrived_ns[chosen] - self.created_ns[chosen]) / 1e6).tolist()
        return found


class _Process:
    """A process that runs `work(pipe, ...)` until its pipe is written to or closed, and may send a value at its end."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_run, args=(work, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        try:
            # Its first message.
            self._pipe.recv()
        except EOFError:
            self._process.join(_END_S)
            raise RuntimeError("a process of the load ended before it was ready; its error is above") from None

    def wait(self, seconds: float) -> bool:
        """Wait for a message of the work; return whether there was one."""
        try:
            return self._pipe.poll(seconds) and bool(self._pipe.recv())
        except EOFError:
            return False

    def end(self) -> Any:
        if self._pipe.closed:
            return None
        try:
            self._pipe.send("end")
            return self._pipe.recv()
        except (EOFError, OSError):
            raise RuntimeError("a process of the load failed; its error is above") from None
        finally:
            self._pipe.close()
            self._process.join(_END_S)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()


def _run(work: Callable[..., None], pipe: Connection, *arguments: Any) -> None:
    # Ctrl-C goes to all; the parent ends this process in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(pipe, *arguments)


@contextmanager
def _one_batch_a_turn(bootstrap_servers: str, topic: str) -> Iterator[Callable[[list[list[bytes]]], None]]:
    """Lend a function that sends values, by partition, with this package's producer."""
    options = parse_write_options({"kafka.bootstrap.servers": bootstrap_servers, "topic": topic}, streaming=False)
    with (
        borrow_client(options.connection) as client,
        Producer(client, options.producer) as producer,
    ):
        producer.partition_count(topic)

        def send(rows: list[list[bytes]]) -> None:
            for partition, values in enumerate(rows):
                # More than one batch only after a delay.
                for first in range(0, len(values), _BATCH_ROWS):
                    some = values[first : first + _BATCH_ROWS]
                    columns = RecordColumns(None, pa.array(some, pa.binary()))
                    data, _ = encode_rows(columns, None, 0, len(some), max_batch_bytes=1 << 20)
                    producer.send_batch(TopicPartition(topic, partition), data, len(some))
            producer.poll()

        yield send
        producer.flush()


@contextmanager
def _librdkafka(bootstrap_servers: str, topic: str) -> Iterator[Callable[[list[list[bytes]]], None]]:
    """Lend a function that sends values, by partition, with librdkafka, which waits for no company."""
    # Here, so that no other load needs it.
    import confluent_kafka  # noqa: PLC0415

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    producer.list_topics(topic, timeout=_END_S)

    def send(rows: list[list[bytes]]) -> None:
        for partition, values in enumerate(rows):
            for value in values:
                producer.produce(topic, value, partition=partition)
        producer.poll(0)

    yield send
    producer.flush(_END_S)


def _generate(
    pipe: Connection, bootstrap_servers: str, topic: str, partitions: int, records_per_s: int, librdkafka: bool
) -> None:
    filler = b"v" * (_VALUE_BYTES - _CREATED.size)
    with (_librdkafka if librdkafka else _one_batch_a_turn)(bootstrap_servers, topic) as send:
        pipe.send("ready")
        made, turns, began = 0, 0, time.monotonic_ns()
        lateness = Lateness()
        while not pipe.poll(max(0.0, (began + (turns + 1) * _TICK_NS - time.monotonic_ns()) / 1e9)):
            due_turns = (time.monotonic_ns() - began) // _TICK_NS
            if due_turns - turns > _MAX_LATE_TURNS:
                raise RuntimeError(f"the load is behind by {due_turns - turns} turns: this machine is too slow for it")
            rows: list[list[bytes]] = [[] for _ in range(partitions)]
            first_turn = turns + 1
            while turns < due_turns:
                turns += 1
                value = _CREATED.pack(began + turns * _TICK_NS) + filler
                due = turns * _TICK_NS * records_per_s // 1_000_000_000
                for partition in range(partitions):
                    # Record n goes to partition n modulo their number.
                    rows[partition] += [value] * len(range(made + (partition - made) % partitions, due, partitions))
                made = due
            send(rows)
            now = time.monotonic_ns()
            for turn in range(first_turn, turns + 1):
                lateness.due_ns.append(began + turn * _TICK_NS)
                lateness.late_ns.append(now - began - turn * _TICK_NS)
    pipe.send(lateness)


@contextmanager
def open_reader(bootstrap_servers: str, topic: str, **options: str) -> Iterator[ContinuousPartitionReader]:
    """Lend a reader of all partitions of a topic, of this package's continuous source; options as in a query."""
    stream = KafkaContinuousStream.from_options(
        {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, **options}
    )
    stream.prepareForTasks(1)
    (partition,) = stream.planInputPartitions(stream.initialOffset())
    reader = stream.createContinuousReaderFactory().createReader(partition)
    try:
        yield reader
    finally:
        reader.close()
        stream.stop()


def _read_arrow(pipe: Connection, bootstrap_servers: str, topic: str) -> None:
    created: list[np.ndarray] = []
    arrived: list[int] = []
    options = {"startingOffsets": "latest", "kafka.isolation.level": "read_committed"}
    with open_reader(bootstrap_servers, topic, **options) as reader:
        # Connects, so that what comes from now on is read.
        reader.next()
        pipe.send("ready")
        while not pipe.poll():
            if reader.next():
                values = reader.get().column("value")
                now = time.monotonic_ns()
                if not created:
                    pipe.send(True)
                created.append(due_times_in(values))
                arrived.append(now)
    counts = [len(each) for each in created]
    pipe.send(
        ArrowArrivals(np.concatenate([np.empty(0, np.int64), *created]), np.repeat(np.array(arrived, np.int64), counts))
    )


def due_times_in(values: pa.Array) -> np.ndarray:
    """Return the first 8 bytes of each value, which all have the same size."""
    _, offsets, data = values.buffers()
    begin = int(np.frombuffer(offsets, np.int32)[values.offset])
    rows = np.frombuffer(data, np.uint8, len(values) * _VALUE_BYTES, begin).reshape(-1, _VALUE_BYTES)
    times: np.ndarray = rows[:, : _CREATED.size].copy().view(">i8").reshape(-1).astype(np.int64)
    return times


def _read(pipe: Connection, bootstrap_servers: str, topics: list[str]) -> None:
    # Here, so that the process of the load does not load it.
    import kafka  # noqa: PLC0415

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap_servers, enable_auto_commit=False, group_id=None, fetch_max_wait_ms=100
    )
    try:
        assigned = [
            kafka.TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(assigned)
        consumer.seek_to_end()
        for each in assigned:
            consumer.position(each)
        found = {topic: Arrivals() for topic in topics}
        pipe.send("ready")
        while not pipe.poll():
            answer = consumer.poll(timeout_ms=100, max_records=100_000)
            now = time.monotonic_ns()
            for where, records in answer.items():
                arrivals = found[where.topic]
                for record in records:
                    arrivals.created_ns.append(_CREATED.unpack_from(record.value)[0])
                    arrivals.arrived_ns.append(now)
    finally:
        consumer.close()
    pipe.send(found)
