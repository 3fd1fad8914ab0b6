"""Reports of a task's lanes: together if lanes end an epoch together, and never held up by a slow one."""

from __future__ import annotations

import random

import pytest

from pyspark_kafka.continuous.channel import task_reports
from pyspark_kafka.continuous.channel.task_reports import TaskReports
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.epochs.messages import Reports


def of(lane: int, epoch: int, position: str = "{}", *, rows: int = 0) -> LaneReport:
    metrics = LaneMetrics((f"latest of {lane}",))
    if rows:
        metrics.sent.add_latency(5.0, rows)
    return LaneReport(lane, epoch, position, "{}", rows, rows, metrics.to_text() if rows else "")


def test_reports_of_an_epoch_leave_together_with_the_metrics_of_all_lanes() -> None:
    sent = list[Reports]()
    reports = TaskReports(3, sent.append)
    for lane in (2, 0):
        reports.add_lane_report(of(lane, 7, rows=lane + 1))
    assert not sent
    reports.add_lane_report(of(1, 7))
    (message,) = sent
    assert [report.lane for report in message.reports] == [2, 0, 1]
    assert [bool(report.metrics) for report in message.reports] == [True, False, False]
    metrics = LaneMetrics.from_text(message.reports[0].metrics)
    assert (metrics.latest, metrics.sent.rows) == (("latest of 2", "latest of 0"), 4)


def test_report_of_a_task_with_one_lane_leaves_at_once() -> None:
    sent = list[Reports]()
    reports = TaskReports(1, sent.append)
    for epoch in (4, 5):
        reports.add_lane_report(of(0, epoch, rows=1))
    assert sent == [Reports((of(0, 4, rows=1),)), Reports((of(0, 5, rows=1),))]


def test_slow_lane_does_not_hide_the_others_for_longer_than_to_the_next_flush() -> None:
    sent = list[Reports]()
    reports = TaskReports(3, sent.append)
    for epoch in (4, 5):
        for lane in (0, 1):
            reports.add_lane_report(of(lane, epoch))
    reports.flush()
    reports.flush()
    assert [[(each.lane, each.epoch) for each in message.reports] for message in sent] == [
        [(0, 4), (1, 4)],
        [(0, 5), (1, 5)],
    ]
    for epoch in (4, 5):
        reports.add_lane_report(of(2, epoch))
    assert sent[2:] == [Reports((of(2, 4),)), Reports((of(2, 5),))]
    assert not reports._waiting
    assert not reports._ended


def test_long_reports_leave_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_reports, "_MAX_CHARACTERS", 100)
    sent = list[Reports]()
    reports = TaskReports(4, sent.append)
    for lane, length in enumerate((60, 10, 60, 500)):
        reports.add_lane_report(of(lane, 7, "p" * length))
    assert [[each.lane for each in message.reports] for message in sent] == [[0, 1], [2], [3]]
    assert not reports._waiting
    assert not reports._ended


def test_report_that_is_too_long_fails_its_own_lane_after_those_before_it() -> None:
    sent = list[Reports]()

    def send(message: Reports) -> None:
        if len(message.reports[0].offset) > 1_000_000:
            raise ValueError("too long")
        sent.append(message)

    reports = TaskReports(3, send)
    reports.add_lane_report(of(0, 7))
    with pytest.raises(ValueError, match="too long"):
        reports.add_lane_report(of(1, 7, "p" * 3_000_000))
    assert sent == [Reports((of(0, 7),))]


@pytest.mark.parametrize("seed", range(30))
def test_reports_of_a_lane_arrive_once_and_in_order_whatever_the_others_do(seed: int) -> None:
    rng = random.Random(seed)
    sent = list[Reports]()
    lanes = rng.randrange(1, 5)
    reports = TaskReports(lanes, sent.append)
    at = [0] * lanes
    while min(at) < 6:
        lane = rng.choice([lane for lane in range(lanes) if at[lane] < 6])
        reports.add_lane_report(of(lane, at[lane]))
        at[lane] += 1
        if rng.random() < 0.1:
            reports.flush()
    found = [(report.lane, report.epoch) for message in sent for report in message.reports]
    assert len(found) == 6 * lanes
    for lane in range(lanes):
        assert [epoch for number, epoch in found if number == lane] == list(range(6))
