"""Every method of reader, frame and writer, without a session: what they keep, and what they refuse."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType

from kit.continuous import SCHEMA, FilesTable, StagedTable
from pyspark_kafka import continuous
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.query import writer as writer_module
from pyspark_kafka.continuous.query.arguments import as_arrow_schema, interval_ms
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.query.streams import ContinuousQueryManager
from pyspark_kafka.continuous.steps.first_rows import FirstRows
from pyspark_kafka.continuous.task.stages import MapBatches, MapInArrow, MapWithState, Select, TimeMode, Where
from pyspark_kafka.errors import CapabilityError, CheckpointError, OptionError, SchemaError

SESSION: Any = SimpleNamespace(conf={"spark.master": "local[2]"}, session_id="session")

NUMBERS = pa.schema([pa.field("n", pa.int64())])
DOUBLES = pa.schema([pa.field("x", pa.float64())])


def frame() -> ContinuousFrame:
    return continuous.read(SESSION).format(FilesTable()).option("path", "/nowhere").load()


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def first(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, 1)


def with_state(batch: pa.RecordBatch, _: Any) -> pa.RecordBatch:
    return batch


# Reader


def test_reader_keeps_options_as_sparks_text() -> None:
    loaded = continuous.read(SESSION).format(FilesTable()).option("path", "x").options(a=True, b=1.5, c=None).load()
    assert {name.lower(): value for name, value in loaded.options.items()} == {
        "path": "x", "a": "true", "b": "1.5", "c": "None",
    }  # fmt: skip
    assert loaded.schema == SCHEMA
    assert loaded.spark is SESSION


def test_last_value_of_an_option_counts_whatever_its_case() -> None:
    loaded = continuous.read(SESSION).format(FilesTable()).option("Path", "x").option("PATH", "y").load()
    assert loaded.options["path"] == "y"


def test_frames_of_one_reader_do_not_share_options() -> None:
    reader = continuous.read(SESSION).format(FilesTable()).option("path", "x")
    loaded = reader.load()
    reader.option("path", "y")
    assert loaded.options["path"] == "x"


# Frame


def test_steps_follow_one_another_and_a_frame_never_changes() -> None:
    begin = frame()
    mapped = begin.mapInArrow(same, SCHEMA)
    whole = mapped.where(pc.field("n") > 1).mapBatches(first).select("n")
    assert [type(step) for step in whole.steps] == [MapInArrow, Where, MapBatches, Select]
    assert whole.schema.names == ["n"]
    assert begin.steps == ()
    assert len(mapped.steps) == 1


def test_schema_after_a_function_is_the_one_that_was_given() -> None:
    assert frame().mapInArrow(same, DOUBLES).schema == DOUBLES
    assert frame().mapBatches(first, DOUBLES).schema == DOUBLES
    assert frame().mapBatches(first).schema == SCHEMA
    assert frame().select("n", "file").schema.names == ["n", "file"]


@pytest.mark.parametrize("condition", ["n > 1", 1, None, SCHEMA])
def test_condition_that_is_no_arrow_expression_is_refused(condition: Any) -> None:
    with pytest.raises(TypeError, match=re.escape("where() takes an Arrow expression, such as pyarrow.compute.field")):
        frame().where(condition)


@pytest.mark.parametrize("columns", [(), ("value",), ("n", "value"), ("*",)])
def test_columns_that_are_not_there_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(SchemaError) as raised:
        frame().select(*columns)
    assert raised.value.condition == "COLUMN_NOT_FOUND"


@pytest.mark.parametrize("schema", [StructType([StructField("n", LongType())]), NUMBERS])
def test_schema_may_be_sparks_or_arrows(schema: Any) -> None:
    # Text of DDL needs a session: integration tests have it.
    assert as_arrow_schema(schema) == NUMBERS


@pytest.mark.parametrize("schema", [None, 3, ["n"], LongType()])
def test_other_schemas_are_refused(schema: Any) -> None:
    with pytest.raises(TypeError, match="a schema is DDL text, a StructType or an Arrow schema"):
        as_arrow_schema(schema)


def timed(rows: ContinuousFrame, **more: Any) -> ContinuousFrame:
    return rows.mapWithState(with_state, SCHEMA, NUMBERS, **more)


def test_step_has_the_clock_of_its_time_mode() -> None:
    assert timed(frame(), timeMode="none").steps == timed(frame()).steps
    (clock,) = timed(frame(), timeMode="processingTime", handleExpiredTimer=with_state).steps
    rows = frame().withWatermark("n", "0 seconds").where(pc.field("n") > 1).withWatermark("n", "2 minutes")
    _, event = timed(rows, timeMode="EventTime", handleExpiredTimer=with_state, handleLateRows=first).steps
    assert isinstance(clock, MapWithState)
    assert isinstance(event, MapWithState)
    assert clock.time_mode == TimeMode(with_state)
    assert event.time_mode == TimeMode(with_state, "n", 120_000, first)


def test_idle_time_is_one_of_steps_that_hold_results_back() -> None:
    rows = frame().withWatermark("n", "1 second", idleTimeout="2 minutes")
    windows = rows.groupBy(continuous.window("n", "1 minute")).agg(n=("*", "count"), handleLateRows=first)
    event = timed(rows, timeMode="EventTime", handleExpiredTimer=with_state, handleLateRows=first)
    clock = timed(rows, timeMode="ProcessingTime", handleExpiredTimer=with_state)
    # Keys of duplicates hold nothing back.
    duplicates = rows.dropDuplicatesWithinWatermark(["n"], handleLateRows=first)
    again = rows.withWatermark("n", "1 second").groupBy(continuous.window("n", "1 minute"))
    others = again.agg(n=("*", "count"), handleLateRows=first)
    found = []
    for each in (windows, event, clock, duplicates, others):
        (step,) = each.steps
        assert isinstance(step, MapWithState)
        assert step.time_mode is not None
        found.append(step.time_mode.idle_ms)
    assert found == [120_000, 120_000, None, None, None]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"timeMode": "wall"}, "timeMode is 'wall', which is not a time mode."),
        ({"timeMode": None}, "timeMode is None"),
        ({"timeMode": "ProcessingTime"}, "has timeMode 'ProcessingTime' and no handleExpiredTimer"),
        ({"handleExpiredTimer": with_state}, "has timeMode 'None' and a handleExpiredTimer"),
        ({"handleLateRows": first}, "has timeMode 'None' and a handleLateRows"),
        (
            {"timeMode": "ProcessingTime", "handleExpiredTimer": with_state, "handleLateRows": first},
            "has timeMode 'ProcessingTime' and a handleLateRows",
        ),
        (
            {"timeMode": "EventTime", "handleExpiredTimer": with_state},
            "has timeMode 'EventTime' and no handleLateRows",
        ),
        (
            {"timeMode": "EventTime", "handleExpiredTimer": with_state, "handleLateRows": first},
            "The rows have no watermark, and a function with event time needs one.",
        ),
    ],
)
def test_time_mode_without_what_it_needs_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        timed(frame(), **given)
    assert text in str(caught.value)
    assert "Hint: " in str(caught.value)


def test_column_that_cannot_be_the_time_of_a_row_is_refused() -> None:
    for column in ("file", "more"):
        with pytest.raises(SchemaError, match=f"Column '{column}' cannot be the time of a row") as caught:
            frame().withWatermark(column, "1 second")
        assert caught.value.condition == "EVENT_TIME_INVALID"
    with pytest.raises(OptionError, match="'soon' is not a span of time"):
        frame().withWatermark("n", "soon")
    for timeout in ("later", "0 seconds"):
        with pytest.raises(OptionError, match=f"idleTimeout '{timeout}' is not a span of time above 0"):
            frame().withWatermark("n", "1 second", timeout)
    rows = frame().withWatermark("n", "1 second").select("file")
    with pytest.raises(SchemaError, match="Column 'n' cannot be the time of a row: there is no such column"):
        timed(rows, timeMode="EventTime", handleExpiredTimer=with_state, handleLateRows=first)


def test_duplicates_are_dropped_by_a_step_with_the_time_of_the_watermark() -> None:
    rows = frame().withWatermark("n", "2 seconds")
    (step,) = rows.dropDuplicatesWithinWatermark(["file"], handleLateRows=first).steps
    assert isinstance(step, MapWithState)
    assert step.schema == rows.schema
    function = step.function
    assert function == FirstRows(pa.schema([rows.schema.field("file")]), "n", 2_000)
    assert isinstance(function, FirstRows)
    assert step.time_mode == TimeMode(function.forget, "n", 2_000, first)
    # With other columns of the key, nobody would find the keys of the run before.
    assert step.kept[0] == ("expiresAtMs int64 by file string", 0)


def test_duplicates_that_cannot_be_dropped_are_refused() -> None:
    rows = frame().withWatermark("n", "2 seconds")
    for columns, text in (
        (["file", "more"], "There is no column 'more'"),
        ([], "dropDuplicatesWithinWatermark() was called without a column"),
    ):
        with pytest.raises(SchemaError, match=re.escape(text)):
            rows.dropDuplicatesWithinWatermark(columns, handleLateRows=first)
    with pytest.raises(OptionError, match="The rows have no watermark"):
        frame().dropDuplicatesWithinWatermark(["file"], handleLateRows=first)
    lists = rows.mapBatches(first, pa.schema([("n", pa.int64()), ("file", pa.list_(pa.int64()))]))
    with pytest.raises(SchemaError, match="column 'file' has type list"):
        lists.dropDuplicatesWithinWatermark(["file"], handleLateRows=first)


# Writer


def test_every_word_of_a_writer_returns_it() -> None:
    writer = frame().writeStream
    assert writer.format(StagedTable()) is writer
    assert writer.option("path", "x") is writer
    assert writer.options(a=1) is writer
    assert writer.queryName("orders") is writer
    assert writer.outputMode("append") is writer
    assert writer.outputMode("APPEND") is writer
    assert writer.trigger(continuous="1 second") is writer


@pytest.mark.parametrize("mode", ["update", "complete", "", None])
def test_other_output_modes_are_refused(mode: Any) -> None:
    with pytest.raises(OptionError, match=f"has no output mode {mode!r}: it appends"):
        frame().writeStream.outputMode(mode)


@pytest.mark.parametrize("other", [{"processingTime": "1 second"}, {"once": True}, {"realTime": "5 minutes"}])
def test_other_triggers_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"has no trigger {next(iter(other))}") as raised:
        frame().writeStream.trigger(**other)
    assert 'trigger(continuous="1 second")' in str(raised.value)


def test_start_needs_a_format_and_a_checkpoint() -> None:
    with pytest.raises(OptionError, match="without format"):
        frame().writeStream.option("checkpointLocation", "/nowhere").start()
    with pytest.raises(OptionError, match="without checkpointLocation"):
        frame().writeStream.format(StagedTable()).start()


def test_table_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    writer = frame().writeStream.format(FilesTable()).option("checkpointLocation", str(tmp_path))
    with pytest.raises(CapabilityError, match="'files' cannot be written"):
        writer.start()


def test_checkpoint_whose_place_does_not_decide_between_two_drivers_is_refused() -> None:
    location = f"mock:///{uuid.uuid4().hex}"
    writer = frame().writeStream.format(StagedTable()).option("checkpointLocation", location)
    with pytest.raises(CheckpointError, match="two drivers of a query could both write the end of an epoch") as raised:
        writer.start()
    assert raised.value.condition == "CHECKPOINT_NOT_EXCLUSIVE"
    assert CheckpointFiles(location).list() == []


class NotedRunner:
    """Stands for the runner: notes the plan, and never begins."""

    failure: BaseException | None = None
    message = "Starting"

    def __init__(self, *parts: Any) -> None:
        self.plan, self.names, self.on_end = parts[1], parts[4], parts[-1]
        self.is_started = False

    def start(self) -> None:
        self.is_started = True


def test_started_query_has_the_settings_of_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(writer_module, "QueryRunner", NotedRunner)
    streams = ContinuousQueryManager()
    monkeypatch.setattr(writer_module, "STREAMS", streams)
    frames = frame().mapInArrow(same, NUMBERS).where(pc.field("n") > 1)
    query = (
        frames.writeStream.format(StagedTable()).option("path", "x").option("secret", "hidden")
        .option("checkpointLocation", str(tmp_path)).option("tasks", 3)
        .queryName("orders").trigger(continuous="50 ms").start()
    )  # fmt: skip
    runner: Any = query._runner
    assert runner.is_started
    assert (runner.plan.tasks, runner.plan.interval_ms) == (3, 50)
    assert query.name == "orders"
    assert query.id == runner.names.id
    assert streams.active == [query]
    query.explain()
    text = capsys.readouterr().out
    assert text.splitlines() == [
        "== Continuous Query ==",
        "+- write staged: n int64",
        "   +- Where(condition=<pyarrow.compute.Expression (n > 1)>)",
        "      +- MapInArrow same: n int64",
        "         +- read files: file string, n int64",
        "at most 3 tasks, an epoch each 50 ms",
    ]
    runner.on_end(None)
    assert streams.active == []


# Intervals

UNITS = {1: "ms millisecond milliseconds", 1_000: "s sec second seconds", 60_000: "m min minute minutes"}


@given(
    st.integers(1, 999_999_999),
    st.sampled_from([(name, ms) for ms, names in UNITS.items() for name in names.split()]),
    st.sampled_from(["{} {}", "{}{}", " {}  {} ", "interval {} {}"]),
    st.booleans(),
)
def test_interval_of_every_unit_is_read(number: int, unit: tuple[str, int], form: str, upper: bool) -> None:
    text = form.format(number, unit[0])
    assert interval_ms(text.upper() if upper else text) == number * unit[1]


@given(st.text(max_size=20))
def test_other_text_is_no_interval(text: str) -> None:
    try:
        found = interval_ms(text)
    except OptionError:
        return
    assert found >= 1
