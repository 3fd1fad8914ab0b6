"""When epochs end and how they are committed: each event, and whole runs in random order."""

from __future__ import annotations

import random
from collections import deque

import pytest

from pyspark_kafka.continuous.epochs.coordinator import (
    MAX_OPEN,
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCommand,
    EpochCoordinator,
    EpochOrderError,
    LaneReport,
    RunIsDone,
)


def report(lane: int, epoch: int) -> LaneReport:
    return LaneReport(lane, epoch, f"{epoch}", "{}")


def running(lanes: int = 2, first_epoch: int = 5, interval_ms: int = 100) -> EpochCoordinator:
    coordinator = EpochCoordinator(lanes, first_epoch, interval_ms)
    for lane in range(lanes):
        coordinator.started(lane)
    coordinator.ticked(0)
    return coordinator


def test_epoch_ends_when_its_time_is_over_and_a_lane_has_moved() -> None:
    coordinator = running()
    assert coordinator.ticked(100) == []
    coordinator.moved(0, 5)
    assert coordinator.ticked(101) == [EndEpoch(5)]
    assert coordinator.current_epoch == 6
    assert coordinator.ticked(300) == []


def test_epoch_does_not_end_before_its_time() -> None:
    coordinator = running()
    coordinator.moved(1, 5)
    assert coordinator.ticked(99) == []
    assert coordinator.ticked(100) == [EndEpoch(5)]


def test_epoch_that_runs_gets_as_long_as_those_that_follow() -> None:
    coordinator = running()
    coordinator.moved(1, 5)
    coordinator.set_interval(400)
    assert coordinator.due_ms() == 400
    assert coordinator.ticked(399) == []
    assert coordinator.ticked(400) == [EndEpoch(5)]


def test_epoch_does_not_end_before_every_lane_has_started() -> None:
    coordinator = EpochCoordinator(2, 0, 100)
    coordinator.started(0)
    coordinator.ticked(0)
    coordinator.moved(0, 0)
    assert coordinator.ticked(1_000) == []
    assert coordinator.end_now() == []
    coordinator.started(1)
    # From there on, so that a lane that starts late has the time of an epoch.
    assert coordinator.ticked(1_001) == []
    assert coordinator.due_ms() == 1_101
    assert coordinator.ticked(1_101) == [EndEpoch(0)]


def commit_epoch(coordinator: EpochCoordinator, epoch: int, lanes: int = 2) -> None:
    assert coordinator.end_now() == [EndEpoch(epoch)]
    for lane in range(lanes):
        coordinator.reported(report(lane, epoch))
    coordinator.committed(epoch)


def test_run_advances_with_a_committed_epoch_in_which_a_lane_has_moved() -> None:
    coordinator = running()
    commit_epoch(coordinator, 5)
    assert not coordinator.has_advanced(), "nothing was read"
    coordinator.moved(0, 6)
    assert not coordinator.has_advanced(), "it is not committed"
    commit_epoch(coordinator, 6)
    assert coordinator.has_advanced()
    assert coordinator.has_advanced([0, 1])


def test_run_has_not_advanced_where_the_lane_that_failed_has_rows_that_are_not_committed() -> None:
    coordinator = running()
    coordinator.moved(0, 5)
    commit_epoch(coordinator, 5)
    coordinator.moved(1, 6)
    assert coordinator.has_advanced()
    assert coordinator.has_advanced([0])
    assert not coordinator.has_advanced([1])
    assert not coordinator.has_advanced([0, 1]), "one of the task's lanes, and it may be this one"
    commit_epoch(coordinator, 6)
    assert coordinator.has_advanced([0, 1])


def test_lane_that_fails_before_it_moves_has_not_advanced() -> None:
    coordinator = running()
    coordinator.moved(0, 5)
    commit_epoch(coordinator, 5)
    coordinator.failed(1)
    assert not coordinator.has_advanced([1])
    assert not coordinator.has_advanced([1], was_steady=True)


def test_run_has_advanced_with_what_a_lane_has_committed_by_its_own_clock() -> None:
    coordinator = running()
    coordinator.moved(1, 5)
    assert coordinator.lane_committed(1, 5) == []
    assert coordinator.has_advanced([1])
    coordinator.moved(0, 5)
    assert not coordinator.has_advanced([0])
    with pytest.raises(EpochOrderError, match="before it had read any"):
        coordinator.lane_committed(1, 5)


def test_steady_run_without_rows_has_advanced() -> None:
    coordinator = running()
    assert not coordinator.has_advanced([0])
    assert coordinator.has_advanced([0], was_steady=True)


def test_epoch_is_committed_when_every_lane_has_reported_it() -> None:
    coordinator = running()
    coordinator.end_now()
    assert coordinator.reported(report(1, 5)) == []
    assert coordinator.reported(report(0, 5)) == [CommitEpoch(5, (report(0, 5), report(1, 5)))]


def test_epochs_are_committed_one_at_a_time_and_in_order() -> None:
    coordinator = running()
    coordinator.end_now()
    coordinator.end_now()
    for each in (report(0, 5), report(0, 6)):
        assert coordinator.reported(each) == []
    assert [action.epoch for action in coordinator.reported(report(1, 5)) if isinstance(action, CommitEpoch)] == [5]
    assert coordinator.reported(report(1, 6)) == []
    assert [action.epoch for action in coordinator.committed(5) if isinstance(action, CommitEpoch)] == [6]
    assert coordinator.committed(6) == []


def test_slow_commits_make_the_epoch_that_runs_longer() -> None:
    coordinator = running(interval_ms=0)
    ended = []
    for now in range(20):
        coordinator.moved(0, coordinator.current_epoch)
        ended += coordinator.ticked(now)
    assert ended == [EndEpoch(5 + number) for number in range(MAX_OPEN)]
    for lane in range(2):
        coordinator.reported(report(lane, 5))
    coordinator.committed(5)
    assert coordinator.ticked(20) == [EndEpoch(5 + MAX_OPEN)]


def test_stop_ends_the_epoch_that_runs_and_is_done_after_its_commit() -> None:
    coordinator = running(lanes=1)
    assert coordinator.stop() == [EndEpoch(5, last=True)]
    assert coordinator.stop() == []
    assert coordinator.ticked(1_000) == []
    assert coordinator.reported(report(0, 5)) == [CommitEpoch(5, (report(0, 5),))]
    assert coordinator.committed(5) == [RunIsDone()]


def test_stop_before_any_lane_has_started_commits_nothing() -> None:
    assert EpochCoordinator(2, 0, 100).stop() == [RunIsDone()]


def test_lanes_begin_together_when_the_last_one_has_started() -> None:
    coordinator = EpochCoordinator(3, 0, 100)
    assert coordinator.started(1) == []
    assert coordinator.started(0) == []
    assert list(coordinator.starting) == [2]
    assert coordinator.started(2) == [BeginReading()]
    assert not coordinator.starting


def test_stop_does_not_wait_for_lanes_that_have_not_started_as_none_has_read() -> None:
    coordinator = EpochCoordinator(2, 0, 100)
    coordinator.started(1)
    assert coordinator.stop() == [RunIsDone()]
    assert coordinator.started(0) == []
    assert coordinator.open_reports == {}


def test_run_is_done_once_every_lane_is_at_its_end_and_what_it_read_is_committed() -> None:
    coordinator = running()
    coordinator.moved(0, 5)
    assert coordinator.ended(1) == []
    # Epochs go on: a lane that is not at its end takes its time.
    assert coordinator.ticked(100) == [EndEpoch(5)]
    assert coordinator.ended(0) == [EndEpoch(6, last=True)]
    assert coordinator.is_at_end
    assert coordinator.stop() == []
    for epoch in (5, 6):
        coordinator.reported(report(0, epoch))
    assert coordinator.reported(report(1, 5)) == [CommitEpoch(5, (report(0, 5), report(1, 5)))]
    assert coordinator.reported(report(1, 6)) == []
    assert coordinator.committed(5) == [CommitEpoch(6, (report(0, 6), report(1, 6)))]
    assert coordinator.committed(6) == [RunIsDone()]


def test_last_epoch_ends_though_commits_are_behind() -> None:
    coordinator = running(lanes=1)
    for _ in range(MAX_OPEN):
        coordinator.end_now()
    assert coordinator.end_now() == []
    assert coordinator.ended(0) == [EndEpoch(5 + MAX_OPEN, last=True)]


def test_open_reports_are_those_that_are_not_committed() -> None:
    coordinator = running()
    coordinator.end_now()
    coordinator.reported(report(1, 5))
    assert coordinator.open_reports == {5: (report(1, 5),)}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (lambda it: it.started(0), "started twice"),
        (lambda it: it.started(2), "no lane 2"),
        (lambda it: it.ended(2), "no lane 2"),
        (lambda it: (it.ended(0), it.ended(0)), "ended twice"),
        (lambda it: it.moved(0, 6), "has not ended"),
        (lambda it: it.reported(report(0, 5)), "not told to end"),
        (lambda it: (it.end_now(), it.reported(report(0, 5)), it.reported(report(0, 5))), "twice"),
        (lambda it: (it.end_now(), it.end_now(), it.reported(report(0, 6))), "before epoch 5"),
        (lambda it: it.committed(5), "not its turn"),
    ],
    ids=[
        "started twice",
        "no such lane",
        "no such lane ended",
        "ended twice",
        "ahead",
        "unasked",
        "twice",
        "out of order",
        "commit unasked",
    ],
)
def test_lane_that_breaks_the_order_is_an_error(said, problem: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with pytest.raises(EpochOrderError, match=problem):
        said(running())


class World:
    """Lanes that read numbers, a channel for each that keeps the order, a driver that may die between any two steps.

    Each lane reads 0, 1, 2, …, to its end if there are ends; an epoch's report says how far it came. What is committed
    is what recovery finds.
    """

    def __init__(self, seed: int, lanes: int, longest: int | None = None) -> None:
        self.random = random.Random(seed)
        self.lanes = lanes
        self.ends = None if longest is None else [self.random.randrange(longest) for _ in range(lanes)]
        self.committed: list[tuple[int, list[int]]] = []

    def start(self) -> list[int]:
        return self.committed[-1][1] if self.committed else [0] * self.lanes

    def run(self, steps: int, *, stop: bool) -> bool:
        """Run for some steps; return whether the run was done."""
        epoch = self.committed[-1][0] + 1 if self.committed else 0
        coordinator = EpochCoordinator(self.lanes, epoch, 10)
        to_driver: list[deque[tuple[str, int, int, int]]] = [deque() for _ in range(self.lanes)]
        to_lane: list[deque[EndEpoch]] = [deque() for _ in range(self.lanes)]
        position, at, moved = self.start()[:], [epoch] * self.lanes, [False] * self.lanes
        said = [False] * self.lanes
        for lane in range(self.lanes):
            to_driver[lane].append(("started", lane, 0, 0))
        committing: list[CommitEpoch] = []
        ended = [False] * self.lanes
        # All of them at once: that lanes hear of it one after the other is for the simulation.
        done = reading = False

        def act(actions: list[EpochCommand]) -> None:
            nonlocal done, reading
            for action in actions:
                if isinstance(action, EndEpoch):
                    for queue in to_lane:
                        queue.append(action)
                elif isinstance(action, CommitEpoch):
                    committing.append(action)
                elif isinstance(action, BeginReading):
                    reading = True
                else:
                    done = True

        now = 0
        for step in range(steps):
            if stop and step >= steps // 2 and coordinator.is_running:
                act(coordinator.stop())
            choice = self.random.randrange(5)
            lane = self.random.randrange(self.lanes)
            is_at_end = self.ends is not None and position[lane] == self.ends[lane]
            if choice == 0 and not reading:
                continue
            if choice == 0 and is_at_end and not said[lane]:
                said[lane] = True
                to_driver[lane].append(("ended", lane, 0, 0))
            elif choice == 0 and not ended[lane] and not is_at_end:
                if not moved[lane]:
                    to_driver[lane].append(("moved", lane, at[lane], 0))
                moved[lane] = True
                position[lane] += self.random.randrange(1, 4)
                if self.ends is not None:
                    position[lane] = min(position[lane], self.ends[lane])
            elif choice == 1 and to_lane[lane]:
                end = to_lane[lane].popleft()
                assert end.epoch == at[lane]
                ended[lane] = end.last
                to_driver[lane].append(("report", lane, at[lane], position[lane]))
                at[lane] += 1
                moved[lane] = False
            elif choice == 2 and to_driver[lane]:
                kind, _, number, reached = to_driver[lane].popleft()
                if kind == "started":
                    act(coordinator.started(lane))
                elif kind == "ended":
                    act(coordinator.ended(lane))
                elif kind == "moved":
                    act(coordinator.moved(lane, number))
                else:
                    act(coordinator.reported(LaneReport(lane, number, str(reached), "{}")))
            elif choice == 3:
                now += 5
                act(coordinator.ticked(now))
            elif choice == 4 and committing:
                commit = committing.pop()
                self.committed.append((commit.epoch, [int(each.offset) for each in commit.reports]))
                act(coordinator.committed(commit.epoch))
            if done:
                assert not committing
                assert not coordinator.open_reports
                assert self.committed[-1][1] == position
                return True
        return False


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_runs_that_end_anywhere_commit_every_epoch_once_and_never_go_back(lanes: int) -> None:
    for seed in range(120):
        world = World(seed, lanes)
        for _ in range(4):
            world.run(world.random.randrange(1, 300), stop=False)
        assert world.run(20_000, stop=True), f"seed {seed}: the run was asked to stop and is not done"
        epochs = [epoch for epoch, _ in world.committed]
        assert epochs == list(range(len(epochs)))
        for (_, before), (_, after) in zip(world.committed, world.committed[1:], strict=False):
            assert all(first <= second for first, second in zip(before, after, strict=True))


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_runs_over_what_has_an_end_are_done_with_all_of_it_wherever_earlier_ones_died(lanes: int) -> None:
    for seed in range(120):
        world = World(seed, lanes, longest=60)
        done = any(world.run(world.random.randrange(1, 300), stop=False) for _ in range(4))
        assert done or world.run(20_000, stop=False), f"seed {seed}: every lane is at its end, and the run is not done"
        assert world.start() == world.ends
        assert [epoch for epoch, _ in world.committed] == list(range(len(world.committed)))
