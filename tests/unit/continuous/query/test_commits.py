"""What a run that failed leaves in the sink."""

from __future__ import annotations

from typing import Any

from pyspark_kafka.connector import StreamingWrite, WriterCommitMessage
from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.query.commits import EpochCommits
from pyspark_kafka.continuous.query.plan import QueryPlan
from pyspark_kafka.continuous.task.stages import Stages


class NotingWrite(StreamingWrite):
    def __init__(self) -> None:
        self.aborted: list[int] = []

    def createStreamingWriterFactory(self, info: Any) -> Any:
        raise NotImplementedError

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        assert text == "{}"
        return WriterCommitMessage()

    def commit(self, epoch_id: int, messages: Any) -> None:
        raise NotImplementedError

    def abort(self, epoch_id: int, messages: Any) -> None:
        assert len(messages) == 1
        self.aborted.append(epoch_id)
        raise OSError("an abort that fails hides nothing")


def aborted_epochs(prepared: int | None) -> list[int]:
    coordinator = EpochCoordinator(1, 4, 100)
    coordinator.started(0)
    for epoch in (4, 5):
        coordinator.end_now()
        coordinator.reported(LaneReport(0, epoch, "{}", "{}"))
    write: Any = NotingWrite()
    nothing: Any = None
    plan = QueryPlan(nothing, write, Stages(()), tasks=1, interval_ms=100, host="", most_failures=3)
    commits = EpochCommits(plan, "id-of-the-query", nothing, nothing, nothing)
    commits._prepared = prepared
    commits.abort(coordinator.open_reports)
    return list(write.aborted)


def test_epochs_that_are_not_committed_are_aborted() -> None:
    assert aborted_epochs(None) == [4, 5]


def test_epoch_that_will_be_committed_again_is_not_aborted() -> None:
    assert aborted_epochs(4) == [5]
