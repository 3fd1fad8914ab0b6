"""What a lane measures: from when to when, for which rows, and that an epoch's figures are its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.task.meter import LaneMeter


class Reader:
    """What a meter asks of a reader."""

    def __init__(self) -> None:
        self.times: Sequence[float] = ()
        self.latest: Any = None

    def getRowTimes(self) -> Sequence[float]:
        return self.times

    def getLatestOffset(self) -> Any:
        return self.latest


class At:
    def json(self) -> str:
        return "[7]"


@pytest.fixture
def now() -> list[float]:
    return [1_000.0]


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def meter(reader: Reader, now: list[float]) -> LaneMeter:
    stand_in: Any = reader
    return LaneMeter(stand_in, lambda: now[0])


def figures(meter: LaneMeter) -> LaneMetrics:
    return LaneMetrics.from_text(meter.end_epoch())


def test_latency_begins_with_the_rows_and_ends_when_they_are_handed_over(
    meter: LaneMeter, reader: Reader, now: list[float]
) -> None:
    # A second ago and 100 ms ago: of ten rows, the first stands for half.
    reader.times = (999_000.0, 999_900.0)
    meter.read(10)
    now[0] += 0.5
    meter.handed_over()
    now[0] += 2
    found = figures(meter)
    assert found.since_record
    assert found.sent.rows == 10
    assert found.sent.percentile(50) == pytest.approx(600, rel=0.05)
    assert found.sent.greatest_ms == 1_500
    # To the end of the epoch, which the driver continues to the commit.
    assert found.at_ms == 1_002_500
    assert found.ages.greatest_ms == 3_500
    assert found.ages.rows == 10


def test_each_row_counts_once_where_times_do_not_divide_them(meter: LaneMeter, reader: Reader) -> None:
    reader.times = (999_000.0, 999_500.0, 999_900.0, 1_000_000.0)
    meter.read(11)
    meter.handed_over()
    assert figures(meter).sent.rows == 11


def test_latency_begins_with_the_read_of_rows_without_times(meter: LaneMeter, now: list[float]) -> None:
    meter.read(3)
    now[0] += 0.2
    meter.handed_over()
    found = figures(meter)
    assert not found.since_record
    assert found.sent.rows == 3
    assert found.sent.greatest_ms == pytest.approx(200)


def test_epoch_has_its_own_figures(meter: LaneMeter, reader: Reader) -> None:
    meter.read(3)
    meter.handed_over()
    reader.latest = At()
    assert figures(meter).latest == ("[7]",)
    again = figures(meter)
    assert (again.sent.rows, again.ages.rows, again.since_record) == (0, 0, True)


def test_rows_that_were_not_handed_over_do_not_count(meter: LaneMeter) -> None:
    meter.read(3)
    assert figures(meter).sent.rows == 0


def test_empty_batch_is_no_row(meter: LaneMeter, reader: Reader) -> None:
    reader.times = ()
    meter.read(0)
    meter.handed_over()
    assert figures(meter).sent.rows == 0
