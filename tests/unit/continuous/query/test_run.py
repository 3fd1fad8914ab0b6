"""One run of a continuous query, without Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.query.control import QueryControl
from pyspark_kafka.continuous.query.run import QueryRun
from pyspark_kafka.continuous.query.waits import RowWaits


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
