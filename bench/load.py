"""A steady load on a topic, and a reader that notes when records arrive: each in a process of its own.

Records carry the moment of their creation, in nanoseconds of the machine's monotonic clock, in the first 8 bytes of
their value. The reader is kafka-python's consumer, so what is measured is not what measures.
"""

from __future__ import annotations

import multiprocessing
import signal
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka.client.cluster.pool import borrow_client
from pyspark_kafka.client.produce.producer import Producer
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.options import parse_write_options
from pyspark_kafka.records import RecordColumns, encode_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_CREATED = struct.Struct(">q")
_VALUE_BYTES = 90
# How often records are made; a record waits for nothing else before it is sent.
_TICK_S = 0.005
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


class Generator:
    """Makes records at an even rate, to the partitions of a topic in turns, until it is closed."""

    def __init__(self, bootstrap_servers: str, topic: str, *, partitions: int, records_per_s: int) -> None:
        self._process = _Process(_generate, bootstrap_servers, topic, partitions, records_per_s)

    def __enter__(self) -> Generator:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()


class Reader:
    """Reads topics from their ends on, from when it is built until `finish`."""

    def __init__(self, bootstrap_servers: str, topics: list[str]) -> None:
        self._process = _Process(_read, bootstrap_servers, topics)

    def __enter__(self) -> Reader:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def finish(self) -> dict[str, Arrivals]:
        """Stop reading; return what was read, by topic."""
        found: dict[str, Arrivals] = self._process.end()
        return found


class _Process:
    """A process that runs `work(pipe, ...)` until its pipe is written to or closed, and may send a value at its end."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_run, args=(work, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()
        try:
            # Its first message: it is ready.
            self._pipe.recv()
        except EOFError:
            self._process.join(_END_S)
            raise RuntimeError(f"{work.__name__} ended before it was ready; its error is above") from None

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


def _generate(pipe: Connection, bootstrap_servers: str, topic: str, partitions: int, records_per_s: int) -> None:
    options = parse_write_options({"kafka.bootstrap.servers": bootstrap_servers, "topic": topic}, streaming=False)
    filler = b"v" * (_VALUE_BYTES - _CREATED.size)
    with (
        borrow_client(options.connection) as client,
        Producer(client, options.producer) as producer,
    ):
        producer.partition_count(topic)
        pipe.send("ready")
        made, began = 0, time.monotonic()
        while not pipe.poll(max(0.0, began + made / records_per_s + _TICK_S - time.monotonic())):
            due = int((time.monotonic() - began) * records_per_s)
            if due - made > records_per_s:
                raise RuntimeError(f"the load is behind by {due - made} records: this machine is too slow for it")
            value = _CREATED.pack(time.monotonic_ns()) + filler
            for partition in range(partitions):
                # Record n goes to partition n modulo their number.
                count = len(range(made + (partition - made) % partitions, due, partitions))
                if count:
                    rows = RecordColumns(None, pa.array([value] * count, pa.binary()))
                    data, _ = encode_rows(rows, None, 0, count, max_batch_bytes=1 << 20)
                    producer.send(TopicPartition(topic, partition), data, count)
            made = max(made, due)
            producer.poll()
        producer.flush()
    pipe.send(None)


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
