"""The form of the wire trace's lines, and who receives them."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.fetch.request import FetchFrame, FetchPosition
from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep
from pyspark_kafka._client.client.produce.request import ProduceFrame
from pyspark_kafka._client.client.wire.messages import MetadataRequest
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import TransportError

SENT = WireEvent(WireStep.SENT, "kafka-1:9092", "Fetch", 16, 7, 123, 3)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (WireEvent(WireStep.OPENED, "kafka-1:9092", elapsed_ms=3.14), "opened kafka-1:9092 ms=3.1"),
        (SENT, "sent kafka-1:9092 Fetch v16 id=7 bytes=123 partitions=3"),
        (
            WireEvent(WireStep.RECEIVED, "kafka-1:9092", "Fetch", 16, 7, 1048576, elapsed_ms=12.34),
            "received kafka-1:9092 Fetch v16 id=7 bytes=1048576 ms=12.3",
        ),
        (
            WireEvent(WireStep.FAILED, "kafka-1:9092", "Fetch", 16, 7, elapsed_ms=30_000, reason="[LOST] Gone."),
            "failed kafka-1:9092 Fetch v16 id=7 ms=30000.0: [LOST] Gone.",
        ),
        (WireEvent(WireStep.FAILED, "kafka-1:9092", reason="[TLS] No."), "failed kafka-1:9092: [TLS] No."),
        (WireEvent(WireStep.CLOSED, "kafka-1:9092"), "closed kafka-1:9092"),
        (WireEvent(WireStep.CLOSED, "kafka-1:9092", reason="1 in flight"), "closed kafka-1:9092: 1 in flight"),
    ],
)
def test_a_line_has_what_happened_where_and_how_much(event: WireEvent, line: str) -> None:
    assert str(event) == line


def test_the_log_receives_events_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pyspark_kafka.wire"):
        assert not trace.is_on()
    with caplog.at_level(logging.DEBUG, "pyspark_kafka.wire"):
        assert trace.is_on()
        trace.emit(SENT)
    found = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert found == [("pyspark_kafka.wire", "DEBUG", str(SENT))]


def test_a_listener_receives_events_while_its_block_runs() -> None:
    seen: list[WireEvent] = []
    with trace.listening(seen.append):
        assert trace.is_on()
        trace.emit(SENT)
    assert seen == [SENT]
    assert not trace.is_on()


def test_topic_partitions_of_a_request_are_counted() -> None:
    places = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
    positions = [FetchPosition(tp, 0, UUID(int=1), 0, 100) for tp in places]
    fetch = FetchFrame(positions, FetchOptions(), max_bytes=100, rack=None)
    assert trace.partitions_of(fetch) == 3
    assert trace.partitions_of(ProduceFrame(-1, 100, [(tp, b"") for tp in places])) == 3
    assert trace.partitions_of(MetadataRequest(topics=None)) is None


def test_a_reason_has_no_hint() -> None:
    error = TransportError("It was lost.", condition="CONNECTION_LOST", hint="Look.")
    assert trace.reason_of(error) == "[CONNECTION_LOST] It was lost."
    assert trace.reason_of(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_line_of_the_trace_is_one_line_whatever_a_broker_says() -> None:
    event = WireEvent(WireStep.FAILED, "h:9092", "Metadata", 12, 3, reason="a \x1b[31mred\n26/11/29 ERROR line")
    assert str(event) == "failed h:9092 Metadata v12 id=3: a \\x1b[31mred\\n26/11/29 ERROR line"
