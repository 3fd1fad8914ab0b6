"""Windows and sessions over any rows in any batches with restarts: as one row after the other in plain Python."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from kit.windowed import PlainWindows, WindowLane, aggregated, lane_of, plain_aggregate
from pyspark_kafka.continuous.steps.window_times import SessionWindow, TimeWindow

SCHEMA = pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("g", pa.float64()), ("v", pa.int64())])
FUNCTIONS = ("count", "sum", "min", "max", "avg")
# Around 1970, in the units of windows and of watermarks.
TIMES = st.integers(-15, 25).map(lambda ms: ms * 1_000) | st.integers(-15_000, 25_000)
ROWS = st.tuples(
    TIMES, st.sampled_from(["a", "a", None]), st.sampled_from([0.0, -0.0, 0.0, float("nan"), None]),
    st.integers(-5, 5) | st.none(),
)  # fmt: skip
# What happens: rows, rows whose timers do not expire yet, a time without rows, a restart.
STEPS = st.lists(
    st.tuples(st.just("rows"), st.lists(ROWS, max_size=12))
    | st.tuples(st.just("rows before timers"), st.lists(ROWS, max_size=6))
    | st.tuples(st.just("idle"), st.none())
    | st.tuples(st.just("restart"), st.none()),
    max_size=12,
)


@st.composite
def time_windows(draw: st.DrawFn) -> TimeWindow:
    duration = draw(st.integers(1, 20).map(lambda ms: ms * 1_000) | st.integers(1, 20_000))
    slide = draw(st.just(duration) | st.integers(max(1, duration // 5), duration))
    return TimeWindow("t", duration, slide, draw(st.integers(1 - slide, slide - 1)))


def key_of(name: str | None, number: float | None) -> Any:
    """Return the key of a group: NaN is equal to NaN."""
    return name, "nan" if number != number else number  # noqa: PLR0124 - NaN


def as_counted(rows: list[dict[str, Any]], name: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in rows:
        bounds = tuple(pa.scalar(row[name][each], SCHEMA.field("t").type).value for each in ("start", "end"))
        key = (*bounds, *key_of(row["k"], row["g"]), *(row[each] for each in ("rows", *FUNCTIONS)))
        found[key] += 1
    return found


def expected(closed: list[tuple[int, int, Any, list[Any]]]) -> Counter[Any]:
    return Counter(
        (start, end, *key, len(values), *(plain_aggregate(each, values) for each in FUNCTIONS))
        for start, end, key, values in closed
    )


@contextmanager
def opened(window: TimeWindow | SessionWindow, delay_ms: int, late: list[Any]) -> Iterator[WindowLane]:
    def noted(rows: pa.RecordBatch) -> None:
        late.extend(rows.column("v").to_pylist())

    named: Any = {each: ("v", each) for each in FUNCTIONS}
    groups = ["k", window, "g"]
    frame = aggregated(SCHEMA, f"{delay_ms} ms", groups, noted, rows=("*", "count"), **named)
    with (
        tempfile.TemporaryDirectory() as place,
        mock.patch.dict(os.environ, {"SPARK_LOCAL_DIRS": place}),
        lane_of(frame, Path(place)) as lane,
    ):
        yield lane


def check(window: TimeWindow | SessionWindow, delay_ms: int, steps: list[tuple[str, Any]]) -> None:
    model, late = PlainWindows(window, delay_ms), list[Any]()
    closed = restarts = idle = 0
    with opened(window, delay_ms, late) as lane:
        # A last row that ends everything.
        for kind, rows in [*steps, ("rows", [(10_000_000, "end", None, None)])]:
            if kind == "restart":
                lane.restart()
                restarts += 1
                continue
            if kind == "idle":
                found = model.be_idle()
                idle += len(found)
                assert as_counted(lane.idle(), window.name) == expected(found)
                assert not any(model.open.values())
                assert lane.kept() == (0, 0)
                continue
            columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
            batch = pa.RecordBatch.from_arrays(
                [pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
            )
            made = lane(batch, ticks=kind == "rows")
            model.add([(time_us, key_of(name, number), value) for time_us, name, number, value in rows])
            if kind == "rows":
                found = model.close()
                closed += len(found)
                assert as_counted(made, window.name) == expected(found)
            else:
                assert made == []
        # The last row itself is left.
        slots = sum(len(each) for each in model.open.values())
        assert lane.kept()[0] == slots
    if closed and restarts:
        event("windows closed after a restart")
    if idle and late:
        event("windows closed without rows, and late rows")
    assert Counter(late) == Counter(model.late)


@given(time_windows(), st.integers(0, 30), STEPS)
def test_windows_are_those_of_plain_python(window: TimeWindow, delay_ms: int, steps: list[tuple[str, Any]]) -> None:
    check(window, delay_ms, steps)


@given(st.integers(1, 8).map(lambda ms: ms * 1_000) | st.integers(1, 8_000), st.integers(0, 30), STEPS)
def test_sessions_are_those_of_plain_python(gap_us: int, delay_ms: int, steps: list[tuple[str, Any]]) -> None:
    check(SessionWindow("t", gap_us), delay_ms, steps)


@given(time_windows(), st.integers(0, 30), st.lists(ROWS, max_size=30), st.data())
def test_batches_change_neither_windows_nor_late_rows(
    window: TimeWindow, delay_ms: int, rows: list[Any], data: st.DataObject
) -> None:
    found = []
    for cuts in (data.draw(st.lists(st.integers(0, len(rows)), max_size=5)), range(len(rows))):
        late, bounds = list[Any](), [0, *sorted(cuts), len(rows)]
        with opened(window, delay_ms, late) as lane:
            made = []
            for part in (rows[first:last] for first, last in pairwise(bounds)):
                columns = [list(column) for column in zip(*part, strict=True)] or [[], [], [], []]
                arrays = [pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)]
                made += lane(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
            found.append((as_counted(made, window.name), late))
    assert found[0] == found[1]
    event("late rows" if found[0][1] else "no late rows")
