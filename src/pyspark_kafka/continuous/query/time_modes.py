"""A stateful step's time as a user sets it: Spark's time modes, the watermark, the functions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka.continuous.task.stages import TimeMode
from pyspark_kafka.errors import OptionError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

_MODES = {mode.lower(): mode for mode in ("None", "ProcessingTime", "EventTime")}


def time_mode(
    mode: str,
    watermark: tuple[str, int] | None,
    schema: pa.Schema,
    expired: Callable[..., Any] | None,
    late: Callable[..., Any] | None,
    last_times: Callable[[pa.RecordBatch], pa.Array] | None = None,
    idle_ms: int | None = None,
) -> TimeMode | None:
    """Return the time of a step; None if it has no timers.

    Args:
        mode: Spark's name.
        watermark: of `withWatermark`.
        schema: of the rows that the step gets.
        expired: the function of timers.
        late: the function of late rows.
        last_times: of `TimeMode`.
        idle_ms: of `withWatermark`.

    Raises:
        OptionError: the mode is unknown, or a function or the watermark is missing for it, or has no meaning with it.
        SchemaError: the rows do not have the column of the watermark any more.
    """
    found = _MODES.get(mode.lower()) if isinstance(mode, str) else None
    if found is None:
        raise OptionError(
            f"timeMode is {mode!r}, which is not a time mode.",
            condition="OPTION_INVALID",
            hint='Use "None", "ProcessingTime" or "EventTime".',
        )
    if (found == "None") != (expired is None):
        raise _conflict(
            f"mapWithState() has timeMode {found!r} and {'a' if expired is not None else 'no'} handleExpiredTimer.",
            'Set handleExpiredTimer, and timeMode="ProcessingTime" or timeMode="EventTime", or none of them.',
        )
    if (found == "EventTime") != (late is not None):
        raise _conflict(
            f"mapWithState() has timeMode {found!r} and {'a' if late is not None else 'no'} handleLateRows.",
            "Set handleLateRows with EventTime, and with no other mode; `lambda rows: None` drops late rows, as Spark "
            "does.",
        )
    if expired is None:
        return None
    if late is None:
        return TimeMode(expired)
    if watermark is None:
        raise _conflict(
            "The rows have no watermark, and a function with event time needs one.",
            'Call .withWatermark("timestamp", "10 seconds") before it.',
        )
    event_time, delay_ms = watermark
    check_event_time(event_time, schema)
    return TimeMode(expired, event_time, delay_ms, late, last_times, idle_ms)


def check_event_time(name: str, schema: pa.Schema) -> None:
    """Check that a column can be the time of a row.

    Raises:
        SchemaError: there is no such column, or it has another type.
    """
    kind = schema.field(name).type if name in schema.names else None
    if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
        reason = "there is no such column" if kind is None else f"it has type {kind}"
        raise SchemaError(
            f"Column {name!r} cannot be the time of a row: {reason}. The columns are {', '.join(schema.names)}.",
            condition="EVENT_TIME_INVALID",
            hint="Name a column with timestamps, or with milliseconds since 1970 as a bigint, and keep it up to "
            "mapWithState.",
        )


def _conflict(text: str, hint: str) -> OptionError:
    return OptionError(text, condition="OPTION_CONFLICT", hint=hint)
