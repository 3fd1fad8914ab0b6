"""The words of a continuous query, as Spark's readers and writers have them: read, functions, write, start."""

from __future__ import annotations

import functools
import re
import uuid
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.connector import (
    ContinuousStream,
    LogicalWriteInfo,
    StreamingWrite,
    SupportsPushDownRequiredColumns,
    SupportsRead,
    SupportsSourceOffsets,
    SupportsWrite,
    Table,
    TableCapability,
)
from pyspark_kafka.connector.engine.checks import check_instance
from pyspark_kafka.continuous.channel.driver_side import ALIVE_SECONDS, LOST_SECONDS
from pyspark_kafka.continuous.channel.file_limit import file_limit, raise_file_limit, room_for_tasks
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.guesses import FRAME_GUESSES, READER_GUESSES, WRITER_GUESSES, GuessedNames
from pyspark_kafka.continuous.placement.sessions import address_of_driver
from pyspark_kafka.continuous.placement.slots import check_session
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.continuous.query.runner import QueryRunner
from pyspark_kafka.continuous.reports.events import QueryEvents
from pyspark_kafka.continuous.reports.explain import explained
from pyspark_kafka.continuous.reports.progress import ProgressLog, QueryNames
from pyspark_kafka.continuous.reports.streams import STREAMS
from pyspark_kafka.continuous.run.plan import QueryPlan, RestartPauses
from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.continuous.task.stages import (
    MapBatches,
    MapInArrow,
    MapWithState,
    Select,
    Stage,
    Stages,
    Where,
    check_expression,
)
from pyspark_kafka.errors import CapabilityError, OptionError, SchemaError, described
from pyspark_kafka.spark.compat import arrow_schema
from pyspark_kafka.spark.metrics.local_bus import session_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pyspark_kafka.continuous.state.by_key import StateByKey

    ArrowFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    Schema: TypeAlias = StructType | str | pa.Schema

_P = ParamSpec("_P")
_T = TypeVar("_T")
_INTERVAL = re.compile(r"\s*(?:interval\s+)?([0-9]{1,9})\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS_MS = {
    name: ms
    for names, ms in (
        ("ms millisecond milliseconds", 1),
        ("s sec second seconds", 1_000),
        ("m min minute minutes", 60_000),
        ("h hour hours", 3_600_000),
    )
    for name in names.split()
}
_MOST_FAILURES = 3
_PAUSES = RestartPauses()
# Of a query with availableNow: how much of it is repeated after a failure.
_AVAILABLE_NOW_INTERVAL_MS = 10_000
_KAFKA = "pyspark_kafka"
_LEAST_LOST_SECONDS = 5.0
# Options of a writer that are the engine's: no sink knows them.
_ENGINE_OPTIONS = (
    "tasks",
    "coordinatorhost",
    "coordinatorport",
    "maxfailures",
    "restartbackoff",
    "restartbackoffmax",
    "tasktimeout",
)


def _warn_of_name(former: str, now: str) -> None:
    # Former names work until version 0.3.
    warnings.warn(f"{former} is called {now} now.", DeprecationWarning, stacklevel=3)


def _former(name: str, method: Callable[_P, _T]) -> Callable[_P, _T]:
    @functools.wraps(method)
    def renamed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        _warn_of_name(name, method.__name__)
        return method(*args, **kwargs)

    return renamed


class ContinuousReader(GuessedNames):
    """What is read: a format and its options.

    Runs on: driver, or the client of Spark Connect.

    Args:
        spark: the session whose executors run the query.

    Source: Spark `DataStreamReader`.
    """

    _guesses = READER_GUESSES

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._table: Table | None = None
        self._options = CaseInsensitiveDict()

    def format(self, source: str | Table) -> ContinuousReader:
        """Set what is read: "pyspark_kafka", or a table that names the capability `CONTINUOUS_READ`."""
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


@dataclass(frozen=True)
class ContinuousFrame(GuessedNames):
    """Rows of a continuous query, as a plan: every method returns a new one, and nothing runs before `start`.

    Attributes:
        spark: the session.
        table: what is read.
        options: of the read.
        schema: the columns after all functions.
        steps: the functions.
        loaded: the columns before them, as they were when the read was loaded: a schema registry may have others by
            now. None: to be asked of the table.
    """

    _guesses = FRAME_GUESSES

    spark: SparkSession
    table: SupportsRead
    options: Mapping[str, str]
    schema: pa.Schema
    steps: tuple[Stage, ...] = ()
    loaded: pa.Schema | None = None

    @property
    def read_schema(self) -> pa.Schema:
        """The columns before all functions."""
        return self.table.schema(self.options) if self.loaded is None else self.loaded

    def mapInArrow(self, func: ArrowFunction, schema: Schema) -> ContinuousFrame:
        """Apply a function from iterator to iterator of Arrow batches, with the signature of Spark's `mapInArrow`.

        Runs on executors, once for each epoch and lane: the iterator ends with the epoch, so that nothing that the
        function holds back is lost. It must read its input to the end. Must pickle, as every function of Spark.

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
            schema: the columns of the batches that it returns; those that it takes if None.
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
    ) -> ContinuousFrame:
        """Apply a function to each Arrow batch and to values by key that it reads and changes.

        The values belong to the topic-partition (the key group) of the rows. No row goes to another partition: all
        rows of a key must be in one, as producers do by default. A restart continues with the values as they were
        after the last committed epoch.

        Runs on executors, once for each batch, in the order of the rows of each partition. `mapBatches`, `where`,
        `select` and other states may come before it; `mapInArrow` only after it. Must pickle.

        Args:
            func: `(rows, state) -> rows`; None for no rows. `state.get(keys)` returns a batch of values, a row for each
                key; `state.update(keys, column=array, …)` sets them; `state.remove(keys)` removes them.
            schema: the columns of the batches that it returns.
            state_schema: the columns of a value: booleans, integers, floats, dates, timestamps, strings, binaries.
            ttl: how long a value stays after its last update, such as "1 hour", by the clocks of the executors; None
                keeps it until it is removed.

        Raises:
            CapabilityError: the step comes after one of `mapInArrow`, which may hold rows back.
            SchemaError: a column of the state has a type that cannot be kept.
            OptionError: `ttl` is no span of time.

        Source: Spark `transformWithState`, `TTLConfig`.
        """
        if any(isinstance(step, MapInArrow) for step in self.steps):
            raise CapabilityError(
                "mapWithState() comes after mapInArrow(), whose function may hold rows back: nobody knows to which "
                "partition its batches belong.",
                condition="STATE_AFTER_MAP_IN_ARROW",
                hint="Call mapWithState() first, or use mapBatches() before it.",
            )
        made, kept = as_arrow_schema(schema), as_arrow_schema(state_schema)
        RowCodec(kept)
        return self._with(MapWithState(func, made, kept, interval_ms(ttl) if ttl is not None else 0), made)

    def where(self, condition: pc.Expression) -> ContinuousFrame:
        """Keep the rows for which an Arrow expression is true, such as `pyarrow.compute.field("value").is_valid()`.

        Raises:
            TypeError: it is no Arrow expression.
        """
        check_expression(condition)
        return self._with(Where(condition), self.schema)

    def select(self, *columns: str) -> ContinuousFrame:
        """Keep columns, in this order.

        Raises:
            SchemaError: there is no such column, or none was named.
        """
        missing = [name for name in columns if name not in self.schema.names]
        if missing or not columns:
            raise SchemaError(
                f"There is no column {', '.join(map(repr, missing))}; the columns are {', '.join(self.schema.names)}."
                if missing
                else "select() was called without a column.",
                condition="COLUMN_NOT_FOUND",
                hint="Name columns that are there.",
            )
        fields = [self.schema.field(name) for name in columns]
        return self._with(Select(tuple(columns)), _schema_of(fields))

    @property
    def writeStream(self) -> ContinuousWriter:
        """Return the writer of the rows."""
        return ContinuousWriter(self)

    map_in_arrow = _former("map_in_arrow", mapInArrow)
    map_batches = _former("map_batches", mapBatches)
    map_with_state = _former("map_with_state", mapWithState)

    @property
    def write_stream(self) -> ContinuousWriter:
        """The former name of `writeStream`."""
        _warn_of_name("write_stream", "writeStream")
        return self.writeStream

    def _with(self, step: Stage, schema: pa.Schema) -> ContinuousFrame:
        return replace(self, steps=(*self.steps, step), schema=schema)


class ContinuousWriter(GuessedNames):
    """Where the rows go, and how often an epoch ends.

    Source: Spark `DataStreamWriter`.
    """

    _guesses = WRITER_GUESSES

    def __init__(self, frame: ContinuousFrame) -> None:
        self._frame = frame
        self._table: Table | None = None
        self._options = CaseInsensitiveDict()
        self._interval_ms = 1_000
        self._available_now = False
        self._name: str | None = None

    def format(self, sink: str | Table) -> ContinuousWriter:
        """Set what is written: "pyspark_kafka", or a table that names the capability `STREAMING_WRITE`."""
        self._table = table_of(sink)
        return self

    def option(self, key: str, value: Any) -> ContinuousWriter:
        """Set one option; names compare without regard to case."""
        self._options[key] = text_of(value)
        return self

    def options(self, **options: Any) -> ContinuousWriter:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> ContinuousWriter:
        """Take note that rows are appended, which they always are.

        Raises:
            OptionError: it is another mode.
        """
        if not isinstance(outputMode, str) or outputMode.lower() != "append":
            raise OptionError(
                f"A continuous query has no output mode {outputMode!r}: it appends.",
                condition="OPTION_INVALID",
                hint='Leave outputMode out, or set it to "append".',
            )
        return self

    def queryName(self, queryName: str) -> ContinuousWriter:
        """Set the name of the query."""
        self._name = queryName
        return self

    def trigger(
        self, *, continuous: str | None = None, availableNow: bool | None = None, **others: Any
    ) -> ContinuousWriter:
        """Set how long the query runs, and how much of it is read again after a failure. Takes one of both.

        Args:
            continuous: the query runs until it is stopped; the length of an epoch, such as "1 second".
            availableNow: True: the query reads what is there when it starts, and ends.
            others: triggers of Spark's micro-batches, for the error.

        Raises:
            OptionError: none or both are given, the text is no span of time, or is 0, or availableNow is not True; or
                another trigger is given.
        """
        if others:
            raise OptionError(
                f"A continuous query has no trigger {', '.join(sorted(others))}.",
                condition="OPTION_INVALID",
                hint='Write trigger(continuous="1 second") or trigger(availableNow=True).',
            )
        if (continuous is None) == (availableNow is None) or availableNow not in (None, True):
            raise OptionError(
                f"trigger() takes continuous or availableNow=True, and got continuous={continuous!r}, "
                f"availableNow={availableNow!r}.",
                condition="OPTION_INVALID",
                hint='Write trigger(continuous="1 second") or trigger(availableNow=True).',
            )
        self._available_now = continuous is None
        self._interval_ms = _AVAILABLE_NOW_INTERVAL_MS if continuous is None else interval_ms(continuous)
        return self

    def start(self) -> ContinuousQuery:
        """Start the query, and return at once.

        Raises:
            OptionError: format or checkpointLocation is missing, or an option is malformed.
            CapabilityError: the table cannot be written by a continuous query, or the session cannot run one.
            CheckpointError: the checkpoint cannot be read or written, or its location does not decide which of two
                drivers writes an epoch.
        """
        frame = self._frame
        location = self._options.get("checkpointlocation")
        if self._table is None or location is None:
            missing = "format" if self._table is None else "checkpointLocation"
            raise OptionError(
                f"A continuous query was started without {missing}. Nothing was read.",
                condition="OPTION_MISSING",
                hint="Call .format(table)." if self._table is None else 'Set .option("checkpointLocation", …).',
            )
        check_session(frame.spark)
        stages = Stages(frame.steps)
        files = CheckpointFiles(location)
        # Two drivers on one checkpoint are kept apart by files that are created once.
        files.check_decides()
        epochs = EpochFiles(files)
        query_id = epochs.query_id()
        stream, schema = self._stream(f"{files.location}/sources/0")
        write = self._write(query_id, stream)
        if stages.with_state:
            self._check_state(stream, write)
        most_failures = self._number("maxFailures", 10_000, "3", least=0)
        names = QueryNames(query_id, str(uuid.uuid4()), self._name, frame.table.name(), self._table.name())
        plan = QueryPlan(
            stream=stream,
            write=write,
            stages=stages,
            tasks=self._tasks(),
            interval_ms=self._interval_ms,
            host=(self._options.get("coordinatorhost") or address_of_driver(frame.spark)).strip("[]"),
            port=self._number("coordinatorPort", 65_535, "any port that is free") or 0,
            most_failures=_MOST_FAILURES if most_failures is None else most_failures,
            available_now=self._available_now,
            schema=None if frame.table.name() == _KAFKA else schema,
            pauses=RestartPauses(
                self._span_ms("restartBackoff", _PAUSES.first_ms),
                self._span_ms("restartBackoffMax", _PAUSES.longest_ms),
            ),
            lost_s=self._lost_s(),
        )
        events = QueryEvents(names, session_key(frame.spark))
        progress = ProgressLog(names, plan.stream, events)
        progress.set_interval(plan.interval_ms, "")

        def ended(failure: BaseException | None) -> None:
            STREAMS.ended(query, failure)
            events.terminated(failure)

        runner = QueryRunner(frame.spark, plan, files, epochs, names, progress, ended)
        query = ContinuousQuery(runner, names, progress, explained(frame, self._table.name(), plan))
        STREAMS.began(query)
        events.started()
        runner.start()
        return query

    def _stream(self, location: str) -> tuple[ContinuousStream, pa.Schema]:
        frame = self._frame
        builder = frame.table.newScanBuilder(frame.options)
        if isinstance(builder, SupportsPushDownRequiredColumns):
            builder.pruneColumns(_read_schema(frame))
        scan = builder.build()
        stream = check_instance(scan.toContinuousStream(location), ContinuousStream, scan, "toContinuousStream")
        left_out = type(stream).prepareForTriggerAvailableNow is ContinuousStream.prepareForTriggerAvailableNow
        if self._available_now and left_out:
            # Raises CapabilityError, before anything is read.
            stream.prepareForTriggerAvailableNow()
        return stream, scan.readSchema()

    def _check_state(self, stream: ContinuousStream, write: StreamingWrite) -> None:
        if type(stream).keyGroups is ContinuousStream.keyGroups:
            raise CapabilityError.missing_method(stream, "keyGroups", "CONTINUOUS_READ")
        if isinstance(write, SupportsSourceOffsets):
            raise CapabilityError(
                "A query with mapWithState() cannot write in transactions with the positions of its source: its "
                "state is in the checkpoint, and not part of the transaction. Nothing was read.",
                condition="STATE_NOT_TRANSACTIONAL",
                hint="Leave option deliveryGuarantee out: rows that are written twice have equal values then.",
            )

    def _write(self, query_id: str, stream: ContinuousStream) -> StreamingWrite:
        table = self._table
        if not isinstance(table, SupportsWrite) or TableCapability.STREAMING_WRITE not in table.capabilities():
            raise CapabilityError(
                f"Table {table.name() if table else None!r} cannot be written by a streaming query.",
                condition="CAPABILITY_MISSING",
                hint="Name STREAMING_WRITE in capabilities() and implement it.",
            )
        options = CaseInsensitiveDict(
            {key: value for key, value in self._options.items() if key not in _ENGINE_OPTIONS}
        )
        write = table.newWriteBuilder(LogicalWriteInfo(options, self._frame.schema, query_id)).build()
        made = write.toContinuous(stream, self._interval_ms)
        job = check_instance(made, StreamingWrite, write, "toContinuous")
        if type(job).deserializeMessage is StreamingWrite.deserializeMessage:
            # Raises CapabilityError, before anything is read.
            job.deserializeMessage("{}")
        return job

    def _number(self, name: str, most: int, without: str, *, least: int = 1) -> int | None:
        text = self._options.get(name)
        if text is None:
            return None
        if not text.isdecimal() or not least <= int(text) <= most:
            raise OptionError(
                f"Option {name} is {text!r}, and must be a number from {least} to {most}.",
                condition="OPTION_INVALID",
                hint=f"Leave it out for {without}.",
            )
        return int(text)

    def _tasks(self) -> int | None:
        tasks = self._number("tasks", 10_000, "as many as there are slots")
        raise_file_limit()
        room = room_for_tasks()
        if tasks is not None and room is not None and tasks > room:
            raise OptionError(
                f"Option tasks is {tasks}, and this process has room for the connections of {room} tasks: it may have "
                f"{file_limit()} files open at the same time. Nothing was read.",
                condition="OPTION_INVALID",
                hint="Raise the limit (ulimit -n), or set the option to a smaller number; lanes share tasks.",
            )
        return tasks

    def _lost_s(self) -> float:
        lost_s = self._span_ms("taskTimeout", int(LOST_SECONDS * 1000)) / 1000
        if lost_s < _LEAST_LOST_SECONDS:
            raise OptionError(
                f"Option taskTimeout is {lost_s:g} s, and must be at least {_LEAST_LOST_SECONDS:g} s: driver and tasks "
                f"say every {ALIVE_SECONDS:g} s that they live.",
                condition="OPTION_INVALID",
                hint=f"Leave it out for {LOST_SECONDS:g} seconds.",
            )
        return lost_s

    def _span_ms(self, name: str, default_ms: int) -> int:
        text = self._options.get(name)
        return (
            default_ms if text is None else interval_ms(text, f"Option {name} is {text!r}, which is no span of time.")
        )


def _read_schema(frame: ContinuousFrame) -> pa.Schema:
    """Return the columns that the query reads: those of a `select` that comes first, or all."""
    schema = frame.read_schema
    first = frame.steps[0] if frame.steps else None
    return _schema_of([schema.field(name) for name in first.columns]) if isinstance(first, Select) else schema


def table_of(source: str | Table) -> Table:
    """Return a table, by its name if it is Kafka; Spark knows names of others, and does not tell them.

    Raises:
        OptionError: the name is another one.
        TypeError: it is no table and no name.
    """
    if isinstance(source, Table):
        return source
    if not isinstance(source, str):
        raise TypeError(f"format() takes a Table, or its name if it is Kafka, not {described(source)}: {source!r}")
    if source != _KAFKA:
        raise OptionError(
            f"A continuous query knows no format {source!r}.",
            condition="FORMAT_UNKNOWN",
            hint=f"Use {_KAFKA!r}, or pass the table itself, as to as_data_source().",
        )
    from pyspark_kafka.table.kafka_table import KafkaTable  # noqa: PLC0415 - other tables need no Kafka

    return KafkaTable()


def text_of(value: Any) -> str:
    """Return the value of an option as Spark passes it on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema that was given as DDL text, as Spark's or as Arrow's."""
    import pyarrow as pa  # noqa: PLC0415 - for type checks alone above

    if isinstance(schema, pa.Schema):
        return schema
    from pyspark.sql.types import StructType  # noqa: PLC0415 - likewise

    parsed = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise TypeError(f"a schema is DDL text, a StructType or an Arrow schema, not {schema!r}")
    return arrow_schema(parsed)


def interval_ms(text: str, problem: str | None = None) -> int:
    """Return the milliseconds of an interval such as "1 second", "500 ms", "2 minutes".

    Args:
        text: the interval.
        problem: what the error says; that it is no length of an epoch if None.

    Raises:
        OptionError: it is none, or is 0.
    """
    found = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
    unit = None if found is None else _UNITS_MS.get(found[2].lower())
    if found is None or unit is None or int(found[1]) == 0:
        raise OptionError(
            problem or f"{text!r} is no length of an epoch.",
            condition="OPTION_INVALID",
            hint='Write a number and a unit: "1 second", "500 milliseconds", "2 minutes".',
        )
    return int(found[1]) * unit


def _schema_of(fields: list[pa.Field]) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - for type checks alone above

    return pa.schema(fields)
