"""The span of a task that writes: what it says, and that the writer does what it does without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from kit.pickled import copied
from kit.spans import KeptTracer
from pyspark_kafka._base.traces import task_place
from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.steps import current_span, inside
from pyspark_kafka._base.traces.task_place import TaskPlace
from pyspark_kafka._client.options import TraceOptions
from pyspark_kafka._connector.sink.executor.traces import traced_writers
from pyspark_kafka._connector.sink.executor.traces.traced_writers import (
    TracedMessage,
    TracedWriter,
    TracedWriterFactory,
)
from pyspark_kafka.connector import DataWriter, StreamingDataWriterFactory, WriterCommitMessage

ROWS = pa.record_batch({"value": [b"a", b"b"]})


@dataclass(frozen=True)
class Done(WriterCommitMessage):
    rows: int


class NotedWriter(DataWriter):
    """Notes the calls, and in which span they come; fails at one of them."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self._fails = fails

    def _note(self, name: str) -> None:
        self.calls.append(name if current_span() is not None else f"{name} without span")
        if name == self._fails:
            raise ValueError("secret-value")

    def write(self, batch: pa.RecordBatch) -> None:
        del batch
        self._note("write")

    def commit(self) -> WriterCommitMessage:
        self._note("commit")
        return Done(2)

    def abort(self) -> None:
        self._note("abort")

    def close(self) -> None:
        self.calls.append("close")


@dataclass(frozen=True)
class NotedFactory(StreamingDataWriterFactory):
    fails: str = ""
    query_id: str | None = None

    def of_query(self, query_id: str | None) -> NotedFactory:
        return NotedFactory(self.fails, query_id)

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = 0) -> DataWriter:  # noqa: N802, ARG002
        if self.fails == "create":
            raise ValueError("secret-value")
        return NotedWriter(self.fails)


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> KeptTracer:
    made = KeptTracer()
    monkeypatch.setattr(traced_writers, "option_tracer", lambda: made)
    return made


def factory(fails: str = "") -> TracedWriterFactory:
    return TracedWriterFactory(NotedFactory(fails), TraceOptions("link"), "target")


def test_task_that_writes_has_a_span_and_tells_it_with_its_message(
    tracer: KeptTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_place, "_find", lambda: TaskPlace("query", "run", "3", 1, 2, 9))
    made: TracedWriterFactory = copied(factory().of_query("query").for_tasks())
    assert made.factory.query_id == "query"
    writer: Any = made.createWriter(0, 1, 3)
    writer.write(ROWS)
    message = writer.commit()
    writer.close()
    (span,) = tracer.spans
    assert (span.name, span.kind.name, span.parent) == ("send target", "PRODUCER", None)
    assert span.context.trace_id == batch_trace_id("run", 3)
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "target",
        "messaging.batch.message_count": 2,
        "pyspark_kafka.query.id": "query",
        "pyspark_kafka.run.id": "run",
        "pyspark_kafka.batch.id": "3",
        "pyspark_kafka.stage": 1,
        "pyspark_kafka.task": 2,
        "pyspark_kafka.attempt": 9,
    }
    assert message.message == Done(2)
    assert f"{span.context.span_id:016x}" in message.traceparent
    assert isinstance(message, TracedMessage)
    assert writer._writer.calls == ["write", "commit", "close"]
    assert tracer.flushes == 1


@pytest.mark.parametrize("fails", ["write", "commit"])
def test_task_that_fails_has_a_span_with_the_error(fails: str, tracer: KeptTracer) -> None:
    writer: Any = factory(fails).createWriter(0, 1, 3)
    with pytest.raises(ValueError, match="secret-value"):
        (writer.commit if fails == "commit" else lambda: writer.write(ROWS))()
    writer.abort()
    writer.close()
    (span,) = tracer.spans
    assert span.status.description == "ValueError"
    assert "secret-value" not in span.to_json()
    assert writer._writer.calls == [fails, "abort", "close"]


def test_writer_that_cannot_be_built_is_an_error_of_the_span(tracer: KeptTracer) -> None:
    with pytest.raises(ValueError, match="secret-value"):
        factory("create").createWriter(0, 1, 3)
    assert tracer.span("send target").status.description == "ValueError"


def test_writer_of_a_lane_leaves_the_span_to_the_lane(tracer: KeptTracer) -> None:
    with inside(tracer.start("process")):
        assert isinstance(factory().createWriter(0, 1, 3), NotedWriter)
    assert not isinstance(factory().createWriter(0, 1, 3), NotedWriter)
    assert tracer.spans == ()


def test_writer_of_a_batch_write_is_a_child_of_its_plan(tracer: KeptTracer) -> None:
    plan = tracer.start("plan")
    made = TracedWriterFactory(NotedFactory(), TraceOptions("link", plan.traceparent), "")
    writer = made.createWriter(0, 1)
    assert isinstance(writer, TracedWriter)
    writer.close()
    span = tracer.span("send")
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" in plan.traceparent
    assert made.trace_parent == plan.traceparent
    assert made.open_tracer() is tracer
