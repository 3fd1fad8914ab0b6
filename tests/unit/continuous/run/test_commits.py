"""What a run that failed, and a query that failed for good, leave in the sink."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest

from pyspark_kafka._base.interrupt import pause
from pyspark_kafka.connector import Offset, StreamingWrite, SupportsSourceOffsets, WriterCommitMessage
from pyspark_kafka.continuous.epochs.coordinator import CommitEpoch, EpochCoordinator, LaneReport
from pyspark_kafka.continuous.run import commits as commits_module
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.run.plan import QueryPlan
from pyspark_kafka.continuous.task.stages import Stages
from pyspark_kafka.errors import CallError, CheckpointError, ContractError, TransportError


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
    plan = QueryPlan(nothing, write, Stages(()), tasks=1, interval_ms=100, host="", max_failures=3)
    commits = EpochCommits(plan, "id-of-the-query", nothing, nothing, nothing)
    commits._prepared = prepared
    commits.abort(coordinator.open_reports)
    return list(write.aborted)


def test_epochs_that_are_not_committed_are_aborted() -> None:
    assert aborted_epochs(None) == [4, 5]


def test_epoch_that_will_be_committed_again_is_not_aborted() -> None:
    assert aborted_epochs(4) == [5]


@dataclass(frozen=True)
class Row(Offset):
    number: int

    def json(self) -> str:
        return str(self.number)

    def __lt__(self, other: Row) -> bool:
        return self.number < other.number


def commit_epochs(*ends: int, write: Any) -> None:
    """Commit epochs with these ends, after one that ended at row 4."""
    stream = Mock(deserializeOffset=lambda text: Row(int(text)), mergeOffsets=Mock(side_effect=map(Row, ends)))
    plan = QueryPlan(stream, write, Stages(()), tasks=1, interval_ms=100, host="", max_failures=3)
    commits = EpochCommits(plan, "id-of-the-query", Mock(), Mock(), Mock())
    commits.start = "4"
    for epoch in range(len(ends)):
        commits.commit_epoch(CommitEpoch(epoch, (LaneReport(0, epoch, "{}", "{}"),)))


def test_epoch_that_ends_before_the_former_one_is_not_committed() -> None:
    write = Mock(deserializeMessage=lambda _: WriterCommitMessage())
    text = "must not go backwards: it returned 3 after 4. The epoch was not committed, and its rows will be read again."
    with pytest.raises(ContractError, match=re.escape(text)):
        commit_epochs(3, write=write)
    assert not write.commit.called
    with pytest.raises(ContractError, match="it returned 8 after 9"):
        commit_epochs(9, 9, 8, write=write)
    assert write.commit.call_count == 2


def test_message_that_is_lost_on_its_way_is_named() -> None:
    with pytest.raises(
        ContractError, match=r"deserializeMessage\(\) must return a WriterCommitMessage, and returned No"
    ):
        commit_epochs(9, write=Mock(deserializeMessage=lambda _: None))


def test_error_of_a_commit_says_what_happens_to_its_epoch() -> None:
    write = Mock(deserializeMessage=lambda _: WriterCommitMessage(), commit=Mock(side_effect=OSError("gone")))
    with pytest.raises(CallError, match=r"commit\(\) raised OSError: gone. Epoch 0 is not committed; a res"):
        commit_epochs(9, write=write)


class FencingWrite(NotingWrite, SupportsSourceOffsets):
    """A sink whose lanes have transactions of their own."""

    def __init__(self, *outcomes: Any) -> None:
        super().__init__()
        self.outcomes, self.fenced = list(outcomes), 0

    def takeOver(self) -> None:
        self.fenced += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if callable(outcome):
            outcome()
        elif outcome is not None:
            raise outcome

    def committedOffset(self, start: Any) -> str:
        raise NotImplementedError

    def prepareLanes(self, planned: Any, lanes: int) -> None:
        raise NotImplementedError


def commits_of(write: Any, owner: Any = lambda: None, *, has_transactions: bool = True) -> EpochCommits:
    nothing: Any = None
    plan = QueryPlan(nothing, write, Stages(()), tasks=1, interval_ms=100, host="", max_failures=3)
    epochs: Any = type("Epochs", (), {"check_owner": staticmethod(owner)})()
    commits = EpochCommits(plan, "id-of-the-query", nothing, epochs, nothing)
    commits._has_transactions = has_transactions
    return commits


def test_open_transactions_are_aborted_at_the_end_of_a_query_that_has_failed() -> None:
    write = FencingWrite()
    commits_of(write).end_transactions()
    assert write.fenced == 1


def test_nothing_is_fenced_at_the_end_of_a_query_that_has_no_transactions() -> None:
    write = FencingWrite()
    commits_of(write, has_transactions=False).end_transactions()
    assert write.fenced == 0
    commits_of(NotingWrite()).end_transactions()


def test_start_that_is_replaced_while_it_takes_the_sink_over_goes_no_further() -> None:
    is_replaced = False

    def replace() -> None:
        nonlocal is_replaced
        is_replaced = True

    def check() -> None:
        if is_replaced:
            raise CheckpointError("taken over", condition="CHECKPOINT_CHANGED", hint="Look.")

    commits = commits_of(FencingWrite(replace), check)
    with pytest.raises(CheckpointError, match="CHECKPOINT_CHANGED"):
        # Nothing of the checkpoint is read, which these commits do not have.
        commits.resume()


def test_transactions_are_left_to_the_start_that_has_replaced_this_one(caplog: pytest.LogCaptureFixture) -> None:
    def replaced() -> None:
        raise CheckpointError("taken over", condition="CHECKPOINT_CHANGED", hint="Look.")

    write = FencingWrite()
    commits_of(write, replaced).end_transactions()
    assert write.fenced == 0
    assert not caplog.text


def test_brokers_that_are_away_do_not_hold_up_the_end_of_a_query(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ride_out() -> None:
        assert pause(600), "the outage is over"
        raise TransportError("no broker", condition="CONNECTION_FAILED", retriable=True, hint="Wait.")

    monkeypatch.setattr(commits_module, "_LAST_SECONDS", 0.05)
    commits_of(FencingWrite(ride_out)).end_transactions()
    assert "brokers abort them after kafka.transaction.timeout.ms: [CONNECTION_FAILED] no broker" in caplog.text
