"""The end of a query: who hears of it, in which order, whatever fails meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.continuous.query.runner import QueryRunner
from pyspark_kafka.continuous.task.stages import Stages
from pyspark_kafka.errors import ContinuousQueryError

FAILURE = ContinuousQueryError("boom", condition="CONTINUOUS_RUN_FAILED", hint="Look.")


class Stream:
    """What a runner asks of a stream at the end."""

    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def stop(self) -> None:
        self.calls.append("stream stopped")
        if "stream fails" in self.calls:
            raise OSError("no stop")

    def hasReached(self, position: Any, target: Any) -> bool:
        raise NotImplementedError


def runner_of(calls: list[Any], on_end: Callable[[QueryRunner, Any], None], failure: Any = None) -> QueryRunner:
    nothing: Any = None
    given = {"stream": Stream(calls), "write": nothing, "stages": Stages(()), "interval_ms": 100}
    plan: Any = type("Plan", (), given)()
    names: Any = type("Names", (), {"id": "id-of-the-query", "run_id": "id-of-the-start"})()
    runner = QueryRunner(nothing, plan, nothing, nothing, names, nothing, lambda error: on_end(runner, error))

    def run() -> None:
        if failure is not None:
            raise failure

    runner._run_until_stopped = run  # type: ignore[method-assign]
    return runner


@pytest.mark.parametrize("failure", [None, FAILURE])
def test_end_is_reported_before_waiting_calls_return(failure: Any) -> None:
    calls: list[Any] = []

    def told(runner: QueryRunner, error: Any) -> None:
        calls.append((error, runner.is_active, runner.message))

    runner = runner_of(calls, told, failure)
    runner.start()
    assert runner.wait(PATIENCE_S)
    message = "Stopped" if failure is None else "Terminated with exception"
    assert calls == ["stream stopped", (failure, True, message)]
    assert runner.failure is failure
    assert not runner.is_active


def test_query_ends_though_stream_and_listener_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    calls: list[Any] = ["stream fails"]

    def raising(_: QueryRunner, error: Any) -> None:
        calls.append(error)
        raise RuntimeError("boom")

    runner = runner_of(calls, raising, FAILURE)
    runner.start()
    assert runner.wait(PATIENCE_S)
    runner._thread.join(PATIENCE_S)
    assert calls == ["stream fails", "stream stopped", FAILURE]
    assert runner.failure is FAILURE


def test_query_that_does_not_end_is_abandoned_and_its_end_reported_once() -> None:
    calls: list[Any] = []
    held, waits = threading.Event(), threading.Event()
    runner = runner_of(calls, lambda _, error: calls.append(("end", error)))

    def wait_for_a_commit() -> None:
        waits.set()
        assert held.wait(PATIENCE_S)
        raise FAILURE

    runner._run_until_stopped = wait_for_a_commit  # type: ignore[method-assign]
    runner.start()
    assert waits.wait(PATIENCE_S)
    runner.stop()
    assert not runner.wait_in_handler(0.05)
    runner.abandon()
    assert not runner.is_active
    assert runner.failure is None
    assert runner.message == (
        "Stopped; it is not known whether the last epoch was committed, after a wait in: Starting"
    )
    assert calls == [("end", None)]
    held.set()
    runner._thread.join(PATIENCE_S)
    assert calls == [("end", None), "stream stopped"]
    assert runner.failure is None, "nobody waits for it"


def test_query_that_has_ended_is_not_abandoned() -> None:
    calls: list[Any] = []
    runner = runner_of(calls, lambda _, error: calls.append(("end", error)))
    runner.start()
    assert runner.wait(PATIENCE_S)
    runner._thread.join(PATIENCE_S)
    runner.abandon()
    assert calls == ["stream stopped", ("end", None)]
    assert runner.message == "Stopped"


def test_transactions_of_a_query_that_fails_are_ended_before_its_end_is_told() -> None:
    calls: list[Any] = []
    runner = runner_of(calls, lambda _, error: calls.append(("end", error)), FAILURE)
    runner._commits.end_transactions = lambda: calls.append("transactions ended")  # type: ignore[method-assign]
    runner.start()
    assert runner.wait(PATIENCE_S)
    assert calls == ["transactions ended", "stream stopped", ("end", FAILURE)]


@pytest.mark.timeout(60)
def test_stop_in_a_handler_returns_though_it_has_interrupted_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of([], lambda *_: None)
    signals: list[int] = []

    def handle(number: int, _: Any) -> None:
        signals.append(number)
        runner.give_up()

    notify_all = threading.Condition.notify_all

    def interrupted(condition: threading.Condition) -> None:
        # The event holds its lock here.
        if not signals and threading.get_ident() == threading.main_thread().ident:
            signal.raise_signal(signal.SIGUSR1)
        notify_all(condition)

    former = signal.signal(signal.SIGUSR1, handle)
    try:
        monkeypatch.setattr(threading.Condition, "notify_all", interrupted)
        runner.stop()
        runner._control.stop_asked.set()
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert signals == [signal.SIGUSR1]
    assert runner._control.give_up.wait(PATIENCE_S)
    assert runner.is_stopping
