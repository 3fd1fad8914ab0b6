"""Measures one step with state of a lane: a few additions for each batch, and sums over key groups for each epoch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.step_metrics import COUNTS, StepMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pyspark_kafka.continuous.state.by_key import StateByKey
    from pyspark_kafka.continuous.state.lane_state import LaneState
    from pyspark_kafka.continuous.state.step_time import StepTime

    Function = Callable[[pa.RecordBatch, StateByKey], pa.RecordBatch | None]


class StepMeter:
    """The metrics of one step with state, epoch by epoch.

    Runs on: executor, on the thread of the functions.

    Args:
        states: of the lane.
        step: the number of the step's state.
        step_time: its timers and watermarks; None without.
        clock: seconds, for durations.

    Attributes:
        late: the number of late rows in the epoch.
    """

    def __init__(
        self, states: LaneState, step: int, step_time: StepTime | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.late = 0
        self._states, self._step, self._time, self._clock = states, step, step_time, clock
        self._updates_s = self._removals_s = 0.0

    def update(self, function: Function, rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch | None:
        """Call the function of rows."""
        began = self._clock()
        made = function(rows, state)
        self._updates_s += self._clock() - began
        return made

    def expire(self, function: Function, timers: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch | None:
        """Call the function of timers."""
        began = self._clock()
        made = function(timers, state)
        self._removals_s += self._clock() - began
        return made

    def end_epoch(self) -> StepMetrics:
        """Return the metrics of the epoch, after the commit of its state, and begin the metrics of the next epoch."""
        kept, step_time = self._states.take_counts(self._step), self._time
        counts = dict.fromkeys(COUNTS, 0)
        counts["numRowsTotal"], counts["numRowsUpdated"], counts["numRowsRemoved"] = (
            kept.rows,
            kept.updated,
            kept.removed,
        )
        counts["allUpdatesTimeMs"], counts["allRemovalsTimeMs"] = (
            round(self._updates_s * 1000),
            round(self._removals_s * 1000),
        )
        counts["numRowsDroppedByWatermark"] = self.late
        counts["numStateStoreInstances"] = len(self._states.key_groups)
        counts["stateOnCurrentVersionSizeBytes"] = kept.size
        made = StepMetrics()
        if step_time is not None:
            counts["stateOnCurrentVersionSizeBytes"] += self._states.take_counts(self._step + 1).size
            counts["numTimers"] = step_time.timers()
            counts["numRegisteredTimers"], counts["numExpiredTimers"] = step_time.take_timer_counts()
            made.lowest, made.highest = step_time.extremes()
            made.times = step_time.take_times()
        made.counts = list(counts.values())
        self.late, self._updates_s, self._removals_s = 0, 0.0, 0.0
        return made
