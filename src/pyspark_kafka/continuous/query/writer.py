"""The sink of a continuous query, and its start, with the methods of Spark's writers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_kafka._connector.spark.local_bus import session_key
from pyspark_kafka._connector.spark.processes.process_log import stand_in
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.default_file_system import on_default_file_system
from pyspark_kafka.connector import (
    ContinuousStream,
    LogicalWriteInfo,
    StreamingWrite,
    SupportsPushDownRequiredColumns,
    SupportsSourceOffsets,
    SupportsWrite,
    Table,
    TableCapability,
)
from pyspark_kafka.connector.engine.checks import check_instance
from pyspark_kafka.continuous.channel.driver_side import ALIVE_SECONDS, LOST_SECONDS
from pyspark_kafka.continuous.channel.file_limit import file_limit, raise_file_limit, room_for_tasks
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.placement.sessions import address_of_driver, check_session, default_file_system
from pyspark_kafka.continuous.query.arguments import KAFKA, interval_ms, table_of, text_of
from pyspark_kafka.continuous.query.frame_plan import QueryEnds
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.continuous.query.runner import QueryRunner
from pyspark_kafka.continuous.query.spark_names import WRITER_HINTS, SparkNames
from pyspark_kafka.continuous.query.streams import STREAMS
from pyspark_kafka.continuous.reports.events import QueryEvents, QueryNames
from pyspark_kafka.continuous.reports.progress import ProgressLog
from pyspark_kafka.continuous.reports.state_operators import OperatorName
from pyspark_kafka.continuous.run.plan import QueryPlan, RestartPauses
from pyspark_kafka.continuous.state.versions import MAX_COMMITTED_STATES
from pyspark_kafka.continuous.task.stages import Stages
from pyspark_kafka.errors import CapabilityError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka.continuous.query.frame_plan import FramePlan

_MAX_FAILURES = 3
_PAUSES = RestartPauses()
# The epoch of a query with availableNow: the work that is repeated after a failure.
_AVAILABLE_NOW_INTERVAL_MS = 10_000
_MIN_LOST_SECONDS = 5.0
_CHECKPOINT = "checkpointlocation"
# Options of the engine, which sinks do not get.
_ENGINE_OPTIONS = (
    "tasks",
    "coordinatorhost",
    "coordinatorport",
    "maxfailures",
    "restartbackoff",
    "restartbackoffmax",
    "tasktimeout",
)


class ContinuousWriter(SparkNames):
    """The sink of the rows, and the length of an epoch.

    Source: Spark `DataStreamWriter`.
    """

    _hints = WRITER_HINTS

    def __init__(self, frame: FramePlan) -> None:
        self._frame = frame
        self._table: Table | None = None
        self._options = CaseInsensitiveDict()
        self._interval_ms = 1_000
        self._available_now = False
        self._name: str | None = None

    def format(self, sink: str | Table) -> ContinuousWriter:
        """Set the sink: "pyspark_kafka", or a table that names the capability `STREAMING_WRITE`."""
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
        """Accept the mode `append`, the only one.

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
        """Set the duration of the query, and the work that a failure repeats. Takes one of both.

        Args:
            continuous: the query runs until it is stopped; the length of an epoch, such as "1 second".
            availableNow: True: the query reads the rows that exist at its start, and ends.
            others: triggers of Spark's micro-batches, for the error.

        Raises:
            OptionError: none or both are given, or another trigger; the text is not a span of time, or is 0; or
                availableNow is not True.
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
        """Start the query, and return immediately.

        Raises:
            OptionError: format or checkpointLocation is missing, or an option is malformed.
            CapabilityError: the table cannot be written by a continuous query, or the session cannot run one.
            CheckpointError: the checkpoint cannot be read or written, or its location cannot decide between two
                drivers that write an epoch.
        """
        frame = self._frame
        location = self._options.get(_CHECKPOINT)
        if self._table is None or location is None:
            missing = "format" if self._table is None else "checkpointLocation"
            raise OptionError(
                f"A continuous query was started without {missing}. Nothing was read.",
                condition="OPTION_MISSING",
                hint="Call .format(table)." if self._table is None else 'Set .option("checkpointLocation", …).',
            )
        check_session(frame.spark)
        # The engine runs in this program, whose Python would print its warnings as bare text.
        stand_in()
        stages = Stages(frame.steps)
        default = default_file_system(frame.spark)
        files = CheckpointFiles(on_default_file_system(location, default))
        # Files that only one driver can create separate two drivers on one checkpoint.
        files.check_decides()
        epochs = EpochFiles(files)
        query_id = epochs.query_id()
        stream, schema = self._stream(f"{files.location}/sources/0", default)
        write = self._write(query_id, stream, files.location)
        if stages.with_state:
            _check_state(stream, write, sum(len(step.kept) for step in stages.with_state))
        max_failures = self._number("maxFailures", 10_000, "3", minimum=0)
        names = QueryNames(query_id, str(uuid.uuid4()), self._name, frame.table.name(), self._table.name())
        plan = QueryPlan(
            stream=stream,
            write=write,
            stages=stages,
            tasks=self._tasks(),
            interval_ms=self._interval_ms,
            host=(self._options.get("coordinatorhost") or address_of_driver(frame.spark)).strip("[]"),
            port=self._number("coordinatorPort", 65_535, "any port that is free") or 0,
            max_failures=_MAX_FAILURES if max_failures is None else max_failures,
            available_now=self._available_now,
            schema=None if frame.table.name() == KAFKA else schema,
            pauses=RestartPauses(
                self._span_ms("restartBackoff", _PAUSES.first_ms),
                self._span_ms("restartBackoffMax", _PAUSES.longest_ms),
            ),
            lost_s=self._lost_s(),
        )
        events = QueryEvents(names, session_key(frame.spark))
        progress = ProgressLog(names, plan.stream, events, [OperatorName.of(step) for step in stages.with_state])
        progress.set_interval(plan.interval_ms, "")

        def ended(failure: BaseException | None) -> None:
            STREAMS.ended(query, failure)
            events.terminated(failure)

        runner = QueryRunner(frame.spark, plan, files, epochs, names, progress, ended)
        ends = QueryEnds(frame, stream, write, self._table.name(), self._sink_options)
        query = ContinuousQuery(runner, names, progress, frame.explained(ends.sink, plan), ends)
        STREAMS.began(query)
        try:
            events.started()
            runner.start()
        except BaseException as error:
            # Ctrl-C in a listener, for example: no thread would ever report its end.
            ended(error)
            raise
        return query

    def _stream(self, location: str, default: str | None) -> tuple[ContinuousStream, pa.Schema]:
        frame = self._frame
        options = CaseInsensitiveDict(frame.options)
        if _CHECKPOINT in options:
            options[_CHECKPOINT] = on_default_file_system(options[_CHECKPOINT], default)
        builder = frame.table.newScanBuilder(options)
        if isinstance(builder, SupportsPushDownRequiredColumns):
            builder.pruneColumns(frame.used_schema)
        scan = builder.build()
        stream = check_instance(scan.toContinuousStream(location), ContinuousStream, scan, "toContinuousStream")
        left_out = type(stream).prepareForTriggerAvailableNow is ContinuousStream.prepareForTriggerAvailableNow
        if self._available_now and left_out:
            # Raises CapabilityError, before anything is read.
            stream.prepareForTriggerAvailableNow()
        return stream, scan.readSchema()

    def _write(self, query_id: str, stream: ContinuousStream, location: str) -> StreamingWrite:
        table = self._table
        if not isinstance(table, SupportsWrite) or TableCapability.STREAMING_WRITE not in table.capabilities():
            raise CapabilityError(
                f"Table {table.name() if table else None!r} cannot be written by a streaming query.",
                condition="CAPABILITY_MISSING",
                hint="Name STREAMING_WRITE in capabilities() and implement it.",
            )
        options = self._sink_options
        options[_CHECKPOINT] = location
        write = table.newWriteBuilder(LogicalWriteInfo(options, self._frame.schema, query_id)).build()
        made = write.toContinuous(stream, self._interval_ms)
        job = check_instance(made, StreamingWrite, write, "toContinuous")
        if type(job).deserializeMessage is StreamingWrite.deserializeMessage:
            # Raises CapabilityError, before anything is read.
            job.deserializeMessage("{}")
        return job

    @property
    def _sink_options(self) -> CaseInsensitiveDict:
        return CaseInsensitiveDict({key: value for key, value in self._options.items() if key not in _ENGINE_OPTIONS})

    def _number(self, name: str, maximum: int, without: str, *, minimum: int = 1) -> int | None:
        text = self._options.get(name)
        if text is None:
            return None
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise OptionError(
                f"Option {name} is {text!r}, and must be a number from {minimum} to {maximum}.",
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
        if lost_s < _MIN_LOST_SECONDS:
            raise OptionError(
                f"Option taskTimeout is {lost_s:g} s, and must be at least {_MIN_LOST_SECONDS:g} s: driver and tasks "
                f"say every {ALIVE_SECONDS:g} s that they live.",
                condition="OPTION_INVALID",
                hint=f"Leave it out for {LOST_SECONDS:g} seconds.",
            )
        return lost_s

    def _span_ms(self, name: str, default_ms: int) -> int:
        text = self._options.get(name)
        return (
            default_ms
            if text is None
            else interval_ms(text, f"Option {name} is {text!r}, which is not a span of time.")
        )


def _check_state(stream: ContinuousStream, write: StreamingWrite, states: int) -> None:
    if type(stream).keyGroups is ContinuousStream.keyGroups:
        raise CapabilityError.missing_method(stream, "keyGroups", "CONTINUOUS_READ")
    if not isinstance(write, SupportsSourceOffsets):
        return
    if type(write).committedStates is SupportsSourceOffsets.committedStates:
        raise CapabilityError.missing_method(write, "committedStates", "STREAMING_WRITE")
    if states > MAX_COMMITTED_STATES:
        raise CapabilityError(
            f"The query has {states} states, of which timers are one, and a position has room for the versions of "
            f"{MAX_COMMITTED_STATES}. Nothing was read.",
            condition="STATE_NOT_TRANSACTIONAL",
            hint="Keep several columns in one state, or leave option deliveryGuarantee out.",
            parameters={"states": states, "limit": MAX_COMMITTED_STATES},
        )
