"""What differs between the supported versions of PySpark, and the conversions between its types and ours."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming import datasource as spark_limits
from pyspark.sql.types import StructType

from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark's Python worker compares the first batch with: equal types and nullability."""
    converted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return converted


def schema_to_write(schema: StructType) -> pa.Schema:
    """Return the columns of rows to be written, each with the name that Spark has for its type.

    A column whose type PySpark has no Arrow form for has the type null.
    """
    from pyspark_kafka.connector.columns import with_type_name  # noqa: PLC0415 - for writes only

    fields = []
    for column in schema.fields:
        try:
            field = arrow_schema(StructType([column])).field(0)
        except PySparkException:
            field = pa.field(column.name, pa.null())
        fields.append(with_type_name(field, column.dataType.simpleString()))
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of an Arrow schema.

    Timestamps with a zone become Spark's session-zone timestamps; others stay without a zone.
    """
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def from_spark_limit(limit: spark_limits.ReadLimit, default: ReadLimit | None = None) -> ReadLimit:
    """Translate the limit that Spark hands over.

    Args:
        limit: the default that the source returned, or `ReadAllAvailable` if the trigger asks for everything.
        default: the source's own default. Where `limit` is what stands for it in Spark, it is returned whole:
            Spark's Python API has no composite limits and no delays.
    """
    if default is not None and limit == to_spark_limit(default):
        return default
    if isinstance(limit, spark_limits.ReadAllAvailable):
        return ReadAllAvailable()
    if isinstance(limit, spark_limits.ReadMaxRows):
        return ReadMaxRows(limit.max_rows)
    if isinstance(limit, spark_limits.ReadMinRows):
        return ReadMinRows(limit.min_rows)
    if isinstance(limit, spark_limits.ReadMaxFiles):
        return ReadMaxFiles(limit.max_files)
    if isinstance(limit, spark_limits.ReadMaxBytes):
        return ReadMaxBytes(limit.max_bytes)
    raise NotImplementedError(f"Spark's read limit {limit!r} is unknown to this source")


def to_spark_limit(limit: ReadLimit) -> spark_limits.ReadLimit:
    """Translate the limit that a source asks for; of a composite, its first part stands for the whole."""
    if isinstance(limit, CompositeReadLimit) and limit.limits:
        return to_spark_limit(limit.limits[0])
    if isinstance(limit, ReadMaxRows):
        return spark_limits.ReadMaxRows(limit.max_rows)
    if isinstance(limit, ReadMinRows):
        return spark_limits.ReadMinRows(limit.min_rows)
    if isinstance(limit, ReadMaxFiles):
        return spark_limits.ReadMaxFiles(limit.max_files)
    if isinstance(limit, ReadMaxBytes):
        return spark_limits.ReadMaxBytes(limit.max_bytes)
    if isinstance(limit, ReadAllAvailable):
        return spark_limits.ReadAllAvailable()
    raise NotImplementedError(f"read limit {limit!r} has no counterpart in Spark's Python API")
