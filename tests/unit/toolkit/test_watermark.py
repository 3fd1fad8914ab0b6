"""Event time of a stream, and late rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.toolkit import WatermarkTracker


def tracker(*partitions: str, lateness: int = 10, idle: int | None = 100) -> WatermarkTracker:
    return WatermarkTracker(partitions, allowed_lateness_ms=lateness, idle_after_ms=idle, now_ms=0)


def test_slowest_partition_holds_the_watermark() -> None:
    both = tracker("a", "b")
    both.observe("a", 1_000, 1)
    assert both.advance(1) is None
    both.observe("b", 500, 2)
    assert both.advance(2) == 490
    both.observe("b", 2_000, 3)
    assert both.advance(3) == 990


def test_watermark_never_moves_backwards() -> None:
    one = tracker("a")
    one.observe("a", 1_000, 1)
    one.advance(1)
    one.observe("b", 5, 2)
    assert one.advance(2) == 990


def test_idle_partition_does_not_hold_the_watermark() -> None:
    both = tracker("a", "b")
    both.observe("a", 1_000, 99)
    assert both.advance(99) is None
    assert both.advance(100) == 990
    both.observe("b", 500, 101)
    assert both.advance(101) == 990


def test_partition_is_never_idle_if_that_is_not_asked_for() -> None:
    both = tracker("a", "b", idle=None)
    both.observe("a", 1_000, 1)
    assert both.advance(10**9) is None


def test_newest_row_counts_when_all_are_idle() -> None:
    both = tracker("a", "b")
    both.observe("a", 1_000, 1)
    both.observe("b", 700, 1)
    assert both.advance(1) == 690
    assert both.advance(500) == 990


def test_partition_that_is_gone_does_not_hold_the_watermark() -> None:
    both = tracker("a", "b", idle=None)
    both.observe("a", 1_000, 1)
    both.remove("b")
    assert both.advance(2) == 990


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_late_rows_come_apart_for_any_unit_of_timestamps(unit: str) -> None:
    one = tracker("a", lateness=0)
    one.observe("a", 5_000, 1)
    one.advance(1)
    times = pa.array([4, 5, 6, None], pa.timestamp("s", tz="UTC")).cast(pa.timestamp(unit, tz="UTC"))
    found = one.split(pa.record_batch({"t": times, "n": [1, 2, 3, 4]}), "t")
    assert (found.on_time.column("n").to_pylist(), found.late.column("n").to_pylist()) == ([2, 3], [1, 4])


def test_no_row_is_late_before_there_is_a_watermark() -> None:
    found = tracker("a").split(pa.record_batch({"t": pa.array([1, None], pa.int64())}), "t")
    assert (found.on_time.num_rows, found.late.num_rows) == (2, 0)


def test_state_goes_through_json_and_back() -> None:
    before = tracker("a", "b")
    before.observe("b", 900, 1)
    before.observe("a", 1_000, 1)
    before.advance(1)
    after = tracker()
    after.restore(before.to_json(), 5)
    assert after.to_json() == before.to_json() == '{"watermark_ms":890,"partitions":{"a":1000,"b":900},"idle":[]}'
    after.observe("b", 2_000, 6)
    assert after.advance(6) == 990


def test_idle_partition_stays_idle_over_a_restart_until_it_has_rows() -> None:
    before = tracker("a", "b")
    before.observe("b", 100, 0)
    before.observe("a", 1_000, 99)
    assert before.advance(150) == 990
    assert before.to_json() == '{"watermark_ms":990,"partitions":{"a":1000,"b":100},"idle":["b"]}'
    after = tracker("a", "b")
    after.restore(before.to_json(), 5_000)
    after.observe("a", 2_000, 5_001)
    assert after.advance(5_001) == 1_990
    after.observe("b", 2_500, 5_002)
    after.observe("a", 3_000, 5_002)
    assert after.advance(5_002) == 2_490


def test_partition_that_was_idle_holds_the_watermark_if_none_may_be_idle() -> None:
    before = tracker("a", "b")
    before.observe("a", 1_000, 99)
    before.advance(150)
    after = tracker("a", "b", idle=None)
    after.restore(before.to_json(), 5_000)
    after.observe("a", 2_000, 10**9)
    assert after.advance(10**9) == 990


def test_batch_that_runs_again_from_its_offset_has_the_same_late_rows() -> None:
    rows = [
        pa.record_batch({"t": pa.array(times, pa.int64())}) for times in ([100, 50], [80, 95, 200], [180, 195, 300])
    ]

    def late(run_again: bool) -> list[list[int]]:
        offset, found = tracker("a").to_json(), []
        for now, batch in enumerate(rows):
            # A second attempt has nothing but the offset, and another time.
            for attempt in range(1 + run_again):
                one = tracker("a")
                one.restore(offset, now + 1_000 * attempt)
                split = one.split(batch, "t").late.column("t").to_pylist()
                one.observe("a", max(batch.column("t").to_pylist()), now + 1_000 * attempt)
                one.advance(now + 1_000 * attempt)
            found.append(split)
            offset = one.to_json()
        return found

    assert late(run_again=False) == late(run_again=True) == [[], [80], [180]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"watermark_ms":"1","partitions":{},"idle":[]}',
        '{"watermark_ms":1,"partitions":{},"idle":["a"]}',
        '{"watermark_ms":1,"partitions":{},"idle":"a"}',
        '{"watermark_ms":1,"partitions":{},"idle":[{}]}',
        '{"watermark_ms":1,"part',
        "[" * 100_000,
    ],
)
def test_state_that_is_not_readable_is_an_error(text: str) -> None:
    with pytest.raises(CheckpointError, match="WATERMARK_STATE_INVALID"):
        tracker("a").restore(text, 0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10_000), st.integers(0, 300)), min_size=1, max_size=40)
)
def test_watermark_stays_below_every_active_partition_and_never_falls(steps: list[tuple[str, int, int]]) -> None:
    found, now, seen = tracker("a", "b", "c"), 0, dict.fromkeys("abc", 0)
    newest: dict[str, int] = {}
    last: int | None = None
    for partition, event, pause in steps:
        now += pause
        found.observe(partition, event, now)
        newest[partition] = max(newest.get(partition, 0), event)
        seen[partition] = now
        watermark = found.advance(now)
        active = [name for name in "abc" if now - seen[name] < 100]
        if watermark is not None:
            assert last is None or watermark >= last
            if watermark != last:
                assert all(watermark <= newest[name] - 10 for name in active)
            last = watermark
