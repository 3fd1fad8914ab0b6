"""Windows of one length in a lane: across batches and restarts, with late rows, null keys and any kind of time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.windowed import WindowLane, aggregated, lane_of
from pyspark_kafka import continuous
from pyspark_kafka.continuous.steps import windowed_rows
from pyspark_kafka.continuous.steps.partial_aggregates import Aggregates
from pyspark_kafka.continuous.steps.window_times import TimeWindow
from pyspark_kafka.continuous.task.stages import MapWithState

TYPES = {"t": pa.int64(), "k": pa.string(), "v": pa.int64()}
Opened = Callable[..., WindowLane]


def rows(*given: tuple[int | None, str | None, int | None], time: pa.DataType | None = None) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*given, strict=True)]
    schema = pa.schema({**TYPES, "t": time or TYPES["t"]})
    arrays = [pa.array(*each) for each in zip(columns, TYPES.values(), strict=True)]
    return pa.RecordBatch.from_arrays([arrays[0].cast(schema.field("t").type), *arrays[1:]], schema=schema)


@pytest.fixture
def late() -> list[Any]:
    return []


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: list[Any]) -> Iterator[Opened]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with ExitStack() as lanes:

        def opened(*window: Any, delay: str = "0 ms", time: pa.DataType | None = None) -> WindowLane:
            schema = pa.schema({**TYPES, "t": time or TYPES["t"]})
            groups = [continuous.window("t", *window), "k"]

            def noted(rows: pa.RecordBatch) -> None:
                late.extend(rows.column("v").to_pylist())

            frame = aggregated(schema, delay, groups, noted, n=("*", "count"), total=("v", "sum"))
            return lanes.enter_context(lane_of(frame, tmp_path))

        yield opened


def found(made: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows of a result, with starts and ends as milliseconds since 1970."""
    return [
        (
            *(round(row["window"][name].timestamp() * 1000) for name in ("start", "end")),
            row["k"],
            row["n"],
            row["total"],
        )
        for row in made
    ]


def test_window_has_its_rows_of_all_batches_and_is_returned_once(opened: Opened) -> None:
    lane = opened("10 ms")
    assert lane(rows((1, "a", 5), (9, "a", 7)), rows((3, "b", 1), (8, "a", None))) == []
    assert found(lane(rows((10, "a", 2)))) == [(0, 10, "a", 3, 12), (0, 10, "b", 1, 1)]
    assert found(lane(rows((19, "a", 3)), rows((20, "c", 1)))) == [(10, 20, "a", 2, 5)]
    assert lane.kept() == (1, 1)


def test_window_continues_after_a_restart(opened: Opened) -> None:
    lane = opened("10 ms")
    assert lane(rows((1, "a", 5), (2, None, 1))) == []
    lane.restart()
    assert lane(rows((3, "a", 6), (4, None, None))) == []
    lane.restart()
    assert found(lane(rows((10, "a", 7)))) == [(0, 10, "a", 2, 11), (0, 10, None, 2, 1)]
    lane.restart()
    assert lane.tick() == []
    assert lane.kept() == (1, 1)


def test_windows_that_end_in_one_turn_are_returned_in_the_order_of_their_ends(opened: Opened) -> None:
    lane = opened("10 ms", None, None, delay="100 ms")
    assert lane(rows((25, "a", 1), (1, "a", 2), (15, "b", 3))) == []
    assert found(lane(rows((130, "a", 4)))) == [(0, 10, "a", 1, 2), (10, 20, "b", 1, 3), (20, 30, "a", 1, 1)]


def test_null_is_a_key_and_null_values_are_not_added(opened: Opened) -> None:
    lane = opened("10 ms")
    lane(rows((1, None, None), (1, "", None), (2, None, None)))
    assert sorted(found(lane(rows((10, "a", 1)))), key=str) == [(0, 10, "", 1, None), (0, 10, None, 2, None)]


def test_row_is_late_by_the_end_of_its_window_and_not_by_its_own_time(opened: Opened, late: list[Any]) -> None:
    lane = opened("10 ms")
    lane(rows((18, "a", 1)))
    # Far below the watermark of 18, and at the start of its window; the other one has ended.
    assert lane(rows((10, "a", 2), (9, "a", 3), (None, "a", 4))) == []
    assert late == [3, 4]
    assert found(lane(rows((20, "b", 5)))) == [(10, 20, "a", 2, 3)]
    lane(rows((19, "a", 6), (20, "b", 7)))
    assert late == [3, 4, 6]


def test_row_counts_in_the_windows_that_are_open_and_in_no_others(opened: Opened, late: list[Any]) -> None:
    lane = opened("10 ms", "5 ms")
    assert found(lane(rows((11, "a", 1)))) == []
    # Of 5 to 15 and 0 to 10, the first one is open.
    assert found(lane(rows((7, "a", 2), (4, "a", 3)))) == []
    assert late == [3]
    assert found(lane(rows((30, "b", 0)))) == [(5, 15, "a", 2, 3), (10, 20, "a", 1, 1)]


def test_slide_that_does_not_divide_the_length_leaves_rows_out_of_some_windows(opened: Opened) -> None:
    lane = opened("12 ms", "5 ms", "2 ms", delay="100 ms")
    # As in the example in Spark's source.
    lane(rows((5, "a", 1)))
    assert found(lane(rows((200, "b", 0)))) == [(-3, 9, "a", 1, 1), (2, 14, "a", 1, 1)]
    other = opened("12 ms", "5 ms", None, delay="100 ms")
    other(rows((5, "a", 1)))
    assert [each[:2] for each in found(other(rows((200, "b", 0))))] == [(-5, 7), (0, 12), (5, 17)]


@pytest.mark.parametrize(
    "time",
    [pa.int64(), *(pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")), pa.timestamp("us"),
     pa.timestamp("us", "Asia/Tokyo")],
    ids=str,
)  # fmt: skip
def test_windows_of_any_kind_of_time_begin_before_1970_too(opened: Opened, time: pa.DataType, late: list[Any]) -> None:
    unit = time.unit if pa.types.is_timestamp(time) else "ms"
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    lane = opened("10 seconds", time=time)
    made = lane(rows((-1 * second, "a", 1), (-10 * second, "a", 2), (0, "a", 3), time=time))
    made += lane(rows((20 * second, "b", 4), (-30 * second, "b", 5), time=time))
    zone = None if pa.types.is_timestamp(time) and time.tz is None else timezone.utc
    starts = [datetime.fromtimestamp(start, timezone.utc).replace(tzinfo=zone) for start in (-10, 0)]
    assert [(row["window"]["start"], row["total"]) for row in made] == [(starts[0], 3), (starts[1], 3)]
    assert late == [5]
    kind = lane.stages.with_state[0].schema.field("window").type
    assert kind.field("start").type == pa.timestamp("us", time.tz if pa.types.is_timestamp(time) else "UTC")


def test_first_batch_has_no_late_rows_before_1970(opened: Opened, late: list[Any]) -> None:
    lane = opened("10 ms")
    assert found(lane(rows((-1000, "a", 1), (-995, "a", 2), (-985, "a", 3)))) == [(-1000, -990, "a", 2, 3)]
    assert late == []


@pytest.mark.parametrize("far", [2**63 - 1, -(2**63), 2**60, -(2**60)])
@pytest.mark.parametrize("time", [pa.int64(), pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")], ids=str)
def test_time_that_has_no_window_is_late_and_ends_no_window(
    opened: Opened, late: list[Any], time: pa.DataType, far: int
) -> None:
    seconds = 1 if time == pa.timestamp("s", "UTC") else 1000
    lane = opened("10 seconds", time=time)
    assert lane(rows((far, "a", 1), (5 * seconds, "a", 2), time=time), rows((far, "a", 3), time=time)) == []
    assert lane(rows((4 * seconds, "a", 4), time=time)) == []
    assert late == [1, 3]
    assert found(lane(rows((10 * seconds, "b", 0), time=time))) == [(0, 10_000, "a", 2, 6)]


def test_watermark_of_a_time_before_1970_ends_no_window_that_its_row_is_in(opened: Opened, late: list[Any]) -> None:
    lane = opened("1 millisecond", time=pa.timestamp("us"))
    assert lane(rows((-1, "a", 1), time=pa.timestamp("us")), rows((-999, "a", 2), time=pa.timestamp("us"))) == []
    assert late == []
    assert found(lane(rows((0, "b", 0), time=pa.timestamp("us")))) == [(-1, 0, "a", 2, 3)]


@pytest.mark.parametrize("sign", [1, -1])
def test_windows_are_right_at_the_last_times_that_have_some(opened: Opened, late: list[Any], sign: int) -> None:
    # 2**63 - 1 microseconds, less 2**61 for the bounds of windows.
    last = sign * (2**63 - 1 - 2**61)
    lane = opened(f"{2**60 // 1_000} ms", f"{2**59 // 1_000} ms", time=pa.timestamp("us"))
    made = lane(rows((last, "a", 1), (last + sign, "a", 2), time=pa.timestamp("us")))
    made += lane(rows((last, "a", 3), time=pa.timestamp("us")))
    assert made == []
    assert late == [2]
    assert lane.kept() == (2, 2)


def test_functions_pickle() -> None:
    frame = aggregated(pa.schema(TYPES), "0 ms", [continuous.window("t", "1 ms"), "k"], print, n=("v", "avg"))
    (step,) = frame.steps
    assert isinstance(step, MapWithState)
    assert pickle.loads(pickle.dumps(step.function)) == step.function  # noqa: S301 - our own
    assert step.time_mode is not None
    assert pickle.loads(pickle.dumps(step.time_mode.last_times)).__self__ == TimeWindow("t", 1_000, 1_000)  # noqa: S301


@pytest.mark.parametrize("maximum", [1, 25, 10**6])
def test_row_in_many_windows_takes_a_few_calls(opened: Opened, monkeypatch: pytest.MonkeyPatch, maximum: int) -> None:
    """A day by a minute; blocks of rows bound the memory, and each of them is merged once."""
    monkeypatch.setattr(windowed_rows, "_MAX_PARTS", maximum * 1440)
    lane = opened("1 day", "1 minute", delay="48 hours")
    calls, merged = [0], Aggregates.merged

    def counted(*given: Any) -> pa.Table:
        calls[0] += 1
        return merged(*given)

    monkeypatch.setattr(Aggregates, "merged", counted)
    minute, day = 60_000, 86_400_000
    assert lane(rows(*((number * minute, f"k{number % 2}", 1) for number in range(50)))) == []
    # The parts of rows, the parts of blocks, and of all blocks if there are several.
    assert calls == [1 + (1 if maximum > 50 else 1 + -(-50 // maximum))]
    made = found(lane(rows((4 * day, "end", 0))))
    assert len(made) == 2 * (1440 + 48)
    assert sum(n for *_, n, _ in made) == 50 * 1440
