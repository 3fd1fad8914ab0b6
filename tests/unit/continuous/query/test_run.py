"""One run of a continuous query, without Spark."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.connector import CommitLimit
from pyspark_kafka.continuous.epochs.coordinator import CommitEpoch, EpochCoordinator, LaneReport
from pyspark_kafka.continuous.epochs.messages import End, Failed, Go, Hello, Moved, Reports, Started
from pyspark_kafka.continuous.epochs.pace import EpochPace
from pyspark_kafka.continuous.query import run as run_module
from pyspark_kafka.continuous.query.control import QueryControl
from pyspark_kafka.continuous.query.run import QueryRun
from pyspark_kafka.continuous.query.waits import RowWaits


def run_of_two_lanes(commit: Any = None) -> tuple[QueryRun, EpochCoordinator]:
    waits, commits = SimpleNamespace(committed=lambda *_: None), SimpleNamespace(commit=commit)
    context: Any = SimpleNamespace(
        plan=None, control=QueryControl(), waits=waits, query_id="the query", commits=commits, progress=None,
        pace=EpochPace(100),
    )  # fmt: skip
    coordinator = EpochCoordinator(2, 4, 100)
    for lane in range(2):
        coordinator.started(lane)
    coordinator.end_now()
    return QueryRun(context, 4), coordinator


def test_reports_that_come_after_a_failure_are_aborted_as_well() -> None:
    run, coordinator = run_of_two_lanes()
    coordinator.reported(LaneReport(0, 4, "{}", "early"))
    for event in (None, Reports((LaneReport(1, 9, "{}", "of no epoch"), LaneReport(1, 4, "{}", "late")))):
        run._events.put(event)
    run._take_late_reports(coordinator)
    assert [report.message for report in coordinator.open_reports[4]] == ["early", "late"]


def test_run_takes_what_tasks_have_said_until_there_is_something_to_do() -> None:
    run, coordinator = run_of_two_lanes()
    said = Reports((LaneReport(0, 4, "{}", ""),)), Moved(0, 5), Reports((LaneReport(1, 4, "{}", ""),)), Moved(1, 5)
    for event in said:
        run._events.put(event)
    (commit,) = run._take_events(coordinator, 0)
    assert isinstance(commit, CommitEpoch)
    assert not run._take_events(coordinator, 0)
    assert run._events.empty()
    assert not run._take_events(coordinator, 0)


def test_run_that_has_failed_leaves_what_follows_to_the_abort() -> None:
    run, coordinator = run_of_two_lanes()
    for event in (Failed(0, "boom", "the traceback"), Failed(1, "bang", "another one")):
        run._events.put(event)
    assert not run._take_events(coordinator, 0)
    assert "boom" in str(run.failure)
    assert not run._events.empty()


def test_epochs_end_while_an_earlier_one_is_committed() -> None:
    begun, may_end, said = threading.Event(), threading.Event(), list[Any]()

    def commit(action: CommitEpoch) -> str:
        begun.set()
        assert may_end.wait(20)
        return f"end of {action.epoch}"

    run, coordinator = run_of_two_lanes(commit)
    connections: Any = SimpleNamespace(broadcast=said.append)
    for epoch in (4, 5):
        for lane in range(2):
            run._act(coordinator, connections, coordinator.reported(LaneReport(lane, epoch, "{}", "")))
        if epoch == 4:
            assert begun.wait(20)
            run._act(coordinator, connections, coordinator.end_now())
            assert said == [End(5, 0, 100)]
    may_end.set()
    for epoch in (4, 5):
        ended = run._events.get(timeout=20)
        assert (ended.action.epoch, ended.end) == (epoch, f"end of {epoch}")
        run._spans[epoch] = (0.0, 0.0)
        run._act(coordinator, connections, run._take(coordinator, ended))
    run._committer.close()


def test_epochs_that_get_longer_are_told_to_lanes_in_the_progress_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    run, coordinator = run_of_two_lanes(lambda action: f"end of {action.epoch}")
    context: Any = run._context
    limit = CommitLimit(10, "markers", "maxMarkers", 60.0, "Write less.")
    said, shown, context.pace = list[Any](), list[Any](), EpochPace(100, limit)
    context.progress = SimpleNamespace(set_interval=lambda *given: shown.append(given))
    connections: Any = SimpleNamespace(broadcast=said.append)
    for epoch in range(4, 11):
        cost = 4 if epoch == 4 else 0
        run._spans[epoch] = (0.0, 2.0)
        for lane in range(2):
            report = LaneReport(lane, epoch, "{}", "", 1, 1, cost=cost)
            run._act(coordinator, connections, coordinator.reported(report))
        run._take(coordinator, run._events.get(timeout=20))
        run._act(coordinator, connections, coordinator.end_now())
    run._committer.close()
    # Eight a commit of all lanes, ten a second.
    assert shown == [(880, "markers"), (100, "")]
    assert [end.lanes_ms for end in said] == [880] * 5 + [100] * 2
    longer, again = caplog.messages
    assert "last 880 ms from now on, not 100 ms, as a commit of every lane makes 8 markers" in longer
    assert "option maxMarkers allows 10 a second. Write less." in longer
    assert again.endswith("last 100 ms again.")
    assert coordinator._interval_ms == 100


def test_commit_that_fails_is_raised_where_the_query_runs() -> None:
    def commit(action: CommitEpoch) -> str:
        raise OSError(f"no room for epoch {action.epoch}")

    run, coordinator = run_of_two_lanes(commit)
    connections: Any = None
    for lane in range(2):
        run._act(coordinator, connections, coordinator.reported(LaneReport(lane, 4, "{}", "")))
    with pytest.raises(OSError, match="epoch 4"):
        run._take(coordinator, run._events.get(timeout=20))
    run._committer.close()
    assert 4 in coordinator.open_reports


@pytest.mark.parametrize(("rows", "looked", "is_idle"), [(0, 1, True), (0, 0, False), (1, 1, False)])
def test_epoch_without_rows_is_idle_if_every_lane_has_looked_for_them(rows: int, looked: int, is_idle: bool) -> None:
    run, coordinator = run_of_two_lanes(lambda _: "the end")
    committed: list[tuple[Any, ...]] = []
    run._waits = SimpleNamespace(committed=lambda *given: committed.append(given))  # type: ignore[assignment]
    run._spans[4] = (10.0, 11.0)
    for report in (LaneReport(0, 4, "{}", ""), LaneReport(1, 4, "{}", "", rows, rows, looked=looked)):
        run._act(coordinator, None, coordinator.reported(report))  # type: ignore[arg-type]
    run._take(coordinator, run._events.get(timeout=20))
    run._committer.close()
    assert committed == [("the end", 10.0 if is_idle else None)]


def test_query_without_partitions_ends_the_waits_for_rows() -> None:
    class Empty:
        def prepareForTasks(self, tasks: int) -> None:
            """None is needed."""

        def deserializeOffset(self, text: str) -> int:
            return int(text)

        def planInputPartitions(self, start: int) -> list[Any]:
            return []

        def needsReconfiguration(self) -> bool:
            return False

        def latestOffset(self) -> int:
            return 3

    reached: Any = lambda position, target: position >= target  # noqa: E731 - offsets elsewhere
    control, waits = QueryControl(), RowWaits(reached)
    plan = SimpleNamespace(stream=Empty(), tasks=1, available_now=False)
    context: Any = SimpleNamespace(
        plan=plan, control=control, waits=waits, query_id="the query", commits=SimpleNamespace(start="3"),
        progress=None, slots=SimpleNamespace(count=lambda: 1, are_exact=True),
    )  # fmt: skip
    with ThreadPoolExecutor() as pool:
        running = pool.submit(QueryRun(context, 0).run)
        try:
            pool.submit(waits.wait, lambda: True, lambda: None).result(20)
        finally:
            control.stop_asked.set()
        running.result(20)


@pytest.mark.parametrize(
    ("tasks", "count", "available_now", "said"),
    [
        (2, 2, False, "takes all 2 slots of its Spark application: other jobs, such as a batch read"),
        (2, 2, False, ".option('tasks', 1) leaves them some."),
        (1, 1, False, "Start the application with more cores"),
        (1, 2, False, ""),
        (2, 2, True, ""),
    ],
)
def test_query_that_takes_every_slot_says_so_once(
    caplog: pytest.LogCaptureFixture, tasks: int, count: int, available_now: bool, said: str
) -> None:
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(available_now=available_now), control=QueryControl(), waits=None, query_id="the query",
        commits=None, progress=None, slots=SimpleNamespace(count=lambda: count),
    )  # fmt: skip
    for first_epoch in (0, 7):
        QueryRun(context, first_epoch)._warn_of_all_slots(tasks)
    assert len(caplog.messages) == bool(said)
    assert said in caplog.text


class Watch:
    """The slots and partitions of a run, which do not change."""

    due_at = float("inf")

    def start(self) -> None:
        """Nothing is watched."""


@pytest.mark.parametrize("uptime_s", [10.0, 4_000.0, 1e7])
def test_no_epoch_ends_when_lanes_have_just_started_however_long_the_machine_is_up(
    monkeypatch: pytest.MonkeyPatch, uptime_s: float
) -> None:
    """The monotonic clock is the time since the machine was started."""
    ahead = uptime_s - time.monotonic()
    original = time.monotonic
    clock = SimpleNamespace(monotonic=lambda: original() + ahead, time=time.time)
    monkeypatch.setattr(run_module, "time", clock)
    progress = SimpleNamespace(begin=lambda _: None, rest=lambda _: None)
    waits = RowWaits(lambda *_: True)
    context: Any = SimpleNamespace(
        plan=None, control=QueryControl(), waits=waits, query_id="the query", commits=None, progress=progress,
        pace=EpochPace(100),
    )  # fmt: skip
    run, coordinator, said = QueryRun(context, 4), EpochCoordinator(2, 4, 100), list[Any]()
    # As under exactly once, where an idle query ends an epoch each hour.
    run._idle_epoch_s = 3_600.0
    for event in (Started(0), Started(1), Failed(1, "boom", "")):
        run._events.put(event)
    connections: Any = SimpleNamespace(broadcast=said.append)
    watch: Any = Watch()
    run._drive(coordinator, connections, watch, watch)
    assert said == [Go()]
    assert "boom" in str(run.failure)
    assert not run.has_advanced


@pytest.mark.parametrize(("lost", "has_advanced"), [(0, True), (1, False)])
def test_run_with_a_lost_task_has_advanced_if_all_rows_of_its_lanes_are_committed(
    lost: int, has_advanced: bool
) -> None:
    run, coordinator = run_of_two_lanes(lambda _: "the end")
    run._coordinator, run._lanes_of = coordinator, {0: {0}, 1: {1}}
    coordinator.moved(0, 4)
    for lane in range(2):
        coordinator.reported(LaneReport(lane, 4, "{}", ""))
    coordinator.committed(4)
    coordinator.moved(1, 5)
    run._take(coordinator, run_module._TaskLost(lost, "its connection ended"))
    assert f"task {lost} is lost" in str(run.failure)
    assert run.has_advanced is has_advanced


@pytest.mark.parametrize(
    ("here", "said"),
    [(0, "Waiting for Spark to run 2 tasks"), (1, "Waiting for tasks 0, 1 to load"), (2, "Waiting for task 1 to load")],
)
def test_late_start_is_that_of_slots_only_if_no_task_has_come(
    here: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    run, _ = run_of_two_lanes()
    run._lanes_of = {0: {0}, 1: {1}}
    starting = EpochCoordinator(2, 4, 100)
    for task in range(here):
        run._take(starting, Hello(task))
        if here == 2 and task == 0:
            starting.started(0)
    watch: Any = SimpleNamespace(tasks=2, free=lambda: 0)
    run._say_late_start(watch, starting.starting)
    assert said in run._control.message
    assert ("Raise the cores" in caplog.text) is (here == 0)


@pytest.mark.parametrize("ends", ["question", "query"])
def test_run_is_not_planned_before_the_source_has_answered_what_the_run_before_has_asked(ends: str) -> None:
    run, _ = run_of_two_lanes()
    answered, control = threading.Event(), run._control
    control.open_question = threading.Thread(target=answered.wait, args=(30,), daemon=True)
    control.open_question.start()
    with ThreadPoolExecutor(1) as pool:
        may_plan = pool.submit(run._wait_for_the_source)
        try:
            while not control.message.startswith("Waiting for the source to answer"):
                assert not may_plan.done()
        finally:
            (answered if ends == "question" else control.stop_asked).set()
        assert may_plan.result(20) is (ends == "question")
    answered.set()


@pytest.mark.parametrize(("asked", "why"), [(False, "partitions or slots had changed"), (True, "was asked to stop")])
def test_slow_lane_of_a_run_that_is_to_be_planned_again_does_not_end_the_query(
    monkeypatch: pytest.MonkeyPatch, asked: bool, why: str
) -> None:
    monkeypatch.setattr(run_module, "_STOP_SECONDS", 0.0)
    run, coordinator = run_of_two_lanes()
    context: Any = run._context
    context.progress = SimpleNamespace(begin=lambda _: None, rest=lambda _: None)
    run._waits = RowWaits(lambda *_: True)
    run._spans[4] = 0.0, 0.0
    run._reconfigure = not asked
    if asked:
        run._control.stop_asked.set()
    said: list[Any] = []
    connections: Any = SimpleNamespace(broadcast=said.append)
    watch: Any = Watch()
    run._drive(coordinator, connections, watch, watch)
    assert said == [End(5, 1, 100)]
    assert why in str(run.failure)
    # It would end each run that follows.
    assert run._control.give_up.is_set() is asked
