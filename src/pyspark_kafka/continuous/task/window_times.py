"""Windows of event time: the window or session that a row begins in, and the time at which it is late. Pure.

Times are microseconds since 1970, as in Spark; watermarks and timers are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.state.timers import MAX_TIME_MS

# So that the bounds of every window can be computed.
MAX_DURATION_US = 2**60
_MAX_US = MAX_TIME_MS - 2 * MAX_DURATION_US
_FACTORS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NS_IN_US = _US_IN_MS = 1_000


@dataclass(frozen=True)
class TimeWindow:
    """Windows of one length: tumbling if the slide is the length, otherwise sliding.

    Attributes:
        column: the column with the time of a row.
        duration_us: the length of a window.
        slide_us: the time from the start of a window to the start of the next one; at most the length.
        start_us: the start of a window, to which the starts of the others are aligned.

    Source: Spark `TimeWindow`, `TimeWindowing`.
    """

    name: ClassVar[str] = "window"

    column: str
    duration_us: int
    slide_us: int
    start_us: int = 0

    @property
    def text(self) -> str:
        """Return what must be the same in the next run."""
        return f"{self.name}({self.column}, {self.duration_us}, {self.slide_us}, {self.start_us})"

    @property
    def overlapping(self) -> int:
        """Return how many windows a row can belong to."""
        return -(-self.duration_us // self.slide_us)

    def last_starts(self, times: pa.Array) -> pa.Array:
        """Return the start of the last window of each row; null for a time that has none."""
        us = microseconds(times)
        return pc.subtract(us, _modulo(pc.subtract(us, self.start_us), self.slide_us))

    def last_times(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the greatest watermark at which a window of each row is open, in milliseconds; null for none."""
        ends = pc.add(self.last_starts(rows.column(self.column)), self.duration_us)
        return pc.subtract(closing_ms(ends), 1)


@dataclass(frozen=True)
class SessionWindow:
    """Sessions: a row belongs to the session that has a row at most the gap before or after it.

    Attributes:
        column: the column with the time of a row.
        gap_us: the gap.

    Source: Spark `SessionWindow`, `SessionWindowing`.
    """

    name: ClassVar[str] = "session_window"

    column: str
    gap_us: int

    @property
    def text(self) -> str:
        """Return what must be the same in the next run."""
        return f"{self.name}({self.column}, {self.gap_us})"

    def last_times(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the greatest watermark at which the session of each row alone is open, in milliseconds."""
        ends = pc.add(microseconds(rows.column(self.column)), self.gap_us)
        return pc.subtract(closing_ms(ends), 1)


def microseconds(times: pa.Array) -> pa.Array:
    """Return times as microseconds since 1970: timestamps, or milliseconds since 1970.

    Null for times that are so far away that a window of them could not be computed.
    """
    kind, numbers = times.type, times.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _divided(numbers, _NS_IN_US)
    factor = _FACTORS_US[kind.unit if pa.types.is_timestamp(kind) else "ms"]
    limit = _MAX_US // factor
    is_near = pc.and_(pc.greater_equal(numbers, -limit), pc.less_equal(numbers, limit))
    return pc.multiply(pc.if_else(is_near, numbers, pa.scalar(None, pa.int64())), factor)


def closing_ms(ends: pa.Array) -> pa.Array:
    """Return the least watermark that has reached the ends of windows."""
    return pc.add(_divided(pc.subtract(ends, 1), _US_IN_MS), 1)


def _divided(numbers: pa.Array, by: int) -> pa.Array:
    """Return the quotients, rounded down; Arrow rounds to zero."""
    return pc.divide(pc.subtract(numbers, _modulo(numbers, by)), by)


def _modulo(numbers: pa.Array, by: int) -> pa.Array:
    rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, by), rest)
