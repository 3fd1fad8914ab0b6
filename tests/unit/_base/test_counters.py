"""Numbers of a process: added up, bucketed, reset by a fork."""

from __future__ import annotations

import pytest

from pyspark_kafka._base import counters
from pyspark_kafka._base.counters import TRANSACTION_BUCKETS, Counters, transaction_bucket


def test_numbers_are_added_and_copied() -> None:
    made = Counters()
    made.add(counters.RETRIES)
    made.add(counters.RETRIES, 2.5)
    copy = made.values()
    made.add(counters.RETRIES)
    assert copy == {counters.RETRIES: 3.5}
    assert made.values() == {counters.RETRIES: 4.5}


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.005, 0), (0.0051, 1), (60.0, 12), (60.1, 13)])
def test_a_bound_belongs_to_its_bucket(seconds: float, bucket: int) -> None:
    made = Counters()
    made.transaction(seconds)
    assert made.values().get(transaction_bucket(bucket)) == 1
    assert len(TRANSACTION_BUCKETS) == 13


def test_a_fork_begins_at_zero() -> None:
    made = Counters()
    made.add(counters.RETRIES)
    made.reset()
    assert made.values() == {}
