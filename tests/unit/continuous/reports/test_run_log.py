"""The warnings of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyspark_kafka.continuous.reports.run_log import RunLog


def test_lanes_that_delay_commits_are_named(caplog: pytest.LogCaptureFixture) -> None:
    statuses: list[str] = []
    RunLog("the query", statuses.append).wait_for_lanes([1], 4, 31.2)
    assert statuses == ["Waiting for lane 1 to end epoch 4"]
    assert "1 of its lanes, lane 1, should have ended epoch 4 31 s ago" in caplog.text


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
