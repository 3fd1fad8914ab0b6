"""Runs of a query one after the other: which failures are followed by another run, after which pause."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.stalls import Contact
from pyspark_kafka.continuous.query import runner
from pyspark_kafka.continuous.query.runner import QueryRunner
from pyspark_kafka.continuous.run.plan import QueryPlan, RestartPauses
from pyspark_kafka.continuous.task.stages import Stages
from pyspark_kafka.errors import CheckpointError, ContinuousQueryError, TransportError


def failed(text: str) -> ContinuousQueryError:
    return ContinuousQueryError(text, condition="CONTINUOUS_RUN_FAILED", hint="Look.")


def outage() -> TransportError:
    return TransportError("no broker", condition="CONNECTION_FAILED", retriable=True, hint="Wait.")


class Script:
    """What each run of a query does: fails, is planned again, or raises; by how many epochs it advances first."""

    def __init__(self, *runs: Any) -> None:
        self.runs = list(runs)
        self.pauses: list[float] = []
        self.owner = ""
        self.is_over = False

    def run(self) -> Any:
        if not self.runs:
            self.is_over = True
            return SimpleNamespace(failure=None, has_read=True, is_at_end=False, has_advanced=False)
        epochs, outcome = self.runs.pop(0)
        if isinstance(outcome, tuple):
            raise outcome[0]
        return SimpleNamespace(failure=outcome, has_read=True, is_at_end=outcome == "end", has_advanced=epochs > 0)

    def take_over(self, run_id: str) -> None:
        self.owner = run_id

    def end_transactions(self) -> None:
        self.pauses.append(-1)

    def resume(self) -> int:
        return 7

    def is_set(self) -> bool:
        return self.is_over

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)


def run(monkeypatch: pytest.MonkeyPatch, script: Script, *, most: int = 3, pauses: RestartPauses | None = None) -> None:
    nothing: Any = None
    stream: Any = SimpleNamespace(hasReached=None, stop=lambda: None)
    plan = QueryPlan(stream, nothing, Stages(()), 1, 100, "", most, pauses=pauses or RestartPauses())
    names: Any = SimpleNamespace(id="id-of-the-query", run_id="this start")
    monkeypatch.setattr(runner, "TaskSlots", lambda _: None)

    class Run:
        def __init__(self, *_: Any) -> None:
            self.done: Any = SimpleNamespace(has_advanced=False)

        def run(self) -> None:
            self.done = script.run()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.done, name)

    monkeypatch.setattr(runner, "QueryRun", Run)
    query = QueryRunner(nothing, plan, nothing, nothing, names, nothing)
    query._commits = script  # type: ignore[assignment]
    query._control.stop_asked = script  # type: ignore[assignment]
    query._run_until_stopped()


def test_query_starts_again_after_failures_with_pauses_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(*[(0, failed("boom"))] * 3)
    run(monkeypatch, script)
    assert script.pauses == [0.2, 1, 5]
    assert script.owner == "this start"


def test_query_ends_after_more_failures_in_a_row_than_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(*[(0, failed("boom"))] * 4)
    with pytest.raises(ContinuousQueryError, match="boom"):
        run(monkeypatch, script)
    assert script.pauses == [0.2, 1, 5]
    script = Script((0, failed("boom")))
    with pytest.raises(ContinuousQueryError, match="boom"):
        run(monkeypatch, script, most=0)
    assert script.pauses == []


def test_run_that_advances_begins_the_row_of_failures_again(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(*[(0, failed("boom"))] * 3, *[(1, failed("boom"))] * 5)
    run(monkeypatch, script, pauses=RestartPauses(1_000, 2_000))
    assert script.pauses == [1, 2, 2, 1, 1, 1, 1, 1]


def test_outage_between_two_runs_is_a_failure_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((1, None), (0, (outage(),)), (0, (outage(),)))
    run(monkeypatch, script)
    assert script.pauses == [0.2, 1]


def test_outage_of_the_checkpoint_outlasts_the_failures_that_a_query_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    error = CheckpointError("no answer", condition="CHECKPOINT_IO", hint="Look.", retriable=True)
    script = Script((1, None), *[(0, (error,))] * 3, *[(0, error)] * 3, (1, None))
    run(monkeypatch, script)
    assert script.pauses == [0.2, 1, 5, 10, 10, 10]


def test_outage_at_the_start_of_a_query_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0, (outage(),)))
    with pytest.raises(TransportError, match="no broker"):
        run(monkeypatch, script)
    assert script.pauses == []


def test_error_that_another_run_does_not_mend_ends_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    error = CheckpointError("taken over", condition="CHECKPOINT_CHANGED", hint="Look.")
    script = Script((1, None), (0, (error,)))
    with pytest.raises(CheckpointError, match="taken over"):
        run(monkeypatch, script)


def test_query_that_is_at_its_end_runs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((1, "end"), (0, failed("boom")))
    run(monkeypatch, script)
    assert len(script.runs) == 1


def test_query_that_is_stopped_in_an_outage_ends_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Script):
        def run(self) -> Any:
            self.is_over = True
            return super().run()

    script = Stopped((0, (outage(),)))
    run(monkeypatch, script)
    assert script.pauses == [-1], "its transactions are ended"


def test_error_that_another_run_does_not_mend_is_raised_by_a_stopped_query_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Script):
        def run(self) -> Any:
            self.is_over = True
            return super().run()

    error = CheckpointError("taken over", condition="CHECKPOINT_CHANGED", hint="Look.")
    with pytest.raises(CheckpointError, match="taken over"):
        run(monkeypatch, Stopped((0, (error,))))


def test_wait_for_the_end_of_an_outage_ends_when_the_query_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As planning does it, on the thread of the query."""
    asked, contact, tries = threading.Event(), Contact(), list[int]()
    patience = OutageRetry(600_000, contact, reached=lambda: True)

    def attempt() -> None:
        tries.append(1)
        asked.set()
        raise outage()

    def plan(runner: QueryRunner) -> None:
        runner._control.stop_asked = asked
        patience.call("listing partitions", attempt)

    nothing: Any = None
    stream: Any = SimpleNamespace(hasReached=None, stop=lambda: None)
    query_plan = QueryPlan(stream, nothing, Stages(()), 1, 100, "", 3, pauses=RestartPauses())
    monkeypatch.setattr(runner, "TaskSlots", lambda _: None)
    names: Any = SimpleNamespace(id="id-of-the-query", run_id="this start")
    query = QueryRunner(nothing, query_plan, nothing, nothing, names, nothing)
    query._control.stop_asked = asked
    query._run_again_and_again = lambda: plan(query)  # type: ignore[method-assign]
    query.start()
    assert query.wait(PATIENCE_S)
    assert (tries, query.failure) == ([1], None)
    assert "no broker" in query.message
