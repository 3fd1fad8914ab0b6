"""The warnings of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.reports.run_log import RunLog


def test_lanes_that_delay_commits_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    statuses: list[str] = []
    log = RunLog("the query", statuses.append)
    coordinator = EpochCoordinator(2, 4, 100)
    for lane in range(2):
        coordinator.started(lane)
    coordinator.end_now()
    coordinator.reported(LaneReport(0, 4, "{}", "{}"))
    spans = {4: (90.0, 100.0)}
    log.wait_for_lanes(coordinator.awaited, spans, 129.0)
    assert not log.end_wait_for_lanes()
    for now in (131.0, 132.0):
        log.wait_for_lanes(coordinator.awaited, spans, now)
    assert statuses == ["Waiting for lane 1 to end epoch 4"]
    assert caplog.text.count("lane 1, should have ended epoch 4 31 s ago") == 1
    assert log.end_wait_for_lanes()
    assert not log.end_wait_for_lanes()
    log.wait_for_lanes(None, {}, 140.0)


def test_each_wait_is_logged_once_and_shown_each_time(caplog: pytest.LogCaptureFixture) -> None:
    statuses: list[str] = []
    log = RunLog("the query", statuses.append)
    waits: list[Callable[[], None]] = [
        lambda: log.wait_for_executor(is_late=True),
        lambda: log.wait_for_tasks([0, 2], 3),
        lambda: log.wait_for_slots(3, 1),
    ]
    for wait in waits * 2:
        wait()
    assert statuses == [
        "Waiting for Spark to have an executor",
        "Waiting for tasks 0, 2 to load the functions and open the state",
        "Waiting for Spark to run 3 tasks at the same time",
    ] * 2  # fmt: skip
    executor, tasks, slots = caplog.messages
    assert "has no executor" in executor
    assert "waits for 2 of its 3 tasks, tasks 0, 2, which Spark has started" in tasks
    assert "(free slots: 1). Raise the cores" in slots


def test_missing_executor_is_not_logged_before_it_is_late(caplog: pytest.LogCaptureFixture) -> None:
    RunLog("the query", lambda _: None).wait_for_executor(is_late=False)
    assert not caplog.messages
