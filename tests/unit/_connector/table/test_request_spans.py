"""Requests as children of a step: those of its thread that have ended."""

from __future__ import annotations

import threading

from kit.spans import KeptTracer
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep, emit
from pyspark_kafka._connector.table.request_spans import step_with_requests


def ended(name: str, reason: str = "") -> WireEvent:
    step = WireStep.FAILED if reason else WireStep.RECEIVED
    return WireEvent(step, "kafka-1:9092", name, 3, elapsed_ms=2.0, reason=reason)


def test_requests_of_the_thread_that_have_ended_are_children() -> None:
    tracer = KeptTracer()
    with step_with_requests(tracer, "plan"):
        emit(WireEvent(WireStep.OPENED, "kafka-1:9092", elapsed_ms=1.0))
        emit(WireEvent(WireStep.SENT, "kafka-1:9092", "Metadata"))
        emit(ended("Metadata"))
        emit(ended("ListOffsets", reason="[CONNECTION_LOST] the text names a host"))
        other = threading.Thread(target=emit, args=(ended("ApiVersions"),))
        other.start()
        other.join()
    emit(ended("Fetch"))
    metadata, offsets, plan = tracer.spans
    assert [metadata.name, offsets.name, plan.name] == ["Metadata", "ListOffsets", "plan"]
    assert dict(metadata.attributes or {}) == {
        "messaging.system": "kafka",
        "server.address": "kafka-1",
        "server.port": 9092,
    }
    assert (metadata.end_time or 0) - (metadata.start_time or 0) == 2_000_000
    assert offsets.status.description == "CONNECTION_LOST"
    assert "names a host" not in offsets.to_json()
