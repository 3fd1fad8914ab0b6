"""The methods of a continuous query, with the names of Spark's readers: the source, and the functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_kafka.connector import SupportsRead, Table, TableCapability
from pyspark_kafka.continuous.query.arguments import as_arrow_schema, interval_ms, table_of, text_of
from pyspark_kafka.continuous.query.frame_plan import FramePlan
from pyspark_kafka.continuous.query.spark_names import FRAME_HINTS, GROUP_HINTS, READER_HINTS, SparkNames
from pyspark_kafka.continuous.query.time_modes import check_event_time, time_mode
from pyspark_kafka.continuous.query.windows import aggregates_of, grouping_of
from pyspark_kafka.continuous.query.writer import ContinuousWriter
from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.continuous.steps.first_rows import FirstRows
from pyspark_kafka.continuous.steps.session_rows import SessionRows
from pyspark_kafka.continuous.steps.window_times import TimeWindow
from pyspark_kafka.continuous.steps.windowed_rows import WindowedRows
from pyspark_kafka.continuous.task.stages import (
    MapBatches,
    MapInArrow,
    MapWithState,
    Select,
    Stage,
    Where,
    check_expression,
)
from pyspark_kafka.errors import CapabilityError, OptionError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow.compute as pc
    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.query.arguments import Schema
    from pyspark_kafka.continuous.state.by_key import StateByKey
    from pyspark_kafka.continuous.steps.row_groups import Grouping
    from pyspark_kafka.continuous.steps.window_times import SessionWindow

    ArrowFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class ContinuousReader(SparkNames):
    """The source of a query: a format and its options.

    Runs on: driver, or the client of Spark Connect.

    Args:
        spark: the session whose executors run the query.

    Source: Spark `DataStreamReader`.
    """

    _hints = READER_HINTS

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._table: Table | None = None
        self._options = CaseInsensitiveDict()

    def format(self, source: str | Table) -> ContinuousReader:
        """Set the source: "pyspark_kafka", or a table that names the capability `CONTINUOUS_READ`."""
        self._table = table_of(source)
        return self

    def option(self, key: str, value: Any) -> ContinuousReader:
        """Set one option; names compare without regard to case."""
        self._options[key] = text_of(value)
        return self

    def options(self, **options: Any) -> ContinuousReader:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def load(self) -> ContinuousFrame:
        """Return the rows, to which functions can be applied.

        Raises:
            OptionError: no format is set, or an option is missing, malformed or in conflict.
            CapabilityError: the table cannot be read in a continuous query.
        """
        if self._table is None:
            raise OptionError(
                "A continuous query was loaded without a format.",
                condition="FORMAT_MISSING",
                hint="Call .format(table) before .load().",
            )
        table = self._table
        if TableCapability.CONTINUOUS_READ not in table.capabilities() or not isinstance(table, SupportsRead):
            raise CapabilityError(
                f"Table {table.name()!r} cannot be read in a continuous query. It can be "
                f"{', '.join(sorted(each.value for each in table.capabilities())) or 'nothing'}.",
                condition="CAPABILITY_MISSING",
                hint="Use spark.readStream, or name CONTINUOUS_READ in capabilities() and implement it.",
            )
        schema = table.schema(self._options)
        return ContinuousFrame(self._spark, table, self._options.copy(), schema, loaded=schema)


class ContinuousGroups(SparkNames):
    """The row groups of a continuous query.

    Args:
        frame: the rows.
        grouping: the columns of the groups.

    Source: Spark `GroupedData`.
    """

    _hints = GROUP_HINTS

    def __init__(self, frame: ContinuousFrame, grouping: Grouping) -> None:
        self._frame, self._grouping = frame, grouping

    def agg(
        self,
        *,
        handleLateRows: Callable[[pa.RecordBatch], pa.RecordBatch | None],
        **aggregates: tuple[str, str],
    ) -> ContinuousFrame:
        """Aggregate the rows of each group, and return it once: when the watermark has reached the end of its window.

        The result has the columns of `groupBy`, with the window as a struct of start and end, and the aggregates.

        Args:
            handleLateRows: `(rows) -> rows`, with the columns of the result; None for no rows. It gets the rows whose
                windows have all ended, and rows without a time. `lambda rows: None` drops them, as Spark does.
            aggregates: for each column of the result a column of the rows and one of count, sum, min, max, avg and
                mean: `n=("*", "count"), total=("amount", "sum")`. Types and nulls are as in Spark.

        Raises:
            CapabilityError: the step comes after one of `mapInArrow`, which may hold rows back.
            SchemaError: an aggregate cannot be computed, none was named, or a column's type cannot be kept.

        Source: Spark `GroupedData.agg`.
        """
        grouping, frame = self._grouping, self._frame
        found = aggregates_of(aggregates, frame.schema, grouping)
        RowCodec(grouping.key_schema)
        window = grouping.window
        function: WindowedRows | SessionRows
        if isinstance(window, TimeWindow):
            function = WindowedRows(window, grouping, found)
        else:
            function = SessionRows(window, grouping, found)
        mode = time_mode(
            "EventTime", frame.watermark, frame.schema, function.close, handleLateRows, window.last_times, frame.idle_ms
        )
        return frame._with_state(  # noqa: SLF001 - the groups are a part of the frame
            MapWithState(
                function, function.schema, function.state_schema, 0, mode, function.key_text, function.operator
            )
        )


class ContinuousFrame(FramePlan, SparkNames):
    """Rows of a continuous query, as a plan: every method returns a new one, and nothing runs before `start`."""

    _hints = FRAME_HINTS

    def mapInArrow(self, func: ArrowFunction, schema: Schema) -> ContinuousFrame:
        """Apply a function from iterator to iterator of Arrow batches, with the signature of Spark's `mapInArrow`.

        Runs on executors, once for each epoch and lane: the iterator ends with the epoch, so that rows that the
        function keeps back are not lost. It must read its input to the end. Must pickle, as every function of Spark.

        Args:
            func: the function.
            schema: the columns of the batches that it yields: DDL text, a `StructType` or an Arrow schema.
        """
        made = as_arrow_schema(schema)
        return self._with(MapInArrow(func, made), made)

    def mapBatches(
        self, func: Callable[[pa.RecordBatch], pa.RecordBatch | None], schema: Schema | None = None
    ) -> ContinuousFrame:
        """Apply a function to each Arrow batch; None stands for no rows.

        Args:
            func: the function.
            schema: the columns of the batches that it returns; None: the columns of its input.
        """
        made = self.schema if schema is None else as_arrow_schema(schema)
        return self._with(MapBatches(func, made), made)

    def mapWithState(
        self,
        func: Callable[[pa.RecordBatch, StateByKey], pa.RecordBatch | None],
        schema: Schema,
        state_schema: Schema,
        *,
        ttl: str | None = None,
        timeMode: str = "None",
        handleExpiredTimer: Callable[[pa.RecordBatch, StateByKey], pa.RecordBatch | None] | None = None,
        handleLateRows: Callable[[pa.RecordBatch], pa.RecordBatch | None] | None = None,
    ) -> ContinuousFrame:
        """Apply a function to each Arrow batch and to values by key that it reads and changes.

        The values belong to the topic-partition (the key group) of the rows. No row goes to another partition: all
        rows of a key must be in one, as producers do by default. A restart continues with the values as they were
        after the last committed epoch.

        Runs on executors, once for each batch, in the row order of each partition. `mapBatches`, `where`,
        `select` and other states may come before it; `mapInArrow` only after it. Must pickle.

        Args:
            func: `(rows, state) -> rows`; None for no rows. `state.get(keys)` returns a batch of values, a row for each
                key; `state.update(keys, column=array, …)` sets them; `state.remove(keys)` removes them.
            schema: the columns of the batches that it returns.
            state_schema: the columns of a value: booleans, integers, floats, decimals, dates, timestamps, strings,
                binaries.
            ttl: the time for which a value stays after its last update, such as "1 hour", by the clocks of the
                executors; None keeps it until it is removed.
            timeMode: the clock of the timers: "ProcessingTime" for the clock of the executor, "EventTime" for the
                watermark of `withWatermark`; "None" for no timers. Case does not matter.
            handleExpiredTimer: `(timers, state) -> rows`, with the columns of `schema`; None for no rows. `timers` is
                a batch with the columns key and expiryTimeInMs, in the order of the times.
            handleLateRows: `(rows) -> rows`, with the columns of `schema`. It gets the rows with a time below the
                watermark, which `func` does not get. `lambda rows: None` drops them, as Spark does. Only with
                "EventTime".

        Raises:
            CapabilityError: the step comes after a `mapInArrow`, which may keep rows back.
            SchemaError: a column of the state has a type that cannot be kept, or the column of the watermark is gone.
            OptionError: `ttl` is not a span of time, `timeMode` is unknown, or a function or the watermark is missing
                for it, or has no meaning with it.

        Source: Spark `transformWithState`, `TTLConfig`, `StatefulProcessor.handleExpiredTimer`.
        """
        mode = time_mode(
            timeMode, self.watermark, self.schema, handleExpiredTimer, handleLateRows, idle_ms=self.idle_ms
        )
        ttl_ms = interval_ms(ttl) if ttl is not None else 0
        return self._with_state(
            MapWithState(func, as_arrow_schema(schema), as_arrow_schema(state_schema), ttl_ms, mode)
        )

    def withWatermark(self, eventTime: str, delayThreshold: str, idleTimeout: str | None = None) -> ContinuousFrame:
        """Set the time of a row for steps of `mapWithState` with `timeMode="EventTime"`.

        The watermark of a topic-partition (a key group) is the newest time of its rows, less the delay. Rows of a
        topic-partition that is behind others are not late.

        Args:
            eventTime: a column with timestamps, or with milliseconds since 1970 as a bigint.
            delayThreshold: how far a row may be behind the newest row of its topic-partition, such as "10 seconds".
            idleTimeout: the time without rows after which the open windows, the sessions and the timers of a
                topic-partition end, such as "5 minutes". Later rows of these windows are late. None: they end with
                later rows of the topic-partition only.

        Raises:
            SchemaError: there is no such column, or it has another type.
            OptionError: `delayThreshold` or `idleTimeout` is not a span of time.

        Source: Spark `DataFrame.withWatermark`.
        """
        check_event_time(eventTime, self.schema)
        problem = f"{delayThreshold!r} is not a span of time."
        delay_ms = interval_ms(delayThreshold, problem, minimum=0)
        problem = f"idleTimeout {idleTimeout!r} is not a span of time above 0."
        idle_ms = None if idleTimeout is None else interval_ms(idleTimeout, problem)
        return replace(self, watermark=(eventTime, delay_ms), idle_ms=idle_ms)

    def dropDuplicatesWithinWatermark(
        self, subset: Sequence[str], *, handleLateRows: Callable[[pa.RecordBatch], pa.RecordBatch | None]
    ) -> ContinuousFrame:
        """Keep the first row of each key, until the watermark has reached its time plus the delay of the watermark.

        Experimental: may change or be removed in any release before 1.0.

        A key is known within its topic-partition (its key group): let all rows of a key be in one, as Kafka's producers
        do by the key of the record.

        Args:
            subset: the columns that duplicates have in common, with types that a state can have. Nulls are equal.
            handleLateRows: as for `mapWithState`, with the columns of this frame.

        Raises:
            CapabilityError: the step comes after one of `mapInArrow`, which may hold rows back.
            SchemaError: there is no such column, none was named, or its type cannot be kept; or the column of the
                watermark is gone.
            OptionError: the rows have no watermark.

        Source: Spark `DataFrame.dropDuplicatesWithinWatermark`.
        """
        event_time, delay_ms = self.watermark or ("", 0)
        first = FirstRows(self._fields("dropDuplicatesWithinWatermark", subset), event_time, delay_ms)
        RowCodec(first.key)
        mode = time_mode("EventTime", self.watermark, self.schema, first.forget, handleLateRows)
        step = MapWithState(first, self.schema, FirstRows.state_schema, 0, mode, first.key_text, FirstRows.operator)
        return self._with_state(step)

    def groupBy(self, *cols: str | TimeWindow | SessionWindow) -> ContinuousGroups:
        """Group rows by a window of event time and other columns, for `agg`.

        Experimental: may change or be removed in any release before 1.0.

        A group belongs to its topic-partition (its key group): let all rows of a group be in one, as Kafka's producers
        do if the key of the record is one of the columns.

        Args:
            cols: one of `continuous.window(…)` and `continuous.session_window(…)`, and columns with types of the
                columns of a state. Nulls are equal.

        Raises:
            OptionError: there is not one window among them, or it is of another column than the watermark.
            SchemaError: there is no such column.

        Source: Spark `DataFrame.groupBy`.
        """
        return ContinuousGroups(self, grouping_of(cols, self.schema, self.watermark))

    def where(self, condition: pc.Expression) -> ContinuousFrame:
        """Keep the rows for which an Arrow expression is true, such as `pyarrow.compute.field("value").is_valid()`.

        Raises:
            TypeError: it is not an Arrow expression.
        """
        check_expression(condition)
        return self._with(Where(condition), self.schema)

    def select(self, *columns: str) -> ContinuousFrame:
        """Keep columns, in this order.

        Raises:
            SchemaError: there is no such column, or none was named.
        """
        return self._with(Select(tuple(columns)), self._fields("select", columns))

    @property
    def writeStream(self) -> ContinuousWriter:
        """Return the writer of the rows."""
        return ContinuousWriter(self)

    def __dir__(self) -> list[str]:
        """Return the names that completion offers: without the plan behind the methods."""
        plan = {*FramePlan.__dataclass_fields__, *vars(FramePlan)} - {"schema"}
        return [name for name in super().__dir__() if name.startswith("_") or name not in plan]

    def _fields(self, method: str, columns: Sequence[str]) -> pa.Schema:
        missing = [name for name in columns if name not in self.schema.names]
        if missing or not columns:
            raise SchemaError(
                f"There is no column {', '.join(map(repr, missing))}; the columns are {', '.join(self.schema.names)}."
                if missing
                else f"{method}() was called without a column.",
                condition="COLUMN_NOT_FOUND",
                hint="Name columns of the input.",
            )
        return pa.schema([self.schema.field(name) for name in columns])

    def _with_state(self, step: MapWithState) -> ContinuousFrame:
        if any(isinstance(step, MapInArrow) for step in self.steps):
            raise CapabilityError(
                "mapWithState() comes after mapInArrow(), whose function may hold rows back: nobody knows to which "
                "partition its batches belong.",
                condition="STATE_AFTER_MAP_IN_ARROW",
                hint="Call mapWithState() first, or use mapBatches() before it.",
            )
        RowCodec(step.state_schema)
        return self._with(step, step.schema)

    def _with(self, step: Stage, schema: pa.Schema) -> ContinuousFrame:
        return replace(self, steps=(*self.steps, step), schema=schema)
