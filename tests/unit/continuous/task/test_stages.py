"""The functions of a query over iterators of Arrow batches."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_kafka.continuous.epochs.step_metrics import COUNTS, EventTimes, GroupWatermark
from pyspark_kafka.continuous.state.lane_state import LaneState, StateCounts
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.continuous.task.stages import (
    TICK,
    MapBatches,
    MapInArrow,
    MapWithState,
    Select,
    Stages,
    TimeMode,
    Where,
)
from pyspark_kafka.continuous.task.step_meter import StepMeter
from pyspark_kafka.errors import ContinuousQueryError, SchemaError

SCHEMA = pa.schema([("n", pa.int64())])
TWO = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})


def result(stages: Stages, *batches: pa.RecordBatch) -> list[list[int]]:
    return [batch.column("n").to_pylist() for batch in stages(iter(batches))]


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.set_column(0, "n", pc.multiply(batch.column(0), 2))


def even(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    kept = batch.filter(pc.equal(pc.bit_wise_and(batch.column(0), 1), 0))
    return kept if kept.num_rows else None


def test_query_without_functions_returns_the_batches_as_they_are() -> None:
    assert result(Stages(()), rows(1), rows(2, 3)) == [[1], [2, 3]]


def test_functions_are_applied_in_order() -> None:
    stages = Stages((MapBatches(even, SCHEMA), MapInArrow(doubled, SCHEMA), Where(pc.field("n") > 4)))
    assert result(stages, rows(1, 2), rows(3), rows(4, 6)) == [[8, 12]]


def test_select_keeps_columns_in_its_order() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]}, schema=TWO)
    (selected,) = Stages((Select(("text", "n")),))(iter([batch]))
    assert selected.schema.names == ["text", "n"]


def test_stages_pickle_with_their_functions() -> None:
    stages = pickle.loads(pickle.dumps(Stages((MapInArrow(doubled, SCHEMA), Where(pc.field("n") > 2)))))  # noqa: S301 - our own bytes
    assert result(stages, rows(1, 2)) == [[4]]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (None, "returned None"),
        ([1], "returned a list"),
        (pa.table({"n": [1]}), "returned a Table"),
        (rows(1), "n int64"),
    ],
    ids=["None", "list", "table", "other columns"],
)
def test_function_that_yields_something_else_is_named(made: object, problem: str) -> None:
    def wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[object]:
        for _ in batches:
            yield made

    with pytest.raises(
        SchemaError, match=f"Function .*wrong {problem}|Function .*wrong returned the columns {problem}"
    ):
        list(Stages((MapInArrow(wrong, TWO),))(iter([rows(1)])))


def held_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return everything at the end of the epoch, as a sort does."""
    yield from list(batches)


def first_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(batches)


def first_two(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from itertools.islice(batches, 2)


@pytest.mark.parametrize("early", [first_only, first_two])
@pytest.mark.parametrize("before", [(), (held_back,), (doubled,), (held_back, held_back)])
@pytest.mark.parametrize("after", [(), (held_back,)])
def test_function_that_returns_early_is_an_error_whatever_stands_before_and_after_it(
    early: Any, before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    stages = Stages([MapInArrow(function, SCHEMA) for function in (*before, early, *after)])
    with pytest.raises(ContinuousQueryError, match=f"Function {early.__name__} returned before the input"):
        list(stages(iter([rows(1), rows(2), rows(3)])))


def test_function_that_reads_all_its_input_may_return_less() -> None:
    def none(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from ()

    assert result(Stages((MapInArrow(held_back, SCHEMA), MapInArrow(none, SCHEMA))), rows(1), rows(2)) == []


KEY = pa.array([b"k"])


def at_next_ten(batch: pa.RecordBatch, state: Any) -> pa.RecordBatch:
    """Set a timer for the next number that ends with 0."""
    for number in batch.column("n").to_pylist():
        state.registerTimer(KEY, [-(-number // 10) * 10])
    return batch


def times(timers: pa.RecordBatch, _: Any) -> pa.RecordBatch:
    return rows(*timers.column("expiryTimeInMs").to_pylist())


def negative(late: pa.RecordBatch) -> pa.RecordBatch:
    return rows(*(-number for number in late.column("n").to_pylist()))


EVENT_TIME = MapWithState(at_next_ten, SCHEMA, SCHEMA, 0, TimeMode(times, "n", 0, negative))


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LaneState]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with closing(LaneState(StatePlan(str(tmp_path / "c"), "a", {0: ("g",)}, {}, (0,) * 4), 0, 0)) as found:
        found.begin_epoch(0)
        found.point_at(None)
        yield found


def test_late_rows_and_timers_go_to_their_functions(states: LaneState) -> None:
    stages = Stages([EVENT_TIME]).holding(states)
    assert result(stages, rows(5, 12), TICK, rows(11, 13, 12), rows(1), rows(25)) == [
        [5, 12], [10], [-11, -12], [13], [-1], [25],
    ]  # fmt: skip
    assert stages.has_timer_due()
    assert result(stages, TICK) == [[20]]
    assert not stages.has_timer_due()


def test_steps_with_state_count_what_they_do_until_the_end_of_the_epoch(states: LaneState) -> None:
    stages = Stages([EVENT_TIME, Select(("n",))]).holding(states)
    result(stages, rows(5, 12), TICK, rows(11, 13, 12), rows(1), rows(25))
    states.end_epoch()
    (step,) = stages.end_epoch()
    counts = dict(zip(COUNTS, step.counts, strict=True))
    assert (counts["numRowsDroppedByWatermark"], counts["numStateStoreInstances"]) == (3, 1)
    assert (counts["numTimers"], counts["numRegisteredTimers"], counts["numExpiredTimers"]) == (2, 4, 1)
    assert step.lowest == GroupWatermark(25, "g", 20)
    assert step.highest == GroupWatermark(25, "g")
    # A late row has a time too.
    assert step.times == EventTimes(1, 25, 79.0, 7)
    assert result(stages, TICK) == [[20]]
    states.end_epoch()
    (step,) = stages.end_epoch()
    counts = dict(zip(COUNTS, step.counts, strict=True))
    assert (counts["numRowsDroppedByWatermark"], counts["numTimers"]) == (0, 1)
    assert (counts["numRegisteredTimers"], counts["numExpiredTimers"]) == (0, 1)
    assert step.times is None


def test_time_of_functions_is_that_of_their_calls() -> None:
    seconds = iter([1.0, 1.5, 7.0, 7.25, 9.0, 10.0])
    states: Any = SimpleNamespace(key_groups=["g"], take_counts=lambda _: StateCounts(3, 2, 1, 99))
    meter = StepMeter(states, 0, None, lambda: next(seconds))
    state: Any = None
    assert meter.update(lambda rows, _: rows, rows(1), state) == rows(1)
    assert meter.update(lambda *_: None, rows(1), state) is None
    assert meter.expire(lambda timers, _: timers, rows(2), state) == rows(2)
    counts = dict(zip(COUNTS, meter.end_epoch().counts, strict=True))
    assert (counts["allUpdatesTimeMs"], counts["allRemovalsTimeMs"]) == (750, 1_000)
    assert (counts["numRowsTotal"], counts["numRowsUpdated"], counts["numRowsRemoved"]) == (3, 2, 1)
    assert counts["stateOnCurrentVersionSizeBytes"] == 99
    counts = dict(zip(COUNTS, meter.end_epoch().counts, strict=True))
    assert (counts["allUpdatesTimeMs"], counts["allRemovalsTimeMs"]) == (0, 0)


def test_timers_of_a_step_reach_those_after_it_and_no_other_function_gets_a_tick(states: LaneState) -> None:
    seen: list[int] = []

    def noted(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return batch

    notes = MapBatches(noted, SCHEMA)
    steps: list[Any] = [
        notes,
        EVENT_TIME,
        Where(pc.field("n") >= 10),
        notes,
        EVENT_TIME,
        notes,
        MapInArrow(held_back, SCHEMA),
    ]
    stages = Stages(steps).holding(states)
    # The timer of the first step comes after its row 21 was seen by the second one.
    assert result(stages, rows(5), TICK, rows(21), TICK) == [[21], [-10]]
    assert seen == [1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("far", [2**63 - 1, -(2**63), 2**54, -(2**54)])
def test_row_with_a_time_that_does_not_fit_is_late_and_moves_nothing(states: LaneState, far: int) -> None:
    seconds = pa.schema([("n", pa.timestamp("s", "UTC"))])

    def at(*given: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(given, pa.int64()).cast(seconds.types[0])], schema=seconds)

    late: list[int] = []

    def noted(rows: pa.RecordBatch) -> None:
        late.extend(rows.column("n").cast(pa.int64()).to_pylist())

    def watermark(_: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        return rows(state.watermark_ms)

    mode = TimeMode(times, "n", 1_000, noted)
    stages = Stages([MapWithState(watermark, SCHEMA, SCHEMA, 0, mode)]).holding(states)
    assert result(stages, at(far, 7), at(far), at(6, 9), at(8)) == [[None], [6_000], [8_000]]
    assert late == [far, far]


def test_function_of_timers_or_of_late_rows_may_return_nothing_or_is_named(states: LaneState) -> None:
    mode = TimeMode(lambda *_: None, "n", 0, lambda _: None)
    assert result(Stages([replace(EVENT_TIME, time_mode=mode)]).holding(states), rows(10), TICK, rows(9)) == [[10]]

    def wrong(*_: Any) -> Any:
        return rows(1).rename_columns(["m"])

    for given in (TimeMode(wrong, "n", 0, negative), TimeMode(times, "n", 0, wrong)):
        stages = Stages([replace(EVENT_TIME, time_mode=given)]).holding(states)
        with pytest.raises(SchemaError, match=r"Function .*wrong returned the columns m int64"):
            list(stages(iter([rows(20), TICK, rows(1)])))


def test_step_with_timers_keeps_two_states() -> None:
    assert EVENT_TIME.kept == [("n int64", 0), ("timers of event time n", 0)]
    assert replace(EVENT_TIME, time_mode=TimeMode(times)).kept[1:] == [("timers of processing time", 0)]
    assert replace(EVENT_TIME, time_mode=None, ttl_ms=5).kept == [("n int64; with age", 5)]
    assert replace(EVENT_TIME, time_mode=None, key="n int64").kept == [("n int64 by n int64", 0)]
