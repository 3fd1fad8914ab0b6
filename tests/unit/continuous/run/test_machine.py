"""The state machine of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from pyspark_kafka.connector import CommitLimit
from pyspark_kafka.continuous.epochs.coordinator import (
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    EpochOrderError,
    LaneReport,
    RunIsDone,
)
from pyspark_kafka.continuous.epochs.messages import Alive, Failed, Hello, LaneEnded, Moved, Reports, Started
from pyspark_kafka.continuous.epochs.pace import EpochPace
from pyspark_kafka.continuous.reports.run_log import RunLog
from pyspark_kafka.continuous.run.commits import CommitEnded
from pyspark_kafka.continuous.run.context import QueryControl
from pyspark_kafka.continuous.run.events import (
    ChangeInterval,
    CheckSlots,
    EndFound,
    FindEnd,
    JobEnded,
    PartitionsChanged,
    RunCommand,
    SourceFailed,
    TaskLost,
    WarnOfSlots,
)
from pyspark_kafka.continuous.run.machine import TIMERS, TRANSITIONS, RunMachine, RunState, Timer
from pyspark_kafka.continuous.run.waits import RowWaits

NOW = 1_000.0


def machine_of(
    *, now: float = NOW, idle_epoch_s: float | None = None, pace: EpochPace | None = None, waits: Any = None
) -> RunMachine:
    """Return a machine of two tasks with a lane each; the first epoch is 4."""
    control = QueryControl()
    context: Any = SimpleNamespace(
        control=control, waits=RowWaits(lambda position, target: position >= target) if waits is None else waits,  # type: ignore[operator]
        query_id="the query", pace=EpochPace(100) if pace is None else pace,
    )  # fmt: skip
    log = RunLog("the query", lambda text: setattr(control, "message", text))
    coordinator = EpochCoordinator(2, 4, context.pace.interval_ms)
    return RunMachine(context, log, coordinator, {0: [0], 1: [1]}, now, idle_epoch_s, Mock(return_value=0))


def start(machine: RunMachine, now: float = NOW) -> list[RunCommand]:
    """Let both lanes start."""
    return [command for lane in range(2) for command in machine.take(Started(lane), now)]


def report(machine: RunMachine, epoch: int = 4, now: float = NOW, **fields: Any) -> list[RunCommand]:
    """Let both lanes report an epoch."""
    reports = [LaneReport(lane, epoch, "{}", "", **fields) for lane in range(2)]
    return [command for each in reports for command in machine.take(Reports((each,)), now)]


def committed(command: RunCommand, end: Any = 9) -> CommitEnded:
    assert isinstance(command, CommitEpoch)
    return CommitEnded(command, end)


def stop(machine: RunMachine, now: float = NOW) -> list[RunCommand]:
    machine._control.stop_asked.set()
    return machine.tick(now)


def plan_again(machine: RunMachine) -> None:
    machine.take(PartitionsChanged(), NOW)
    machine.tick(NOW)


def give_up(machine: RunMachine) -> None:
    machine._control.give_up.set()
    machine.tick(NOW)


def end_lanes(machine: RunMachine) -> None:
    """Let both lanes reach the ends of their input partitions, and the epoch be committed."""
    for lane in range(2):
        machine.take(LaneEnded(lane), NOW)
    finish(machine)


def finish(machine: RunMachine) -> None:
    """Let both lanes report the last epoch, and the epoch be committed."""
    for command in report(machine):
        machine.take(committed(command), NOW)


def to_starting(_: RunMachine) -> None:
    """Begin there."""


def to_reading(machine: RunMachine) -> None:
    start(machine)


def to_stopping(machine: RunMachine) -> None:
    start(machine)
    stop(machine)


def to_done(machine: RunMachine) -> None:
    stop(machine)


def to_failed(machine: RunMachine) -> None:
    machine.take(TaskLost(0, "its connection ended"), NOW)


WAYS: dict[RunState, Callable[[RunMachine], None]] = {
    RunState.STARTING: to_starting,
    RunState.READING: to_reading,
    RunState.STOPPING: to_stopping,
    RunState.DONE: to_done,
    RunState.FAILED: to_failed,
}
EVENTS: dict[str, Callable[[RunMachine], Any]] = {
    "lanes start": start,
    "a lane fails": lambda machine: machine.take(Failed(0, "boom", ""), NOW),
    "a task is lost": lambda machine: machine.take(TaskLost(0, "it is gone"), NOW),
    "the job ends": lambda machine: machine.take(JobEnded(None), NOW),
    "the query is stopped": stop,
    "the source changes": plan_again,
    "the query is given up": give_up,
    "every lane ends": end_lanes,
    "the last epoch is committed": finish,
    "a task says hello": lambda machine: machine.take(Hello(0), NOW),
    "a task lives": lambda machine: machine.take(Alive(), NOW),
    "time passes": lambda machine: machine.tick(NOW + 3_600),
}
_S = RunState
# What changes the state; every other event leaves it as it is, or is an error of the order.
MOVES = {
    (_S.STARTING, "lanes start"): _S.READING,
    (_S.STARTING, "a lane fails"): _S.FAILED,
    (_S.STARTING, "a task is lost"): _S.FAILED,
    (_S.STARTING, "the job ends"): _S.FAILED,
    (_S.STARTING, "the query is stopped"): _S.DONE,
    (_S.STARTING, "the source changes"): _S.DONE,
    (_S.STARTING, "the query is given up"): _S.FAILED,
    (_S.READING, "a lane fails"): _S.FAILED,
    (_S.READING, "a task is lost"): _S.FAILED,
    (_S.READING, "the job ends"): _S.FAILED,
    (_S.READING, "the query is stopped"): _S.STOPPING,
    (_S.READING, "the source changes"): _S.STOPPING,
    (_S.READING, "the query is given up"): _S.FAILED,
    (_S.READING, "every lane ends"): _S.DONE,
    (_S.STOPPING, "a lane fails"): _S.FAILED,
    (_S.STOPPING, "a task is lost"): _S.FAILED,
    (_S.STOPPING, "the job ends"): _S.FAILED,
    (_S.STOPPING, "the query is given up"): _S.FAILED,
    (_S.STOPPING, "every lane ends"): _S.DONE,
    (_S.STOPPING, "the last epoch is committed"): _S.DONE,
    (_S.STOPPING, "time passes"): _S.FAILED,
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", RunState)
def test_event_changes_the_state_as_the_table_says(state: RunState, event: str) -> None:
    machine = machine_of()
    WAYS[state](machine)
    assert machine.state is state
    try:
        EVENTS[event](machine)
    except EpochOrderError:
        assert (state, event) not in MOVES
    assert machine.state is MOVES.get((state, event), state)
    assert (machine.failure is not None) is (machine.state is RunState.FAILED)


def test_every_transition_is_caused_by_an_event_of_the_table() -> None:
    assert {(begin, end) for (begin, _), end in MOVES.items()} == {
        (begin, end) for begin, ends in TRANSITIONS.items() for end in ends
    }


def test_transition_that_the_table_does_not_have_is_refused() -> None:
    machine = machine_of()
    with pytest.raises(AssertionError, match="STARTING cannot be STOPPING"):
        machine._move(RunState.STOPPING)


@pytest.mark.parametrize("state", RunState)
def test_only_the_timers_of_a_state_count_in_it(state: RunState) -> None:
    for timer in Timer:
        machine = machine_of()
        WAYS[state](machine)
        for each in Timer:
            machine.set_timer(each, math.inf)
        machine.set_timer(timer, NOW)
        assert machine._is_due(timer, NOW) is (timer in TIMERS[state])
        assert not machine._is_due(timer, NOW - 1)
        if TIMERS[state]:
            # Of DONE and FAILED nobody asks.
            assert (machine.wait_seconds(NOW) == 0) is (timer in TIMERS[state])


@pytest.mark.parametrize("state", [RunState.STARTING, RunState.READING, RunState.STOPPING])
@pytest.mark.parametrize("idle_epoch_s", [None, 2.0])
def test_run_does_not_spin_whatever_is_due(state: RunState, idle_epoch_s: float | None) -> None:
    machine = machine_of(idle_epoch_s=idle_epoch_s)
    WAYS[state](machine)
    now, turns = NOW, 0
    while now < NOW + 20:
        now += machine.wait_seconds(now)
        for command in machine.tick(now):
            if isinstance(command, CheckSlots):
                machine.set_timer(Timer.SLOTS, now + 3)
        turns += 1
    assert turns < 60


def test_lanes_that_have_ended_do_not_make_an_idle_run_spin() -> None:
    machine = machine_of(idle_epoch_s=2.0)
    start(machine)
    for lane in range(2):
        machine.take(LaneEnded(lane), NOW)
    machine.tick(NOW + 10)
    assert machine.state is RunState.READING
    assert machine.wait_seconds(NOW + 10) > 0.5


@pytest.mark.parametrize("uptime_s", [10.0, 4_000.0, 1e7])
def test_no_epoch_ends_when_lanes_have_just_started_however_long_the_machine_is_up(uptime_s: float) -> None:
    """The monotonic clock is the time since the machine was started."""
    # As under exactly once, where an idle query ends an epoch each hour.
    machine = machine_of(now=uptime_s, idle_epoch_s=3_600.0)
    assert start(machine, uptime_s) == [BeginReading()]
    assert machine.tick(uptime_s) == []
    assert machine.tick(uptime_s + 3_599) == []
    assert machine.tick(uptime_s + 3_601) == [EndEpoch(4)]


def test_epoch_with_rows_ends_after_its_interval() -> None:
    machine = machine_of()
    start(machine)
    machine.tick(NOW)
    assert machine.take(Moved(0, 4), NOW) == []
    wait_s = machine.wait_seconds(NOW)
    assert 0.1 <= wait_s < 0.2
    assert machine.tick(NOW + wait_s) == [EndEpoch(4)]
    (commit,) = report(machine)
    assert machine.take(committed(commit), NOW) == []
    assert machine.is_idle


def test_stop_ends_the_run_when_the_last_epoch_is_committed() -> None:
    machine = machine_of()
    start(machine)
    assert stop(machine) == [EndEpoch(4, last=True)]
    (commit,) = report(machine)
    assert machine.take(committed(commit), NOW) == [RunIsDone()]
    assert machine.state is RunState.DONE
    assert not machine.is_at_end


def test_run_whose_lanes_have_ended_is_at_its_end() -> None:
    machine = machine_of()
    start(machine)
    end_lanes(machine)
    assert machine.is_at_end


@pytest.mark.parametrize("asked", [False, True])
def test_last_epoch_is_given_up_after_a_time(asked: bool) -> None:
    machine = machine_of()
    start(machine)
    (stop if asked else plan_again)(machine)
    machine.tick(NOW + 29)
    assert machine.state is RunState.STOPPING
    machine.tick(NOW + 30)
    assert ("was asked to stop" if asked else "partitions or slots had changed") in str(machine.failure)
    # Set by a change of partitions, it would end each run that follows.
    assert machine._control.give_up.is_set() is asked


def test_error_of_a_commit_is_raised_and_its_epoch_stays_open() -> None:
    machine = machine_of()
    start(machine)
    stop(machine)
    (commit,) = report(machine)
    assert isinstance(commit, CommitEpoch)
    with pytest.raises(OSError, match="no room"):
        machine.take(CommitEnded(commit, None, OSError("no room")), NOW)
    assert 4 in machine.coordinator.open_reports


def test_error_of_the_source_is_raised() -> None:
    with pytest.raises(ValueError, match="the source is gone"):
        machine_of().take(SourceFailed(ValueError("the source is gone")), NOW)


@pytest.mark.parametrize(("rows", "polled", "is_idle"), [(0, 1, True), (0, 0, False), (1, 1, False)])
def test_epoch_without_rows_is_idle_if_every_lane_has_polled_its_reader(rows: int, polled: int, is_idle: bool) -> None:
    commits: list[tuple[Any, ...]] = []
    waits = SimpleNamespace(committed=lambda *given: commits.append(given), need_target=False, are_waiting=False)
    machine = machine_of(waits=waits)
    start(machine)
    stop(machine, NOW + 1)
    reports = LaneReport(0, 4, "{}", ""), LaneReport(1, 4, "{}", "", rows, rows, polled=polled)
    (commit,) = machine.take(Reports(reports), NOW + 1)
    machine.take(committed(commit, "the end"), NOW + 1)
    assert commits == [("the end", NOW if is_idle else None)]


def test_epochs_get_longer_if_the_sink_needs_it_and_shorter_again() -> None:
    limit = CommitLimit(10, "markers", "maxMarkers", 60.0, "Write less.")
    pace = EpochPace(100, limit)
    machine = machine_of(pace=pace)
    now = NOW
    start(machine)
    machine.tick(now)
    intervals = []
    for epoch in range(4, 11):
        machine.take(Moved(0, epoch), now)
        now += 2.0
        assert EndEpoch(epoch) in machine.tick(now)
        (commit,) = report(machine, epoch, now, rows_read=1, cost=4 if epoch == 4 else 0)
        if ChangeInterval() in machine.take(committed(commit), now):
            intervals.append((pace.interval_ms, machine.coordinator._interval_ms))
    # Eight a commit of all lanes, ten a second.
    assert intervals == [(880, 880), (100, 100)]


@pytest.mark.parametrize(
    ("loss", "has_advanced", "reason"),
    [
        (TaskLost(0, "its connection ended"), True, "task 0 is lost"),
        (TaskLost(1, "its connection ended"), False, "task 1 is lost"),
        (Failed(1, "boom", ""), False, "boom"),
        # Any task may have ended the job.
        (JobEnded(None), False, "its Spark job ended"),
    ],
)
def test_failed_run_has_advanced_if_all_rows_of_the_lanes_that_failed_are_committed(
    loss: TaskLost | Failed | JobEnded, has_advanced: bool, reason: str
) -> None:
    machine = machine_of()
    start(machine)
    machine.take(Moved(0, 4), NOW)
    machine.tick(NOW)
    assert machine.tick(NOW + 1) == [EndEpoch(4)]
    (commit,) = report(machine)
    machine.take(committed(commit), NOW)
    machine.take(Moved(1, 5), NOW)
    machine.take(loss, NOW)
    assert reason in str(machine.failure)
    assert machine.has_advanced(NOW) is has_advanced


@pytest.mark.parametrize(("after_s", "has_advanced"), [(59, False), (61, True)])
def test_run_that_has_lasted_has_advanced_without_rows(after_s: float, has_advanced: bool) -> None:
    machine = machine_of()
    start(machine)
    assert machine.has_advanced(NOW + after_s) is has_advanced


def test_first_failure_is_kept() -> None:
    machine = machine_of()
    for lane in range(2):
        machine.take(Failed(lane, f"boom {lane}", ""), NOW)
    assert "boom 0" in str(machine.failure)


@pytest.mark.parametrize(
    ("tasks_here", "started", "commands", "status"),
    [
        (0, 0, [WarnOfSlots()], "Starting"),
        (1, 0, [], "Waiting for tasks 0, 1 to load the functions and open the state"),
        (2, 1, [], "Waiting for task 1 to load the functions and open the state"),
    ],
)
def test_late_start_is_blamed_on_slots_only_if_no_task_has_come(
    tasks_here: int, started: int, commands: list[RunCommand], status: str
) -> None:
    machine = machine_of()
    for task in range(tasks_here):
        machine.take(Hello(task), NOW)
    for lane in range(started):
        machine.take(Started(lane), NOW)
    machine.set_timer(Timer.SLOTS, math.inf)
    assert machine.tick(NOW + 9) == []
    assert machine.tick(NOW + 10) == commands
    assert machine._control.message == status


def test_call_that_waits_for_rows_asks_the_source_once_and_ends_the_epoch() -> None:
    machine = machine_of()
    start(machine)
    waits: Any = machine._waits
    waits._waits = [wait := SimpleNamespace(
        asked=NOW, is_polled_for=False, was_polled=False, target=None, since=0.0, is_over=False, error=None
    )]  # fmt: skip
    waits.end_wanted.set()
    assert machine.tick(NOW) == [FindEnd()]
    assert machine.tick(NOW) == []
    machine.take(EndFound(5), NOW)  # type: ignore[arg-type]
    # It is too early; then the epoch ends though nothing has moved.
    assert machine.tick(NOW + 0.2) == []
    assert machine.tick(NOW + 0.4) == [EndEpoch(4)]
    (commit,) = report(machine)
    machine.take(committed(commit, 5), NOW + 1)
    assert wait.is_over
