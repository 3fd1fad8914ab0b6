"""Sessions in a lane: they grow, merge and end, across batches and restarts; a group can have several."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.windowed import WindowLane, aggregated, lane_of
from pyspark_kafka import continuous
from pyspark_kafka.continuous.task.stages import MapWithState

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
Opened = Callable[..., WindowLane]


def rows(*given: tuple[int, str | None, int | None]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*given, strict=True)]
    arrays = [pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@pytest.fixture
def late() -> list[Any]:
    return []


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: list[Any]) -> Iterator[Opened]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with ExitStack() as lanes:

        def opened(gap: str = "10 ms", delay: str = "100 ms", keys: tuple[str, ...] = ("k",)) -> WindowLane:
            def noted(rows: pa.RecordBatch) -> None:
                late.extend(rows.column("v").to_pylist())

            groups = [continuous.session_window("t", gap), *keys]
            frame = aggregated(SCHEMA, delay, groups, noted, n=("*", "count"), total=("v", "sum"))
            return lanes.enter_context(lane_of(frame, tmp_path))

        yield opened


def found(made: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (*(round(row["session_window"][name].timestamp() * 1000) for name in ("start", "end")), row.get("k"), row["n"],
         row["total"])
        for row in made
    ]  # fmt: skip


def test_session_ends_a_gap_after_its_last_row(opened: Opened) -> None:
    lane = opened(delay="0 ms")
    assert lane(rows((1, "a", 1)), rows((5, "a", 2)), rows((14, "a", 4)), rows((23, "b", 8))) == []
    assert found(lane(rows((24, "b", 1)))) == [(1, 24, "a", 3, 7)]
    assert lane.kept() == (1, 1)
    assert found(lane(rows((100, "c", 0)))) == [(23, 34, "b", 2, 9)]


@pytest.mark.parametrize(
    ("time", "sessions"), [(10, [(0, 20, "a", 2, 3)]), (11, [(0, 10, "a", 1, 1), (11, 21, "a", 1, 2)])]
)
def test_sessions_that_touch_are_one(opened: Opened, time: int, sessions: list[Any]) -> None:
    for batches in ([rows((0, "a", 1), (time, "a", 2))], [rows((0, "a", 1)), rows((time, "a", 2))],
                    [rows((time, "a", 2)), rows((0, "a", 1))]):  # fmt: skip
        lane = opened()
        assert lane(*batches) == []
        assert found(lane(rows((500, "b", 0)))) == sessions


def test_row_merges_the_sessions_before_and_after_it(opened: Opened) -> None:
    lane = opened()
    lane(rows((50, "a", 1), (70, "a", 2)), rows((90, "a", 4)))
    assert lane.kept()[0] == 3
    # Below the newest row, and on time.
    lane(rows((60, "a", 8), (60, "b", 16)))
    assert lane.kept()[0] == 3
    lane.restart()
    lane(rows((80, "a", 32)))
    assert lane.kept()[0] == 2
    # The timers of the merged sessions return nothing, and no timer returns a session early.
    assert found(lane(rows((199, "c", 0)))) == [(60, 70, "b", 1, 16)]
    assert found(lane(rows((200, "c", 0)))) == [(50, 100, "a", 5, 47)]
    assert lane.kept() == (1, 1)


def test_session_in_the_state_spans_later_rows_of_a_batch(opened: Opened) -> None:
    lane = opened("100 ms", delay="1000 ms")
    lane(rows((0, "a", 1), (90, "a", 1)))
    # The first row ends before the state's session does, the second one is in it, the third one is not.
    lane(rows((10, "a", 1), (150, "a", 1), (400, "a", 1)))
    assert found(lane(rows((2000, "b", 0)))) == [(0, 250, "a", 4, 4), (400, 500, "a", 1, 1)]


def test_group_has_several_sessions_and_each_is_returned_at_its_end(opened: Opened) -> None:
    lane = opened(delay="50 ms")
    lane(rows((40, "a", 4), (0, "a", 1)), rows((20, "a", 2), (0, None, 8)))
    lane.restart()
    assert lane.kept()[0] == 4
    assert found(lane(rows((79, "b", 0)))) == [(0, 10, "a", 1, 1), (0, 10, None, 1, 8)]
    assert found(lane(rows((99, "b", 0)))) == [(20, 30, "a", 1, 2)]
    lane.restart()
    assert found(lane(rows((100, "b", 0)))) == [(40, 50, "a", 1, 4)]
    # The last three rows, which are two sessions; each group has a timer.
    assert lane.kept()[0] == 2


def written(lane: WindowLane, monkeypatch: pytest.MonkeyPatch, *given: tuple[int, str | None, int | None]) -> int:
    """Return how many values rows write or remove."""
    count, put = [0], lane.states.put_all

    def counted(step: int, keys: Sequence[bytes], values: Sequence[bytes | None], *, had: bool | None = None) -> None:
        count[0] += len(keys) * (step == 0)
        put(step, keys, values, had=had)

    with monkeypatch.context() as patched:
        patched.setattr(lane.states, "put_all", counted)
        assert lane(rows(*given)) == []
    return count[0]


def test_row_writes_the_session_that_it_changes_however_many_are_open(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = opened(delay="10000 ms")
    lane(rows(*((20 * number, "a", 1) for number in range(50)), (0, "b", 1)))
    # It gets longer; a new one, with the number of slots; one between two others; two become one.
    assert [
        written(lane, monkeypatch, (405, "a", 1)),
        written(lane, monkeypatch, (2000, "a", 1)),
        written(lane, monkeypatch, (1000, "b", 1), (2000, "b", 1), (5, "b", 1)),
        written(lane, monkeypatch, (110, "a", 1)),
    ] == [1, 2, 3, 2]
    lane.restart()
    made = found(lane(rows((20000, "c", 0))))
    of_a = [each for each in made if each[2] == "a"]
    assert [each[0] for each in of_a] == [*(20 * number for number in range(50) if number != 6), 2000]
    assert [each[3] for each in of_a] == [3 if start == 100 else 2 if start == 400 else 1 for start, *_ in of_a]
    assert [each for each in made if each[2] == "b"] == [
        (0, 15, "b", 2, 2), (1000, 1010, "b", 1, 1), (2000, 2010, "b", 1, 1),
    ]  # fmt: skip
    assert lane.kept() == (1, 1)


def test_slots_of_sessions_that_have_ended_are_used_again(opened: Opened) -> None:
    """Sessions in the order of their times, as most are: the oldest one is in the first slot."""
    lane = opened(delay="50 ms")
    made: list[tuple[Any, ...]] = []
    most = 0
    for time in range(0, 2000, 20):
        made += found(lane(rows((time, "a", time))))
        most = max(most, lane.kept()[0])
        if time % 300 == 0:
            lane.restart()
    assert made == [(time, time + 10, "a", 1, time) for time in range(0, 1940, 20)]
    assert most <= 5


def test_first_session_that_ends_leaves_the_others(opened: Opened, late: list[Any]) -> None:
    lane = opened(delay="50 ms")
    lane(rows((0, "a", 1)), rows((20, "a", 2)), rows((40, "a", 4)))
    assert found(lane(rows((60, "b", 0)))) == [(0, 10, "a", 1, 1)]
    lane.restart()
    # The values of two sessions, of the empty first slot, which has the number of slots, and of the other group.
    assert lane.kept()[0] == 4
    lane(rows((48, "a", 8)), rows((30, "a", 16)))
    assert late == []
    assert lane.kept()[0] == 3
    assert found(lane(rows((108, "b", 0)))) == [(20, 58, "a", 4, 30)]
    assert lane.kept() == (2, 1)


def test_several_sessions_of_a_group_end_in_one_turn(opened: Opened) -> None:
    lane = opened()
    lane(rows((0, "a", 1), (20, "a", 2), (40, "a", 4), (20, "b", 8)))
    assert sorted(found(lane(rows((500, "c", 0))))) == [
        (0, 10, "a", 1, 1), (20, 30, "a", 1, 2), (20, 30, "b", 1, 8), (40, 50, "a", 1, 4),
    ]  # fmt: skip
    assert lane.kept() == (1, 1)


def test_earlier_session_has_a_timer_though_the_group_has_one(opened: Opened) -> None:
    lane = opened()
    lane(rows((60, "a", 1)))
    lane(rows((10, "a", 2)))
    assert found(lane(rows((120, "b", 0)))) == [(10, 20, "a", 1, 2)]
    assert found(lane(rows((170, "b", 0)))) == [(60, 70, "a", 1, 1)]


def test_row_is_late_by_the_end_of_a_session_of_its_own(opened: Opened, late: list[Any]) -> None:
    lane = opened("10 ms", delay="0 ms")
    lane(rows((0, "a", 1), (9, "a", 2), (18, "a", 3)))
    # The watermark is 18. The session is open until 28, and a row at 8 would belong to it.
    assert lane(rows((8, "a", 4), (9, "a", 5))) == []
    assert late == [4]
    assert found(lane(rows((28, "b", 0)))) == [(0, 28, "a", 4, 11)]


def test_session_that_has_ended_does_not_grow_before_its_timer(opened: Opened) -> None:
    lane = opened("10 ms", delay="0 ms")
    lane(rows((0, "a", 1)))
    lane(rows((12, "b", 0)), ticks=False)
    lane.restart()
    # As after a restart: rows come before timers. The session until 10 has ended; the row makes another one.
    lane(rows((5, "a", 2)), ticks=False)
    lane(rows((8, "a", 4), (22, "b", 0)), ticks=False)
    assert lane.kept()[0] == 3
    assert found(lane.tick()) == [(0, 10, "a", 1, 1), (5, 18, "a", 2, 6)]


def test_rows_without_other_columns_are_one_group(opened: Opened) -> None:
    lane = opened(keys=())
    lane(rows((0, "a", 1), (5, "b", 2)), rows((30, None, 4)))
    assert found(lane(rows((500, "c", 0)))) == [(0, 15, None, 2, 3), (30, 40, None, 1, 4)]


def test_times_before_1970_have_sessions(opened: Opened) -> None:
    lane = opened(delay="0 ms")
    assert found(lane(rows((-1000, "a", 1), (-995, "a", 2)), rows((-985, "b", 4)))) == [(-1000, -985, "a", 2, 3)]


def test_functions_pickle() -> None:
    frame = aggregated(SCHEMA, "0 ms", [continuous.session_window("t", "1 ms"), "k"], print, n=("v", "avg"))
    (step,) = frame.steps
    assert isinstance(step, MapWithState)
    assert pickle.loads(pickle.dumps(step.function)) == step.function  # noqa: S301 - our own
