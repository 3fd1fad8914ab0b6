"""Differences between the supported PySpark versions, and conversions between its types and ours.

| PySpark | lacks | replacement |
| --- | --- | --- |
| 4.0, 4.1 | the start of a batch and a read limit in `latestOffset` | `stream_readers.StartlessStreamReader` |
| 4.0, 4.1 | the available-now trigger of a Python source | Spark's own wrapper: one batch |
| 4.0, 4.1 | `reportLatestOffset` | nothing: progress shows the end of the batch, so the lag of a query is unknown |
| 4.0, 4.1 | offsets of a progress event as JSON | `metrics.values.offset_text` |
| 4.0, 4.1 | the name of a table in the step that appends to it | `_ops.lineage.plans.spark_plans.APPEND` |
| 4.0 | a stream writer of Arrow batches | a class that is also an Arrow writer, which its workers require |
| 4.0, 4.1 | a partition for an empty batch read | `readers.read_partition` takes None |
| 4.0 | filters that a source may take | nothing: Spark filters the rows itself |
| 4.0 | Arrow UDFs | an error |

The code tests for features, not for version numbers: platforms add to both.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as spark_datasource

from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.errors import CapabilityError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Read limits came with PySpark 4.2; before it, Spark asks a Python source for an end without a start.
spark_limits: Any
try:
    from pyspark.sql.streaming import datasource as spark_limits
except ImportError:
    spark_limits = None

# What a stream reader with admission control is to PySpark.
ADMISSION_BASES: tuple[Any, ...] = () if spark_limits is None else (spark_limits.SupportsTriggerAvailableNow,)
# 4.1 has a class of its own for Arrow batches of a stream. The workers of 4.0 hand them to whatever is an Arrow writer.
STREAM_ARROW_WRITER: Any = getattr(spark_datasource, "DataSourceStreamArrowWriter", None) or type(
    "StreamArrowWriter", (spark_datasource.DataSourceStreamWriter, spark_datasource.DataSourceArrowWriter), {}
)


def arrow_schema(schema: StructType | pa.Schema) -> pa.Schema:
    """Return the Arrow schema that Spark's Python worker compares the first batch with: equal types and nullability.

    Other engines, such as Sail, have Arrow's schema already.
    """
    if isinstance(schema, pa.Schema):
        return schema
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - not for tasks

    # 4.0 and 4.1 convert with a zone of UTC, and have no argument for another.
    zone: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    converted: pa.Schema = to_arrow_schema(schema, **zone)
    return converted


def schema_to_write(schema: StructType | pa.Schema) -> pa.Schema:
    """Return the columns of rows to be written, each with the name that Spark has for its type.

    A column whose type PySpark has no Arrow form for has the type null.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - for writes only
    from pyspark.sql.types import StructType  # noqa: PLC0415

    from pyspark_kafka.connector.columns import with_type_name  # noqa: PLC0415

    if isinstance(schema, pa.Schema):
        schema = spark_schema(schema)
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
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - not for tasks

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_udf() -> Any:
    """Return PySpark's maker of functions on Arrow arrays.

    Raises:
        CapabilityError: this version has none.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - for expressions only

    found = getattr(functions, "arrow_udf", None)
    if found is None:
        raise CapabilityError(
            "This version of PySpark has no functions on Arrow arrays, which decode_udf and encode_udf are.",
            condition="PYSPARK_LACKS_FEATURE",
            hint="Use the options of a read or write for typed columns, or PySpark 4.1 or newer.",
        )
    return found


def has_read_limits() -> bool:
    """Return whether Spark passes the start of a batch and a read limit to a Python source."""
    return spark_limits is not None


def from_spark_limit(limit: Any, default: ReadLimit | None = None) -> ReadLimit:
    """Translate the limit that Spark hands over.

    Args:
        limit: the default that the source returned, or `ReadAllAvailable` if the trigger reads everything.
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


def to_spark_limit(limit: ReadLimit) -> Any:
    """Translate a source's read limit; the first part of a composite represents the whole."""
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
