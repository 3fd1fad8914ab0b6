"""Which windows have a row, and when it is late: by hand, for each kind of time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.steps.window_times import (
    MAX_DURATION_US,
    SessionWindow,
    TimeWindow,
    closing_ms,
    microseconds,
)

UNITS = {"s": 10**6, "ms": 10**3, "us": 1}


@pytest.mark.parametrize("kind", [*(pa.timestamp(unit, "UTC") for unit in UNITS), pa.timestamp("ms"), pa.int64()])
def test_microseconds_are_those_of_any_time(kind: Any) -> None:
    factor = UNITS[kind.unit if pa.types.is_timestamp(kind) else "ms"]
    found = microseconds(pa.array([-3, 0, 7, None], pa.int64()).cast(kind))
    assert found.to_pylist() == [-3 * factor, 0, 7 * factor, None]


def test_nanoseconds_are_rounded_down() -> None:
    times = pa.array([-1, -1_000, -1_001, 1_999, 0, None], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    assert microseconds(times).to_pylist() == [-1, -1, -2, 1, 0, None]


@pytest.mark.parametrize("kind", [*(pa.timestamp(unit) for unit in UNITS), pa.int64()])
def test_time_that_is_too_far_away_for_a_window_is_null(kind: Any) -> None:
    times = pa.array([-(2**63), 2**63 - 1, 1], pa.int64()).cast(kind)
    assert microseconds(times).is_null().to_pylist() == [True, True, False]
    rows = pa.RecordBatch.from_arrays([times], ["t"])
    for window in (TimeWindow("t", MAX_DURATION_US, MAX_DURATION_US), SessionWindow("t", MAX_DURATION_US)):
        assert window.last_times(rows).is_null().to_pylist() == [True, True, False]


@pytest.mark.parametrize(
    ("window", "time_us", "start"),
    [
        (TimeWindow("t", 10, 10), 0, 0),
        (TimeWindow("t", 10, 10), 9, 0),
        (TimeWindow("t", 10, 10), 10, 10),
        (TimeWindow("t", 10, 10), -1, -10),
        (TimeWindow("t", 10, 10), -10, -10),
        (TimeWindow("t", 10, 10), -11, -20),
        (TimeWindow("t", 10, 10, 3), 2, -7),
        (TimeWindow("t", 10, 10, 3), 3, 3),
        (TimeWindow("t", 10, 10, -3), 6, -3),
        (TimeWindow("t", 10, 10, -3), 7, 7),
        (TimeWindow("t", 12, 5, 2), 5, 2),
    ],
)
def test_last_window_starts_at_the_slide_before_the_row(window: TimeWindow, time_us: int, start: int) -> None:
    assert window.last_starts(pa.array([time_us]).cast(pa.timestamp("us"))).to_pylist() == [start]


def test_row_has_a_window_for_each_slide_that_has_begun_in_its_length() -> None:
    assert [TimeWindow("t", *each).overlapping for each in ((10, 10), (10, 5), (12, 5), (10, 1))] == [1, 2, 3, 10]


def test_window_closes_at_the_first_millisecond_at_or_after_its_end() -> None:
    assert closing_ms(pa.array([-2000, -1001, -1000, -1, 0, 1, 1000, 1001])).to_pylist() == [-2, -1, -1, 0, 0, 1, 1, 2]


def test_row_is_late_once_the_watermark_has_reached_the_end_of_its_last_window() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([0, 59_999, 60_000, -1, None], pa.int64())], ["t"])
    tumbling = TimeWindow("t", 60_000_000, 60_000_000)
    assert tumbling.last_times(rows).to_pylist() == [59_999, 59_999, 119_999, -1, None]
    assert TimeWindow("t", 60_000_000, 30_000_000).last_times(rows).to_pylist() == [
        59_999,
        89_999,
        119_999,
        29_999,
        None,
    ]
    assert SessionWindow("t", 5_000_000).last_times(rows).to_pylist() == [4_999, 64_998, 64_999, 4_998, None]


def test_text_has_all_that_decides_which_windows_there_are() -> None:
    windows: list[TimeWindow | SessionWindow] = [
        TimeWindow("t", 10, 10), TimeWindow("u", 10, 10), TimeWindow("t", 20, 10), TimeWindow("t", 20, 20),
        TimeWindow("t", 10, 10, 1), SessionWindow("t", 10), SessionWindow("t", 11), SessionWindow("u", 10),
    ]  # fmt: skip
    assert len({window.text for window in windows}) == len(windows)
