"""The plan of a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.connector import InputPartition
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.continuous.epochs.pace import EpochPace
from pyspark_kafka.continuous.reports.run_log import RunLog
from pyspark_kafka.continuous.run import planner as planner_module
from pyspark_kafka.continuous.run.context import QueryControl
from pyspark_kafka.continuous.run.planner import RunPlanner


def planner_of(
    *,
    slots: int = 2,
    tasks: int | None = None,
    are_exact: bool = True,
    available_now: bool = False,
    schema: Any = None,
) -> tuple[RunPlanner, QueryControl]:
    control = QueryControl()
    nothing = SimpleNamespace(
        createContinuousReaderFactory=lambda: None,
        createStreamingWriterFactory=lambda _: None,
        plan=lambda *_: None,
    )
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(
            stream=nothing, write=nothing, stages=None, tasks=tasks, available_now=available_now, host="", lost_s=20.0,
            schema=schema,
        ),
        control=control, query_id="the query", run_id="the start", spans=None,
        commits=SimpleNamespace(states=nothing), pace=EpochPace(100),
        slots=SimpleNamespace(count=lambda: slots, are_exact=are_exact),
    )  # fmt: skip
    return RunPlanner(context, RunLog("the query", lambda text: setattr(control, "message", text))), control


@pytest.mark.parametrize(
    ("tasks", "slots", "available_now", "warning"),
    [
        (2, 2, False, "takes all 2 slots of its Spark application: other jobs, such as a batch read"),
        (2, 2, False, "Set .option('tasks', 1) to leave a slot free."),
        (1, 1, False, "Start the application with more cores"),
        (1, 2, False, ""),
        (2, 2, True, ""),
    ],
)
def test_query_that_takes_every_slot_is_warned_of_once(
    caplog: pytest.LogCaptureFixture, tasks: int, slots: int, available_now: bool, warning: str
) -> None:
    planner, _ = planner_of(slots=slots, available_now=available_now)
    for first_epoch in (0, 7):
        planner.plan_tasks([InputPartition()] * tasks, tasks, first_epoch, b"", 1)
    assert len(caplog.messages) == bool(warning)
    assert warning in caplog.text


def test_readers_are_checked_where_the_plan_has_a_schema() -> None:
    schema: Any = object()
    assert planner_of()[0].plan_tasks([InputPartition()], 1, 0, b"", 1).readers is None
    readers = planner_of(schema=schema)[0].plan_tasks([InputPartition()], 1, 0, b"", 1).readers
    assert readers == CheckedReaderFactory(None, schema)  # type: ignore[arg-type]


def test_partitions_are_dealt_out_to_tasks_in_turn() -> None:
    partitions = [InputPartition() for _ in range(5)]
    plan = planner_of()[0].plan_tasks(partitions, 2, 3, b"", 1)
    assert [list(lanes) for lanes in plan.lanes] == [[0, 2, 4], [1, 3]]
    assert [lanes[number] for number in range(5) for lanes in plan.lanes if number in lanes] == partitions


@pytest.mark.parametrize(
    ("tasks", "slots", "are_exact", "room", "planned", "warning"),
    [
        (None, 4, True, None, 4, ""),
        (3, 4, True, None, 3, ""),
        (6, 4, True, None, 4, "has option tasks=6, and Spark has slots for 4 tasks: the query starts with 4 tasks."),
        # A user who names a number may know better than a count that is not exact.
        (6, 4, False, None, 6, ""),
        (6, 6, True, 5, 5, "has 5 tasks, not 6: its driver may have 1024 files open"),
    ],
)
def test_tasks_are_limited_by_option_slots_and_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tasks: int | None, slots: int, are_exact: bool,
    room: int | None, planned: int, warning: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(planner_module, "room_for_tasks", lambda: room)
    monkeypatch.setattr(planner_module, "file_limit", lambda: 1024)
    planner, _ = planner_of(slots=slots, tasks=tasks, are_exact=are_exact)
    assert planner.wait_for_slots() == planned
    assert len(caplog.messages) == bool(warning)
    assert warning in caplog.text


def test_query_that_is_stopped_while_it_waits_for_an_executor_has_no_tasks() -> None:
    planner, control = planner_of(slots=0)
    control.stop_asked.set()
    assert planner.wait_for_slots() == 0
    assert control.message == "Waiting for Spark to have an executor"


@pytest.mark.parametrize("ends", ["question", "query"])
def test_run_is_not_planned_before_the_source_has_answered_the_run_before(ends: str) -> None:
    planner, control = planner_of()
    answered = threading.Event()
    control.open_question = threading.Thread(target=answered.wait, args=(30,), daemon=True)
    control.open_question.start()
    with ThreadPoolExecutor(1) as pool:
        may_plan = pool.submit(planner.wait_for_source)
        try:
            while not control.message.startswith("Waiting for the source to answer"):
                assert not may_plan.done()
        finally:
            (answered if ends == "question" else control.stop_asked).set()
        assert may_plan.result(PATIENCE_S) is (ends == "question")
    answered.set()
