"""The totals of a query since its first report to this process: sums that only grow. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._ops.metrics.values import QueryMetrics

DURATION_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""Upper bounds, inclusive, of the histogram of durations of micro-batches, in seconds; above them is one more."""


@dataclass(frozen=True, slots=True)
class QueryTotals:
    """Sums over the micro-batches of a query, over all of its runs that this process has heard of.

    Attributes:
        batches: how many there were.
        rows_read: records by source, which is named by its place among all sources of the query.
        rows_written: rows that the sink received; None if Spark has never counted them.
        duration_s: how long they took together.
        phases_s: the same by part, with Spark's names.
        states: updated values, removed values and late rows by step, which is named by its place and its operator.
        failures: how many runs have ended with an error.
        buckets: how many of them took as long as each bucket of `DURATION_BUCKETS` says; not cumulative.
    """

    batches: int = 0
    rows_read: Mapping[int, int] = field(default_factory=dict)
    rows_written: int | None = None
    duration_s: float = 0.0
    phases_s: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[tuple[int, str], tuple[int, int, int]] = field(default_factory=dict)
    failures: int = 0
    buckets: tuple[int, ...] = (0,) * (len(DURATION_BUCKETS) + 1)

    def plus(self, metrics: QueryMetrics) -> QueryTotals:
        """Return the sums with one micro-batch more."""
        seconds = max(metrics.duration_ms, 0) / 1000
        buckets = list(self.buckets)
        buckets[bisect_left(DURATION_BUCKETS, seconds)] += 1
        rows_read, phases_s = dict(self.rows_read), dict(self.phases_s)
        for source in metrics.sources:
            rows_read[source.index] = rows_read.get(source.index, 0) + source.num_input_rows
        for phase, ms in metrics.phases_ms.items():
            phases_s[phase] = phases_s.get(phase, 0.0) + max(ms, 0) / 1000
        states = dict(self.states)
        for step in metrics.states:
            updated, removed, late = states.get((step.index, step.operator), (0, 0, 0))
            sums = updated + step.updated, removed + step.removed, late + step.late
            states[step.index, step.operator] = sums
        written = metrics.num_output_rows
        return replace(
            self,
            batches=self.batches + 1,
            rows_read=rows_read,
            rows_written=self.rows_written if written is None else (self.rows_written or 0) + written,
            duration_s=self.duration_s + seconds,
            phases_s=phases_s,
            states=states,
            buckets=tuple(buckets),
        )
