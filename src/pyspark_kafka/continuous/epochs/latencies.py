"""Latencies as a histogram of fixed buckets: cheap to add to, to merge, and to send as text of bounded size. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Each bucket is a tenth wider than the one before it, so that a percentile is off by 5 % at most; the last one has
# everything above 118 days.
_LEAST_MS, _GROWTH, _BUCKETS = 0.1, 1.1, 268
_BOUNDS = tuple(_LEAST_MS * _GROWTH**number for number in range(_BUCKETS - 1))
# What a bucket stands for: its middle. All below 0.1 ms is 0.05 ms.
_MIDDLES = (
    _LEAST_MS / 2,
    *((low + high) / 2 for low, high in pairwise(_BOUNDS)),
    _BOUNDS[-1],
)


class LatencyHistogram:
    """How many rows had which latency.

    Not safe for threads.

    Attributes:
        rows: how many rows were counted.
        greatest_ms: the greatest latency, as it was measured; 0 without rows.
    """

    __slots__ = ("_counts", "greatest_ms", "rows")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.rows = 0
        self.greatest_ms = 0.0

    def add(self, latency_ms: float, rows: int = 1) -> None:
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
            ValueError: the numbers are not those of a histogram.
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

    __slots__ = ("_most", "_pairs")

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._pairs: list[tuple[float, int]] = []

    def add(self, pairs: Sequence[tuple[float, int]]) -> None:
        """Add moments, each with its rows."""
        self._pairs += pairs
        if len(self._pairs) >= self._most:
            # Sorted, so that only times that lie side by side become one.
            self._pairs = list(_halved(sorted(self._pairs)))

    def until(self, time_ms: float) -> LatencyHistogram:
        """Return how long before a moment the rows were."""
        made = LatencyHistogram()
        made.add_until(time_ms, self._pairs)
        return made


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
        raise ValueError(f"{number} is no number of a histogram")
    return float(number)
