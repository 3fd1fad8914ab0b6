"""The state of a `mapWithState` function: values by key, read and set for many keys at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.continuous.state.times import milliseconds
from pyspark_kafka.errors import SchemaError, StateError, described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.state.lane_state import LaneState
    from pyspark_kafka.continuous.state.step_time import StepTime


class StateByKey:
    """The state of one step: a row of the state's columns for each key that has one.

    A function sees the keys of the topic-partition (of the key group) that its rows belong to, and no others. What it
    sets is there for the next call, and is part of the epoch in which it was set.

    Runs on: executor, within a call of the function; not to be kept after it, nor used by other threads.

    Args:
        states: of the lane.
        step: the number of the step.
        schema: the columns of a value.
        time: its timers and its watermark; None if the step has no time mode.
    """

    def __init__(self, states: LaneState, step: int, schema: pa.Schema, time: StepTime | None = None) -> None:
        self._states, self._step, self._schema, self._time = states, step, schema, time
        self._codec = RowCodec(schema)

    def get(self, keys: pa.Array) -> pa.RecordBatch:
        """Return the values of keys: one row for each, in their order; all columns are null for one without a value.

        Args:
            keys: binary or string; not null. A key may come several times.

        Raises:
            SchemaError: the keys have another type.
            StateError: a key is null, or the local store has failed.
        """
        return self._codec.decode(self._states.get_all(self._step, _key_bytes(keys)))

    def update(self, keys: pa.Array, /, **columns: Any) -> None:
        """Set the values of keys. If a key comes several times, its last row counts.

        Args:
            keys: as for `get`.
            columns: every column of the state by its name: an Arrow array, or what `pyarrow.array` takes.

        Raises:
            SchemaError: a column is missing, unknown, or cannot be cast to its type; or lengths differ.
            StateError: a key is null, or too large with its value.
        """
        names = self._schema.names
        if columns.keys() != set(names):
            raise _wrong(f"it got the columns {', '.join(columns) or 'none'}, and the state has {', '.join(names)}")
        wanted = _key_bytes(keys)
        arrays = [_as_array(columns[field.name], field) for field in self._schema]
        lengths = {len(wanted), *map(len, arrays)}
        if len(lengths) != 1:
            raise _wrong(f"keys and columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
        self._states.put_all(self._step, wanted, self._codec.encode(arrays))

    def remove(self, keys: pa.Array) -> None:
        """Remove the values of keys. Keys without a value are not an error.

        Args:
            keys: as for `get`.

        Raises:
            SchemaError: the keys have another type.
            StateError: a key is null.
        """
        wanted = _key_bytes(keys)
        self._states.put_all(self._step, wanted, [None] * len(wanted))

    def registerTimer(self, keys: pa.Array, expiryTimestampMs: Any) -> None:
        """Set a timer for each of the keys. A key can have several timers; one that is set twice expires once.

        `handleExpiredTimer` gets the timer when the clock, or the watermark, has reached its time.

        Args:
            keys: as for `get`.
            expiryTimestampMs: a time for each key: milliseconds since 1970, or timestamps; 2**63 - 1 ms never comes.

        Raises:
            SchemaError: the step has no time mode, a time cannot be cast or is null, or lengths differ.
            StateError: a key is null, or too large.

        Source: Spark `StatefulProcessorHandle.registerTimer`.
        """
        self._timed("registerTimer").set(*_timers(keys, expiryTimestampMs))

    def deleteTimer(self, keys: pa.Array, expiryTimestampMs: Any) -> None:
        """Delete timers. Unset or expired timers are not an error.

        Args:
            keys: as for `get`.
            expiryTimestampMs: as for `registerTimer`.

        Raises:
            SchemaError: as for `registerTimer`.
            StateError: a key is null.

        Source: Spark `StatefulProcessorHandle.deleteTimer`.
        """
        self._timed("deleteTimer").delete(*_timers(keys, expiryTimestampMs))

    def getCurrentProcessingTimeInMs(self) -> int:
        """Return the time of the executor's clock, in milliseconds since 1970.

        Raises:
            SchemaError: the step has no time mode.

        Source: Spark `TimerValues.getCurrentProcessingTimeInMs`.
        """
        return self._timed("getCurrentProcessingTimeInMs").now_ms()

    def getCurrentWatermarkInMs(self) -> int:
        """Return the watermark of the rows' topic-partition (key group), in milliseconds since 1970.

        It is 0 until the first rows have passed, and with processing time.

        Raises:
            SchemaError: the step has no time mode.

        Source: Spark `TimerValues.getCurrentWatermarkInMs`.
        """
        return self.watermark_ms or 0

    @property
    def watermark_ms(self) -> int | None:
        """The watermark, in milliseconds since 1970; None until the first rows have passed.

        Raises:
            SchemaError: the step has no time mode.
        """
        return self._timed("getCurrentWatermarkInMs").watermark_ms

    @property
    def row_watermarks(self) -> Any:
        """The watermark of each row in the call, as a NumPy array; None if all have `watermark_ms`.

        Raises:
            SchemaError: the step has no time mode.
        """
        return self._timed("getCurrentWatermarkInMs").row_watermarks

    def _timed(self, method: str) -> StepTime:
        if self._time is None:
            raise SchemaError(
                f"A function called state.{method}(), and its step has no time mode. Nothing of this epoch was "
                "committed.",
                condition="STATE_USE_INVALID",
                hint='Call .mapWithState(…, timeMode="ProcessingTime", handleExpiredTimer=function).',
            )
        return self._time


def _timers(keys: pa.Array, times: Any) -> tuple[Sequence[bytes], Sequence[int]]:
    wanted = _key_bytes(keys)
    if isinstance(times, (pa.Array, pa.ChunkedArray)):
        times = milliseconds(times)
    found = _as_array(times, pa.field("expiryTimestampMs", pa.int64()))
    if len(found) != len(wanted) or found.null_count:
        raise _wrong(f"{len(wanted)} keys have {len(found)} times, of which {found.null_count} are null or do not fit")
    return wanted, found.to_pylist()


def _key_bytes(keys: Any) -> Sequence[bytes]:
    if not isinstance(keys, (pa.Array, pa.ChunkedArray)):
        raise _wrong(f"its keys are {described(keys)}, and must be an Arrow array")
    kind = keys.type
    if not (
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    ):
        raise _wrong(f"its keys have type {kind}, and must be binary or string")
    if keys.null_count:
        raise StateError(
            f"{keys.null_count} of {len(keys)} keys are null. Nothing of this epoch was committed.",
            condition="STATE_KEY_NULL",
            hint='Leave rows without a key out, by .where(pyarrow.compute.field("key").is_valid()) before '
            ".mapWithState, or fill their keys.",
        )
    wanted: Sequence[bytes] = keys.cast(pa.binary()).to_pylist()
    return wanted


def _as_array(values: Any, field: pa.Field) -> pa.Array:
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            return pa.array(values, field.type)
        return values if values.type == field.type else values.cast(field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _wrong(f"column {field.name!r} cannot be cast to {field.type}: {error}") from error


def _wrong(reason: str) -> SchemaError:
    return SchemaError(
        f"A state was used in a wrong way: {reason}. Nothing of this epoch was committed.",
        condition="STATE_USE_INVALID",
        hint="Call state.get(keys), state.update(keys, column=array, …), state.remove(keys) or "
        "state.registerTimer(keys, times) with Arrow arrays.",
    )
