"""What a continuous query does, as text for `explain()`: sink first, as Spark prints its plans. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka.continuous.query.builder import ContinuousFrame
    from pyspark_kafka.continuous.run.plan import QueryPlan
    from pyspark_kafka.continuous.task.stages import Stage


def explained(frame: ContinuousFrame, sink: str, plan: QueryPlan) -> str:
    """Return the steps of a query, one a line. Options are left out: some are secrets.

    Args:
        frame: the rows that are written.
        sink: the name of the table that is written.
        plan: of the query.
    """
    lines = [f"write {sink}: {_columns(frame.schema)}"]
    lines += [_step(step) for step in reversed(frame.steps)]
    lines.append(f"read {frame.table.name()}: {_columns(frame.read_schema)}")
    steps = [f"{'   ' * depth}+- {line}" for depth, line in enumerate(lines)]
    return "\n".join(["== Continuous Query ==", *steps, _rhythm(plan)])


def _step(step: Stage) -> str:
    function = getattr(step, "function", None)
    if function is None:
        return repr(step)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    schema: pa.Schema | None = getattr(step, "schema", None)
    kept: pa.Schema | None = getattr(step, "state_schema", None)
    state = "" if kept is None else f"; state: {_columns(kept)}"
    return f"{type(step).__name__} {name}" + ("" if schema is None else f": {_columns(schema)}{state}")


def _rhythm(plan: QueryPlan) -> str:
    tasks = "as many tasks as slots" if plan.tasks is None else f"at most {plan.tasks} tasks"
    return f"{tasks}, an epoch each {plan.interval_ms} ms"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
