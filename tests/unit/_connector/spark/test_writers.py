"""Sinks as PySpark sees them: what is called when, what travels, and which error a user reads."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer

from pyspark_kafka._connector.spark import writers
from pyspark_kafka._connector.spark.writers import (
    BatchWriterAdapter,
    SparkMessage,
    StreamWriterAdapter,
    write_partition,
)
from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    PhysicalWriteInfo,
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)
from pyspark_kafka.errors import CallError, ContractError, DeliveryError

# Untyped in PySpark.
SERIALIZER: Any = CloudPickleSerializer
ROWS = pa.record_batch({"value": pa.array([b"a", b"b"])})


@dataclass(frozen=True)
class Count(WriterCommitMessage):
    rows: int


class CountingWriter(DataWriter):
    """Counts rows and fails at the calls that are named."""

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.events: list[str] = []
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._note("write")
        self.rows += batch.num_rows

    def commit(self) -> WriterCommitMessage:
        self._note("commit")
        return Count(self.rows)

    def abort(self) -> None:
        self._note("abort")

    def close(self) -> None:
        self._note("close")

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event in self.fails:
            raise DeliveryError(f"{event} failed", condition="DELIVERY_TIMED_OUT")


def failing() -> Iterator[pa.RecordBatch]:
    yield ROWS
    raise KeyboardInterrupt


def test_rows_are_written_committed_and_the_writer_closed_in_this_order() -> None:
    writer = CountingWriter()
    message = write_partition(writer, iter([ROWS, ROWS]))
    assert isinstance(message, SparkMessage)
    assert message.message == Count(4)
    assert writer.events == ["write", "write", "commit", "close"]


@pytest.mark.parametrize(
    ("fails", "events"),
    [("write", ["write", "abort", "close"]), ("commit", ["write", "commit", "abort", "close"])],
)
def test_a_writer_that_fails_is_aborted_and_closed_and_its_error_is_raised(fails: str, events: list[str]) -> None:
    writer = CountingWriter(fails)
    with pytest.raises(DeliveryError, match=f"{fails} failed"):
        write_partition(writer, iter([ROWS]))
    assert writer.events == events


@pytest.mark.parametrize("method", ["write", "commit"])
def test_error_of_a_writer_is_named_and_is_the_cause(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = OSError("disk full")
    monkeypatch.setattr(CountingWriter, method, Mock(side_effect=failure))
    with pytest.raises(CallError) as raised:
        write_partition(CountingWriter(), iter([ROWS]))
    assert str(raised.value).startswith(
        f"[CONNECTOR_CALL_FAILED] CountingWriter.{method}() raised OSError: disk full. The task failed and is aborted; "
        "a new attempt writes its rows again."
    )
    assert raised.value.__cause__ is failure


@pytest.mark.parametrize(("message", "found"), [(None, "None"), ("done", "a str")])
def test_commit_without_a_message_is_refused_and_aborted(
    message: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = CountingWriter()
    monkeypatch.setattr(CountingWriter, "commit", lambda _: message)
    text = rf"CountingWriter.commit\(\) must return a WriterCommitMessage, and returned {found}\."
    with pytest.raises(ContractError, match=text):
        write_partition(writer, iter([ROWS]))
    assert writer.events == ["write", "abort", "close"]


@pytest.mark.parametrize(
    ("adapter", "arguments", "outcome"),
    [("BatchJob", (), "The write is aborted."), ("StreamJob", (3,), "Micro-batch 3 is not committed; a restart runs")],
)
def test_error_of_a_commit_says_what_happens_to_the_rows(
    adapter: str, arguments: tuple[int, ...], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = globals()[adapter]()
    monkeypatch.setattr(type(job), "commit", Mock(side_effect=OSError("gone")))
    of_spark = BatchWriterAdapter(job) if adapter == "BatchJob" else StreamWriterAdapter(job)
    with pytest.raises(CallError, match=rf"{adapter}.commit\(\) raised OSError: gone. {outcome}"):
        of_spark.commit([], *arguments)


def test_rows_that_cannot_be_had_abort_the_writer_whatever_the_reason() -> None:
    writer = CountingWriter()
    with pytest.raises(KeyboardInterrupt):
        write_partition(writer, failing())
    assert writer.events == ["write", "abort", "close"]


def test_an_abort_that_fails_does_not_hide_why_the_task_failed(caplog: pytest.LogCaptureFixture) -> None:
    writer = CountingWriter("commit", "abort")
    with pytest.raises(DeliveryError, match="commit failed"):
        write_partition(writer, iter([ROWS]))
    assert writer.events == ["write", "commit", "abort", "close"]
    # And is not swallowed either.
    assert "abort failed" in caplog.text


@dataclass(frozen=True)
class CountingFactory(DataWriterFactory, StreamingDataWriterFactory):
    def of_query(self, query_id: str | None) -> CountingFactory:
        queries.append(query_id)
        return self

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = -1) -> DataWriter:  # noqa: N802 - Spark's contract
        created.append((partition_id, task_id, epoch_id))
        return CountingWriter()


created: list[tuple[int, int, int]] = []
queries: list[str | None] = []
finished: list[tuple[Any, ...]] = []


class BatchJob(BatchWrite):
    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:  # noqa: N802 - Spark's contract
        # PySpark does not tell the number of tasks.
        assert info == PhysicalWriteInfo(None)
        return CountingFactory()

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        finished.append(("commit", messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        finished.append(("abort", messages))


class StreamJob(StreamingWrite):
    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:  # noqa: N802 - Spark's contract
        # PySpark does not tell the number of tasks.
        assert info == PhysicalWriteInfo(None)
        return CountingFactory()

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        finished.append(("commit", epoch_id, messages))

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        finished.append(("abort", epoch_id, messages))


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    created.clear()
    queries.clear()
    finished.clear()


def in_task(monkeypatch: pytest.MonkeyPatch, batch_id: str | None) -> None:
    """Run what follows as Spark runs a task: partition 3, attempt 11."""
    context = SimpleNamespace(
        partitionId=lambda: 3,
        taskAttemptId=lambda: 11,
        getLocalProperty={"streaming.sql.batchId": batch_id, "sql.streaming.queryId": "q"}.get,
    )
    monkeypatch.setattr(writers, "TaskContext", SimpleNamespace(get=lambda: context))


def test_a_batch_job_travels_and_finishes_with_the_messages_of_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    in_task(monkeypatch, None)
    adapter = pickle.loads(pickle.dumps(BatchWriterAdapter(BatchJob())))  # noqa: S301 - our own bytes
    message = pickle.loads(pickle.dumps(adapter.write(iter([ROWS]))))  # noqa: S301 - our own bytes
    adapter.commit([message])
    adapter.abort([message, None])
    assert created == [(3, 11, -1)]
    assert finished == [("commit", [Count(2)]), ("abort", [Count(2), None])]


@pytest.mark.parametrize(("batch_id", "epoch_id"), [("42", 42), (None, 0)])
def test_a_stream_job_knows_its_micro_batch_in_tasks_and_on_the_driver(
    monkeypatch: pytest.MonkeyPatch, batch_id: str | None, epoch_id: int
) -> None:
    in_task(monkeypatch, batch_id)
    adapter = pickle.loads(pickle.dumps(StreamWriterAdapter(StreamJob())))  # noqa: S301 - our own bytes
    message = pickle.loads(pickle.dumps(adapter.write(iter([ROWS]))))  # noqa: S301 - our own bytes
    adapter.commit([message], 42)
    adapter.abort([None, message], 42)
    assert created == [(3, 11, epoch_id)]
    # A query's id says nothing without the batch's number.
    assert queries == ["q" if batch_id else None]
    assert finished == [("commit", 42, [Count(2)]), ("abort", 42, [None, Count(2)])]


@dataclass(frozen=True)
class PlannedFactory(CountingFactory):
    planned: bool = False

    def for_tasks(self) -> PlannedFactory:
        plannings.append("planned")
        return PlannedFactory(planned=True)


class PlannedJob(StreamJob):
    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> PlannedFactory:  # noqa: ARG002, N802 - the contract
        return PlannedFactory()


plannings: list[str] = []


def test_factory_is_planned_once_where_the_writer_is_sent_to_tasks_and_nowhere_else() -> None:
    plannings.clear()
    committing = StreamWriterAdapter(PlannedJob())
    committing.commit([], 1)
    committing.abort([], 1)
    assert plannings == []
    planning = StreamWriterAdapter(PlannedJob())
    # As in PySpark: within a function of the tasks, and alone.
    sent = SERIALIZER().dumps(lambda: planning)
    alone = SERIALIZER().dumps(planning)
    assert plannings == ["planned"]
    assert SERIALIZER().loads(sent)()._factory.planned
    assert SERIALIZER().loads(alone)._factory.planned


def test_batch_write_of_an_engine_without_tasks_has_an_attempt_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "TaskContext", SimpleNamespace(get=lambda: None))
    first, second = writers._ids_of_task(), writers._ids_of_task()
    assert first[0] == second[0] == 0
    assert first[1] != second[1]


def test_streaming_write_outside_of_a_task_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "TaskContext", SimpleNamespace(get=lambda: None))
    with pytest.raises(RuntimeError, match="outside of a Spark task"):
        writers._task()
