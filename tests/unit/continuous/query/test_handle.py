"""Every method of the handle, over a runner that is a script."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.continuous.reports.events import QueryNames
from pyspark_kafka.errors import ContinuousQueryError

NAMES = QueryNames(str(uuid.uuid4()), str(uuid.uuid4()), "orders", "files", "files")
FAILURE = ContinuousQueryError("boom", condition="CONTINUOUS_RUN_FAILED", hint="Look.")


class Runner:
    """What a handle asks of a runner, noted."""

    def __init__(self, *, ends: bool = True, failure: BaseException | None = None) -> None:
        self.is_active, self.is_reading, self.message = True, True, "Processing new data"
        self.failure = failure
        self.is_stopping = False
        self.interrupts = False
        self.calls: list[Any] = []
        self._ends = ends

    def stop(self) -> None:
        self.calls.append("stop")

    def wait(self, seconds: float | None) -> bool:
        self.calls.append(("wait", seconds))
        self.is_active = not self._ends
        return self._ends

    def wait_in_handler(self, seconds: float) -> bool:
        self.calls.append(("wait in handler", seconds))
        if self.interrupts:
            raise KeyboardInterrupt
        return self._ends

    def abandon(self) -> None:
        self.calls.append("abandon")

    def give_up(self) -> None:
        self.calls.append("give up")

    def wait_until_idle(self) -> None:
        self.calls.append("wait_until_idle")


class Reports:
    """What a handle asks of a progress log."""

    def __init__(self) -> None:
        self.last = {"batchId": 7}
        self.recent = [{"batchId": 6}, {"batchId": 7}]


def handle(runner: Runner) -> ContinuousQuery:
    parts: Any = runner, NAMES, Reports(), "== Continuous Query =="
    return ContinuousQuery(*parts)


def test_query_is_known_by_its_names() -> None:
    query = handle(Runner())
    assert (query.id, query.runId, query.name) == (NAMES.id, NAMES.run_id, "orders")
    assert repr(query) == f"<ContinuousQuery orders {NAMES.id}: Processing new data>"


def test_state_is_that_of_the_runner() -> None:
    runner = Runner()
    query = handle(runner)
    assert query.isActive is True
    assert query.status == {"message": "Processing new data", "isDataAvailable": True, "isTriggerActive": True}
    runner.is_active, runner.is_reading, runner.message = False, False, "Stopped"
    assert not handle(runner).isActive
    assert query.status == {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False}
    assert query.exception() is None
    runner.failure = FAILURE
    assert query.exception() is FAILURE


def test_progress_is_that_of_the_log() -> None:
    query = handle(Runner())
    assert query.lastProgress == {"batchId": 7}
    assert query.recentProgress == [{"batchId": 6}, {"batchId": 7}]


def test_stop_waits_for_the_end() -> None:
    runner = Runner(failure=FAILURE)
    handle(runner).stop()
    assert runner.calls == ["stop", ("wait in handler", 40.0)]


def test_second_stop_gives_the_epoch_up() -> None:
    runner = Runner()
    runner.is_stopping = True
    handle(runner).stop()
    assert runner.calls == ["give up", ("wait in handler", 15.0)]


@pytest.mark.parametrize("again", [False, True])
def test_stop_returns_though_the_query_does_not_end(again: bool) -> None:
    runner = Runner(ends=False)
    runner.is_stopping = again
    handle(runner).stop()
    assert runner.calls[1:] == [("wait in handler", 15.0 if again else 40.0), "abandon"]


def test_stop_that_is_interrupted_gives_the_epoch_up() -> None:
    runner = Runner()
    runner.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        handle(runner).stop()
    assert runner.calls == ["stop", ("wait in handler", 40.0), "give up"]


def test_wait_says_whether_the_query_has_ended() -> None:
    assert handle(Runner()).awaitTermination() is None
    assert handle(Runner()).awaitTermination(5) is True
    runner = Runner(ends=False)
    assert handle(runner).awaitTermination(timeout=0.5) is False
    assert runner.calls == [("wait", 0.5)]


@pytest.mark.parametrize("timeout", [0, -1])
def test_wait_without_a_positive_timeout_is_refused(timeout: float) -> None:
    runner = Runner()
    with pytest.raises(ValueError, match=f"timeout must be a positive number of seconds, not {timeout}"):
        handle(runner).awaitTermination(timeout)
    assert runner.calls == []


def test_waits_raise_why_the_query_failed() -> None:
    query: Any = handle(Runner(failure=FAILURE))
    for wait in (query.awaitTermination, lambda: query.awaitTermination(5), query.processAllAvailable):
        with pytest.raises(ContinuousQueryError, match="boom"):
            wait()


def test_rows_that_are_available_are_waited_for() -> None:
    runner = Runner()
    handle(runner).processAllAvailable()
    assert runner.calls == ["wait_until_idle"]


def test_explanation_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    handle(Runner()).explain()
    handle(Runner()).explain(extended=True)
    assert capsys.readouterr().out == "== Continuous Query ==\n" * 2
