"""What a continuous query reads and writes, out of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.driver.at_least_once import KafkaStreamingWrite
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.spark.compat import spark_schema
from pyspark_kafka._ops.lineage.datasets import columns_of
from pyspark_kafka._ops.lineage.runs import QueryParts, ReadPart, WritePart
from pyspark_kafka._ops.lineage.values import RegistrySubject
from pyspark_kafka.continuous.query.arguments import KAFKA
from pyspark_kafka.continuous.task.stages import Select, Where

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._ops.lineage.values import DatasetColumn
    from pyspark_kafka.continuous.query.frame_plan import QueryEnds

_COMMAND = "ContinuousQuery"


def continuous_parts(ends: QueryEnds, name: str | None) -> QueryParts:
    """Return the parts of a query; pure.

    Args:
        ends: of the query.
        name: of the query; None without a name.
    """
    frame = ends.frame
    parts = QueryParts(_COMMAND, job_type="CONTINUOUS_QUERY", name=name)
    parts.is_straight = all(isinstance(step, (Select, Where)) for step in frame.steps)
    if frame.table.name() == KAFKA:
        found = ends.stream.readerSchemas if isinstance(ends.stream, KafkaContinuousStream) else {}
        subjects = [RegistrySubject(column, each.subject, each.version) for column, each in found.items()]
        parts.reads.append(ReadPart(frame.options, _columns(frame.read_schema), subjects))
    if ends.sink == KAFKA:
        columns = ends.write.columns if isinstance(ends.write, (KafkaStreamingWrite, KafkaTransactionalWrite)) else None
        schemas = {} if columns is None else columns.schemas
        # A schema that is registered by the first write has no version here.
        written = [RegistrySubject(name, each.subject, each.version) for name, each in schemas.items() if each.subject]
        parts.writes.append(WritePart(ends.sink_options, _columns(frame.schema), written))
    return parts


def _columns(schema: pa.Schema) -> tuple[DatasetColumn, ...]:
    return columns_of(spark_schema(schema).jsonValue())
