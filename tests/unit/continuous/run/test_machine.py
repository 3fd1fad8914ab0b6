"""The state machine of a run."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kit.pointers import REPO
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
from pyspark_kafka.continuous.epochs.pace import EpochLoad
from pyspark_kafka.continuous.run.commits import CommitEnded
from pyspark_kafka.continuous.run.effects import (
    CheckSlots,
    FindEnd,
    GiveUp,
    RunCommand,
    TakeCommit,
    TakeEnd,
    WarnOfLanes,
    WarnOfSlots,
    WarnOfTasks,
)
from pyspark_kafka.continuous.run.events import (
    Asked,
    EndFound,
    JobEnded,
    PaceChanged,
    PartitionsChanged,
    RunEvent,
    SourceFailed,
    TaskLost,
)
from pyspark_kafka.continuous.run.machine import TIMERS, TRANSITIONS, RunMachine, RunState, Timer

NOW = 1_000.0


def machine_of(*, now: float = NOW, idle_epoch_s: float | None = None) -> RunMachine:
    """Return a machine of two tasks with a lane each; the first epoch is 4."""
    return RunMachine(EpochCoordinator(2, 4, 100), {0: [0], 1: [1]}, now, idle_epoch_s)


def start(machine: RunMachine, now: float = NOW) -> list[RunCommand]:
    """Let both lanes start."""
    return [command for lane in range(2) for command in machine.take_event(Started(lane), now)]


def report(machine: RunMachine, epoch: int = 4, now: float = NOW, **fields: Any) -> list[RunCommand]:
    """Let both lanes report an epoch."""
    reports = [LaneReport(lane, epoch, "{}", "", **fields) for lane in range(2)]
    return [command for each in reports for command in machine.take_event(Reports((each,)), now)]


def committed(command: RunCommand, end: Any = 9) -> CommitEnded:
    assert isinstance(command, CommitEpoch)
    return CommitEnded(command, end)


def stop(machine: RunMachine, now: float = NOW) -> list[RunCommand]:
    return machine.tick(now, Asked(stop=True))


def plan_again(machine: RunMachine, now: float = NOW) -> list[RunCommand]:
    return machine.take_event(PartitionsChanged(), now) + machine.tick(now)


def end_lanes(machine: RunMachine) -> list[RunCommand]:
    """Let both lanes reach the ends of their input partitions."""
    return [command for lane in range(2) for command in machine.take_event(LaneEnded(lane), NOW)]


def finish(machine: RunMachine) -> list[RunCommand]:
    """Let both lanes report the epoch that has ended, and the epoch be committed."""
    return [followed for command in report(machine) for followed in machine.take_event(committed(command), NOW)]


def two_epochs(machine: RunMachine) -> list[RunCommand]:
    """Let two epochs end and be reported, and the first one be committed."""
    for now in (NOW + 1, NOW + 2):
        machine.tick(now, Asked(end_epoch=True))
    commands = report(machine) + report(machine, 5)
    return [followed for command in commands for followed in machine.take_event(committed(command), NOW + 2)]


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
    machine.take_event(TaskLost(0, "its connection ended"), NOW)


WAYS: dict[RunState, Callable[[RunMachine], None]] = {
    RunState.STARTING: to_starting,
    RunState.READING: to_reading,
    RunState.STOPPING: to_stopping,
    RunState.DONE: to_done,
    RunState.FAILED: to_failed,
}
EVENTS: dict[str, Callable[[RunMachine], Any]] = {
    "lanes start": start,
    "a lane fails": lambda machine: machine.take_event(Failed(0, "boom", ""), NOW),
    "a task is lost": lambda machine: machine.take_event(TaskLost(0, "it is gone"), NOW),
    "the job ends": lambda machine: machine.take_event(JobEnded(None), NOW),
    "the query is stopped": stop,
    "the source changes": plan_again,
    "the query is given up": lambda machine: machine.tick(NOW, Asked(give_up=True)),
    "every lane ends": lambda machine: end_lanes(machine) + finish(machine),
    "the last epoch is committed": finish,
    "two epochs are reported": two_epochs,
    "a task says hello": lambda machine: machine.take_event(Hello(0), NOW),
    "a task lives": lambda machine: machine.take_event(Alive(), NOW),
    "a call waits for rows": lambda machine: machine.tick(NOW + 1, Asked(end_epoch=True, find_end=True)),
    "the end of rows is found": lambda machine: machine.take_event(EndFound(None), NOW),
    "time passes": lambda machine: machine.tick(NOW + 3_600),
    "time passes after a stop": lambda machine: machine.tick(NOW + 3_600, Asked(stop=True)),
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
    (_S.STARTING, "time passes after a stop"): _S.DONE,
    (_S.READING, "time passes after a stop"): _S.STOPPING,
    (_S.STOPPING, "time passes after a stop"): _S.FAILED,
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


class RecordedMachine(RunMachine):
    """A machine of two tasks that records which commands have followed from which events."""

    def __init__(self, followed: dict[str, set[str]]) -> None:
        super().__init__(EpochCoordinator(2, 4, 100), {0: [0], 1: [1]}, NOW)
        self.set_timer(Timer.SLOTS, NOW + 20)
        self._followed = followed

    def take_event(self, event: RunEvent, now: float) -> list[RunCommand]:
        commands = super().take_event(event, now)
        self._followed[type(event).__name__] |= {type(command).__name__ for command in commands}
        return commands

    def tick(self, now: float, asked: Asked = Asked()) -> list[RunCommand]:  # noqa: B008 - a constant
        commands = super().tick(now, asked)
        self._followed["tick"] |= {type(command).__name__ for command in commands}
        return commands


def test_commands_that_follow_from_events_are_those_of_the_page() -> None:
    page = (REPO / "docs" / "internals" / "life-of-an-epoch.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|", page.partition("| Event |")[2], re.MULTILINE)
    on_page = {event: set(re.findall(r"\w+", commands)) for event, commands in rows}
    followed: dict[str, set[str]] = defaultdict(set)
    for state, *events in itertools.product(RunState, EVENTS.values(), EVENTS.values()):
        machine = RecordedMachine(followed)
        WAYS[state](machine)
        with suppress(EpochOrderError):
            for event in events:
                event(machine)
    assert {event: commands for event, commands in followed.items() if commands} == on_page


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
        machine.take_event(LaneEnded(lane), NOW)
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
    assert machine.take_event(Moved(0, 4), NOW) == []
    wait_s = machine.wait_seconds(NOW)
    assert 0.1 <= wait_s < 0.2
    assert machine.tick(NOW + wait_s) == [EndEpoch(4)]
    (commit,) = report(machine)
    assert [type(command) for command in machine.take_event(committed(commit), NOW)] == [TakeCommit]
    assert machine.is_idle


def test_stop_ends_the_run_when_the_last_epoch_is_committed() -> None:
    machine = machine_of()
    start(machine)
    assert stop(machine) == [EndEpoch(4, last=True)]
    (commit,) = report(machine)
    assert machine.take_event(committed(commit), NOW)[1:] == [RunIsDone()]
    assert machine.state is RunState.DONE
    assert not machine.is_at_end


def test_run_whose_lanes_have_ended_is_at_its_end() -> None:
    machine = machine_of()
    start(machine)
    end_lanes(machine)
    finish(machine)
    assert machine.is_at_end


@pytest.mark.parametrize("asked", [False, True])
def test_last_epoch_is_given_up_after_a_time(asked: bool) -> None:
    machine = machine_of()
    start(machine)
    end = stop if asked else plan_again
    end(machine)
    end(machine, NOW + 29)
    assert machine.state is RunState.STOPPING
    commands = end(machine, NOW + 30)
    assert ("was asked to stop" if asked else "partitions or slots had changed") in str(machine.failure)
    # For a change of partitions, it would end each run that follows.
    assert commands == ([GiveUp()] if asked else [])


def test_error_of_a_commit_is_raised_and_its_epoch_stays_open() -> None:
    machine = machine_of()
    start(machine)
    stop(machine)
    (commit,) = report(machine)
    assert isinstance(commit, CommitEpoch)
    with pytest.raises(OSError, match="no room"):
        machine.take_event(CommitEnded(commit, None, OSError("no room")), NOW)
    assert 4 in machine.coordinator.open_reports


def test_error_of_the_source_is_raised() -> None:
    with pytest.raises(ValueError, match="the source is gone"):
        machine_of().take_event(SourceFailed(ValueError("the source is gone")), NOW)


@pytest.mark.parametrize(("rows", "polled", "is_idle"), [(0, 1, True), (0, 0, False), (1, 1, False)])
def test_epoch_without_rows_is_idle_if_every_lane_has_polled_its_reader(rows: int, polled: int, is_idle: bool) -> None:
    machine = machine_of()
    start(machine)
    stop(machine, NOW + 1)
    reports = LaneReport(0, 4, "{}", ""), LaneReport(1, 4, "{}", "", rows, rows, polled=polled)
    (commit,) = machine.take_event(Reports(reports), NOW + 1)
    taken: Any = machine.take_event(committed(commit, "the end"), NOW + 1)[0]
    assert (taken.reached, taken.idle_since) == ("the end", NOW if is_idle else None)


def test_commit_says_what_its_epoch_has_taken() -> None:
    machine = machine_of()
    start(machine)
    machine.tick(NOW)
    machine.take_event(Moved(0, 4), NOW)
    machine.tick(NOW + 2)
    commit: Any = report(machine, rows_read=1, rows_written=1, cost=4, commit_ms=7)[0]
    end: Any = 9
    taken = machine.take_event(CommitEnded(commit, end, took_s=0.5), NOW + 3)
    assert taken == [TakeCommit(end, None, EpochLoad(2_000.0, 8, 7.0, 500.0), was_slow=False)]


@pytest.mark.parametrize(("is_longer", "at_s"), [(False, 0.3), (True, 0.88)])
def test_epoch_for_which_a_call_waits_is_whole_while_epochs_are_longer(is_longer: bool, at_s: float) -> None:
    machine = machine_of()
    start(machine)
    machine.tick(NOW)
    assert machine.take_event(PaceChanged(880, is_longer), NOW) == []
    assert machine.tick(NOW + at_s - 0.1, Asked(end_epoch=True)) == []
    assert machine.tick(NOW + at_s + 0.01, Asked(end_epoch=True)) == [EndEpoch(4)]
    machine.take_event(Moved(0, 5), NOW)
    assert machine.coordinator.due_ms() == NOW * 1_000 + 880


def test_lanes_that_delay_a_commit_are_named_once_until_it_is_committed() -> None:
    machine = machine_of()
    start(machine)
    stop(machine)
    machine.set_timer(Timer.STOP, math.inf)
    machine.take_event(Reports((LaneReport(0, 4, "{}", ""),)), NOW)
    assert machine.tick(NOW + 30) == []
    assert machine.tick(NOW + 31) == [WarnOfLanes(4, (1,), 31.0)]
    assert machine.tick(NOW + 32) == []
    (commit,) = machine.take_event(Reports((LaneReport(1, 4, "{}", ""),)), NOW + 33)
    taken: Any = machine.take_event(committed(commit), NOW + 33)[0]
    assert taken.was_slow


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
    machine.take_event(Moved(0, 4), NOW)
    machine.tick(NOW)
    assert machine.tick(NOW + 1) == [EndEpoch(4)]
    (commit,) = report(machine)
    machine.take_event(committed(commit), NOW)
    machine.take_event(Moved(1, 5), NOW)
    machine.take_event(loss, NOW)
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
        machine.take_event(Failed(lane, f"boom {lane}", ""), NOW)
    assert "boom 0" in str(machine.failure)


@pytest.mark.parametrize(
    ("tasks_here", "started", "command"),
    [(0, 0, WarnOfSlots()), (1, 0, WarnOfTasks([0, 1])), (2, 1, WarnOfTasks([1]))],
)
def test_late_start_is_blamed_on_slots_only_if_no_task_has_come(
    tasks_here: int, started: int, command: RunCommand
) -> None:
    machine = machine_of()
    for task in range(tasks_here):
        machine.take_event(Hello(task), NOW)
    for lane in range(started):
        machine.take_event(Started(lane), NOW)
    machine.set_timer(Timer.SLOTS, math.inf)
    assert machine.tick(NOW + 9) == []
    assert machine.tick(NOW + 10) == [command]


def test_call_that_waits_for_rows_asks_the_source_once_and_ends_the_epoch() -> None:
    machine = machine_of()
    start(machine)
    assert machine.tick(NOW, Asked(find_end=True)) == [FindEnd()]
    assert machine.tick(NOW, Asked(find_end=True)) == []
    found: Any = EndFound(5)  # type: ignore[arg-type]
    assert machine.take_event(found, NOW) == [TakeEnd(found)]
    # It is too early; then the epoch ends though nothing has moved.
    assert machine.tick(NOW + 0.2, Asked(end_epoch=True)) == []
    assert machine.tick(NOW + 0.4, Asked(end_epoch=True)) == [EndEpoch(4)]
    assert machine.wait_seconds(NOW + 0.4, calls_wait=True) == pytest.approx(0.02)
    # A later call.
    assert machine.tick(NOW + 0.4, Asked(find_end=True)) == [FindEnd()]
