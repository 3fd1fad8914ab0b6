"""Signals of a program whose query is to end with them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.continuous.query.handle import ContinuousQuery

_NOTHING: Any = None


class Runner:
    is_active = True

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()

    def wait_in_handler(self, seconds: float) -> bool:
        return seconds > 0


@pytest.fixture
def runner() -> Iterator[Runner]:
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Runner()
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_stops_the_query_and_the_second_has_its_former_effect(
    runner: Runner, number: signal.Signals
) -> None:
    given: Any = runner
    ContinuousQuery(given, _NOTHING, _NOTHING).stopOnSignals()
    signal.raise_signal(number)
    assert runner.stopped.wait(PATIENCE_S)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_all_queries_that_it_is_to_end(runner: Runner, number: signal.Signals) -> None:
    runners: list[Any] = [runner, Runner(), Runner()]
    ended: Any = Runner()
    ended.is_active = False
    for each in (ended, *runners):
        ContinuousQuery(each, _NOTHING, _NOTHING).stopOnSignals()
    signal.raise_signal(number)
    assert all(each.stopped.wait(20) for each in runners)
    assert not ended.stopped.is_set()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_query_that_is_started_after_a_signal_is_stopped_by_the_next_one(runner: Runner) -> None:
    given: Any = runner
    ContinuousQuery(given, _NOTHING, _NOTHING).stopOnSignals()
    signal.raise_signal(signal.SIGTERM)
    assert runner.stopped.wait(PATIENCE_S)
    later: Any = Runner()
    ContinuousQuery(later, _NOTHING, _NOTHING).stopOnSignals()
    signal.raise_signal(signal.SIGTERM)
    assert later.stopped.wait(PATIENCE_S)


@pytest.mark.parametrize("following", [1, 2])
def test_signal_that_comes_while_a_query_is_registered_stops_it(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, following: int
) -> None:
    given: Any = runner
    set_handler, calls = signal.signal, []

    def set_and_raise(number: Any, handler: Any) -> Any:
        former = set_handler(number, handler)
        calls.append(number)
        if len(calls) == following:
            signal.raise_signal(calls[0])
        return former

    monkeypatch.setattr(signal, "signal", set_and_raise)
    ContinuousQuery(given, _NOTHING, _NOTHING).stopOnSignals()
    assert runner.stopped.wait(PATIENCE_S)
