"""The gathered reports of a task's lanes: one message for an epoch, as far as lanes end it together."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.epochs.messages import Reports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.continuous.epochs.coordinator import LaneReport

# A character takes 6 bytes of JSON at most, so the reports of a message fit in a frame.
_MAX_CHARACTERS = 2_000_000


class TaskReports:
    """Sends the reports of an epoch together, when the last lane of the task has ended it.

    An epoch is committed when every lane has reported it, so no report is late by that. A lane that is slow must not
    hide the others: `flush`, which is called every few seconds, sends what waits for it.

    Runs on: executor; any thread; blocks as `send` does. Reports of a lane leave in their order.

    Args:
        lanes: how many lanes the task has.
        send: sends a message to the driver.
    """

    def __init__(self, lanes: int, send: Callable[[Reports], None]) -> None:
        self._lanes, self._send = lanes, send
        self._lock = threading.Lock()
        self._waiting: dict[int, list[LaneReport]] = {}
        # Of epochs that not every lane has ended: how many have.
        self._ended: dict[int, int] = {}

    def add_lane_report(self, report: LaneReport) -> None:
        """Add a report, and send the reports of its epoch if no other is awaited.

        Raises:
            ValueError: it is too long for a message.
        """
        with self._lock:
            waiting = self._waiting.setdefault(report.epoch, [])
            if sum(map(_characters, waiting)) + _characters(report) > _MAX_CHARACTERS:
                # Alone, so that the error of a report that is too long belongs to its lane.
                self._send_waiting()
                self._send(Reports((report,)))
            else:
                waiting.append(report)
            ended = self._ended.pop(report.epoch, 0) + 1
            if ended < self._lanes:
                self._ended[report.epoch] = ended
            elif report.epoch in self._waiting:
                self._send_epoch(report.epoch)

    def flush(self) -> None:
        """Send what waits for slower lanes."""
        with self._lock:
            self._send_waiting()

    def _send_waiting(self) -> None:
        for epoch in sorted(self._waiting):
            self._send_epoch(epoch)

    def _send_epoch(self, epoch: int) -> None:
        reports = self._waiting.pop(epoch)
        if reports:
            self._send(Reports(_with_metrics_merged(reports)))


def _characters(report: LaneReport) -> int:
    return len(report.offset) + len(report.message) + len(report.metrics) + len(report.state)


def _with_metrics_merged(reports: Sequence[LaneReport]) -> tuple[LaneReport, ...]:
    """Let the first report have the metrics of all: the driver adds them up."""
    texts = [report.metrics for report in reports if report.metrics]
    if len(texts) < 2:
        return tuple(reports)
    merged = LaneMetrics.from_text(texts[0])
    for text in texts[1:]:
        merged.merge(LaneMetrics.from_text(text))
    return (
        replace(reports[0], metrics=merged.to_text()),
        *(replace(report, metrics="") for report in reports[1:]),
    )
