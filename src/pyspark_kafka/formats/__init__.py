"""Formats of values, as Arrow columns: without Kafka, without Spark.

For users: `decode` and `encode` take arrays, `decode_column` and `encode_column` make functions for `mapInArrow`,
`decode_udf` and `encode_udf` functions on columns. They know options, registries and PySpark, so they are in `typed/`
and `spark/`, and are loaded at their first use.

`avro` has a codec of its own, `json` reads and writes with arro3, `protobuf` with ptars. `wire_format` reads the schema
id before each value, `framed` reads an array of several schemas. `values` has the result of every decoder.

Invariant: pure computation over Arrow arrays. An unreadable value does not affect other values: its row is null, and
reported. Kafka and Spark are absent. Layer: formats, beside records/.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_kafka.spark.udfs.values import decode_udf, encode_udf
    from pyspark_kafka.typed.column_functions import decode_column, encode_column
    from pyspark_kafka.typed.values import decode, encode

__all__ = ["decode", "decode_column", "decode_udf", "encode", "encode_column", "encode_udf"]

_PLACES = {
    "decode": "pyspark_kafka.typed.values",
    "decode_column": "pyspark_kafka.typed.column_functions",
    "decode_udf": "pyspark_kafka.spark.udfs.values",
    "encode": "pyspark_kafka.typed.values",
    "encode_column": "pyspark_kafka.typed.column_functions",
    "encode_udf": "pyspark_kafka.spark.udfs.values",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
