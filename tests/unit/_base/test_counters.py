"""Numbers of a process: added up, reset by a fork."""

from __future__ import annotations

from pyspark_kafka._base import counters
from pyspark_kafka._base.counters import Counters


def test_numbers_are_added_and_copied() -> None:
    made = Counters()
    made.add_count(counters.RETRIES)
    made.add_count(counters.RETRIES, 2.5)
    copy = made.values()
    made.add_count(counters.RETRIES)
    assert copy == {counters.RETRIES: 3.5}
    assert made.values() == {counters.RETRIES: 4.5}


def test_a_fork_begins_at_zero() -> None:
    made = Counters()
    made.add_count(counters.RETRIES)
    made.reset()
    assert made.values() == {}
