"""The text of a record: a line, or a JSON object. Pure."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.tail.shown import ShownPart, ShownRecord

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_GAP = "  "


def to_line(record: ShownRecord, *, utc: bool) -> Text:
    r"""Return a record as one line: time, partition, offset, key, value, headers, fault; without control characters.

    A byte that is not part of a character in UTF-8 is shown as `\x` and two hexadecimal digits.
    """
    where = record.topic_partition
    line = Text()
    line.append(time_text(record.timestamp_ms, utc=utc), style="dim")
    line.append(f"{_GAP}{printable(str(where))}{_GAP}{record.offset}{_GAP}", style="cyan")
    line.append(part_text(record.key), style="bold")
    line.append(_GAP)
    line.append(part_text(record.value))
    if record.headers:
        shown = [f"{printable(name)}={part_text(value)}" for name, value in record.headers]
        more = [f"… {record.more_headers} more"] if record.more_headers else []
        line.append(f"{_GAP}[{', '.join(shown + more)}]", style="dim")
    if record.bad is not None:
        bad = record.bad
        line.append(f"{_GAP}bad {printable(f'{bad.column}: {bad.reason}: {bad.message}')}", style="red")
    return line


def to_json(record: ShownRecord, *, utc: bool) -> dict[str, Any]:
    """Return a record as values for JSON. Its keys are public."""
    told: dict[str, Any] = {
        "topic": record.topic_partition.topic,
        "partition": record.topic_partition.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp": None if record.timestamp_ms is None else time_text(record.timestamp_ms, utc=utc),
        "timestamp_type": "LogAppendTime" if record.is_append_time else "CreateTime",
        **_part_to_json("key", record.key),
        **_part_to_json("value", record.value),
        "headers": [{"name": name, **_part_to_json("value", value)} for name, value in record.headers],
    }
    if record.more_headers:
        told["more_headers"] = record.more_headers
    if record.bad is not None:
        told["bad"] = record.bad._asdict()
    return told


def part_text(part: ShownPart | None) -> str:
    """Return a key, a value or the value of a header on one line; `null` if there is none."""
    if part is None:
        return "null"
    text = part.text()
    shown = printable(part.content.decode(errors="backslashreplace") if text is None else text)
    return f"{shown}… ({len(part.content):,} of {part.size:,} bytes)" if part.is_cut else shown


def time_text(timestamp_ms: int | None, *, utc: bool) -> str:
    """Return a time with its zone, so that `--from` reads it as the same time: local time, or UTC."""
    if timestamp_ms is None:
        return "no time"
    try:
        at = _EPOCH + dt.timedelta(milliseconds=timestamp_ms)
        at = at if utc else at.astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms since 1970"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _part_to_json(name: str, part: ShownPart | None) -> dict[str, Any]:
    if part is None:
        return {name: None}
    content, encoding = part.encoded()
    told: dict[str, Any] = {name: content, f"{name}_encoding": encoding}
    if encoding == "json" and not part.is_cut:
        # As JSON, not as its text.
        told[name] = part.value()
    if part.is_cut:
        told |= {f"{name}_bytes": part.size, f"{name}_cut": True}
    return told
