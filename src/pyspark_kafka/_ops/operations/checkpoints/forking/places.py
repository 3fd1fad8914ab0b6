"""The start of another checkpoint, as a user names it: a time, a batch, or offsets. Pure: no clock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeAlias

from pyspark_kafka._base.offsets import SpecificOffsets, timestamp_text
from pyspark_kafka._client.options import duration_ms, looks_like_seconds, moment, parse_specific_offsets
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from datetime import tzinfo

_SPAN = re.compile(r"[0-9]{1,12}\s*[A-Za-z]+")
_WITHOUT_ZONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)?")


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of each partition with this time or a later one.

    Attributes:
        timestamp_ms: milliseconds since 1970-01-01 UTC.
        said: the interpretation of the text.
        is_future: whether it is later than the moment at which it was named.
    """

    timestamp_ms: int
    said: str
    is_future: bool = False


@dataclass(frozen=True, slots=True)
class AfterBatch:
    """The position of the query at the end of a batch."""

    batch_id: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """Offsets of some or all partitions; other partitions keep their positions."""

    offsets: SpecificOffsets


Place: TypeAlias = AtTime | AfterBatch | AtOffsets


def parse_time(text: str, now_ms: int, zone: tzinfo | None = None) -> AtTime:
    """Read a time: "2 hours ago", "2h", ISO 8601, or milliseconds since 1970.

    Args:
        text: as the user wrote it.
        now_ms: milliseconds since 1970-01-01 UTC.
        zone: of times that name none; None takes the zone of this machine.

    Raises:
        OptionError: the text is not a time, or is before 1970.

    Example:
        >>> parse_time("2h", 10_000_000).timestamp_ms
        2800000
    """
    given = text.strip()
    local = ""
    try:
        if _WITHOUT_ZONE.fullmatch(given):
            at_ms = _in_zone(given, zone)
            local = " (local time, as it names no zone)"
        elif _SPAN.fullmatch(given):
            at_ms = now_ms - duration_ms(given)
            if at_ms < 0:
                raise ValueError("it is before 1970")  # noqa: TRY301 - one report below
        else:
            at_ms = moment(given).at(now_ms)
    except (ValueError, OverflowError, OSError) as error:
        raise OptionError(
            f"--at '{text[:100]}' is not a time: {error}.",
            condition="ARGUMENT_INVALID",
            hint='Write "2 hours ago", 2h, or 2026-01-31T22:15:00Z.',
            parameters={"at": text[:100]},
        ) from error
    seconds = looks_like_seconds(at_ms) if given.isdigit() else None
    note = f" ({seconds})" if seconds else ""
    return AtTime(at_ms, f"{timestamp_text(at_ms)}, from '{given}'{local}{note}", at_ms > now_ms)


def parse_offsets(text: str) -> AtOffsets:
    """Read offsets in the JSON of `startingOffsets`, of some or all partitions.

    Raises:
        OptionError: the text has another form.
    """
    try:
        return AtOffsets(parse_specific_offsets(text))
    except ValueError as error:
        raise OptionError(
            f"--offsets does not hold offsets by partition: {error}.",
            condition="ARGUMENT_INVALID",
            hint='Write {"orders":{"0":23,"1":-2}}: an offset, -2 for the start of the log, -1 for its end.',
        ) from error


def _in_zone(text: str, zone: tzinfo | None) -> int:
    # As UTC first: one parser for all forms, with its rounding.
    as_utc_ms = moment(text).at(0)
    naive = datetime.fromtimestamp(as_utc_ms // 1000, timezone.utc).replace(tzinfo=None)
    local = naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
    at_ms = int(local.timestamp()) * 1000 + as_utc_ms % 1000
    if at_ms < 0:
        raise ValueError("it is before 1970")
    return at_ms
