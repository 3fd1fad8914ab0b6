"""What a sink returns against its contract is an error that names class, method and what the contract says."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    PhysicalWriteInfo,
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)
from pyspark_kafka.connector.engine.checked_write import CheckedBatchWrite, CheckedStreamingWrite
from pyspark_kafka.errors import CallError, ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = pa.record_batch({"n": [1]})
TASK = "The task failed and is aborted; a new attempt writes its rows again."


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """A message with anything in it."""

    content: Any


class AnsweringWriter(DataWriter):
    """A writer whose answers the test sets."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.flushed = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if "write" in self.answers:
            raise self.answers["write"]

    def flushNow(self) -> None:
        self.flushed += 1

    def commit(self) -> WriterCommitMessage:
        message = self.answers.get("message", Written(1))
        if isinstance(message, Exception):
            raise message
        return message  # type: ignore[no-any-return]

    def abort(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class AnsweringWriters(DataWriterFactory, StreamingDataWriterFactory):
    """Makes the writer that the test sets."""

    answers: dict[str, Any]

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = 0) -> DataWriter:
        return self.answers.get("writer", AnsweringWriter(self.answers))  # type: ignore[no-any-return]


class AnsweringJob(BatchWrite):
    """A batch write whose answers the test sets."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.infos: list[PhysicalWriteInfo] = []

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:
        self.infos.append(info)
        return self.answers.get("factory", AnsweringWriters(self.answers))  # type: ignore[no-any-return]

    def useCommitCoordinator(self) -> bool:
        return self.answers.get("coordinator", super().useCommitCoordinator())  # type: ignore[no-any-return]

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        if "commit" in self.answers:
            raise self.answers["commit"]

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing."""


class AnsweringStream(StreamingWrite):
    """A streaming write whose answers the test sets."""

    def __init__(self, **answers: Any) -> None:
        self.job = AnsweringJob(**answers)

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        return self.job.createBatchWriterFactory(info)  # type: ignore[return-value]

    def useCommitCoordinator(self) -> bool:
        return self.job.useCommitCoordinator()

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        self.job.commit(messages)

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        return self.job.answers.get("arrived", Written(text))  # type: ignore[no-any-return]

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing."""


def run_batch(**answers: Any) -> None:
    job = CheckedBatchWrite(AnsweringJob(**answers))
    assert isinstance(job.useCommitCoordinator(), bool)
    writer = job.createBatchWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0)
    writer.write(ROWS)
    job.commit([writer.commit()])


def run_epoch(**answers: Any) -> None:
    job = CheckedStreamingWrite(AnsweringStream(**answers))
    assert isinstance(job.useCommitCoordinator(), bool)
    writer = job.createStreamingWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0, 3)
    writer.write(ROWS)
    job.commit(3, [writer.commit()])


RUNS = {"Job": run_batch, "Stream": run_epoch}


@pytest.mark.parametrize("kind", RUNS)
def test_sink_that_keeps_its_contract_is_passed_on(kind: str) -> None:
    RUNS[kind]()


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({"message": None}, "AnsweringWriter.commit() must return a WriterCommitMessage, and returned None."),
        ({"message": "done"}, "AnsweringWriter.commit() must return a WriterCommitMessage, and returned a str."),
        (
            {"message": Written(threading.Lock())},
            "AnsweringWriter.commit() returned a Written that cannot be pickled: cannot pickle '_thread.lock' object.",
        ),
        ({"writer": None}, "AnsweringWriters.createWriter() must return a DataWriter, and returned None."),
    ],
)
def test_answer_of_a_writer_against_the_contract_is_named(kind: str, answers: dict[str, Any], text: str) -> None:
    with pytest.raises(ContractError) as raised:
        RUNS[kind](**answers)
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] {text}")


@pytest.mark.parametrize(
    ("kind", "answers", "text"),
    [
        ("Job", {"factory": None}, "createBatchWriterFactory() must return a DataWriterFactory, and returned None."),
        ("Job", {"coordinator": None}, "useCommitCoordinator() must return a bool, and returned None."),
        ("Stream", {"factory": None}, "createStreamingWriterFactory() must return a StreamingDataWriterFactory, and"),
        ("Stream", {"coordinator": 1}, "useCommitCoordinator() must return a bool, and returned an int."),
    ],
)
def test_answer_of_a_job_against_the_contract_is_named(kind: str, answers: dict[str, Any], text: str) -> None:
    with pytest.raises(ContractError) as raised:
        RUNS[kind](**answers)
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] Answering{kind}.{text}")


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(("method", "answer"), [("write", "write"), ("commit", "message")])
def test_error_of_a_writer_is_named_and_is_the_cause(kind: str, method: str, answer: str) -> None:
    failure = OSError("disk full")
    with pytest.raises(CallError) as raised:
        RUNS[kind](**{answer: failure})
    assert str(raised.value).startswith(
        f"[CONNECTOR_CALL_FAILED] AnsweringWriter.{method}() raised OSError: disk full. {TASK}"
    )
    assert raised.value.__cause__ is failure


def test_error_of_a_commit_says_what_happens_to_the_rows() -> None:
    with pytest.raises(CallError, match=r"AnsweringJob.commit\(\) raised OSError: gone. The write is aborted."):
        run_batch(commit=OSError("gone"))
    with pytest.raises(CallError, match=r"commit\(\) raised OSError: gone. Micro-batch 3 is not committed; a restart"):
        run_epoch(commit=OSError("gone"))


def test_error_of_this_package_stays_what_it_is() -> None:
    with pytest.raises(ContractError, match="mine"):
        run_epoch(commit=ContractError("mine", condition="CONTRACT_VIOLATED"))


def test_commit_coordinator_is_used_unless_the_sink_refuses_it() -> None:
    assert CheckedBatchWrite(AnsweringJob()).useCommitCoordinator()
    assert not CheckedStreamingWrite(AnsweringStream(coordinator=False)).useCommitCoordinator()


def test_number_of_tasks_reaches_the_sink() -> None:
    stream = AnsweringStream()
    CheckedStreamingWrite(stream).createStreamingWriterFactory(PhysicalWriteInfo(7))
    assert stream.job.infos == [PhysicalWriteInfo(7)]


def test_calls_of_a_continuous_engine_are_passed_on() -> None:
    inner = AnsweringWriter({})
    job = CheckedStreamingWrite(AnsweringStream(writer=inner))
    job.createStreamingWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0, 0).flushNow()
    assert inner.flushed == 1
    assert job.deserializeMessage("x") == Written("x")
    with pytest.raises(
        ContractError, match=r"deserializeMessage\(\) must return a WriterCommitMessage, and returned No"
    ):
        CheckedStreamingWrite(AnsweringStream(arrived=None)).deserializeMessage("x")
