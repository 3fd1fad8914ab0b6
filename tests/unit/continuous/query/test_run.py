"""One run of a continuous query, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.query.run import QueryRun


def test_reports_that_come_after_a_failure_are_aborted_as_well() -> None:
    context: Any = SimpleNamespace(plan=None, control=None, waits=None)
    run = QueryRun(context, 4)
    coordinator = EpochCoordinator(2, 4, 100)
    for lane in range(2):
        coordinator.started(lane)
    coordinator.end_now()
    coordinator.reported(LaneReport(0, 4, "{}", "early"))
    for event in (None, LaneReport(1, 4, "{}", "late"), LaneReport(1, 9, "{}", "of no epoch")):
        run._events.put(event)
    run._take_late_reports(coordinator)
    assert [report.message for report in coordinator.open_reports[4]] == ["early", "late"]
