from __future__ import annotations

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka.registry.pace import Pace


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_waits_grow_with_each_outage(clock: Clock) -> None:
    pace = Pace(clock)
    assert pace.wait_s() == 0
    for longest_s in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0):
        pace.failed()
        wait_s = pace.wait_s()
        assert longest_s / 2 <= wait_s <= longest_s
        clock.now += wait_s + 0.001
        assert pace.wait_s() == 0


def test_threads_that_meet_the_same_outage_count_it_once(clock: Clock) -> None:
    pace = Pace(clock)
    for _ in range(8):
        pace.failed()
    assert 0.05 <= pace.wait_s() <= 0.1
    clock.now += 0.11
    pace.failed()
    assert 0.1 <= pace.wait_s() <= 0.2


def test_answer_ends_the_waits(clock: Clock) -> None:
    pace = Pace(clock)
    pace.failed()
    pace.answered()
    assert pace.wait_s() == 0
    pace.failed()
    assert pace.wait_s() <= 0.1
