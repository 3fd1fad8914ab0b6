"""Signals of a program whose query is to end with them."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.continuous.query.handle import ContinuousQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTHING: Any = None


class Runner:
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
