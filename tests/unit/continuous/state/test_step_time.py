"""Timers and watermarks of a step: part of the state of their key group, and there again after a restart."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state import lane_state, step_time
from pyspark_kafka.continuous.state.by_key import StateByKey
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.step_time import StepTime
from pyspark_kafka.continuous.state.times import MAX_TIME_MS, MIN_TIME_MS, milliseconds
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.errors import SchemaError, StateError
from pyspark_kafka.toolkit import SplitRows

KEYS = pa.array([b"a", b"b"])


class Lane:
    """A lane with one step that has timers, from the versions of another one on."""

    def __init__(
        self, place: Path, heads: Any = None, delay_ms: int | None = None, groups: Any = ("g", "h"), **idle: Any
    ) -> None:
        self.now, self.seconds = 100, 0.0
        plan = StatePlan(str(place), f"r{len(heads or {})}", {0: groups}, heads or {}, (0, 0))
        self.states = LaneState(plan, 0, 0)
        self.states.begin_epoch(0 if heads is None else 1)
        self.states.point_at("g")
        self.time = StepTime(self.states, 1, delay_ms, lambda: self.now, lambda: self.seconds, **idle)
        self.state = StateByKey(self.states, 0, pa.schema([("n", pa.int64())]), self.time)

    def set(self, key: bytes, *times: int) -> None:
        self.time.set([key] * len(times), times)

    def fired(self, then: Callable[[int], Any] = lambda _: None) -> list[tuple[bytes, int]]:
        found = []
        for timers in self.time.expired():
            for row in timers.to_pylist():
                found.append((row["key"], row["expiryTimeInMs"]))
                then(row["expiryTimeInMs"])
        return found

    def end(self) -> dict[str, str]:
        pending = self.states.end_epoch()
        pending.write()
        return dict(json.loads(pending.text or "{}"))


@pytest.fixture
def open_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Lane]]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    lanes: list[Lane] = []

    def opened(*given: Any, **named: Any) -> Lane:
        lanes.append(Lane(tmp_path / "checkpoint", *given, **named))
        return lanes[-1]

    yield opened
    for lane in lanes:
        with closing(lane.states):
            pass


def test_timers_expire_once_the_clock_has_reached_them(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.set(b"a", 120, 100, 120)
    lane.set(b"b", 110)
    lane.states.point_at("h")
    lane.set(b"c", 101)
    assert lane.time.is_due()
    assert lane.fired() == [(b"a", 100)]
    assert not lane.time.is_due()
    lane.now = 110
    assert lane.fired() == [(b"b", 110), (b"c", 101)]
    lane.now = 1_000
    assert lane.fired() == [(b"a", 120)]
    assert lane.fired() == []


def test_deleted_timer_does_not_expire(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.state.registerTimer(KEYS, [50, 60])
    lane.state.deleteTimer(KEYS, pa.array([50, 70]))
    assert lane.fired() == [(b"b", 60)]


def test_timers_are_those_of_the_committed_epoch_after_a_restart(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.set(b"a", 90, 120)
    lane.states.point_at("h")
    lane.set(b"b", 95)
    assert lane.fired() == [(b"a", 90), (b"b", 95)]
    heads = lane.end()
    lane.states.begin_epoch(1)
    lane.now = 130
    assert lane.fired() == [(b"a", 120)]
    # That was not committed.
    again = open_lane(heads)
    again.now = 130
    assert again.fired() == [(b"a", 120)]
    assert again.fired() == []


def test_memory_of_timers_with_large_keys_is_bounded_by_bytes(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    size, count = 300_000, 60
    for number in range(count):
        lane.set(number.to_bytes(2, "big") * (size // 2), number)
        near = lane.time._near["g"]
        assert sum(map(len, near._timers)) <= 8 * 1024 * 1024
    found, calls = [], []
    for timers in lane.time.expired():
        found += timers.column("expiryTimeInMs").to_pylist()
        calls.append(timers.num_rows)
    assert found == list(range(count))
    assert max(calls) * size <= 4 * 1024 * 1024 + size


@pytest.mark.parametrize("bytes_in_memory", [1, 10**9])
def test_timers_are_in_order_wherever_they_are_kept(
    open_lane: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch, bytes_in_memory: int
) -> None:
    monkeypatch.setattr(lane_state, "_MAX_RECENT_BYTES", bytes_in_memory)
    for name, value in (("_MAX_NEAR", 4), ("_MIN_NEAR", 2), ("_MAX_AT_ONCE", 3)):
        monkeypatch.setattr(step_time, name, value)
    lane = open_lane()
    lane.now = 0
    for epoch in range(4):
        lane.states.begin_epoch(epoch)
        lane.states.point_at("g")
        lane.set(b"k", *range(epoch + 1, 60, 4))
        lane.time.delete([b"k"], [epoch + 5])
        lane.end()
    lane.now = 30
    left = [time for time in range(1, 60) if time not in range(5, 9)]
    assert [time for _, time in lane.fired()] == [time for time in left if time <= 30]
    lane.now = 1_000
    assert [time for _, time in lane.fired()] == [time for time in left if time > 30]


def test_timers_that_a_function_sets_expire_too(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.set(b"a", 10)
    # Up to now in the same turn, so that a timer that repeats catches up; others later.
    assert [time for _, time in lane.fired(lambda time: lane.set(b"a", time + 30))] == [10, 40, 70, 100]
    assert lane.fired() == []
    lane.now = 130
    assert lane.fired() == [(b"a", 130)]


def test_timer_that_is_set_again_while_it_expires_waits_for_the_next_turn(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.set(b"a", 10)
    assert lane.fired(lambda time: lane.set(b"a", time, time - 5)) == [(b"a", 10)]
    assert lane.time.is_due()
    heads = lane.end()
    assert lane.fired() == [(b"a", 5), (b"a", 10)]
    assert open_lane(heads).fired() == [(b"a", 5), (b"a", 10)]


def test_timers_that_are_set_again_wait_while_others_are_read_from_the_store(
    open_lane: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_MAX_NEAR", "_MIN_NEAR", "_MAX_AT_ONCE"):
        monkeypatch.setattr(step_time, name, 2)
    lane = open_lane()
    lane.set(b"a", *range(9))
    every = [(b"a", time) for time in range(9)]
    assert lane.fired(lambda time: lane.set(b"a", time)) == every
    assert lane.fired() == every
    assert lane.fired() == []


def test_timer_that_is_set_again_and_deleted_while_it_expires_is_gone(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.set(b"a", 10)

    def set_and_delete(time: int) -> None:
        lane.set(b"a", time)
        lane.time.delete([b"a"], [time])

    assert lane.fired(set_and_delete) == [(b"a", 10)]
    assert lane.fired() == []


def test_turn_ends_if_the_functions_take_long_and_the_next_one_continues(
    open_lane: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_time, "_MAX_AT_ONCE", 2)
    lane = open_lane()
    lane.set(b"a", *range(5))
    lane.states.point_at("h")
    lane.set(b"b", 7)

    def slow(time: int) -> None:
        lane.seconds += 0.6
        if time == 1:
            # Waits for the end of the turn.
            lane.set(b"a", 1)

    assert lane.fired(slow) == [(b"a", 0), (b"a", 1)]
    assert lane.time.has_left()
    heads = lane.end()
    lane.states.begin_epoch(1)
    assert lane.fired(lambda _: None) == [(b"a", 1), (b"a", 2), (b"a", 3), (b"a", 4), (b"b", 7)]
    assert not lane.time.has_left()
    again = open_lane(heads)
    assert not again.time.has_left()
    assert again.fired() == [(b"a", 1), (b"a", 2), (b"a", 3), (b"a", 4), (b"b", 7)]


def test_turn_of_slow_functions_leaves_nothing_that_they_have_set_again(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(groups=("g",))
    lane.set(b"a", 10)

    def slow(time: int) -> None:
        lane.seconds += 2
        lane.set(b"a", time)

    assert lane.fired(slow) == [(b"a", 10)]
    # Rows come before it.
    assert not lane.time.has_left()
    assert lane.time.is_due()


def rows(*times: int | None, unit: str | None = None) -> pa.RecordBatch:
    kind = pa.int64() if unit is None else pa.timestamp(unit, tz="UTC")
    factor = {None: 1, "ms": 1, "us": 1_000}[unit]
    return pa.RecordBatch.from_pydict({"t": pa.array([None if t is None else t * factor for t in times], kind)})


def split(lane: Lane, given: pa.RecordBatch) -> SplitRows:
    return lane.time.split(given, milliseconds(given.column("t")))


@pytest.mark.parametrize("before", [None, 25])
def test_row_is_late_by_the_rows_before_it_in_its_batch(open_lane: Callable[..., Lane], before: int | None) -> None:
    lane = open_lane(delay_ms=10)
    if before is not None:
        lane.time.advance(milliseconds(rows(before + 10).column("t")))
    found = split(lane, rows(30, 50, 39, 40, None, 90, 80, 79, -(2**63), 95, 2**63 - 1, 2**63 - 12, 2**63 - 11))
    assert found.late.equals(rows(39, None, 79, -(2**63), 2**63 - 12))
    assert lane.time.row_watermarks.tolist() == [
        -(2**63) if before is None else before, *([25] if before else [20]), 40, 40, 80, 80, 85, 2**63 - 11,
    ]  # fmt: skip
    # Rows move it for others when they have passed.
    assert lane.state.getCurrentWatermarkInMs() == (before or 0)


@pytest.mark.parametrize("unit", [None, "ms", "us"])
def test_watermark_is_the_newest_time_less_the_delay(open_lane: Callable[..., Lane], unit: Any) -> None:
    lane = open_lane(delay_ms=10)
    assert lane.state.getCurrentWatermarkInMs() == 0
    assert split(lane, rows(1, None, unit=unit)).late.equals(rows(None, unit=unit))
    lane.time.advance(milliseconds(rows(50, 70, None, unit=unit).column("t")))
    lane.time.advance(milliseconds(rows(60, unit=unit).column("t")))
    assert lane.state.getCurrentWatermarkInMs() == 60
    found = split(lane, rows(60, 59, 61, None, unit=unit))
    assert found.on_time.equals(rows(60, 61, unit=unit))
    assert found.late.equals(rows(59, None, unit=unit))
    lane.time.advance(milliseconds(rows(None, unit=unit).column("t")))
    assert lane.state.getCurrentWatermarkInMs() == 60


def test_only_key_groups_that_have_changed_are_looked_at(open_lane: Callable[..., Lane]) -> None:
    """A lane may have thousands of key groups, and asks after each batch."""
    groups = tuple(map(str, range(1_000)))
    lane = open_lane(delay_ms=0, groups=("g", *groups))
    assert not lane.time.is_due()
    looked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane.states, "point_at", looked.append)
        assert not lane.time.is_due()
    assert looked == []
    lane.states.point_at("7")
    lane.set(b"a", 7)
    assert not lane.time.is_due()
    lane.states.point_at("7")
    lane.time.advance(milliseconds(rows(8).column("t")))
    assert lane.time.is_due()
    assert lane.fired() == [(b"a", 7)]


def test_clock_wakes_the_key_groups_whose_timers_it_has_reached(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(groups=("g", "h", "i"))
    for group, time in (("g", 120), ("h", 110), ("i", 130)):
        lane.states.point_at(group)
        lane.set(group.encode(), time)
    assert not lane.time.is_due()
    lane.states.point_at("i")
    lane.set(b"i", 105)
    lane.time.delete([b"i"], [130])
    for now, fired in ((104, []), (105, [(b"i", 105)]), (119, [(b"h", 110)]), (200, [(b"g", 120)]), (300, [])):
        lane.now = now
        assert lane.time.is_due() == bool(fired)
        assert lane.fired() == fired
        assert not lane.time.is_due()


def test_timers_of_event_time_wait_for_the_watermark_of_their_key_group(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(delay_ms=10)
    lane.set(b"a", 40, 41)
    assert lane.fired() == []
    lane.states.point_at("h")
    lane.set(b"b", 40)
    lane.states.point_at("g")
    lane.time.advance(milliseconds(rows(50).column("t")))
    assert lane.fired() == [(b"a", 40)]
    lane.states.point_at("h")
    lane.time.advance(milliseconds(rows(1_000).column("t")))
    assert lane.fired() == [(b"b", 40)]


def test_timers_at_the_bounds_of_time_expire_but_the_last_one(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(delay_ms=0, groups=("g",))
    lane.set(b"a", MIN_TIME_MS, -1, MAX_TIME_MS - 1, MAX_TIME_MS)
    lane.time.advance(milliseconds(rows(MIN_TIME_MS).column("t")))
    assert lane.fired() == [(b"a", MIN_TIME_MS)]
    lane.time.advance(milliseconds(rows(-1).column("t")))
    assert lane.fired() == [(b"a", -1)]
    lane.time.advance(milliseconds(rows(MAX_TIME_MS).column("t")))
    assert lane.fired() == [(b"a", MAX_TIME_MS - 1)]
    assert not lane.time.is_due()


def test_watermark_continues_after_a_restart(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(delay_ms=10)
    lane.time.advance(milliseconds(rows(50).column("t")))
    again = open_lane(lane.end(), delay_ms=30)
    # Another delay does not move it back.
    again.time.advance(milliseconds(rows(60).column("t")))
    assert again.state.getCurrentWatermarkInMs() == 40
    again.time.advance(milliseconds(rows(80).column("t")))
    assert again.state.getCurrentWatermarkInMs() == 50
    again.states.point_at("h")
    assert again.state.getCurrentWatermarkInMs() == 0


def test_processing_time_is_that_of_the_clock(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.now = 12_345
    assert lane.state.getCurrentProcessingTimeInMs() == 12_345
    assert lane.state.getCurrentWatermarkInMs() == 0


def test_times_of_timers_may_be_timestamps(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane()
    lane.state.registerTimer(KEYS, pa.chunked_array([pa.array([10_000, 20_999], pa.timestamp("us", tz="UTC"))]))
    assert lane.fired() == [(b"a", 10), (b"b", 20)]


TOO_FAR = pa.array([1, 2**62]).cast(pa.timestamp("s"))


@pytest.mark.parametrize("times", [[1], [1, None], ["soon", "late"], [2**63, 1], TOO_FAR])
def test_times_that_cannot_be_used_are_an_error(open_lane: Callable[..., Lane], times: Any) -> None:
    lane = open_lane()
    with pytest.raises(SchemaError) as caught:
        lane.state.registerTimer(KEYS, times)
    assert caught.value.condition == "STATE_USE_INVALID"
    with pytest.raises(StateError) as missing:
        lane.state.registerTimer(pa.array([b"a", None]), [1, 2])
    assert missing.value.condition == "STATE_KEY_NULL"
    assert lane.fired() == []


@pytest.mark.parametrize(
    "use",
    [
        lambda state: state.registerTimer(KEYS, [1, 2]),
        lambda state: state.deleteTimer(KEYS, [1, 2]),
        lambda state: state.getCurrentProcessingTimeInMs(),
        lambda state: state.getCurrentWatermarkInMs(),
    ],
)
def test_step_without_a_time_mode_has_no_timers(open_lane: Callable[..., Lane], use: Callable[[Any], Any]) -> None:
    lane = open_lane()
    lane.state._time = None
    with pytest.raises(SchemaError, match="its step has no time mode") as caught:
        use(lane.state)
    assert caught.value.condition == "STATE_USE_INVALID"


def wait(lane: Lane, seconds: float) -> None:
    """Let the lane ask for rows in vain, a second after the other."""
    for _ in range(int(seconds)):
        lane.seconds += 1
        lane.time.poll(lane.seconds)


def with_rows(lane: Lane, *times: int) -> SplitRows:
    """Pass rows through the step, as its function would see them."""
    found = lane.time.split(rows(*times), milliseconds(rows(*times).column("t")))
    lane.time.advance(milliseconds(rows(*times).column("t")))
    return found


@pytest.mark.parametrize("closes", [True, False])
def test_timers_of_an_idle_key_group_expire_and_its_watermark_is_the_last_of_them(
    open_lane: Callable[..., Lane], closes: bool
) -> None:
    lane = open_lane(delay_ms=10, idle_s=3.0, closes=closes)
    with_rows(lane, 100)
    lane.set(b"a", 200, 300, MAX_TIME_MS)
    lane.states.point_at("h")
    with_rows(lane, 100)
    lane.set(b"b", 250)
    wait(lane, 3)
    assert lane.fired() == []
    # The other one has rows.
    lane.states.point_at("h")
    with_rows(lane, 110)
    wait(lane, 1)
    assert lane.time.is_due()
    assert lane.fired() == [(b"a", 200), (b"a", 300)]
    lane.states.point_at("g")
    assert lane.time.watermark_ms == 300
    assert with_rows(lane, 299, 300, 301).late.num_rows == 1
    assert lane.time.watermark_ms == 300
    heads = lane.end()
    # It is in the state, as others are, and a restart waits for as long again.
    again = open_lane(heads, delay_ms=10, idle_s=3.0, closes=closes)
    again.states.point_at("g")
    assert again.time.watermark_ms == 300
    wait(again, 3)
    assert again.fired() == []
    wait(again, 1)
    assert again.fired() == [(b"b", 250)]


def test_timers_that_functions_of_windows_set_again_expire_at_once(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(delay_ms=10, idle_s=3.0, closes=True)
    with_rows(lane, 100)
    lane.set(b"a", 200)
    wait(lane, 4)
    assert lane.fired(lambda time: lane.set(b"a", time + 50) if time < 300 else None) == [(b"a", 200)]
    wait(lane, 1)
    assert lane.fired(lambda time: lane.set(b"a", time + 50) if time < 300 else None) == [(b"a", 250)]
    wait(lane, 1)
    assert lane.fired() == [(b"a", 300)]
    wait(lane, 9)
    assert not lane.time.is_due()


def test_timer_that_is_always_set_again_expires_once_in_each_time_without_rows(open_lane: Callable[..., Lane]) -> None:
    lane = open_lane(delay_ms=10, idle_s=3.0)
    with_rows(lane, 100)
    lane.set(b"a", 200)
    found = []
    for _ in range(10):
        wait(lane, 1)
        found += lane.fired(lambda time: lane.set(b"a", time + 50))
    assert found == [(b"a", 200), (b"a", 250), (b"a", 300)]


def test_key_group_without_an_idle_time_waits_for_rows(open_lane: Callable[..., Lane]) -> None:
    for named in ({"delay_ms": 10}, {"idle_s": 3.0}):
        lane = open_lane(groups=("g",), **named)
        lane.set(b"a", 10**9)
        assert not lane.time.can_be_idle
        wait(lane, 99)
        assert not lane.time.is_due()


@pytest.mark.parametrize("seed", range(10))
def test_number_of_timers_is_right_whatever_is_in_memory(
    open_lane: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(lane_state, "_MAX_RECENT_BYTES", rng.choice([1, 2_000, 10**9]))
    monkeypatch.setattr(step_time, "_MAX_NEAR", rng.choice([4, 10**6]))
    monkeypatch.setattr(step_time, "_MIN_NEAR", 2)
    lane = open_lane(delay_ms=0, groups=("g",))
    timers: set[int] = set()
    for epoch in range(40):
        lane.states.begin_epoch(epoch)
        lane.states.point_at("g")
        for _ in range(rng.randrange(4)):
            some = [epoch + rng.randrange(20) for _ in range(rng.randrange(6))]
            if rng.random() < 0.6:
                lane.set(b"k", *some)
                timers.update(some)
            else:
                lane.time.delete([b"k"] * len(some), some)
                timers.difference_update(some)
        if rng.random() < 0.5:
            with_rows(lane, epoch)
            again = rng.random() < 0.3
            lane.fired(partial(lane.set, b"k") if again else lambda _: None)
            due = {time for time in timers if time <= epoch}
            if not again:
                timers -= due
        lane.end()
        assert lane.time.timers() == len(timers)
