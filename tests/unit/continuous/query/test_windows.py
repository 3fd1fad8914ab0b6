"""`window`, `session_window`, `groupBy` and `agg`: what they keep, and what they refuse, as Spark does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.continuous import FilesTable
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.steps.session_rows import SessionRows
from pyspark_kafka.continuous.steps.window_times import SessionWindow, TimeWindow
from pyspark_kafka.continuous.steps.windowed_rows import WindowedRows
from pyspark_kafka.continuous.task.stages import MapWithState
from pyspark_kafka.errors import CapabilityError, OptionError, SchemaError

SCHEMA = pa.schema(
    [("t", pa.timestamp("us", "UTC")), ("u", pa.timestamp("us")), ("key", pa.binary()), ("n", pa.int32()),
     ("list", pa.list_(pa.int8()))]
)  # fmt: skip
NO_SESSION: Any = None
MINUTE = 60_000_000


def late(rows: pa.RecordBatch) -> None:
    """Drop late rows."""


def frame() -> ContinuousFrame:
    return ContinuousFrame(NO_SESSION, FilesTable(), {}, SCHEMA).withWatermark("t", "10 seconds")


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1 minute", MINUTE), ("90 seconds", 90_000_000), ("1.5 seconds", 1_500_000),
        ("INTERVAL 2 Hours", 120 * MINUTE),
        ("1 hour 30 minutes", 90 * MINUTE), ("1 week -1 day", 6 * 1440 * MINUTE), ("interval 10 us", 10),
        ("5 ms", 5_000), (" 1  day ", 1440 * MINUTE), ("1 hour - 1 minute", 59 * MINUTE), ("0.000001 seconds", 1),
    ],
)  # fmt: skip
def test_span_of_time_is_read_as_spark_reads_it(text: str, us: int) -> None:
    assert continuous.window("t", text) == TimeWindow("t", us, us)
    assert continuous.session_window("t", text) == SessionWindow("t", us)


@pytest.mark.parametrize(
    "text", ["", " ", "1", "minute", "1 month", "2 years", "1 minute 1 month", "1.5 minutes", "1 minute,", "x 1 minute",
             "0 seconds", "-1 minute", "1 minute -60 seconds", None, 60, "9999999999 weeks"]
)  # fmt: skip
def test_other_length_is_refused(text: Any) -> None:
    for refused in (
        lambda: continuous.window("t", text),
        lambda: continuous.session_window("t", text),
        lambda: continuous.window("t", "1 minute", text or ""),
    ):
        with pytest.raises(OptionError) as raised:
            refused()
        assert raised.value.condition == "WINDOW_INVALID"
        assert "Hint: Write numbers and units" in str(raised.value)
    assert ("Months and years have no fixed length." in str(raised.value)) == (
        "month" in str(text) or "year" in str(text)
    )


def test_slide_and_start_are_as_in_spark() -> None:
    assert continuous.window("t", "1 minute", "30 seconds", "-5 seconds") == TimeWindow(
        "t", MINUTE, MINUTE // 2, -5_000_000
    )
    assert continuous.window("t", "1 minute", startTime="15 seconds") == TimeWindow("t", MINUTE, MINUTE, 15_000_000)
    for more, text in (
        ({"slideDuration": "61 seconds"}, "slideDuration '61 seconds' is longer than windowDuration '1 minute'"),
        ({"startTime": "1 minute"}, "startTime '1 minute' is not shorter than the slide"),
        ({"slideDuration": "5 seconds", "startTime": "-5 seconds"}, "startTime '-5 seconds' is not shorter"),
        ({"startTime": "1 month"}, "startTime '1 month' is not a span of time"),
    ):
        with pytest.raises(OptionError, match=text):
            continuous.window("t", "1 minute", **more)
    with pytest.raises(TypeError, match="a window takes the name of a column, not"):
        continuous.window(3, "1 minute")  # type: ignore[arg-type]


def test_groups_are_aggregated_by_a_step_with_the_time_of_the_watermark() -> None:
    window = continuous.window("t", "1 minute", "30 seconds")
    rows = (
        frame().groupBy("key", window).agg(n=("*", "count"), total=("n", "sum"), mean=("n", "avg"), handleLateRows=late)
    )
    time = pa.timestamp("us", "UTC")
    assert rows.schema == pa.schema(
        [("key", pa.binary()), ("window", pa.struct([("start", time), ("end", time)])), ("n", pa.int64()),
         ("total", pa.int64()), ("mean", pa.float64())]
    )  # fmt: skip
    (step,) = rows.steps
    assert isinstance(step, MapWithState)
    assert isinstance(step.function, WindowedRows)
    assert step.schema == rows.schema
    mode = step.time_mode
    assert mode is not None
    assert (mode.event_time, mode.delay_ms, mode.late) == ("t", 10_000, late)
    assert mode.last_times == window.last_times
    # With other windows, columns or aggregates, the state of the run before has no meaning.
    assert step.kept == [
        (
            "rows int64, sum(n) int64, total(n) double, count(n) int64 by window(t, 60000000, 30000000, 0), key binary",
            0,
        ),
        ("timers of event time t", 0),
    ]


def test_sessions_are_aggregated_likewise() -> None:
    rows = frame().groupBy(continuous.session_window("t", "5 minutes")).agg(low=("n", "min"), handleLateRows=late)
    assert rows.schema.names == ["session_window", "low"]
    (step,) = rows.steps
    assert isinstance(step, MapWithState)
    assert isinstance(step.function, SessionRows)
    assert step.kept[0] == (
        "sessions int64, start int64, end int64, rows int64, min(n) int32 by session_window(t, 300000000)", 0,
    )  # fmt: skip


def test_bounds_of_windows_are_without_a_zone_if_the_time_is() -> None:
    rows = frame().withWatermark("u", "1 second").groupBy(continuous.window("u", "1 minute"), "key")
    made = rows.agg(n=("*", "count"), handleLateRows=late)
    assert made.schema.field("window").type.field("start").type == pa.timestamp("us")


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["key"], "groupBy() has 0 windows, and must have one"),
        ([], "groupBy() has 0 windows"),
        ([TimeWindow("t", 1, 1), SessionWindow("t", 1)], "groupBy() has 2 windows"),
        ([TimeWindow("u", 1, 1), "key"], "the window is of column 'u', and the watermark is of column 't'"),
    ],
)
def test_rows_without_one_window_of_the_watermark_are_refused(columns: list[Any], text: str) -> None:
    with pytest.raises(OptionError) as raised:
        frame().groupBy(*columns)
    assert raised.value.condition == "WINDOW_INVALID"
    assert text in str(raised.value)


def test_rows_without_a_watermark_or_a_column_are_refused() -> None:
    window = continuous.window("t", "1 minute")
    with pytest.raises(OptionError, match="the window is of column 't', and the rows have no watermark"):
        ContinuousFrame(NO_SESSION, FilesTable(), {}, SCHEMA).groupBy(window)
    with pytest.raises(SchemaError, match="There is no column 'more', 3; the columns are"):
        frame().groupBy(window, "key", "more", 3)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="Column 't' cannot be the time of a row: there is no such column"):
        frame().select("key").groupBy(window)
    with pytest.raises(SchemaError, match="column 'list' has type list"):
        frame().groupBy(window, "list").agg(n=("*", "count"), handleLateRows=late)
    with pytest.raises(CapabilityError):
        frame().mapInArrow(iter, SCHEMA).groupBy(window).agg(n=("*", "count"), handleLateRows=late)


@pytest.mark.parametrize(
    ("aggregates", "text"),
    [
        ({}, "agg() was called without an aggregate"),
        ({"n": "count"}, "'n' is 'count', and must be a column and a function"),
        ({"n": ("n", "sum", 1)}, "must be a column and a function"),
        ({"n": ("n", "first")}, "'n': there is no aggregate 'first'"),
        ({"window": ("n", "sum")}, "the result has two columns 'window'"),
        ({"key": ("n", "sum")}, "the result has two columns 'key'"),
    ],
)
def test_aggregates_that_cannot_be_computed_are_refused(aggregates: Any, text: str) -> None:
    with pytest.raises(SchemaError) as raised:
        frame().groupBy(continuous.window("t", "1 minute"), "key").agg(handleLateRows=late, **aggregates)
    assert raised.value.condition == "AGGREGATE_INVALID"
    assert text in str(raised.value)
    assert "Hint: Pass a column and a function" in str(raised.value)
