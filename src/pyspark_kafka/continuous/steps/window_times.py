"""Windows of event time: the window or session that a row begins in, and the time at which it is late. Pure.

Times are microseconds since 1970, as in Spark; watermarks and timers are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from pyspark_kafka.continuous.state.times import MAX_TIME_MS, computed, divided, multiplied

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
        """Return the text that must be the same in the next run."""
        return f"{self.name}({self.column}, {self.duration_us}, {self.slide_us}, {self.start_us})"

    @property
    def overlapping(self) -> int:
        """Return the maximum of windows for a row."""
        return -(-self.duration_us // self.slide_us)

    def last_starts(self, times: pa.Array) -> pa.Array:
        """Return the start of the last window of each row; null for a time that has none."""
        return computed(microseconds(times), lambda us: us - (us - self.start_us) % self.slide_us)

    def last_times(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the greatest watermark at which a window of each row is open, in milliseconds; null for none."""
        return _last_ms(self.last_starts(rows.column(self.column)), self.duration_us)


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
        """Return the text that must be the same in the next run."""
        return f"{self.name}({self.column}, {self.gap_us})"

    def last_times(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the greatest watermark at which the session of each row alone is open, in milliseconds."""
        return _last_ms(microseconds(rows.column(self.column)), self.gap_us)


def microseconds(times: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return times as microseconds since 1970: timestamps, or milliseconds since 1970.

    Null for times that are so far away that a window of them could not be computed.
    """
    kind, numbers = times.type, times.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return divided(numbers, _NS_IN_US)
    return multiplied(numbers, _FACTORS_US[kind.unit if pa.types.is_timestamp(kind) else "ms"], _MAX_US)


def closing_ms(ends: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the least watermark that has reached the ends of windows."""
    return computed(ends, lambda us: (us - 1) // _US_IN_MS + 1)


def _last_ms(starts: pa.Array, length_us: int) -> pa.Array:
    """Return the greatest watermark, in milliseconds, before the ends of windows with a length."""
    return computed(starts, lambda us: (us + (length_us - 1)) // _US_IN_MS)
