"""The metrics of one step with state in one epoch: counts, sums, the extremes of its watermarks. Pure.

Their text has a bounded size, whatever the number of key groups and timers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

# What is counted, in the order of the text; the names are Spark's, as far as it has one.
COUNTS = (
    "numRowsTotal",
    "numRowsUpdated",
    "numRowsRemoved",
    "allUpdatesTimeMs",
    "allRemovalsTimeMs",
    "numRowsDroppedByWatermark",
    "numStateStoreInstances",
    "stateOnCurrentVersionSizeBytes",
    "numTimers",
    "numRegisteredTimers",
    "numExpiredTimers",
)


@dataclass(frozen=True, slots=True)
class GroupWatermark:
    """The watermark of one key group.

    Attributes:
        watermark_ms: the watermark, in ms since 1970.
        key_group: the name of the key group.
        timer_ms: the time of its first timer; None if none waits.
    """

    watermark_ms: int
    key_group: str
    timer_ms: int | None = None

    @property
    def order(self) -> tuple[bool, int, str]:
        """The order in which key groups hold something back: those without timers hold nothing back."""
        return self.timer_ms is None, self.watermark_ms, self.key_group

    def to_list(self) -> list[Any]:
        """Return it as values for JSON."""
        return [self.watermark_ms, self.key_group, self.timer_ms]

    @classmethod
    def from_list(cls, values: Any) -> GroupWatermark:
        """Return the watermark of `to_list`.

        Raises:
            ValueError: the values are of another kind.
        """
        watermark_ms, key_group, timer_ms = values
        if type(watermark_ms) is not int or type(key_group) is not str or type(timer_ms) not in (int, type(None)):
            raise ValueError("not the watermark of a key group")
        return cls(watermark_ms, key_group, timer_ms)


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The times of the rows that moved watermarks, or could have.

    Attributes:
        least_ms: the least one, in ms since 1970.
        greatest_ms: the greatest one.
        sum_ms: their sum; a float, because far times do not fit in 64 bits together.
        rows: the number of rows.
    """

    least_ms: int
    greatest_ms: int
    sum_ms: float
    rows: int

    def plus(self, other: EventTimes | None) -> EventTimes:
        """Return the times of both."""
        if other is None:
            return self
        least, greatest = min(self.least_ms, other.least_ms), max(self.greatest_ms, other.greatest_ms)
        return EventTimes(least, greatest, self.sum_ms + other.sum_ms, self.rows + other.rows)

    def to_list(self) -> list[float]:
        """Return them as numbers for JSON."""
        return [self.least_ms, self.greatest_ms, self.sum_ms, self.rows]

    @classmethod
    def from_list(cls, values: Any) -> EventTimes:
        """Return the times of `to_list`.

        Raises:
            ValueError: the values are of another kind.
        """
        least, greatest, total, rows = values
        if not type(least) is type(greatest) is type(rows) is int or not math.isfinite(total) or rows < 1:
            raise ValueError("not the times of rows")
        return cls(least, greatest, float(total), rows)


@dataclass(slots=True)
class StepMetrics:
    """The metrics of one step with state, of one lane or of several.

    Attributes:
        counts: a number for each of `COUNTS`.
        lowest: the watermark of the key group that is furthest behind, of those with timers if there are any; None
            without event time, and before the first rows.
        highest: the watermark of the key group that is ahead of all others.
        times: of the epoch's rows; None without event time, and without rows.
    """

    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    lowest: GroupWatermark | None = None
    highest: GroupWatermark | None = None
    times: EventTimes | None = None

    def merge(self, other: StepMetrics) -> None:
        """Add the metrics of other key groups."""
        self.counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        self.take_watermarks(other.lowest, other.highest)
        if other.times is not None:
            self.times = other.times.plus(self.times)

    def take_watermarks(self, lowest: GroupWatermark | None, highest: GroupWatermark | None) -> None:
        """Compare the watermarks with others."""
        if lowest is not None and (self.lowest is None or lowest.order < self.lowest.order):
            self.lowest = lowest
        if highest is not None and (self.highest is None or highest.watermark_ms > self.highest.watermark_ms):
            self.highest = highest

    def to_list(self) -> list[Any]:
        """Return the metrics as values for JSON."""
        return [self.counts, *(None if each is None else each.to_list() for each in self._others)]

    @property
    def _others(self) -> tuple[GroupWatermark | None, GroupWatermark | None, EventTimes | None]:
        return self.lowest, self.highest, self.times

    @classmethod
    def from_list(cls, values: Any) -> StepMetrics:
        """Return the metrics of `to_list`.

        Raises:
            ValueError: the values are of another kind.
            TypeError: likewise.
        """
        counts, lowest, highest, times = values
        if type(counts) is not list or len(counts) != len(COUNTS) or set(map(type, counts)) != {int}:
            raise ValueError("not the counts of a step")
        return cls(
            counts,
            None if lowest is None else GroupWatermark.from_list(lowest),
            None if highest is None else GroupWatermark.from_list(highest),
            None if times is None else EventTimes.from_list(times),
        )
