"""Reports that are sent when the state of their epoch is written."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.task.deferred_reports import DeferredReports

_REPORT = LaneReport(0, 4, "{}", "")


class Driver:
    """The connection of a task, which takes no report if `error` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[LaneReport] = []
        self.is_stopped = False
        self._error = error

    def send_message(self, report: LaneReport) -> None:
        if self._error is not None:
            raise self._error
        self.sent.append(report)

    def stop(self) -> None:
        self.is_stopped = True


class Pending:
    text = "versions"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def write(self) -> None:
        if self._error is not None:
            raise self._error


def deferred(driver: Any) -> DeferredReports:
    return DeferredReports(driver)


def test_report_names_the_versions_that_were_written() -> None:
    driver, pending = Driver(), Pending()
    given: Any = pending
    reports = deferred(driver)
    reports.send_report(_REPORT, given)
    reports.wait()
    reports.close()
    assert [report.state for report in driver.sent] == ["versions"]
    assert driver.sent[0].late_state_ms >= 1
    assert not driver.is_stopped


@pytest.mark.parametrize(
    ("driver", "pending"),
    [(Driver(), Pending(OSError("no room"))), (Driver(OSError("no room")), Pending())],
    ids=["files that cannot be written", "a report that cannot be sent"],
)
def test_failure_ends_the_lanes_of_the_task(driver: Driver, pending: Any) -> None:
    reports = deferred(driver)
    reports.send_report(_REPORT, pending)
    with pytest.raises(OSError, match="no room"):
        reports.wait()
    reports.close()
    assert driver.is_stopped
    assert driver.sent == []
