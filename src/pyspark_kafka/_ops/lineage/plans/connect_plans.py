"""What queries of a Spark Connect client read and write, out of the requests that it sends. Pure.

A request has the reads and the write of a query, with their options. Its columns are known to the server alone. A read
through a view or a table has only its name there, so its topics are not known.

Source: Spark `spark/connect/base.proto`, `commands.proto`, `relations.proto`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafka._connector.spark.dead_letters.letters import letter_topic
from pyspark_kafka._ops.lineage.plans.spark_plans import APPEND, FORMAT, STREAMING_WRITE
from pyspark_kafka._ops.lineage.runs import QueryParts, ReadPart, WritePart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark_kafka._ops.lineage.values import DatasetColumn

    Columns = Callable[[Any], Sequence[DatasetColumn]]

_BATCH_WRITES = ("write_operation", "write_operation_v2")
_STREAM_START = "write_stream_operation_start"
# As users write it for `selectExpr`; what is computed is not known.
_CONSTANT_TOPIC = re.compile(r"\s*'([a-zA-Z0-9._-]+)'\s+AS\s+`?topic`?\s*", re.IGNORECASE)
# It describes nothing: the name of the step in it does.
_WRAPPER = "WholeStageCodegen"


class ConnectQuery(NamedTuple):
    """The query of a request.

    Attributes:
        relation: its rows.
        write: the command that writes them; None if they are returned.
        is_stream: whether it is a stream.
    """

    relation: Any
    write: Any = None
    is_stream: bool = False


def query_of(plan: Any) -> ConnectQuery | None:
    """Return the query that a request runs; None if it runs none with a part in Kafka.

    Args:
        plan: `spark.connect.Plan`.
    """
    kind = plan.WhichOneof("op_type")
    query = None
    if kind == "root":
        query = ConnectQuery(plan.root)
    elif kind == "command":
        name = plan.command.WhichOneof("command_type")
        if name in (*_BATCH_WRITES, _STREAM_START):
            write = getattr(plan.command, name)
            query = ConnectQuery(write.input, write, name == _STREAM_START)
    if query is None or not (_is_write(query) or any(_reads(query.relation))):
        return None
    return query


def parts_of(query: ConnectQuery, columns: Columns, metrics: Sequence[Any] = ()) -> QueryParts:
    """Return the parts of a query.

    Args:
        query: of a request.
        columns: returns the columns of a relation; may block.
        metrics: `PlanMetrics` of the response to a batch: each step of its physical plan, the last step first. A write
            has none.
    """
    parts = QueryParts(_command(query, metrics), processing="STREAMING" if query.is_stream else "BATCH")
    parts.name = (query.write.query_name or None) if query.is_stream else None
    parts.reads = [ReadPart(dict(each.read.data_source.options), columns(each)) for each in _reads(query.relation)]
    if len(parts.reads) == 1:
        parts.reads[0].rows = _rows_read(metrics)
    if _is_write(query):
        options = dict(query.write.options)
        topics = _topics(query.relation)
        parts.writes.append(WritePart(options, columns(query.relation), streaming=query.is_stream, topics=topics))
    return parts


def _reads(relation: Any) -> Iterator[Any]:
    """Yield the relations that read Kafka, in the order of the query."""
    for message in _messages_of(relation):
        is_read = message.DESCRIPTOR.name == "Relation" and message.WhichOneof("rel_type") == "read"
        if is_read and message.read.data_source.format.lower() == FORMAT:
            yield message


def _topics(relation: Any) -> set[str]:
    """Return the constants that rows have as their topic, the topics of dead letters included."""
    found: set[str | None] = set()
    for message in _messages_of(relation):
        name = message.DESCRIPTOR.name
        if name == "ExpressionString":
            constant = _CONSTANT_TOPIC.fullmatch(message.expression)
            found |= {constant[1] if constant else letter_topic(message.expression)}
        elif name == "Alias" and list(message.name) == ["topic"]:
            found.add(message.expr.literal.string or None)
    return {each for each in found if each is not None}


def _messages_of(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it. Plans of loops are deeper than Python's stack."""
    pending = [message]
    while pending:
        found = pending.pop()
        yield found
        pending += reversed([each for field, value in found.ListFields() for each in _messages(field, value)])


def _messages(field: Any, value: Any) -> Iterable[Any]:
    if field.message_type is None:
        return ()
    if field.message_type.GetOptions().map_entry:
        return [each for each in value.values() if hasattr(each, "DESCRIPTOR")]
    return (value,) if hasattr(value, "DESCRIPTOR") else value


def _sink(query: ConnectQuery) -> str:
    write = query.write
    name = write.format if query.is_stream else getattr(write, "source", "") or getattr(write, "provider", "")
    return str(name)


def _is_write(query: ConnectQuery) -> bool:
    return query.write is not None and _sink(query).lower() == FORMAT


def _command(query: ConnectQuery, metrics: Sequence[Any]) -> str:
    """Return the name of the last step, as on classic Spark where the client can know it."""
    if query.is_stream:
        if query.write.HasField("foreach_batch"):
            return "ForeachBatchSink"
        return STREAMING_WRITE if _is_write(query) else f"write {_sink(query)}"
    if query.write is not None:
        return APPEND if _is_write(query) else f"write {_sink(query)}"
    names = [str(each.name) for each in metrics if not each.name.startswith(_WRAPPER)]
    return names[0] if names else str(query.relation.WhichOneof("rel_type"))


def _rows_read(metrics: Sequence[Any]) -> int | None:
    """Return the rows that the only scan of a plan has returned; None if there are several, or none."""
    scans = [each for each in metrics if each.name.startswith("BatchScan")]
    counts = [each.value for scan in scans for each in scan.metrics if each.name == "numOutputRows"]
    return int(counts[0]) if len(scans) == len(counts) == 1 else None
