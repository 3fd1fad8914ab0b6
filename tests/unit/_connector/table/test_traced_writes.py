"""Writes with spans: of their plans and commits, whose tasks they link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from kit.pickled import copied
from kit.spans import KeptTracer, links_of
from pyspark_kafka._base.traces.steps import inside
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka._client.options import TraceOptions
from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage
from pyspark_kafka._connector.sink.driver.at_least_once import KafkaBatchWrite, KafkaStreamingWrite
from pyspark_kafka._connector.sink.executor.traces.traced_writers import TracedMessage, TracedWriterFactory
from pyspark_kafka._connector.table import traced_writes
from pyspark_kafka._connector.table.traced_writes import TracedBatchWrite, TracedStreamingWrite
from pyspark_kafka._connector.table.write import KafkaWrite
from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo, StreamingWrite, WriterCommitMessage

WRITE = {"kafka.bootstrap.servers": "not-asked:9092", "topic": "target"}
ROWS = pa.schema([pa.field("value", pa.binary())])
MESSAGE = KafkaCommitMessage(1, 10)
TASKS = [TraceParent(0x77, number) for number in (1, 2)]


class NotedWrite(StreamingWrite):
    """Notes what it is given; fails if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.committed: list[Any] = []
        self.aborted: list[Any] = []
        self._fails = fails

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> Any:  # noqa: N802
        return info

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        self.committed.append((epoch_id, list(messages)))
        if self._fails:
            raise ValueError("secret-value")

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.aborted.append((epoch_id, list(messages)))


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> KeptTracer:
    made = KeptTracer()
    monkeypatch.setattr(traced_writes, "option_tracer", lambda: made)
    return made


def told() -> list[WriterCommitMessage]:
    return [TracedMessage(MESSAGE, str(task)) for task in TASKS]


def test_write_has_spans_only_with_the_option(tracer: KeptTracer) -> None:
    plain, traced = (KafkaWrite(LogicalWriteInfo(WRITE | more, ROWS)) for more in ({}, {"traceContext": "link"}))
    assert type(plain.toBatch()) is KafkaBatchWrite
    assert type(plain.toStreaming()) is KafkaStreamingWrite
    assert type(traced.toStreaming()) is TracedStreamingWrite
    batch = traced.toBatch()
    assert type(batch) is TracedBatchWrite
    plan = tracer.span("plan write target")
    factory = copied(batch.createBatchWriterFactory(PhysicalWriteInfo()))
    assert isinstance(factory, TracedWriterFactory)
    assert f"{plan.context.span_id:016x}" in factory.trace.parent
    assert not batch.useCommitCoordinator()
    batch.commit(told())
    commit = tracer.span("commit target")
    assert commit.parent is not None
    assert commit.parent.span_id == plan.context.span_id
    batch.abort([None, *told()])


def test_commit_of_a_micro_batch_is_in_the_trace_of_its_tasks_and_links_them(tracer: KeptTracer) -> None:
    job = NotedWrite()
    TracedStreamingWrite(job, TraceOptions("link"), "target").commit(3, told())
    (found,) = tracer.spans
    assert (found.name, found.context.trace_id) == ("commit target", 0x77)
    assert links_of(found) == [task[:2] for task in TASKS]
    assert job.committed == [(3, [MESSAGE, MESSAGE])]
    assert tracer.flushes == 1


def test_commit_that_fails_has_a_span_with_the_error(tracer: KeptTracer) -> None:
    with pytest.raises(ValueError, match="secret-value"):
        TracedStreamingWrite(NotedWrite(fails=True), TraceOptions("link"), "").commit(3, [])
    found = tracer.span("commit")
    assert found.status.description == "ValueError"
    assert "secret-value" not in found.to_json()


def test_commit_of_an_epoch_leaves_the_span_to_the_engine(tracer: KeptTracer) -> None:
    job = NotedWrite()
    with inside(tracer.start("commit of the engine")):
        TracedStreamingWrite(job, TraceOptions("link"), "target").commit(3, [MESSAGE])
    assert tracer.spans == ()
    assert job.committed == [(3, [MESSAGE])]


def test_abort_has_the_messages_of_the_writers() -> None:
    job = NotedWrite()
    TracedStreamingWrite(job, TraceOptions("link"), "target").abort(3, [None, *told()])
    assert job.aborted == [(3, [None, MESSAGE, MESSAGE])]
