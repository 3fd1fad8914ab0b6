"""The source's columns in Spark's types.

The same columns as `source.columns` has in Arrow's types. They are written down twice, and a test compares them: the
process that Spark starts for `load()` needs no Arrow otherwise, and importing it takes as long as all else it does.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_COLUMNS = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType(), nullable=False),
    StructField("partition", IntegerType(), nullable=False),
    StructField("offset", LongType(), nullable=False),
    StructField("timestamp", TimestampType(), nullable=False),
    StructField("timestampType", IntegerType(), nullable=False),
)


def spark_source_schema(*, include_headers: bool) -> StructType:
    """Return the schema of a read with all columns."""
    headers = [StructField("headers", ArrayType(_HEADER))] if include_headers else []
    return StructType([*_COLUMNS, *headers])
