"""The wire trace: one line for each request and response, for operators (a log) and for tests (a listener).

Lines go to the logger `pyspark_kafka.wire` at level DEBUG:

    sent kafka-1:9092 Fetch v16 id=7 bytes=123 partitions=3
    received kafka-1:9092 Fetch v16 id=7 bytes=1048576 ms=12.3

A line has names and sizes only: never a key, a value or a credential. Without a listener, a request costs one test.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyspark_kafka._client.client.wire.framed_request import FramedRequest
from pyspark_kafka.errors import ConnectorError, printable

# Set to 1, it switches the log on in a process without configured logging: Spark's Python workers.
WIRE_LOG_VARIABLE = "PYSPARK_KAFKA_WIRE_LOG"

# Before each frame.
_SIZE_BYTES = 4

_LOG = logging.getLogger("pyspark_kafka.wire")
if os.environ.get(WIRE_LOG_VARIABLE) == "1":
    _LOG.setLevel(logging.DEBUG)

_listeners: list[Callable[[WireEvent], None]] = []


class WireStep(str, Enum):
    """An event on a connection."""

    OPENED = "opened"
    SENT = "sent"
    RECEIVED = "received"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class WireEvent:
    """One line of the trace.

    Attributes:
        step: what happened.
        broker: `host:port`.
        request: Kafka's name of the request, such as `Fetch`; empty for a connection as a whole.
        version: of the request.
        correlation_id: of the request, counted for each connection; the response has the same.
        size: bytes of the frame, without the four of its length.
        partitions: topic-partitions that the request names; None if it names none, and for responses.
        elapsed_ms: since the request was sent or the connection begun; None at these themselves.
        reason: of a failure, its text; of the end of a connection, how many requests stay without a response.
    """

    step: WireStep
    broker: str
    request: str = ""
    version: int = 0
    correlation_id: int = 0
    size: int = 0
    partitions: int | None = None
    elapsed_ms: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        words = [self.step.value, self.broker]
        if self.request:
            words += [self.request, f"v{self.version}", f"id={self.correlation_id}"]
        if self.step in (WireStep.SENT, WireStep.RECEIVED):
            words.append(f"bytes={self.size}")
        if self.partitions is not None:
            words.append(f"partitions={self.partitions}")
        if self.elapsed_ms is not None:
            words.append(f"ms={self.elapsed_ms:.1f}")
        return printable(" ".join(words) + (f": {self.reason}" if self.reason else ""))


def is_on() -> bool:
    """Return whether the trace has a listener."""
    return bool(_listeners) or _LOG.isEnabledFor(logging.DEBUG)


def request_sent(
    broker: str, request: Any, version: int, correlation_id: int, pieces: Sequence[bytes | bytearray | memoryview]
) -> None:
    """Record a request that the socket has taken; to be called only while `is_on`, as all of these."""
    size = sum(map(len, pieces)) - _SIZE_BYTES
    name, count = request.name.removesuffix("Request"), partitions_of(request)
    emit(WireEvent(WireStep.SENT, broker, name, version, correlation_id, size, count))


def request_ended(
    step: WireStep,
    broker: str,
    name: str,
    version: int,
    correlation_id: int,
    sent_at: float,
    size: int,
    reason: str,
) -> None:
    """Record an arrived response, or a request's failure."""
    name, elapsed_ms = name.removesuffix("Request"), (time.monotonic() - sent_at) * 1000
    emit(WireEvent(step, broker, name, version, correlation_id, size, elapsed_ms=elapsed_ms, reason=reason))


def connection_changed(step: WireStep, broker: str, *, began: float | None = None, reason: str = "") -> None:
    """Record that a connection was opened, failed or was closed."""
    elapsed_ms = None if began is None else (time.monotonic() - began) * 1000
    emit(WireEvent(step, broker, elapsed_ms=elapsed_ms, reason=reason))


def emit(event: WireEvent) -> None:
    """Log an event and hand it to all listeners."""
    _LOG.debug("%s", event)
    for listener in tuple(_listeners):
        listener(event)


@contextmanager
def listening(listener: Callable[[WireEvent], None]) -> Iterator[None]:
    """Call a function with every event of this process while the block runs; for tests.

    It is called in the thread that uses the connection: connections to several brokers are opened in threads.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def partitions_of(request: Any) -> int | None:
    """Return how many topic-partitions a request names; None if it names none."""
    if isinstance(request, FramedRequest):
        return request.partition_count
    topics = getattr(request, "topics", None) or ()
    return sum(len(getattr(topic, "partitions", None) or ()) for topic in topics) or None


def reason_of(error: BaseException) -> str:
    """Return the text of a failure without its hint."""
    return f"[{error.condition}] {error.message}" if isinstance(error, ConnectorError) else type(error).__name__
