"""The rows of a continuous query as a plan: its source, and its functions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.continuous.task.stages import Select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from pyspark_kafka.connector import ContinuousStream, StreamingWrite, SupportsRead
    from pyspark_kafka.continuous.run.plan import QueryPlan
    from pyspark_kafka.continuous.task.stages import Stage, TimeMode


@dataclass(frozen=True)
class FramePlan:
    """The source of a continuous query, and the functions of its rows.

    Attributes:
        spark: the session.
        table: the source.
        options: of the read.
        schema: the columns after all functions.
        steps: the functions.
        loaded: the columns before the functions at the time of `load`; a schema registry may have other columns by
            now. None: the columns of the table.
        watermark: the column with the time of a row, and how many milliseconds late a row may be; None without
            `withWatermark`.
        idle_ms: the `idleTimeout` of `withWatermark`, in milliseconds; None without.
    """

    spark: SparkSession
    table: SupportsRead
    options: Mapping[str, str]
    schema: pa.Schema
    steps: tuple[Stage, ...] = ()
    loaded: pa.Schema | None = None
    watermark: tuple[str, int] | None = None
    idle_ms: int | None = None

    @property
    def read_schema(self) -> pa.Schema:
        """The columns before all functions."""
        return self.table.schema(self.options) if self.loaded is None else self.loaded

    @property
    def used_schema(self) -> pa.Schema:
        """The columns that the query reads: the columns of a leading `select`, or all."""
        schema = self.read_schema
        first = self.steps[0] if self.steps else None
        return pa.schema([schema.field(name) for name in first.columns]) if isinstance(first, Select) else schema

    def explained(self, sink: str, plan: QueryPlan) -> str:
        """Return the steps of a query, one a line, the sink first. Options are left out: some are secrets.

        Args:
            sink: the name of the sink's table.
            plan: of the query.
        """
        lines = [f"write {sink}: {_columns(self.schema)}"]
        lines += [_step(step) for step in reversed(self.steps)]
        lines.append(f"read {self.table.name()}: {_columns(self.read_schema)}")
        steps = [f"{'   ' * depth}+- {line}" for depth, line in enumerate(lines)]
        tasks = "as many tasks as slots" if plan.tasks is None else f"at most {plan.tasks} tasks"
        return "\n".join(["== Continuous Query ==", *steps, f"{tasks}, an epoch each {plan.interval_ms} ms"])


@dataclass(frozen=True)
class QueryEnds:
    """The source and the sink of a started query, for reports about it.

    Attributes:
        frame: the source, and the functions of its rows.
        stream: the read.
        write: the write.
        sink: the name of the sink's table.
        sink_options: of the write, without options of the engine. Some may be secrets.
    """

    frame: FramePlan
    stream: ContinuousStream
    write: StreamingWrite
    sink: str
    sink_options: Mapping[str, str]


def _step(step: Stage) -> str:
    function = getattr(step, "function", None)
    if function is None:
        return repr(step)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    schema: pa.Schema | None = getattr(step, "schema", None)
    kept: pa.Schema | None = getattr(step, "state_schema", None)
    state = "" if kept is None else f"; state: {_columns(kept)}"
    mode: TimeMode | None = getattr(step, "time_mode", None)
    if mode is not None:
        state += f"; {mode.text}"
    return f"{type(step).__name__} {name}" + ("" if schema is None else f": {_columns(schema)}{state}")


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
