"""The functions of a query as values that pickle: each takes an iterator of Arrow batches and returns one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.state.by_key import StateByKey
from pyspark_kafka.continuous.state.step_time import StepTime
from pyspark_kafka.continuous.state.times import milliseconds
from pyspark_kafka.continuous.state.versions import schema_text
from pyspark_kafka.continuous.task.step_meter import StepMeter
from pyspark_kafka.errors import ContinuousQueryError, SchemaError, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark_kafka.continuous.epochs.step_metrics import StepMetrics
    from pyspark_kafka.continuous.state.lane_state import LaneState

# Stands among batches where steps are to look at their timers; it is compared by identity, and has no rows.
TICK = pa.RecordBatch.from_arrays([], schema=pa.schema([]))


class Stage(Protocol):
    """One step of a query."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches that the function makes of them."""


@dataclass(frozen=True)
class MapInArrow:
    """A function from iterator to iterator, as Spark's `mapInArrow` takes it."""

    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the function's batches, each checked.

        Raises:
            ContinuousQueryError: the function returned before its input ended: rows of the epoch would be lost, also
                rows that the function before it still holds.
        """
        given = _Input(batches)
        for batch in self.function(given):
            yield checked_batch(batch, self.schema, self.function)
        if not given.has_ended:
            raise ended_early(f"Function {_name_of(self.function)}")


class _Input:
    """The batches of a function, which tells whether the function has read them to the end."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self.has_ended = False

    def __iter__(self) -> _Input:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            self.has_ended = True
            raise


@dataclass(frozen=True)
class MapBatches:
    """A function from batch to batch; None stands for no rows."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch | None]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the function's batches, each looked at."""
        for batch in batches:
            made = self.function(batch)
            if made is not None:
                yield checked_batch(made, self.schema, self.function)


@dataclass(frozen=True)
class TimeMode:
    """The timers of a step with state.

    Attributes:
        expired: the function of due timers.
        event_time: the column with the time of a row; empty for the clock of the executor.
        delay_ms: how far a row may be behind the newest row of its key group; None for the clock.
        late: the function of late rows; None for the clock.
        last_times: the greatest watermark at which a row is not late, in milliseconds since 1970; None for its time.
        idle_ms: the time without rows after which all timers of a key group expire; None for never.
    """

    expired: Callable[[pa.RecordBatch, StateByKey], pa.RecordBatch | None]
    event_time: str | None = None
    delay_ms: int | None = None
    late: Callable[[pa.RecordBatch], pa.RecordBatch | None] | None = None
    last_times: Callable[[pa.RecordBatch], pa.Array] | None = None
    idle_ms: int | None = None

    def times_of(self, rows: pa.RecordBatch, event_time: str) -> pa.Array:
        """Return the times, in milliseconds since 1970, at which rows are late if the watermark is above them."""
        return milliseconds(rows.column(event_time)) if self.last_times is None else self.last_times(rows)

    @property
    def text(self) -> str:
        """Return what must be the same in the next run: the watermark in the state is one of this column."""
        return "timers of processing time" if self.event_time is None else f"timers of event time {self.event_time}"


@dataclass(frozen=True)
class MapWithState:
    """A function from batch and state to batch; None stands for no rows.

    Attributes:
        function: the function.
        schema: the columns that it returns.
        state_schema: the columns of a value.
        ttl_ms: after how long without an update a value is gone, in milliseconds; 0 for never.
        time_mode: whether it has timers, and which clock they wait for.
        key: what the function makes keys of, as text; None if it takes keys as they are.
        operator: its name in reports.
        state: its state, in a task; None elsewhere.
        time: its timers and watermarks, in a task with them.
        meter: measures it, in a task; None elsewhere.
    """

    function: Callable[[pa.RecordBatch, StateByKey], pa.RecordBatch | None]
    schema: pa.Schema
    state_schema: pa.Schema
    ttl_ms: int
    time_mode: TimeMode | None = None
    key: str | None = None
    operator: str = "mapWithState"
    state: StateByKey | None = None
    time: StepTime | None = None
    meter: StepMeter | None = None

    @property
    def kept(self) -> Sequence[tuple[str, int]]:
        """Return the checkpoint's part: for each state its columns as text, and its `ttl_ms`."""
        values = schema_text(self.state_schema, self.ttl_ms, self.key), self.ttl_ms
        return [values] if self.time_mode is None else [values, (self.time_mode.text, 0)]

    def holding(self, states: LaneState, number: int) -> MapWithState:
        """Return the step with its state in a lane, from a number on."""
        mode, time = self.time_mode, None
        if mode is not None:
            idle_s = None if mode.idle_ms is None else mode.idle_ms / 1000
            # Windows and sessions set no timer without a row.
            time = StepTime(states, number + 1, mode.delay_ms, idle_s=idle_s, closes=mode.last_times is not None)
        state = StateByKey(states, number, self.state_schema, time)
        return replace(self, state=state, time=time, meter=StepMeter(states, number, time))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the function's batches, each looked at."""
        mode, state, time, meter = self.time_mode, self.state, self.time, self.meter
        if state is None or meter is None:
            raise RuntimeError("a step with a state was called without it")
        for batch in batches:
            if mode is None or time is None or mode.event_time is None:
                yield from self._looked_at(self.function, meter.update(self.function, batch, state))
                continue
            times = mode.times_of(batch, mode.event_time)
            event_times = milliseconds(batch.column(mode.event_time))
            rows = time.split(batch, times, event_times)
            if rows.late.num_rows and mode.late is not None:
                meter.late += rows.late.num_rows
                yield from self._looked_at(mode.late, mode.late(rows.late))
            if rows.on_time.num_rows:
                yield from self._looked_at(self.function, meter.update(self.function, rows.on_time, state))
            # A row without a time, or with one out of range, is late, and says nothing about others.
            time.advance(event_times.filter(times.is_valid()) if times.null_count else event_times)

    def expired(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of the timers' function for due timers."""
        mode, state, time, meter = self.time_mode, self.state, self.time, self.meter
        if mode is not None and time is not None and state is not None and meter is not None:
            for timers in time.expired():
                yield from self._looked_at(mode.expired, meter.expire(mode.expired, timers, state))

    def _looked_at(self, function: object, made: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        if made is not None:
            yield checked_batch(made, self.schema, function)


@dataclass(frozen=True)
class Where:
    """Keeps the rows for which an Arrow expression is true."""

    condition: pc.Expression

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches that have rows left."""
        for batch in batches:
            for kept in pa.Table.from_batches([batch]).filter(self.condition).to_batches():
                if kept.num_rows:
                    yield kept


@dataclass(frozen=True)
class Select:
    """Keeps columns, in this order."""

    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches with these columns."""
        names = list(self.columns)
        for batch in batches:
            yield batch.select(names)


@dataclass(frozen=True)
class Stages:
    """Steps one after the other; without any, the batches as they are."""

    steps: Sequence[Stage]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the last step's results for the batches.

        Among them may be `TICK`, for steps with timers. No other step gets it.
        """
        timed = [number for number, step in enumerate(self.steps) if _time_of(step) is not None]
        last = timed[-1] if timed else -1
        for number, step in enumerate(self.steps):
            batches = step(batches) if number > last else _with_ticks(step, batches, passes_on=number < last)
        return batches

    def has_timer_due(self) -> bool:
        """Return whether a timer of a step is due; then `TICK` is to come next."""
        return any(time.is_due() for step in self.steps if (time := _time_of(step)) is not None)

    def has_timer_left(self) -> bool:
        """Return whether the last `TICK` has left due timers; then `TICK` is to come again before rows."""
        return any(time.has_left() for step in self.steps if (time := _time_of(step)) is not None)

    @property
    def can_be_idle(self) -> bool:
        """Whether `poll` is to be called when there are no rows."""
        return any(time.can_be_idle for step in self.steps if (time := _time_of(step)) is not None)

    def poll(self, now_s: float) -> None:
        """Record that there are no rows: timers of idle key groups become due.

        Args:
            now_s: monotonic seconds.
        """
        for step in self.steps:
            if (time := _time_of(step)) is not None:
                time.poll(now_s)

    def end_epoch(self) -> list[StepMetrics]:
        """Return the metrics of the steps with state, in their order, and begin the metrics of the next epoch."""
        return [step.meter.end_epoch() for step in self.with_state if step.meter is not None]

    @property
    def with_state(self) -> Sequence[MapWithState]:
        """Return the steps that have a state, in their order."""
        return [step for step in self.steps if isinstance(step, MapWithState)]

    def holding(self, states: LaneState) -> Stages:
        """Return the steps with the states of a lane."""
        steps: list[Stage] = []
        number = 0
        for step in self.steps:
            if isinstance(step, MapWithState):
                steps.append(step.holding(states, number))
                number += len(step.kept)
            else:
                steps.append(step)
        return Stages(steps)


def _time_of(step: Stage) -> StepTime | None:
    return step.time if isinstance(step, MapWithState) else None


def _with_ticks(step: Stage, batches: Iterator[pa.RecordBatch], *, passes_on: bool) -> Iterator[pa.RecordBatch]:
    """Apply a step to each batch alone, and let it look at its timers at each `TICK`."""
    for batch in batches:
        if batch is not TICK:
            yield from step(iter((batch,)))
            continue
        if isinstance(step, MapWithState):
            yield from step.expired()
        if passes_on:
            yield TICK


def check_expression(condition: object) -> None:
    """Check that a condition is an Arrow expression.

    Raises:
        TypeError: it is another thing, such as text or a column of Spark.
    """
    if not isinstance(condition, pc.Expression):
        raise TypeError(
            f"where() takes an Arrow expression, such as pyarrow.compute.field('n') > 1, not {described(condition)}"
        )


def checked_batch(batch: object, schema: pa.Schema, function: object) -> pa.RecordBatch:
    """Return the batch of a user's function if it has the columns that the query was given for it.

    Raises:
        SchemaError: it is not a batch, or has other columns.
    """
    name = _name_of(function)
    if not isinstance(batch, pa.RecordBatch):
        raise SchemaError(
            f"Function {name} returned {described(batch)}, and must return pyarrow.RecordBatch. Nothing of this epoch "
            "was committed.",
            condition="FUNCTION_RESULT_INVALID",
            hint="Yield record batches from a function of mapInArrow; return one, or None, from one of mapBatches "
            "or mapWithState.",
        )
    if batch.schema.names != schema.names or batch.schema.types != schema.types:
        raise SchemaError(
            f"Function {name} returned the columns {_columns(batch.schema)}, and the query says {_columns(schema)}. "
            "Nothing of this epoch was committed.",
            condition="FUNCTION_RESULT_INVALID",
            hint="Return the columns of the schema that was given with the function.",
        )
    return batch


def ended_early(what: str) -> ContinuousQueryError:
    """Return the error of an epoch whose rows were not read to the end.

    Args:
        what: the function, or the functions together, as the subject of the sentence.
    """
    return ContinuousQueryError(
        f"{what} returned before the input of the epoch ended: the rows that were left would be lost. Nothing of this "
        "epoch was committed.",
        condition="FUNCTION_ENDED_EARLY",
        hint="Let the function of mapInArrow loop over its whole iterator: for batch in batches: yield ….",
    )


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", repr(function)))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
