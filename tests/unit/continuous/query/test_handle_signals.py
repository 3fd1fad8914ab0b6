"""Signals of a program whose query is to end with them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

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
    assert runner.stopped.wait(20)
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
    assert runner.stopped.wait(20)
    later: Any = Runner()
    ContinuousQuery(later, _NOTHING, _NOTHING).stopOnSignals()
    signal.raise_signal(signal.SIGTERM)
    assert later.stopped.wait(20)
