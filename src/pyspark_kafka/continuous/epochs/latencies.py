"""The metrics that lanes report of an epoch, in text of bounded size: latencies as histograms of fixed buckets. Pure.

Nothing of the query depends on them: text that cannot be read is left out of the progress.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark_kafka.continuous.epochs.step_metrics import StepMetrics

# Each bucket is a tenth wider than the one before it, so that a percentile is off by 5 % at most; the last one has
# everything above 118 days.
_MIN_MS, _GROWTH, _BUCKETS = 0.1, 1.1, 268
_BOUNDS = tuple(_MIN_MS * _GROWTH**number for number in range(_BUCKETS - 1))
# What a bucket stands for: its middle. All below 0.1 ms is 0.05 ms.
_MIDDLES = (
    _MIN_MS / 2,
    *((low + high) / 2 for low, high in pairwise(_BOUNDS)),
    _BOUNDS[-1],
)


class LatencyHistogram:
    """The number of rows by latency.

    Not safe for threads.

    Attributes:
        rows: the number of counted rows.
        greatest_ms: the greatest measured latency; 0 without rows.
    """

    __slots__ = ("_counts", "greatest_ms", "rows")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.rows = 0
        self.greatest_ms = 0.0

    def add_latency(self, latency_ms: float, rows: int = 1) -> None:
        """Count rows of one latency; a negative one, of clocks that differ, counts as 0."""
        bucket = bisect_right(_BOUNDS, latency_ms)
        self._counts[bucket] = self._counts.get(bucket, 0) + rows
        self.rows += rows
        self.greatest_ms = max(self.greatest_ms, latency_ms)

    def add_until(self, now_ms: float, begun: Sequence[tuple[float, int]]) -> None:
        """Count rows by the time from a moment to now. For each batch, so it takes few calls.

        Args:
            now_ms: when they have ended.
            begun: moments in ms, each with the rows that began then.
        """
        counts = self._counts
        for moment, rows in begun:
            latency_ms = now_ms - moment
            bucket = bisect_right(_BOUNDS, latency_ms)
            counts[bucket] = counts.get(bucket, 0) + rows
            self.rows += rows
            if latency_ms > self.greatest_ms:  # noqa: PLR1730 - a call takes longer
                self.greatest_ms = latency_ms

    def merge(self, other: LatencyHistogram, later_ms: float = 0.0) -> None:
        """Count the rows of another histogram as well.

        Args:
            other: stays as it is.
            later_ms: how much longer each of its rows took than it says.
        """
        if not other.rows:
            return
        later_ms, counts = max(later_ms, 0.0), self._counts
        for of_other, rows in other._counts.items():
            bucket = bisect_right(_BOUNDS, _MIDDLES[of_other] + later_ms) if later_ms else of_other
            counts[bucket] = counts.get(bucket, 0) + rows
        self.rows += other.rows
        self.greatest_ms = max(self.greatest_ms, other.greatest_ms + later_ms)

    def percentile(self, percent: float) -> float:
        """Return the latency in ms that this share of the rows does not exceed; 0 without rows."""
        wanted = self.rows * percent / 100
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= wanted:
                return min(_MIDDLES[bucket], self.greatest_ms)
        return self.greatest_ms

    def summary(self) -> dict[str, float]:
        """Return `p50`, `p99` and `max` in ms; empty without rows."""
        if not self.rows:
            return {}
        found = {"p50": self.percentile(50), "p99": self.percentile(99), "max": self.greatest_ms}
        return {name: round(value, 2 if value < 100 else 0) for name, value in found.items()}

    def to_list(self) -> list[float]:
        """Return the histogram as numbers for JSON: the greatest latency, then bucket, rows, bucket, rows."""
        pairs = (number for pair in sorted(self._counts.items()) for number in pair)
        return [round(self.greatest_ms, 3), *pairs]

    @classmethod
    def from_list(cls, numbers: Sequence[float]) -> LatencyHistogram:
        """Return the histogram of `to_list`.

        Raises:
            ValueError: the numbers are not a histogram.
        """
        # The driver reads two for each task and epoch, so it takes few steps.
        made = cls()
        pairs = numbers[1:]
        if not numbers or len(pairs) % 2 or not set(map(type, pairs)) <= {int} or min(pairs, default=0) < 0:
            raise ValueError("not the numbers of a histogram")
        buckets, counts = pairs[::2], pairs[1::2]
        if max(buckets, default=0) >= _BUCKETS:
            raise ValueError(f"a histogram has {_BUCKETS} buckets")
        found: dict[Any, Any] = dict(zip(buckets, counts, strict=True))
        if len(found) < len(buckets):
            raise ValueError("a histogram has each bucket once")
        made.greatest_ms = finite(numbers[0])
        made._counts, made.rows = found, sum(found.values())
        return made


class RecentTimes:
    """Moments of rows, for a latency whose end is not known yet: at most some hundred, each for a number of rows.

    When there are too many, neighbors become one, with the mean of their times.
    """

    __slots__ = ("_max_times", "_pairs")

    def __init__(self, max_times: int = 512) -> None:
        self._max_times = max_times
        self._pairs: list[tuple[float, int]] = []

    def add_times(self, pairs: Sequence[tuple[float, int]]) -> None:
        """Add moments, each with its rows."""
        self._pairs += pairs
        if len(self._pairs) >= self._max_times:
            # Sorted, so that only times that lie side by side become one.
            self._pairs = list(_halved(sorted(self._pairs)))

    def until(self, time_ms: float) -> LatencyHistogram:
        """Return the age of the rows at a moment."""
        made = LatencyHistogram()
        made.add_until(time_ms, self._pairs)
        return made


@dataclass(slots=True)
class LaneMetrics:
    """The metrics of one epoch of a lane, or of several lanes of a task.

    Attributes:
        latest: the JSON of the positions after the last rows that readers know of; without readers that do not know.
        sent: how long rows took until the sink had what became of them.
        ages: how long before `at_ms` the rows came into being, or were read.
        at_ms: when the last lane ended the epoch, in ms since 1970, by the clock of its machine.
        since_record: whether all times begin with the times of the rows; if not, when their batch was read.
        steps: of the steps with state, in their order.
    """

    latest: tuple[str, ...] = ()
    sent: LatencyHistogram = field(default_factory=LatencyHistogram)
    ages: LatencyHistogram = field(default_factory=LatencyHistogram)
    at_ms: float = 0.0
    since_record: bool = True
    steps: tuple[StepMetrics, ...] = ()

    def merge(self, other: LaneMetrics) -> None:
        """Add the metrics of another lane, of the same machine and epoch."""
        self.latest += other.latest
        self.sent.merge(other.sent)
        earlier, later = sorted((self, other), key=lambda metrics: metrics.at_ms)
        ages = LatencyHistogram()
        ages.merge(later.ages)
        ages.merge(earlier.ages, later_ms=later.at_ms - earlier.at_ms)
        self.ages, self.at_ms = ages, later.at_ms
        self.since_record = self.since_record and other.since_record
        for step, of_other in zip(self.steps, other.steps, strict=True):
            step.merge(of_other)

    def to_text(self) -> str:
        """Return the text that travels: beside the positions at most some 5 kB, and 1 kB for each step with state."""
        histograms = self.sent.to_list(), self.ages.to_list()
        steps = [step.to_list() for step in self.steps]
        metrics = [self.latest, *histograms, round(self.at_ms, 3), int(self.since_record), steps]
        return json.dumps(metrics, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> LaneMetrics:
        """Return the metrics of their text.

        Raises:
            ValueError: it is not a text of `to_text`.
        """
        try:
            latest, sent, ages, at_ms, since_record, steps = json.loads(text)
            if type(latest) is not list or not all(type(position) is str for position in latest):
                raise ValueError("positions are texts")  # noqa: TRY301 - one place says what is wrong
            return cls(
                tuple(latest),
                LatencyHistogram.from_list(sent),
                LatencyHistogram.from_list(ages),
                finite(at_ms),
                bool(since_record),
                tuple(map(StepMetrics.from_list, steps)),
            )
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"not the metrics of a lane: {error}") from error


def _halved(pairs: Sequence[tuple[float, int]]) -> Iterable[tuple[float, int]]:
    for (first, some), (second, others) in zip(pairs[::2], pairs[1::2], strict=False):
        yield (first * some + second * others) / (some + others), some + others
    if len(pairs) % 2:
        yield pairs[-1]


def finite(number: float) -> float:
    """Return a number of JSON as a float.

    Raises:
        ValueError: it is infinite, or none.
    """
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a number of a histogram")
    return float(number)
