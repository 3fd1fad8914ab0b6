"""Measures how long the rows of a lane take, a few times for each batch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics, LatencyHistogram, RecentTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.connector import ContinuousPartitionReader
    from pyspark_kafka.continuous.epochs.step_metrics import StepMetrics


class LaneMeter:
    """The metrics of one lane, epoch by epoch.

    A row's latency begins with its own time if the reader knows it, or else when its batch was read. It ends when the
    functions of the query request the next batch: by then, the results of this one were handed to the sink. What a
    function holds back counts as well when it requests more.

    Runs on: executor, on the thread of the lane; some microseconds for each batch.

    Args:
        reader: of the lane.
        clock: seconds since 1970.
    """

    def __init__(self, reader: ContinuousPartitionReader, clock: Callable[[], float] = time.time) -> None:
        self._reader = reader
        self._clock = clock
        self._shares: list[tuple[float, int]] = []
        self._since_record = True
        self._sent = LatencyHistogram()
        self._times = RecentTimes()

    def read(self, rows: int) -> None:
        """Record a batch from the reader."""
        times = self._reader.getRowTimes() if rows else ()
        if times:
            share, left = divmod(rows, len(times))
            # Each time stands for the same number of rows; the first time for the remainder, too.
            self._shares = [(moment, share) for moment in times]
            self._shares[0] = times[0], share + left
        elif rows:
            self._since_record = False
            self._shares = [(self._clock() * 1000, rows)]

    def handed_over(self) -> None:
        """Record that the sink has all rows of the batch."""
        now = self._clock() * 1000
        self._sent.add_until(now, self._shares)
        self._times.add_times(self._shares)
        self._shares = []

    def end_epoch(self, steps: Sequence[StepMetrics] = ()) -> str:
        """Return the metrics of the epoch as text, and begin the metrics of the next epoch.

        Args:
            steps: the metrics of the steps with state.
        """
        now = self._clock() * 1000
        latest = self._reader.getLatestOffset()
        positions = () if latest is None else (latest.json(),)
        ages = self._times.until(now)
        metrics = LaneMetrics(positions, self._sent, ages, now, self._since_record, tuple(steps))
        self._since_record = True
        self._sent, self._times = LatencyHistogram(), RecentTimes()
        return metrics.to_text()
