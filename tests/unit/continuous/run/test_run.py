"""One run of a continuous query, without Spark."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.connector import CommitLimit
from pyspark_kafka.continuous.epochs.coordinator import BeginReading, CommitEpoch, EpochCoordinator, LaneReport
from pyspark_kafka.continuous.epochs.messages import End, Failed, Go, Moved, Reports, Started
from pyspark_kafka.continuous.epochs.pace import EpochLoad, EpochPace
from pyspark_kafka.continuous.run import run as run_module
from pyspark_kafka.continuous.run.commits import CommitEnded
from pyspark_kafka.continuous.run.context import QueryControl
from pyspark_kafka.continuous.run.effects import GiveUp, TakeCommit, TakeEnd, WarnOfLanes
from pyspark_kafka.continuous.run.events import Asked, EndFound
from pyspark_kafka.continuous.run.machine import RunMachine
from pyspark_kafka.continuous.run.run import QueryRun
from pyspark_kafka.continuous.run.waits import RowWaits
from pyspark_kafka.errors import CheckpointError


class Tasks:
    """The connections of a run, its slots and the watch of its source: they keep messages, and nothing changes."""

    due_at = float("inf")

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def broadcast(self, message: Any) -> None:
        self.messages.append(message)

    def start(self) -> None:
        """Nothing is watched."""


def run_of_two_lanes(commit: Any = None, pace: EpochPace | None = None) -> tuple[QueryRun, RunMachine, Any]:
    """Return a run whose lanes read, in epoch 5; epoch 4 has ended."""
    aborted: dict[int, Any] = {}
    commits = SimpleNamespace(commit_epoch=commit, abort=aborted.update, aborted=aborted)
    progress = SimpleNamespace(begin=lambda _: None, rest=lambda _: None, set_interval=lambda *_: None)
    context: Any = SimpleNamespace(
        plan=None, control=QueryControl(), waits=RowWaits(lambda *_: True), query_id="the query", commits=commits,
        progress=progress, pace=EpochPace(100) if pace is None else pace, spans=None,
    )  # fmt: skip
    run = QueryRun(context, 4)
    run._machine = machine = RunMachine(EpochCoordinator(2, 4, 100), {0: [0], 1: [1]}, 0.0)
    for lane in range(2):
        machine.take_event(Started(lane), 0.0)
    machine._noted(machine.coordinator.end_now(), 0.0)
    return run, machine, Tasks()


def act(run: QueryRun, machine: RunMachine, tasks: Any, commands: Any) -> None:
    run._act(machine, tasks, tasks, tasks, commands)


def test_reports_that_come_after_a_failure_are_aborted_as_well() -> None:
    run, machine, _ = run_of_two_lanes()
    machine.take_event(Reports((LaneReport(0, 4, "{}", "early"),)), 0.0)
    machine.fail(OSError("the run is over"))
    for event in (None, Reports((LaneReport(1, 9, "{}", "of no epoch"), LaneReport(1, 4, "{}", "late")))):
        run._events.put(event)
    run._abort_open_epochs()
    commits: Any = run._context.commits
    assert [report.message for report in commits.aborted[4]] == ["early", "late"]


def test_run_takes_events_until_there_is_something_to_do() -> None:
    run, machine, _ = run_of_two_lanes()
    events = Reports((LaneReport(0, 4, "{}", ""),)), Moved(0, 5), Reports((LaneReport(1, 4, "{}", ""),)), Moved(1, 5)
    for event in events:
        run._events.put(event)
    (commit,) = run._take_events(machine)
    assert isinstance(commit, CommitEpoch)
    assert not run._take_events(machine)
    assert run._events.empty()


def test_run_that_has_failed_leaves_what_follows_to_the_abort() -> None:
    run, machine, _ = run_of_two_lanes()
    for event in (Failed(0, "boom", "the traceback"), Failed(1, "bang", "another one")):
        run._events.put(event)
    assert not run._take_events(machine)
    assert "boom" in str(run.failure)
    assert not run._events.empty()


def test_epochs_end_while_an_earlier_one_is_committed() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def commit(action: CommitEpoch) -> str:
        begun.set()
        assert may_end.wait(PATIENCE_S)
        return f"end of {action.epoch}"

    run, machine, tasks = run_of_two_lanes(commit)
    for epoch in (4, 5):
        for lane in range(2):
            act(run, machine, tasks, machine.take_event(Reports((LaneReport(lane, epoch, "{}", ""),)), 1.0))
        if epoch == 4:
            assert begun.wait(PATIENCE_S)
            act(run, machine, tasks, machine._noted(machine.coordinator.end_now(), 1.0))
            assert tasks.messages == [End(5, 0, 100)]
    may_end.set()
    for epoch in (4, 5):
        ended: Any = run._events.get(timeout=PATIENCE_S)
        assert (ended.action.epoch, ended.end) == (epoch, f"end of {epoch}")
        act(run, machine, tasks, machine.take_event(ended, 1.0))
    run._committer.close()


def test_epochs_that_get_longer_are_told_to_lanes_in_the_progress_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limit = CommitLimit(10, "markers", "maxMarkers", 60.0, "Write less.")
    run, machine, tasks = run_of_two_lanes(lambda action: f"end of {action.epoch}", EpochPace(100, limit))
    shown = list[Any]()
    progress: Any = run._context.progress
    progress.set_interval = lambda *given: shown.append(given)
    for epoch in range(4, 11):
        cost = 4 if epoch == 4 else 0
        machine._spans[epoch] = (0.0, 2.0)
        reports = tuple(LaneReport(lane, epoch, "{}", "", 1, 1, cost=cost) for lane in range(2))
        act(run, machine, tasks, machine.take_event(Reports(reports), 2.0))
        act(run, machine, tasks, machine.take_event(run._events.get(timeout=PATIENCE_S), 2.0))
        act(run, machine, tasks, machine._noted(machine.coordinator.end_now(), 2.0))
    run._committer.close()
    # Eight a commit of all lanes, ten a second.
    assert shown == [(880, "markers"), (100, "")]
    assert [end.lanes_ms for end in tasks.messages] == [880] * 5 + [100] * 2
    longer, again = caplog.messages
    assert "last 880 ms from now on, not 100 ms, because a commit of every lane makes 8 markers" in longer
    assert "option maxMarkers allows 10 a second. Write less." in longer
    assert again.endswith("last 100 ms again.")


def test_commit_that_fails_is_raised_where_the_query_runs() -> None:
    def commit(action: CommitEpoch) -> str:
        raise OSError(f"no room for epoch {action.epoch}")

    run, machine, tasks = run_of_two_lanes(commit)
    reports = tuple(LaneReport(lane, 4, "{}", "") for lane in range(2))
    act(run, machine, tasks, machine.take_event(Reports(reports), 1.0))
    with pytest.raises(OSError, match="epoch 4"):
        machine.take_event(run._events.get(timeout=PATIENCE_S), 1.0)
    run._committer.close()


@pytest.mark.parametrize("retriable", [True, False])
def test_failed_commit_ends_the_run_and_is_raised_if_another_run_would_repeat_it(retriable: bool) -> None:
    error = CheckpointError("no answer", condition="CHECKPOINT_IO", hint="Look.", retriable=retriable)

    def commit(_: CommitEpoch) -> str:
        raise error

    run, machine, tasks = run_of_two_lanes(commit)
    reports = tuple(LaneReport(lane, 4, "{}", "") for lane in range(2))
    act(run, machine, tasks, machine.take_event(Reports(reports), 1.0))
    failed = run._events.get(timeout=PATIENCE_S)
    # A run that went on would take the second one.
    for event in (failed, Failed(0, "boom", "")):
        run._events.put(event)
    with nullcontext() if retriable else pytest.raises(CheckpointError, match="no answer"):
        run._drive(machine, tasks, tasks, tasks)
    assert run.failure is (error if retriable else None)
    run._committer.close()


def test_run_whose_tasks_have_not_started_has_neither_read_nor_advanced_nor_failed() -> None:
    run, _, _ = run_of_two_lanes()
    run._machine = None
    assert (run.has_read, run.has_advanced, run.failure, run.epoch) == (False, False, None, 4)
    started_at = time.monotonic()
    run._machine = RunMachine(EpochCoordinator(2, 4, 100), {0: [0], 1: [1]}, started_at)
    assert (run.has_read, run.has_advanced, run.failure, run.epoch) == (False, False, None, 4)


def test_run_tells_lanes_to_read_when_all_have_started_and_ends_with_the_failure_of_one() -> None:
    run, _, tasks = run_of_two_lanes()
    run._machine = machine = RunMachine(EpochCoordinator(2, 4, 100), {0: [0], 1: [1]}, 0.0)
    for event in (Started(0), Started(1), Failed(1, "boom", "")):
        run._events.put(event)
    run._drive(machine, tasks, tasks, tasks)
    assert tasks.messages == [Go()]
    assert "boom" in str(run.failure)
    assert run.has_read
    assert not run._control.is_reading


def test_message_that_breaks_the_order_fails_the_run() -> None:
    run, machine, tasks = run_of_two_lanes()
    run._events.put(Started(0))
    run._drive(machine, tasks, tasks, tasks)
    assert "a task broke the protocol: lane 0 started twice" in str(run.failure)


class Empty:
    """A stream without partitions.

    Args:
        ends: the answers to the question where rows end; the last one again and again.
    """

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)

    def prepareForTasks(self, tasks: int) -> None:
        """None is needed."""

    def deserializeOffset(self, text: str) -> int:
        return int(text)

    def planInputPartitions(self, start: int) -> list[Any]:
        return []

    def needsReconfiguration(self) -> bool:
        return False

    def latestOffset(self) -> Any:
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, BaseException):
            raise end
        return end


def wait_without_partitions(*ends: Any) -> None:
    """Wait for the rows of a query without partitions that is at offset 3."""
    reached: Any = lambda position, target: position >= target  # noqa: E731 - offsets elsewhere
    control, waits = QueryControl(), RowWaits(reached)
    plan = SimpleNamespace(stream=Empty(*ends), tasks=1, available_now=False)
    context: Any = SimpleNamespace(
        plan=plan, control=control, waits=waits, query_id="the query", commits=SimpleNamespace(start="3"),
        progress=None, slots=SimpleNamespace(count=lambda: 1, are_exact=True), spans=None,
    )  # fmt: skip
    with ThreadPoolExecutor() as pool:
        running = pool.submit(QueryRun(context, 0).run)
        try:
            pool.submit(waits.wait, lambda: not control.stop_asked.is_set(), lambda: None).result(PATIENCE_S)
        finally:
            control.stop_asked.set()
        running.result(PATIENCE_S)


@pytest.mark.parametrize("ends", [(3,), (None,), (4, 3)], ids=["known", "not known", "of a topic that is deleted"])
def test_query_without_partitions_ends_the_waits_for_rows(monkeypatch: pytest.MonkeyPatch, ends: tuple[Any]) -> None:
    monkeypatch.setattr(run_module, "_NO_PARTITIONS_SECONDS", 0.01)
    wait_without_partitions(*ends)


@pytest.mark.parametrize("error", [OSError("no broker"), SystemExit("enough")])
def test_error_of_a_source_without_partitions_is_raised_by_the_wait(error: BaseException) -> None:
    with pytest.raises(type(error), match=str(error)):
        wait_without_partitions(error)


@pytest.mark.parametrize("broken", ["", "stop tasks", "end job", "close watch", "close connections"])
def test_run_closes_everything_in_order_also_if_a_step_fails(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    steps: list[str] = []

    def step(name: str) -> Any:
        def take(*_: Any) -> None:
            steps.append(name)
            if name == broken:
                raise OSError(f"cannot {name}")

        return take

    def part(**methods: Any) -> Any:
        return lambda *_, **__: SimpleNamespace(due_at=float("inf"), **methods)

    stop_tasks, close = step("stop tasks"), step("close connections")
    monkeypatch.setattr(run_module, "TaskConnections", part(port=1, stop_tasks=stop_tasks, close=close))
    monkeypatch.setattr(run_module, "SlotWatch", part())
    monkeypatch.setattr(run_module, "PartitionWatch", part(close=step("close watch")))
    monkeypatch.setattr(run_module, "TasksJob", part(start=step("start job"), end=step("end job")))
    run, _, _ = run_of_two_lanes()
    context: Any = run._context
    run._plan = SimpleNamespace(  # type: ignore[assignment]
        host="", port=0, lost_s=1.0, tasks=1, available_now=False, stream=SimpleNamespace(needsReconfiguration=None)
    )
    context.spark = context.slots = None
    context.commits = SimpleNamespace(check_owner=None, abort=step("abort epochs"))
    run._committer = SimpleNamespace(close=step("close committer"))  # type: ignore[assignment]
    monkeypatch.setattr(run, "_drive", step("drive"))
    planner: Any = SimpleNamespace(
        prepare_lanes=lambda _: None, plan_tasks=lambda *_: SimpleNamespace(lanes=({0: None},))
    )
    if broken:
        with pytest.raises(OSError, match=f"cannot {broken}"):
            run._run_tasks(planner, [None], 1)  # type: ignore[list-item]
    else:
        run._run_tasks(planner, [None], 1)  # type: ignore[list-item]
    assert steps == [
        "start job", "drive", "stop tasks", "end job", "close watch", "close connections", "close committer",
        "abort epochs",
    ]  # fmt: skip


def test_begin_of_reading_starts_progress_and_watch() -> None:
    run, machine, tasks = run_of_two_lanes()
    begun: list[Any] = []
    progress: Any = run._context.progress
    progress.begin = begun.append
    tasks.start = lambda: begun.append("watch")
    act(run, machine, tasks, [BeginReading()])
    assert len(begun) == 2
    assert tasks.messages == [Go()]


def test_calls_that_wait_learn_the_end_of_rows_or_the_error_of_the_source() -> None:
    run, machine, tasks = run_of_two_lanes()
    context: Any = run._context
    run._plan = SimpleNamespace(stream=Empty(None))  # type: ignore[assignment]
    context.commits.start = "3"
    ended: list[Any] = []
    run._waits = SimpleNamespace(  # type: ignore[assignment]
        set_target=lambda *given: ended.append(given), fail_poll=ended.append
    )
    error = OSError("no broker")
    act(run, machine, tasks, [TakeEnd(EndFound(cast("Any", 5))), TakeEnd(EndFound(None, error))])
    assert ended == [(5, 3), error]


def test_status_is_that_of_reading_again_when_a_slow_epoch_is_committed() -> None:
    run, machine, tasks = run_of_two_lanes()
    act(run, machine, tasks, [WarnOfLanes(4, [1], 31.0)])
    assert run._control.message == "Waiting for lane 1 to end epoch 4"
    act(run, machine, tasks, [TakeCommit(cast("Any", 9), None, EpochLoad(100.0), was_slow=True)])
    assert run._control.message == "Processing new data"


def test_call_whose_rows_are_committed_asks_for_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    run, machine, tasks = run_of_two_lanes()
    waiting: Any = SimpleNamespace(was_polled=True, target=5, is_over=False)
    run._waits._waits.append(waiting)
    run._waits.end_wanted.set()
    commands = machine.take_event(Reports(tuple(LaneReport(lane, 4, "{}", "") for lane in range(2))), 1.0)
    run._events.put(CommitEnded(cast("CommitEpoch", commands[0]), cast("Any", 5)))
    asked: list[Asked] = []

    def tick(_: float, given: Asked) -> list[Any]:
        asked.append(given)
        machine.fail(OSError("enough"))
        return []

    monkeypatch.setattr(machine, "tick", tick)
    run._drive(machine, tasks, tasks, tasks)
    assert asked == [Asked()]


def test_last_epoch_that_is_given_up_ends_the_commit_that_waits() -> None:
    run, machine, tasks = run_of_two_lanes()
    act(run, machine, tasks, [GiveUp()])
    assert run._control.give_up.is_set()


def test_end_of_an_epoch_clears_the_requests_for_it() -> None:
    run, machine, tasks = run_of_two_lanes()
    run._waits.end_wanted.set()
    act(run, machine, tasks, machine.coordinator.end_now())
    assert not run._asked().end_epoch
