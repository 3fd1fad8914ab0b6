"""Times as numbers, at the bounds of each unit and before 1970."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state.times import MAX_TIME_MS, MIN_TIME_MS, computed, divided, milliseconds, multiplied


@pytest.mark.parametrize(
    ("unit", "times", "expected"),
    [
        (
            "s",
            [0, -1, 9_223_372_036_854_775, -9_223_372_036_854_775],
            [0, -1_000, MAX_TIME_MS - 807, MIN_TIME_MS + 808],
        ),
        ("s", [9_223_372_036_854_776, -9_223_372_036_854_776, MAX_TIME_MS, MIN_TIME_MS, None, 7], [None] * 5 + [7_000]),
        ("ms", [0, -1, MAX_TIME_MS, MIN_TIME_MS, None], [0, -1, MAX_TIME_MS, MIN_TIME_MS, None]),
        ("us", [0, 1_999, -1, -1_000, -1_001, None], [0, 1, -1, -1, -2, None]),
        ("us", [MAX_TIME_MS, MIN_TIME_MS], [9_223_372_036_854_775, -9_223_372_036_854_776]),
        ("ns", [0, 1_999_999, -1, -1_000_000, -1_000_001], [0, 1, -1, -1, -2]),
        ("ns", [MAX_TIME_MS, MIN_TIME_MS, None], [9_223_372_036_854, -9_223_372_036_855, None]),
    ],
)
def test_milliseconds_are_rounded_down_and_null_if_they_do_not_fit(
    unit: str, times: list[int | None], expected: list[int | None]
) -> None:
    column = pa.array(times, pa.int64()).cast(pa.timestamp(unit, "UTC"))
    assert milliseconds(column).to_pylist() == expected
    # As a column of a table.
    chunked = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert milliseconds(chunked).to_pylist() == expected


def test_milliseconds_of_numbers_are_the_numbers() -> None:
    times = pa.array([MIN_TIME_MS, None, MAX_TIME_MS], pa.int64())
    assert milliseconds(times) is times


def test_products_beyond_the_limit_are_null() -> None:
    assert multiplied(pa.array([3, 4, -3, -4, None]), 10, 39).to_pylist() == [30, None, -30, None, None]
    assert multiplied(pa.array([MAX_TIME_MS, MIN_TIME_MS]), 1, MAX_TIME_MS).to_pylist() == [MAX_TIME_MS, None]


def test_nulls_stay_nulls_in_parts_of_arrays() -> None:
    part = pa.array([9, None, -7, 8]).slice(1, 2)
    assert divided(part, 2).to_pylist() == [None, -4]
    assert computed(part, lambda values: values + 1).to_pylist() == [None, -6]
    assert computed(part.slice(0, 0), lambda values: values + 1).to_pylist() == []
