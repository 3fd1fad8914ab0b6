"""What queries of classic Spark read and write, out of the plans of its JVM.

A plan is read by the names of Spark's own classes and methods, through py4j. A part that another Spark names otherwise
is left out.

Source: Spark `StreamingRelationV2`, `DataSourceV2Relation`, `AppendData`, `MicroBatchExecution`, `BatchScanExec`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_kafka._connector.spark.compat import spark_limits
from pyspark_kafka._ops.lineage.datasets import columns_of
from pyspark_kafka._ops.lineage.plans.written_topics import class_of, items_of, written_topics
from pyspark_kafka._ops.lineage.runs import QueryParts, ReadPart, WritePart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pyspark_kafka._ops.lineage.values import DatasetColumn

FORMAT = "pyspark_kafka"
# What Spark calls the step that writes to a table. The name of the table came with read limits, with PySpark 4.2.
APPEND = "AppendData" if spark_limits is None else f"AppendData {FORMAT}"
# The same step of a micro-batch.
STREAMING_WRITE = "WriteToDataSourceV2"


def stream_execution(session: SparkSession, query_id: str) -> Any:
    """Return the JVM's object of a running query; None if the session is not classic, or the query has ended."""
    java_session = getattr(session, "_jsparkSession", None)
    query = None if java_session is None else java_session.streams().get(query_id)
    return None if query is None else query.streamingQuery()


def streaming_parts(execution: Any, name: str | None) -> QueryParts:
    """Return the parts of a streaming query.

    Args:
        execution: `stream_execution`.
        name: of the query; None without a name.
    """
    plan, sink = execution.analyzedPlan(), execution.sink()
    is_ours = _is_ours(sink)
    parts = QueryParts(STREAMING_WRITE if is_ours else class_of(sink), name=name, reads=_reads(plan))
    if is_ours:
        options = _scala_map(_field(execution, "extraOptions"))
        parts.writes.append(WritePart(options, _columns(plan), topics=written_topics(plan)))
    return parts


def batch_parts(execution: Any) -> QueryParts:
    """Return the parts of a query that has ended.

    Args:
        execution: the JVM's `QueryExecution`.
    """
    plan, executed = execution.analyzed(), _executed(execution)
    written = plan.table() if class_of(plan) == "AppendData" else None
    parts = QueryParts(_command(plan, executed), processing="BATCH")
    if written is None:
        parts.reads = _reads(plan)
    else:
        parts.reads = _reads(plan.query())
        if class_of(written) == "DataSourceV2Relation" and _is_ours(written.table()):
            options = _java_map(written.options().asCaseSensitiveMap()) | _scala_map(plan.writeOptions())
            parts.writes.append(
                WritePart(options, _columns(plan.query()), streaming=False, topics=written_topics(plan.query()))
            )
            parts.writes[0].rows = _rows_written(executed)
    if len(parts.reads) == 1:
        parts.reads[0].rows = _rows_read(executed)
    return parts


def _reads(plan: Any) -> list[ReadPart]:
    found = []
    for leaf in items_of(plan.collectLeaves()):
        kind = class_of(leaf)
        if kind == "StreamingRelationV2" and _is_ours(leaf.table()):
            found.append(ReadPart(_java_map(leaf.extraOptions().asCaseSensitiveMap()), _columns(leaf)))
        elif kind == "DataSourceV2Relation" and _is_ours(leaf.table()):
            found.append(ReadPart(_java_map(leaf.options().asCaseSensitiveMap()), _columns(leaf)))
    return found


def _is_ours(table: Any) -> bool:
    return class_of(table) == "PythonTable" and table.name() == FORMAT


def _columns(plan: Any) -> tuple[DatasetColumn, ...]:
    try:
        return columns_of(json.loads(plan.schema().json()))
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()


def _executed(execution: Any) -> Any:
    """Return the physical plan; None if the query has failed before it had one."""
    try:
        return execution.executedPlan()
    except Exception:  # noqa: BLE001 - whatever the query has failed with, once more
        return None


def _command(plan: Any, executed: Any) -> str:
    if executed is None:
        name = str(plan.nodeName())
        return APPEND if name == "AppendData" else name
    node = executed
    # The agent does the same: this name describes nothing.
    if class_of(node) == "WholeStageCodegenExec":
        node = node.child()
    return str(node.nodeName())


def _rows_written(executed: Any) -> int | None:
    progress = None if executed is None else executed.commitProgress()
    return int(progress.get().numOutputRows()) if progress is not None and progress.isDefined() else None


def _rows_read(executed: Any) -> int | None:
    """Return the rows that the only scan of a plan has returned; None if there are several, or none."""
    nodes = () if executed is None else _physical(executed)
    scans = [node for node in nodes if class_of(node) == "BatchScanExec"]
    if len(scans) != 1:
        return None
    metric = scans[0].metrics().get("numOutputRows")
    return int(metric.get().value()) if metric.isDefined() else None


def _physical(node: Any) -> Iterator[Any]:
    kind = class_of(node)
    if kind == "AdaptiveSparkPlanExec":
        yield from _physical(node.executedPlan())
    elif kind in (
        "ShuffleQueryStageExec",
        "BroadcastQueryStageExec",
        "ResultQueryStageExec",
        "TableCacheQueryStageExec",
    ):
        yield from _physical(node.plan())
    else:
        yield node
        for child in items_of(node.children()):
            yield from _physical(child)


def _field(owner: Any, name: str) -> Any:
    """Return a private field of a JVM object, of its class or of a class above."""
    kind = owner.getClass()
    while True:
        for field in kind.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                return field.get(owner)
        kind = kind.getSuperclass()
        if kind is None:
            raise AttributeError(name)


def _java_map(options: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in options.items()}


def _scala_map(options: Any) -> dict[str, str]:
    return {str(pair._1()): str(pair._2()) for pair in items_of(options.toSeq())}  # noqa: SLF001 - Scala's names
