"""The length of epochs under any load: in its bounds, enough for the limit, and steady under a steady load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.connector import CommitLimit
from pyspark_kafka.continuous.epochs.pace import EpochLoad, EpochPace

ASKED = st.integers(100, 20_000)
PER_SECOND = st.integers(1, 100_000)
COSTS = st.integers(0, 10**6)
MS = st.floats(0, 1e6, allow_nan=False)
LOADS = st.builds(EpochLoad, MS, COSTS, MS, MS)
MAX_S = 60.0


def pace_of(asked_ms: int, per_second: int) -> EpochPace:
    return EpochPace(asked_ms, CommitLimit(per_second, "markers", "option", MAX_S, "A hint."))


@given(ASKED, PER_SECOND, st.lists(LOADS, max_size=60))
def test_length_stays_in_its_bounds_and_has_a_reason_if_it_is_not_as_asked(
    asked_ms: int, per_second: int, loads: list[EpochLoad]
) -> None:
    pace = pace_of(asked_ms, per_second)
    for load in loads:
        before = pace.interval_ms, pace.lanes_ms, pace.reason
        assert pace.committed(load) == (before != (pace.interval_ms, pace.lanes_ms, pace.reason))
        assert asked_ms <= pace.lanes_ms <= pace.interval_ms <= max(MAX_S * 1000, 10 * asked_ms)
        assert pace.lanes_ms <= MAX_S * 1000
        assert bool(pace.reason) == bool(pace.explained()) == (pace.interval_ms > asked_ms)


@given(ASKED, PER_SECOND, st.lists(LOADS, max_size=60))
def test_lanes_cost_no_more_than_the_limit_if_epochs_can_be_as_long_as_that_takes(
    asked_ms: int, per_second: int, loads: list[EpochLoad]
) -> None:
    pace = pace_of(asked_ms, per_second)
    for load in loads:
        pace.committed(load)
        needed_ms = load.cost / per_second * 1000
        assert pace.lanes_ms >= min(needed_ms, MAX_S * 1000)


@given(ASKED, PER_SECOND, st.lists(LOADS, max_size=20), COSTS, MS, MS)
def test_length_changes_no_more_under_a_steady_load(
    asked_ms: int, per_second: int, loads: list[EpochLoad], cost: int, lane_ms: float, driver_ms: float
) -> None:
    pace = pace_of(asked_ms, per_second)
    for load in loads:
        pace.committed(load)
    for number in range(500):
        changed = pace.committed(EpochLoad(pace.interval_ms, cost, lane_ms, driver_ms))
        assert number < 300 or not changed


@given(ASKED, PER_SECOND, st.integers(1, 1_000), st.integers(1, 1_000), st.floats(0.001, 1))
def test_length_settles_if_longer_epochs_write_to_more_partitions(
    asked_ms: int, per_second: int, lanes: int, partitions: int, share: float
) -> None:
    """The longer an epoch is, the more output partitions a lane writes to, up to all."""
    pace = pace_of(asked_ms, per_second)
    changes = []
    for number in range(1_000):
        each = round(partitions * (1 - (1 - share) ** (pace.lanes_ms / 1000))) + 1
        if pace.committed(EpochLoad(pace.interval_ms, lanes * each)):
            changes.append(number)
    assert not changes or changes[-1] < 800
    assert pace.lanes_ms >= min(lanes * each / per_second * 1000, MAX_S * 1000)


@given(ASKED, PER_SECOND, st.lists(LOADS, max_size=60))
def test_length_is_as_asked_when_the_load_is_over(asked_ms: int, per_second: int, loads: list[EpochLoad]) -> None:
    pace = pace_of(asked_ms, per_second)
    for load in loads:
        pace.committed(load)
    for _ in range(300):
        pace.committed(EpochLoad(pace.interval_ms))
    assert (pace.interval_ms, pace.lanes_ms, pace.reason) == (asked_ms, asked_ms, "")
