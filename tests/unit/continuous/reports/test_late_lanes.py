"""Lanes that hold up the commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.coordinator import EpochCoordinator, LaneReport
from pyspark_kafka.continuous.reports.late_lanes import LateLanes

if TYPE_CHECKING:
    import pytest


def test_lanes_that_hold_up_the_commits_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    late = LateLanes("the query", said.append)
    coordinator = EpochCoordinator(2, 4, 100)
    for lane in range(2):
        coordinator.started(lane)
    coordinator.end_now()
    coordinator.reported(LaneReport(0, 4, "{}", "{}"))
    spans = {4: (90.0, 100.0)}
    late.look(coordinator.awaited, spans, 129.0)
    assert not late.is_over()
    for now in (131.0, 132.0):
        late.look(coordinator.awaited, spans, now)
    assert said == ["Waiting for lane 1 to end epoch 4"]
    assert caplog.text.count("lane 1, should have ended epoch 4 31 s ago") == 1
    assert late.is_over()
    assert not late.is_over()
    late.look(None, {}, 140.0)
