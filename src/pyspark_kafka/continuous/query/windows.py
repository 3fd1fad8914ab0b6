"""`window`, `session_window` and `groupBy` as a user calls them: spans of time, columns, what Spark refuses. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.continuous.query.time_modes import check_event_time
from pyspark_kafka.continuous.steps.partial_aggregates import Aggregates, aggregate, aggregate_refused
from pyspark_kafka.continuous.steps.row_groups import Grouping
from pyspark_kafka.continuous.steps.window_times import MAX_DURATION_US, SessionWindow, TimeWindow
from pyspark_kafka.errors import OptionError, SchemaError, described

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TERM = re.compile(r"\s*([+-]?)\s*([0-9]{1,18})(?:\.([0-9]{1,6}))?\s*([a-z]+)", re.IGNORECASE)
_INTERVAL = re.compile(r"\s*interval\b", re.IGNORECASE)
_UNITS_US = {
    name: us
    for names, us in (
        ("microsecond microseconds us", 1),
        ("millisecond milliseconds ms", 1_000),
        ("second seconds s sec", 1_000_000),
        ("minute minutes m min", 60_000_000),
        ("hour hours h", 3_600_000_000),
        ("day days d", 86_400_000_000),
        ("week weeks", 604_800_000_000),
    )
    for name in names.split()
}
_HINT = 'Write numbers and units from microseconds to weeks, such as "1 minute" or "1 hour 30 minutes".'


def window(
    timeColumn: str, windowDuration: str, slideDuration: str | None = None, startTime: str | None = None
) -> TimeWindow:
    """Return windows of one length for `groupBy`, with the arguments of Spark's `window`.

    Experimental: may change or be removed in any release before 1.0.

    Args:
        timeColumn: the column of `withWatermark`.
        windowDuration: the length of a window, such as "1 minute".
        slideDuration: the time from the start of a window to the start of the next one; None for the length.
        startTime: the start of a window after 1970-01-01 00:00:00 UTC, such as "15 minutes"; None for that time.

    Raises:
        OptionError: a span of time cannot be used.

    Source: Spark `functions.window`.
    """
    duration_us = _positive_us("windowDuration", windowDuration)
    slide_us = duration_us if slideDuration is None else _positive_us("slideDuration", slideDuration)
    start_us = 0 if startTime is None else _span_us("startTime", startTime)
    if slide_us > duration_us:
        raise _refused(f"slideDuration {slideDuration!r} is longer than windowDuration {windowDuration!r}", _HINT)
    if abs(start_us) >= slide_us:
        raise _refused(f"startTime {startTime!r} is not shorter than the slide of the window", _HINT)
    return TimeWindow(_column(timeColumn), duration_us, slide_us, start_us)


def session_window(timeColumn: str, gapDuration: str) -> SessionWindow:
    """Return sessions for `groupBy`, with the arguments of Spark's `session_window`.

    Experimental: may change or be removed in any release before 1.0.

    Args:
        timeColumn: the column of `withWatermark`.
        gapDuration: the time without a row that ends a session, such as "5 minutes". It is a part of the session.

    Raises:
        OptionError: the span of time cannot be used.

    Source: Spark `functions.session_window`.
    """
    return SessionWindow(_column(timeColumn), _positive_us("gapDuration", gapDuration))


def grouping_of(columns: Sequence[object], schema: pa.Schema, watermark: tuple[str, int] | None) -> Grouping:
    """Return the groups of rows.

    Args:
        columns: of `groupBy`.
        schema: of the rows.
        watermark: of `withWatermark`.

    Raises:
        OptionError: there is not one window among the columns, or it is of another column than the watermark.
        SchemaError: there is no such column, or one was named twice.
    """
    windows = [each for each in columns if isinstance(each, (TimeWindow, SessionWindow))]
    names = [each for each in columns if not isinstance(each, (TimeWindow, SessionWindow))]
    if len(windows) != 1:
        raise _refused(
            f"groupBy() has {len(windows)} windows, and must have one",
            'Call .groupBy(continuous.window("timestamp", "1 minute"), "key"). Aggregate without a window by '
            ".mapWithState.",
        )
    (found,) = windows
    if watermark is None or found.column != watermark[0]:
        of_rows = "the rows have no watermark" if watermark is None else f"the watermark is of column {watermark[0]!r}"
        raise _refused(
            f"the window is of column {found.column!r}, and {of_rows}",
            f'Call .withWatermark({found.column!r}, "10 seconds") before .groupBy.',
        )
    check_event_time(found.column, schema)
    missing = [each for each in names if not isinstance(each, str) or each not in schema.names]
    if missing:
        raise SchemaError(
            f"There is no column {', '.join(map(repr, missing))}; the columns are {', '.join(schema.names)}.",
            condition="COLUMN_NOT_FOUND",
            hint="Name columns of the input.",
        )
    time = schema.field(found.column).type
    zone = time.tz if pa.types.is_timestamp(time) else "UTC"
    keys = pa.schema([schema.field(name) for name in names])
    return Grouping(found, keys, columns.index(found), pa.timestamp("us", zone))


def aggregates_of(named: Mapping[str, object], schema: pa.Schema, grouping: Grouping) -> Aggregates:
    """Return the aggregates of `agg`.

    Args:
        named: for each column of the result a column of the rows and the name of a function.
        schema: of the rows.
        grouping: the other columns of the result.

    Raises:
        SchemaError: an aggregate cannot be computed, none was named, or a column of the groups has the same name.
    """
    names = [*(field.name for field in grouping.fields), *named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not named or twice:
        raise aggregate_refused(
            f"the result has two columns {twice[0]!r}" if twice else "agg() was called without an aggregate"
        )
    found = []
    for name, pair in named.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(each, str) for each in pair)):
            raise aggregate_refused(f"{name!r} is {pair!r}, and must be a column and a function")
        column, function = pair
        found.append(aggregate(name, function, column, schema))
    return Aggregates(tuple(found))


def _column(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a window takes the name of a column, not {described(name)}: {name!r}")
    return name


def _positive_us(what: str, text: object) -> int:
    found = _span_us(what, text)
    if found <= 0:
        raise _refused(f"{what} {text!r} is not longer than 0", _HINT)
    return found


def _span_us(what: str, text: object) -> int:
    """Return the microseconds of a time span, as Spark reads it."""
    rest = _INTERVAL.sub("", text, count=1) if isinstance(text, str) else ""
    total, terms = 0, 0
    while (term := _TERM.match(rest)) is not None:
        sign, number, fraction, unit = term.groups()
        us = _UNITS_US.get(unit.lower())
        # As in Spark: only seconds have fractions.
        if us is None or (fraction is not None and us != _UNITS_US["second"]):
            break
        amount = int(number) * us + int((fraction or "").ljust(6, "0"))
        total += -amount if sign == "-" else amount
        terms += 1
        rest = rest[term.end() :]
    if rest.strip() or not terms:
        months = " Months and years have no fixed length." if re.search(r"month|year", rest, re.IGNORECASE) else ""
        raise _refused(f"{what} {text!r} is not a span of time", _HINT + months)
    if abs(total) > MAX_DURATION_US:
        raise _refused(f"{what} {text!r} is longer than {MAX_DURATION_US:,} microseconds", _HINT)
    return total


def _refused(reason: str, hint: str) -> OptionError:
    return OptionError(f"A window cannot be used: {reason}.", condition="WINDOW_INVALID", hint=hint)
