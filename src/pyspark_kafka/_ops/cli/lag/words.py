"""Figures of lag in words: counts, sizes, spans, rates, bars. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.text import counted, span_text
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._ops.operations.lag.values import PartitionLag, TopicLag

_UNKNOWN = "?"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BLOCKS = "▏▎▍▌▋▊▉█"
_SPARKS = "▁▂▃▄▅▆▇█"
# Beyond about three centuries a span is a rounding of "never".
_MAX_S = 1e10


def count(value: int | None) -> str:
    """Return a number with separators; `?` if it is not known."""
    return _UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """Return bytes in the largest unit that keeps a digit before the point, as an estimate; `?` if not known.

    Example:
        >>> size(0), size(1536), size(None)
        ('0 B', '~1.5 KiB', '?')
    """
    if value is None:
        return _UNKNOWN
    if not value:
        return "0 B"
    number, unit = float(value), 0
    while number >= 1024 and unit + 1 < len(_UNITS):
        number, unit = number / 1024, unit + 1
    return f"~{number:.1f} {_UNITS[unit]}" if unit else f"~{value} B"


def span(seconds: float | None, *, endless: str = "never") -> str:
    """Return a time span; `?` if it is not known, `endless` if it has no end."""
    if seconds is None:
        return _UNKNOWN
    return endless if seconds > _MAX_S else span_text(seconds * 1000)


def rate(per_s: float | None) -> str:
    """Return a rate; `?` if it is not known."""
    if per_s is None:
        return _UNKNOWN
    return f"{per_s:,.0f}/s" if per_s >= 10 or per_s == 0 else f"{per_s:.2g}/s"


def bar(part: float, maximum: float, width: int) -> str:
    """Return a bar that is `width` cells long where `part` is `maximum`."""
    if maximum <= 0 or part <= 0:
        return ""
    eighths = max(1, round(min(part / maximum, 1.0) * width * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[rest - 1] if rest else "")


def sparkline(values: Sequence[float]) -> str:
    """Return a block for each value, as high as its share of the largest one."""
    maximum = max(values, default=0)
    return "".join(_SPARKS[min(7, math.ceil(value / maximum * 8) - 1) if value > 0 else 0] for value in values)


def partition_line(lag: PartitionLag) -> str:
    """Return a partition as one line, for pipes and logs."""
    place = f"{printable(lag.topic)}-{lag.partition}"
    if not lag.is_complete:
        return f"{place}: {lag.state.value}"
    lost = f", {count(lag.records_lost)} lost" if lag.records_lost else ""
    return f"{place}: {_figures(lag)}{lost}"


def topic_line(lag: TopicLag) -> str:
    """Return a topic as one line, for pipes and logs."""
    notes = [f"{lag.incomplete:,} unknown"] * (lag.incomplete > 0) + [f"{lag.faults:,} at fault"] * (lag.faults > 0)
    more = f" ({', '.join(notes)})" if notes else ""
    return f"{printable(lag.topic)}, {counted(lag.partitions, 'partition')}{more}: {_figures(lag)}"


def _figures(lag: PartitionLag | TopicLag) -> str:
    if lag.records_behind is None:
        return "records behind unknown"
    if not lag.records_behind:
        return "nothing behind"
    parts = [f"{count(lag.records_behind)} records behind"]
    parts += [size(lag.bytes_behind)] * (lag.bytes_behind is not None)
    parts += [f"{span(lag.seconds_behind)} old"] * (lag.seconds_behind is not None)
    parts += [f"{rate(lag.produced_per_s)} written"] * (lag.produced_per_s is not None)
    parts += [f"{rate(lag.consumed_per_s)} read"] * (lag.consumed_per_s is not None)
    parts += [f"headroom {span(lag.headroom_s, endless='unlimited')}"] * (lag.headroom_s is not None)
    return ", ".join(parts)
