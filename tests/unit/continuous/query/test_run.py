"""One run of a continuous query, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.query.control import QueryControl
from pyspark_kafka.continuous.query.run import QueryRun

if TYPE_CHECKING:
    import pytest


def run_of_two_lanes() -> tuple[QueryRun, EpochCoordinator]:
    context: Any = SimpleNamespace(
        plan=None, control=QueryControl(), waits=None, query_id="the query", commits=None, progress=None
    )
    coordinator = EpochCoordinator(2, 4, 100)
    for lane in range(2):
        coordinator.started(lane)
    coordinator.end_now()
    return QueryRun(context, 4), coordinator


def test_reports_that_come_after_a_failure_are_aborted_as_well() -> None:
    run, coordinator = run_of_two_lanes()
    coordinator.reported(LaneReport(0, 4, "{}", "early"))
    for event in (None, LaneReport(1, 4, "{}", "late"), LaneReport(1, 9, "{}", "of no epoch")):
        run._events.put(event)
    run._take_late_reports(coordinator)
    assert [report.message for report in coordinator.open_reports[4]] == ["early", "late"]


def test_lanes_that_hold_up_the_commits_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    run, coordinator = run_of_two_lanes()
    run._spans[4] = 90.0, 100.0
    coordinator.reported(LaneReport(0, 4, "{}", "{}"))
    run._say_late(coordinator, 129.0)
    assert caplog.text == ""
    for now in (131.0, 132.0):
        run._say_late(coordinator, now)
    assert run._control.message == "Waiting for lane 1 to end epoch 4"
    assert caplog.text.count("lane 1, should have ended epoch 4 31 s ago") == 1
