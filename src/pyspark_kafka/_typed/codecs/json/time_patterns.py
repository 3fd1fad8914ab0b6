"""Times in JSON by a pattern of Spark's, read and written as whole columns.

Source: Spark's "Datetime Patterns for Formatting and Parsing"; Java's DateTimeFormatter, strict, in English, in any
case. `tests/integration/_connector/spark/test_time_patterns.py` compares them with Spark's functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
# An offset with or without a colon, of hours alone or with minutes.
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?", re.ASCII)
_MAX_OFFSET_S = 18 * 3600
_DAY_US = 86_400_000_000
_MICROS = {"s": 1_000_000, "ms": 1000, "us": 1}
_MAX_LENGTH = 100
# What Java reserves, and what would be read as a letter.
_RESERVED = "{}#"


class _Letters(NamedTuple):
    """The meaning of some letters in a pattern.

    Attributes:
        name: the part of a time.
        expression: the readable texts.
        digits: the number of digits, if it is always the same; 0: a number of any width; None: it is not a number.
    """

    name: str
    expression: str
    digits: int | None = None


def _number(name: str) -> dict[int, _Letters]:
    return {1: _Letters(name, "[0-9]{1,18}", 0), 2: _Letters(name, "[0-9]{2}", 2)}


_COLON, _PLAIN = "[+-][0-9]{2}:[0-9]{2}", "[+-][0-9]{4}"
_HOURS = "[+-][0-9]{2}(?:[0-9]{2})?"
_KNOWN: dict[str, dict[int, _Letters]] = {
    "y": {
        1: _Letters("year", "[0-9]{1,4}", 0),
        2: _Letters("short_year", "[0-9]{2}", 2),
        4: _Letters("year", "[0-9]{4}", 4),
    },
    "M": {
        **_number("month"),
        3: _Letters("short_month", "|".join(name[:3] for name in _MONTHS)),
        4: _Letters("long_month", "|".join(_MONTHS)),
    },
    "d": _number("day"),
    "H": _number("hour"),
    "h": _number("clock_hour"),
    "a": {1: _Letters("half", "AM|PM")},
    "m": _number("minute"),
    "s": _number("second"),
    # As many digits as letters, or fewer.
    "S": {count: _Letters("fraction", f"[0-9]{{1,{count}}}", 0) for count in range(1, 10)},
    "X": {count: _Letters("offset", f"Z|{form}") for count, form in ((1, _HOURS), (2, _PLAIN), (3, _COLON))},
    "x": {count: _Letters("offset", form) for count, form in ((1, _HOURS), (2, _PLAIN), (3, _COLON))},
    "Z": {
        **{count: _Letters("offset", _PLAIN) for count in (1, 2, 3)},
        5: _Letters("offset", f"Z|{_COLON}"),
    },
    "V": {2: _Letters("zone", f"Z|{_COLON}|[A-Za-z][A-Za-z0-9_/+-]*")},
}
_WRITTEN_OFFSET = {"X": "Z", "xx": "+0000", "xxx": "+00:00", "x": "+00", "Z": "+0000", "ZZZZZ": "Z", "V": "UTC"}
_OF_A_DAY = frozenset("HhamsSXxZV")


class _Part(NamedTuple):
    """Some equal letters, a text, or the begin or end of what may be left out: `[` or `]`."""

    letters: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class TimePattern:
    """The text form of a time. Plain data that pickles.

    Attributes:
        parts: what stands after each other.
        expression: an expression of RE2, with a group for each part of a time.
    """

    parts: tuple[_Part, ...]
    expression: str

    def read(self, texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
        """Return texts as times of a type, and the places of other texts: they are null.

        A part that the pattern lacks is taken from midnight on January 1, 1970, in UTC.
        """
        found = pc.extract_regex(texts, pattern=self.expression)
        names = [each.name for each in found.type]
        groups = {name: pc.fill_null(pc.struct_field(found, name), "") for name in names}
        days, micros, good = _civil(groups, len(texts))
        good &= np.asarray(pc.is_valid(found))
        if pa.types.is_date(kind):
            made = pa.array(np.where(good, days, 0).astype(np.int32)).cast(kind)
        else:
            total = days * _DAY_US + micros
            for name in ("offset", "zone"):
                if name in groups:
                    total = total - _offsets(groups[name], total, good)
            made = pa.array(np.where(good, total, 0)).cast(pa.timestamp("us")).cast(kind)
        there = np.asarray(pc.is_valid(texts))
        return pc.if_else(pa.array(good & there), made, None), np.flatnonzero(there & ~good).tolist()

    def write(self, column: pa.Array) -> pa.Array:
        """Return the texts of times, in UTC."""
        if pa.types.is_date(column.type):
            days = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
            numbers = np.asarray(pc.fill_null(days, 0)) * _DAY_US
        else:
            numbers = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
            numbers = numbers // 1000 if column.type.unit == "ns" else numbers * _MICROS[column.type.unit]
        texts = [_written(part, numbers) for part in self.parts if part.letters not in ("[", "]")]
        joined = pc.binary_join_element_wise(pa.scalar(""), *texts, "") if texts else None
        return pc.if_else(pc.is_valid(column), joined, None)


class TimePatterns(NamedTuple):
    """The patterns of times with a date and a zone, and of dates; None: as without the option."""

    timestamp: TimePattern | None = None
    date: TimePattern | None = None

    def of(self, kind: pa.DataType) -> TimePattern | None:
        """Return the pattern of a type; times without a zone have none, as with Spark."""
        if pa.types.is_timestamp(kind):
            return self.timestamp if kind.tz is not None else None
        return self.date if pa.types.is_date(kind) else None


NO_PATTERNS = TimePatterns()
"""Times and dates as without the options."""


def time_patterns(timestamp_format: str | None, date_format: str | None) -> TimePatterns:
    """Return the patterns of the options `timestampFormat` and `dateFormat`.

    Raises:
        OptionError: see `time_pattern`.
    """
    return TimePatterns(
        None if timestamp_format is None else time_pattern("timestampFormat", timestamp_format, of_dates=False),
        None if date_format is None else time_pattern("dateFormat", date_format, of_dates=True),
    )


def time_pattern(option: str, pattern: str, *, of_dates: bool) -> TimePattern:
    """Return the pattern of an option.

    Raises:
        OptionError: it has letters that are not read here, or could be read in two ways.
    """
    try:
        return _parsed(pattern, of_dates)
    except ValueError as error:
        raise OptionError(
            f"Option '{option}' is {pattern[:_MAX_LENGTH]!r}, which cannot be used: {error}. "
            "Nothing was read or written.",
            condition="OPTION_INVALID",
            hint="Use the letters y M d H h a m s S X x Z VV, texts in quotes, and [ ] around what may be missing; or "
            "make the field a STRING, and convert it with Spark's to_timestamp or to_date.",
            parameters={"option": option},
        ) from error


@cache
def _parsed(pattern: str, of_dates: bool) -> TimePattern:
    if not pattern or len(pattern) > _MAX_LENGTH:
        raise ValueError(f"it must have 1 to {_MAX_LENGTH} characters")
    parts = _split(pattern)
    seen: list[str] = []
    expression, before = "", None
    for part in parts:
        if part.letters in ("[", "]"):
            expression += "(?:" if part.letters == "[" else ")?"
            continue
        if not part.letters:
            expression, before = expression + re.escape(part.text), None
            continue
        found = _KNOWN[part.letters[0]].get(len(part.letters))
        if found is None:
            raise ValueError(f"{part.letters} is none of the forms that letter '{part.letters[0]}' has here")
        if of_dates and part.letters[0] in _OF_A_DAY:
            raise ValueError(f"{part.letters} is not a part of a date")
        if before is not None and found.digits is not None and before.digits == 0:
            raise ValueError(
                f"no character stands between {part.letters} and the number before it, which has any width"
            )
        if before is not None and before.name == "year" and found.digits == 0:
            raise ValueError(f"no character stands between the year and {part.letters}, which has any width")
        seen.append(found.name.partition("_")[2] or found.name)
        expression += f"(?P<{found.name}>{found.expression})"
        before = found if found.digits is not None else None
    twice = next((name for name in seen if seen.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"it has the {twice} twice")
    if "offset" in seen and "zone" in seen:
        raise ValueError("it has an offset and a zone")
    if any(part.letters == "a" for part in parts) and not any(part.letters[:1] == "h" for part in parts):
        raise ValueError("a needs the hour as h or hh")
    if not seen:
        raise ValueError("it has no part of a time")
    return TimePattern(tuple(parts), rf"(?i)\A{expression}\z")


def _split(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    at = depth = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = at + 1
            text = ""
            while True:
                close = pattern.find("'", end)
                if close < 0:
                    raise ValueError("a quote is not closed")
                text += pattern[end:close]
                if pattern[close + 1 : close + 2] != "'":
                    break
                text, end = text + "'", close + 2
            # Two quotes are one.
            parts.append(_Part("", text or "'"))
            at = close + 1
        elif letter in "[]":
            depth += 1 if letter == "[" else -1
            if depth < 0:
                raise ValueError("] has no [ before it")
            parts.append(_Part(letter))
            at += 1
        elif letter.isascii() and letter.isalpha():
            if letter not in _KNOWN:
                raise ValueError(f"letter '{letter}' is not read here")
            count = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
            parts.append(_Part(letter * count))
            at += count
        elif letter in _RESERVED:
            raise ValueError(f"'{letter}' must stand in quotes")
        else:
            parts.append(_Part("", letter))
            at += 1
    if depth:
        raise ValueError("[ is not closed")
    return parts


def _civil(groups: dict[str, pa.Array], count: int) -> tuple[Any, Any, Any]:
    """Return days since 1970, microseconds of the day, and which of them are times that there are."""

    def number(name: str, default: int) -> Any:
        if name not in groups:
            return np.full(count, default, np.int64)
        texts = pc.if_else(pc.equal(groups[name], ""), str(default), groups[name])
        return np.asarray(texts.cast(pa.int64()))

    year, month, day = number("year", 1970), number("month", 1), number("day", 1)
    if "short_year" in groups:
        year = np.where(_given(groups["short_year"]), 2000 + number("short_year", 0), year)
    for name, width in (("short_month", 3), ("long_month", 9)):
        if name in groups:
            names = pa.array([each[:width].lower() for each in _MONTHS])
            places = pc.fill_null(pc.index_in(pc.utf8_lower(groups[name]), names), 0)
            month = np.asarray(places).astype(np.int64) + 1
    hour, minute, second = number("hour", 0), number("minute", 0), number("second", 0)
    good = (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59) & (second <= 59)
    if "clock_hour" in groups:
        clock, given = number("clock_hour", 12), _given(groups["clock_hour"])
        good &= (clock >= 1) & (clock <= 12)
        hour = np.where(given, clock % 12, hour)
        if "half" in groups:
            hour = hour + 12 * np.asarray(pc.equal(pc.utf8_upper(groups["half"]), "PM")).astype(np.int64)
    month = np.clip(month, 1, 12)
    start = _month_start(year, month)
    good &= day <= _month_start(year + (month == 12), month % 12 + 1) - start
    micros = ((np.clip(hour, 0, 23) * 60 + np.clip(minute, 0, 59)) * 60 + np.clip(second, 0, 59)) * 1_000_000
    if "fraction" in groups:
        micros = micros + np.asarray(
            pc.utf8_slice_codeunits(pc.utf8_rpad(groups["fraction"], 6, "0"), 0, 6).cast(pa.int64())
        )
    return start + np.clip(day, 1, 31) - 1, micros, good


def _given(texts: pa.Array) -> Any:
    return np.asarray(pc.not_equal(texts, ""))


def _month_start(year: Any, month: Any) -> Any:
    months = (year - 1970) * 12 + month - 1
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _offsets(texts: pa.Array, local: Any, good: Any) -> Any:
    """Return the offset of each text in microseconds, and note in `good` which are none."""
    encoded = texts.dictionary_encode()
    places = np.asarray(encoded.indices)
    found = np.zeros(len(texts), np.int64)
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        rows = places == at
        seconds = _fixed_offset(text)
        zone = _zone(text) if seconds is None else None
        if seconds is not None:
            found[rows] = seconds * 1_000_000
        elif zone is None:
            good[rows] = False
        else:
            for row in np.flatnonzero(rows & good).tolist():
                moment = _naive(int(local[row]))
                offset = None if moment is None else zone.utcoffset(moment)
                if offset is None:
                    good[row] = False
                else:
                    found[row] = int(offset.total_seconds()) * 1_000_000
    return found


def _fixed_offset(text: str) -> int | None:
    if text in ("", "Z", "z"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    hours, minutes = int(match[2]), int(match[3] or 0)
    seconds = hours * 3600 + minutes * 60
    if minutes > 59 or seconds > _MAX_OFFSET_S:
        return None
    return -seconds if match[1] == "-" else seconds


def _zone(text: str) -> ZoneInfo | None:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - of few patterns

    # Names of records open no files.
    return ZoneInfo(text) if text in _cached(available_timezones) else None


@cache
def _cached(build: Any) -> Any:
    return build()


def _naive(micros: int) -> datetime | None:
    try:
        moment: datetime = np.datetime64(micros, "us").astype(datetime)
    except (ValueError, OverflowError):
        return None
    return moment if isinstance(moment, datetime) else None


def _written(part: _Part, micros: Any) -> Any:
    """Return the text of a part, for each time or for all."""
    letters = part.letters
    if not letters:
        return part.text
    letter = letters[0]
    if letter in "XxZV":
        return _WRITTEN_OFFSET.get(letters) or _WRITTEN_OFFSET[letter]
    days = micros // _DAY_US
    of_day = micros - days * _DAY_US
    if letter in "yMd":
        date = days.astype("datetime64[D]")
        months = date.astype("datetime64[M]").astype(np.int64)
        month = months % 12
        if letter == "M" and len(letters) > 2:
            names = [name[:3] if len(letters) == 3 else name for name in _MONTHS]
            return pa.array(names).take(pa.array(month))
        if letter == "d":
            return _padded((date - date.astype("datetime64[M]")).astype(np.int64) + 1, len(letters))
        year = 1970 + months // 12
        return _padded(month + 1 if letter == "M" else year % 100 if letters == "yy" else year, len(letters))
    hour = of_day // 3_600_000_000
    if letter == "a":
        return pa.array(["AM", "PM"]).take(pa.array(hour // 12))
    if letter == "S":
        return pc.utf8_slice_codeunits(_padded(of_day % 1_000_000 * 1000, 9), 0, len(letters))
    found = {
        "H": hour,
        "h": (hour + 11) % 12 + 1,
        "m": of_day // 60_000_000 % 60,
        "s": of_day // 1_000_000 % 60,
    }[letter]
    return _padded(found, len(letters))


def _padded(numbers: Any, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
