"""The first row of each key: duplicates of any batch are left out until the watermark has passed the first one."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.times import MAX_TIME_MS, MIN_TIME_MS
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.continuous.steps.first_rows import FirstRows
from pyspark_kafka.continuous.task.stages import TICK, MapWithState, Stages, TimeMode

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.int32()), ("t", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
DELAY_MS = 10


def rows(*given: tuple[str | None, int | None, int, int]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*given, strict=True)]
    columns[2] = [datetime.fromtimestamp(time_ms / 1000, timezone.utc) for time_ms in columns[2]]
    return pa.RecordBatch.from_arrays(
        [pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


def dropped(_: pa.RecordBatch) -> None:
    """Late rows are not in these tests."""


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LaneState]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with closing(LaneState(StatePlan(str(tmp_path / "c"), "a", {0: ("g",)}, {}, (0, 0)), 0, 0)) as states:
        states.begin_epoch(0)
        states.point_at(None)
        yield states


@pytest.fixture
def stages(states: LaneState) -> Stages:
    first = FirstRows(pa.schema(list(SCHEMA)[:2]), "t", DELAY_MS)
    step = MapWithState(first, SCHEMA, FirstRows.state_schema, 0, TimeMode(first.forget, "t", DELAY_MS, dropped))
    return Stages(pickle.loads(pickle.dumps([step]))).holding(states)  # noqa: S301 - our own


def passed(stages: Stages, *batches: Any) -> list[list[int]]:
    return [batch.column("n").to_pylist() for batch in stages(iter(batches))]


def test_duplicates_are_rows_with_equal_columns_of_the_key(stages: Stages) -> None:
    first = rows(("a", 1, 1, 0), ("a", 2, 2, 1), ("a", 1, 3, 2), ("", 1, 3, 3), (None, 1, 3, 4), (None, None, 3, 5))
    assert passed(stages, first) == [[0, 1, 3, 4, 5]]
    assert passed(stages, rows(("a", 2, 4, 6), ("b", 2, 4, 7), (None, 1, 4, 8), ("b", 2, 4, 9))) == [[7]]
    assert passed(stages, rows(("b", 2, 4, 10))) == []


def test_key_passes_again_once_the_watermark_has_reached_its_time_plus_the_delay(stages: Stages) -> None:
    assert passed(stages, rows(("a", 1, 100, 0)), TICK, rows(("b", 1, 119, 1)), TICK, rows(("a", 1, 119, 2))) == [
        [0], [1],
    ]  # fmt: skip
    # A duplicate does not make the key last longer.
    assert passed(stages, rows(("c", 1, 120, 3)), TICK, rows(("a", 1, 121, 4)), TICK, rows(("a", 1, 122, 5))) == [
        [3], [4],
    ]  # fmt: skip


@pytest.mark.parametrize(("delay_ms", "passes"), [(DELAY_MS, [[0], [2]]), (2**70, [[0]])])
def test_key_stays_known_if_its_time_plus_the_delay_is_after_the_last_time(
    states: LaneState, delay_ms: int, passes: list[list[int]]
) -> None:
    schema = pa.schema([("id", pa.string()), ("t", pa.int64()), ("n", pa.int64())])
    first = FirstRows(pa.schema([schema.field("id")]), "t", delay_ms)
    mode = TimeMode(first.forget, "t", delay_ms, dropped)
    stages = Stages([MapWithState(first, schema, FirstRows.state_schema, 0, mode)]).holding(states)

    def at(time_ms: int, n: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"id": ["a"], "t": [time_ms], "n": [n]}, schema=schema)

    times = [MIN_TIME_MS, MAX_TIME_MS, MAX_TIME_MS, MAX_TIME_MS]
    given = [each for n, time_ms in enumerate(times) for each in (at(time_ms, n), TICK)]
    assert passed(stages, *given) == passes


def test_numbers_that_are_equal_to_groups_are_duplicates(states: LaneState) -> None:
    schema = pa.schema([("x", pa.float64()), ("t", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
    step = MapWithState(
        first := FirstRows(pa.schema([schema.field("x")]), "t", DELAY_MS), schema, FirstRows.state_schema, 0,
        TimeMode(first.forget, "t", DELAY_MS, dropped),
    )  # fmt: skip
    (other_nan,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))
    numbers = [0.0, -0.0, float("nan"), other_nan, None, 1.0]
    times = pa.array([1_000] * len(numbers), pa.int64()).cast(schema.field("t").type)
    given = pa.RecordBatch.from_arrays([pa.array(numbers), times, pa.array(range(len(numbers)))], schema=schema)
    # The row that passes is as it was.
    assert passed(Stages([step]).holding(states), given) == [[0, 2, 4, 5]]
    assert passed(Stages([step]).holding(states), given.slice(1, 1)) == []
