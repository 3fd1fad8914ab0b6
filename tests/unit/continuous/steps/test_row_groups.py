"""The columns of groups: the window in its place, NaN and zeros as in Spark."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.steps.row_groups import Grouping
from pyspark_kafka.continuous.steps.window_times import TimeWindow

TIME = pa.timestamp("us", "UTC")
KEYS = pa.schema([("a", pa.string()), ("b", pa.float32())])


@pytest.mark.parametrize(
    ("position", "names"), [(0, ["window", "a", "b"]), (1, ["a", "window", "b"]), (2, ["a", "b", "window"])]
)
def test_window_is_where_the_user_has_put_it(position: int, names: list[str]) -> None:
    grouping = Grouping(TimeWindow("t", 10, 10), KEYS, position, TIME)
    assert [field.name for field in grouping.fields] == names
    keys = [pa.array(["x"]), pa.array([1.5], pa.float32())]
    batch = pa.RecordBatch.from_arrays(
        list(grouping.columns(pa.array([0]), pa.array([10]), keys)), schema=pa.schema(grouping.fields)
    )
    (row,) = batch.to_pylist()
    assert (row["a"], row["b"]) == ("x", 1.5)
    assert (row["window"]["end"] - row["window"]["start"]).microseconds == 10


def test_numbers_that_spark_groups_together_are_equal() -> None:
    grouping = Grouping(TimeWindow("t", 10, 10), pa.schema([KEYS.field("b")]), 0, TIME)
    column = pa.array([0.0, -0.0, math.nan, -math.nan, None, 1.5], pa.float32())
    (found,) = grouping.keys_of(pa.RecordBatch.from_arrays([column], ["b"]))
    assert found.type == pa.float32()
    zero, other_zero, nan, other_nan = found.slice(0, 4).view(pa.int32()).to_pylist()
    assert (zero, nan) == (other_zero, other_nan)
    assert found.slice(4).to_pylist() == [None, 1.5]


def test_text_tells_windows_and_columns_apart() -> None:
    one, other = TimeWindow("t", 10, 10), TimeWindow("t", 20, 20)
    found = {Grouping(window, keys, 0, TIME).text for window in (one, other) for keys in (KEYS, pa.schema([]))}
    assert found == {
        "window(t, 10, 10, 0), a string, b float", "window(t, 10, 10, 0)",
        "window(t, 20, 20, 0), a string, b float", "window(t, 20, 20, 0)",
    }  # fmt: skip
