"""Times and durations as users write them: epoch milliseconds, ISO 8601, "2 hours ago"; "15m", "90 s".

Pure: no clock. A relative time stays relative until `Moment.at` resolves it, so all times of one query refer to the
same moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._client.options.parse.scalars import INT64_MAX, shorten, shown_number

TIME_FORMS = "epoch milliseconds, ISO 8601 (UTC if it names no zone) or e.g. '2 hours ago'"

_UNITS_MS = {
    unit: factor
    for units, factor in (
        (("ms", "milli", "millis", "millisecond", "milliseconds"), 1),
        (("s", "sec", "secs", "second", "seconds"), 1_000),
        (("m", "min", "mins", "minute", "minutes"), 60_000),
        (("h", "hr", "hrs", "hour", "hours"), 3_600_000),
        (("d", "day", "days"), 86_400_000),
        (("w", "week", "weeks"), 604_800_000),
    )
    for unit in units
}
_AMOUNT = r"([0-9]{1,12})\s*([a-z]+)"
_DURATION = re.compile(_AMOUNT)
_AGO = re.compile(rf"({_AMOUNT}(?:(?:\s|,|\band\b)*{_AMOUNT})*)\s+ago")
_EPOCH_MS = re.compile(r"[0-9]{1,19}")
_ISO = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"\s?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, or a distance back from now.

    Attributes:
        ms: milliseconds since 1970-01-01 UTC, or before now if `ago`.
        ago: whether `ms` is counted back from now.
    """

    ms: int
    ago: bool = False

    def at(self, now_ms: int) -> int:
        """Return milliseconds since 1970-01-01 UTC.

        Raises:
            ValueError: the time is before 1970, and no record is that old.
        """
        ms = now_ms - self.ms if self.ago else self.ms
        if ms < 0:
            raise ValueError("must not be before 1970")
        return ms


def moment(raw: str) -> Moment:
    """Read a time.

    A fraction of a millisecond is rounded up, which does not change the first record at or after it.

    Raises:
        ValueError: with a sentence that does not name the option.
    """
    text = raw.strip()
    try:
        if _EPOCH_MS.fullmatch(text):
            if int(text) > INT64_MAX:
                raise ValueError("it does not fit in 64 bits")  # noqa: TRY301 - one report below
            return Moment(int(text))
        if text.lower() == "now":
            return Moment(0, ago=True)
        ago = _AGO.fullmatch(text.lower())
        if ago is not None:
            return Moment(sum(_amount_ms(*found.groups()) for found in _DURATION.finditer(ago[1])), ago=True)
        iso = _ISO.fullmatch(text)
        if iso is not None:
            return Moment(_iso_ms(iso))
        raise ValueError("it has none of these forms")  # noqa: TRY301
    except ValueError as error:
        raise ValueError(f"must be a time: {TIME_FORMS}; got {shorten(raw)}: {error}") from error


def moment_of_json(value: object) -> Moment:
    """Read a time in JSON: a number of epoch milliseconds, or a text that `moment` reads."""
    if isinstance(value, str):
        return moment(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT64_MAX:
        raise ValueError(f"must be a time: {TIME_FORMS}; got {shorten(repr(value))}")
    return Moment(value)


def duration_ms(raw: str) -> int:
    """Read a duration, in Spark's form: a whole number with a unit (`us`, `ms`, `s`, `m`, `h`, `d`), without one ms.

    Source: Spark `JavaUtils.timeStringAs`.
    """
    text = raw.strip().lower()
    if re.fullmatch(r"[0-9]{1,19}", text):
        value = int(text)
    else:
        found = _DURATION.fullmatch(text)
        if found is None or (found[2] not in _UNITS_MS and found[2] != "us"):
            raise ValueError(f"must be a time span such as '15m', '90s' or '500ms'; got {shown_number(raw)}")
        value = int(found[1]) // 1_000 if found[2] == "us" else _amount_ms(found[1], found[2])
    if value > INT64_MAX:
        raise ValueError(f"must be a time span that fits in 64 bits of milliseconds; got {shown_number(raw)}")
    return value


def looks_like_seconds(ms: int) -> str | None:
    """Return a note if a time is so early that seconds were probably meant; None otherwise."""
    # 10^11 ms is in March 1973; the same number of seconds is in the year 5138.
    if not 10**8 <= ms < 10**11:
        return None
    return f"read as milliseconds it is {timestamp_text(ms)}, as seconds it would be {timestamp_text(ms * 1_000)}"


def _amount_ms(number: str, unit: str) -> int:
    try:
        return int(number) * _UNITS_MS[unit]
    except KeyError:
        raise ValueError(f"'{unit}' is not a unit of time") from None


def _iso_ms(found: re.Match[str]) -> int:
    year, month, day = map(int, found["date"].split("-"))
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    # Python's own errors name what is out of range: "month must be in 1..12".
    at = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    # Exact, as whole nanoseconds; floating point would move some milliseconds.
    nanoseconds = int((found["fraction"] or "0").ljust(9, "0"))
    offset = _zone(found["zone"])
    ms = (at - _EPOCH - offset) // timedelta(milliseconds=1) - (-nanoseconds // 1_000_000)
    if ms < 0:
        raise ValueError("it is before 1970")
    return ms


def _zone(text: str | None) -> timedelta:
    if text is None or text in "Zz":
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 18 or minutes > 59:
        raise ValueError(f"'{text}' is not a time zone")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if text[0] == "-" else offset
