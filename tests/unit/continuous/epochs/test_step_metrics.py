"""The metrics of a step with state: they survive their text, are added up, and stay small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.epochs.step_metrics import COUNTS, EventTimes, GroupWatermark, StepMetrics


def of(number: int, **named: Any) -> StepMetrics:
    return StepMetrics([number] * len(COUNTS), **named)


def test_metrics_of_steps_survive_their_text() -> None:
    lowest, highest = GroupWatermark(-5, "t-0", 7), GroupWatermark(9, "t-1")
    steps = of(2, lowest=lowest, highest=highest, times=EventTimes(-4, 10, 6.0, 2)), of(0)
    found = LaneMetrics.from_text(LaneMetrics(steps=steps).to_text())
    assert found.steps == steps


def test_metrics_of_lanes_are_added_and_their_extremes_kept() -> None:
    idle = GroupWatermark(3, "t-2")
    first = of(1, lowest=idle, highest=idle)
    first.merge(
        of(10, lowest=GroupWatermark(8, "t-1", 9), highest=GroupWatermark(8, "t-1"), times=EventTimes(1, 8, 9.0, 2))
    )
    # A key group without timers holds nothing back, however low its watermark is.
    assert first.lowest == GroupWatermark(8, "t-1", 9)
    first.merge(of(100, lowest=GroupWatermark(5, "t-0", 20), times=EventTimes(-1, 3, 2.0, 1)))
    assert first.counts == [111] * len(COUNTS)
    assert (first.lowest, first.highest) == (GroupWatermark(5, "t-0", 20), GroupWatermark(8, "t-1"))
    assert first.times == EventTimes(-1, 8, 11.0, 3)
    first.merge(of(0))
    assert first.counts == [111] * len(COUNTS)


def test_lanes_of_a_task_are_one_text_of_bounded_size() -> None:
    topic = "t" * 249
    merged = LaneMetrics(steps=(of(0), of(0)))
    for number in range(10_000):
        watermark = GroupWatermark(10**15 + number, f"{topic}-{number}", 10**15)
        step = of(10**12, lowest=watermark, highest=watermark, times=EventTimes(1, 2, 3.5, 2))
        merged.merge(LaneMetrics(steps=(step, of(1))))
    assert len(merged.to_text()) < 2_000


@pytest.mark.parametrize(
    "values",
    [
        [[0] * (len(COUNTS) - 1), None, None, None],
        [[0.5] * len(COUNTS), None, None, None],
        [[0] * len(COUNTS), [1, 2, 3], None, None],
        [[0] * len(COUNTS), ["1", "t-0", None], None, None],
        [[0] * len(COUNTS), [1, "t-0", "soon"], None, None],
        [[0] * len(COUNTS), None, [True, "t-0", None], None],
        [[0] * len(COUNTS), None, None, [1, 2, float("nan"), 1]],
        [[0] * len(COUNTS), None, None, [1, 2, 3.0, 0]],
        [[0] * len(COUNTS), None, None, [1, 2.5, 3.0, 1]],
        [[0] * len(COUNTS), None, None],
    ],
)
def test_malformed_metrics_of_a_step_are_refused(values: Any) -> None:
    text = json.dumps([[], [0.0], [0.0], 0, 1, [values]])
    with pytest.raises(ValueError, match="not the metrics of a lane"):
        LaneMetrics.from_text(text)
