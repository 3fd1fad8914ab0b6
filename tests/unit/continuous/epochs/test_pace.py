"""The length of epochs: longer while something cannot follow, as asked again when it can, and steady between."""

from __future__ import annotations

import pytest

from pyspark_kafka.connector import CommitLimit
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.pace import DRIVER, LANES, EpochLoad, EpochPace

MARKERS = CommitLimit(5_000, "markers", "maxMarkers", 60.0, "Write to fewer partitions.")


def after(pace: EpochPace, *loads: EpochLoad) -> list[int]:
    """Return how long epochs are after each of some loads."""
    found = []
    for load in loads:
        pace.committed(load)
        found.append(pace.interval_ms)
    return found


def test_epochs_are_as_long_as_the_commits_of_all_lanes_need_for_the_limit() -> None:
    pace = EpochPace(1_000, MARKERS)
    assert not pace.committed(EpochLoad(1_000, cost=5_000))
    assert (pace.interval_ms, pace.reason, pace.explained()) == (1_000, "", "")
    assert pace.committed(EpochLoad(1_000, cost=20_000))
    # A tenth more than 20,000 take at 5,000 a second.
    assert (pace.interval_ms, pace.lanes_ms, pace.reason) == (4_400, 4_400, "markers")
    assert pace.explained() == (
        "a commit of every lane makes 20,000 markers, and option maxMarkers allows 5,000 a second. "
        "Write to fewer partitions."
    )


def test_epochs_are_no_longer_than_the_sink_allows_whatever_they_cost() -> None:
    pace = EpochPace(1_000, MARKERS)
    assert after(pace, EpochLoad(1_000, cost=1_000_000)) == [60_000]
    assert "They would have to last 200,000 ms, which is too long for this sink" in pace.explained()
    assert not pace.committed(EpochLoad(60_000, cost=1_000_000))


def test_epochs_are_never_shorter_than_asked_though_the_sink_allows_only_shorter_ones() -> None:
    pace = EpochPace(90_000, MARKERS)
    assert after(pace, *[EpochLoad(90_000, cost=1_000_000)] * 3) == [90_000] * 3


def test_lanes_that_take_long_to_commit_make_epochs_longer_if_they_do_so_again_and_again() -> None:
    slow, quick = EpochLoad(1_000, lane_commit_ms=900), EpochLoad(1_000, lane_commit_ms=10)
    assert after(EpochPace(1_000), slow, slow, quick, slow, slow, quick) == [1_000] * 6
    pace = EpochPace(1_000)
    assert after(pace, slow, slow, slow, slow) == [1_000, 1_000, 1_980, 1_980]
    assert (pace.lanes_ms, pace.reason) == (1_980, LANES)
    assert pace.explained() == (
        "their lanes take 900 ms to commit, 0 ms of it for state in the checkpoint. Check the brokers, or the sink."
    )


@pytest.mark.parametrize(
    ("state_ms", "advice"),
    [(449, "Check the brokers, or the sink."), (450, "Check the storage of the checkpoint.")],
)
def test_state_that_takes_half_of_a_commit_is_named(state_ms: int, advice: str) -> None:
    pace = EpochPace(1_000)
    after(pace, *[EpochLoad(1_000, lane_commit_ms=900, lane_state_ms=state_ms)] * 3)
    expected = f"their lanes take 900 ms to commit, {state_ms} ms of it for state in the checkpoint. {advice}"
    assert pace.explained() == expected


def test_slow_checkpoint_makes_epochs_longer_and_no_lane_wait() -> None:
    slow = EpochLoad(1_000, driver_commit_ms=2_000)
    pace = EpochPace(1_000)
    assert after(pace, slow, slow, slow) == [1_000, 1_000, 2_750]
    assert (pace.lanes_ms, pace.reason) == (1_000, DRIVER)
    assert "take 2,000 ms" in pace.explained()


def test_commits_that_take_long_because_epochs_are_long_do_not_make_them_longer_for_ever() -> None:
    pace = EpochPace(1_000)
    for _ in range(50):
        pace.committed(EpochLoad(pace.interval_ms, driver_commit_ms=2 * pace.interval_ms))
    assert pace.interval_ms == 10_000


def test_epochs_are_as_asked_again_after_some_that_need_no_more() -> None:
    pace = EpochPace(1_000, MARKERS)
    pace.committed(EpochLoad(1_000, cost=20_000))
    calm = EpochLoad(4_400, cost=1_000)
    assert after(pace, calm, calm, calm, calm, calm) == [4_400] * 4 + [1_000]
    assert pace.reason == ""


def test_short_epochs_change_no_more_often_than_long_ones() -> None:
    pace = EpochPace(100)
    slow, calm = EpochLoad(100, lane_commit_ms=90), EpochLoad(200, lane_commit_ms=10)
    assert after(pace, *[slow] * 30) == [100] * 29 + [198]
    assert after(pace, *[calm] * 50) == [198] * 49 + [100]


def test_epochs_that_end_before_their_time_do_not_make_those_that_follow_shorter() -> None:
    pace = EpochPace(1_000, MARKERS)
    pace.committed(EpochLoad(1_000, cost=20_000))
    assert after(pace, *[EpochLoad(300, cost=1_000)] * 20) == [4_400] * 20


@pytest.mark.parametrize("cost", [17_000, 20_000, 22_000])
def test_small_changes_of_the_cost_change_nothing(cost: int) -> None:
    pace = EpochPace(1_000, MARKERS)
    pace.committed(EpochLoad(1_000, cost=20_000))
    assert after(pace, *[EpochLoad(4_400, cost=cost), EpochLoad(4_400, cost=20_000)] * 10) == [4_400] * 20


def test_length_is_that_of_whatever_needs_the_longest() -> None:
    pace = EpochPace(1_000, MARKERS)
    load = EpochLoad(1_000, cost=10_000, lane_commit_ms=2_000, driver_commit_ms=1_700)
    assert after(pace, load, load, load) == [2_200, 2_200, 4_400]
    assert pace.reason == LANES


def test_load_of_an_epoch_is_the_cost_of_all_lanes_and_the_time_of_the_middle_one_that_wrote() -> None:
    reports = [
        LaneReport(lane, 7, "{}", "{}", 5, rows, commit_ms=commit_ms, cost=10, state_ms=commit_ms // 4)
        for lane, (rows, commit_ms) in enumerate(((5, 10), (0, 0), (5, 20), (5, 60_000), (0, 0)))
    ]
    assert EpochLoad.of(reports, 1_000, 30) == EpochLoad(1_000, 50, 20, 30, 5)
    assert EpochLoad.of(reports[1:2], 1_000, 30) == EpochLoad(1_000, 10, 0, 30)
