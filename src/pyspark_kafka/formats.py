"""Values in JSON, Avro, Protobuf and other formats, as Arrow columns: without Kafka, and with or without Spark.

`decode` and `encode` take arrays, `decode_udf` and `encode_udf` make functions on columns. Each is loaded at its first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_kafka._connector.spark.udfs.values import decode_udf, encode_udf
    from pyspark_kafka._typed.typed.values import decode, encode

__all__ = ["decode", "decode_udf", "encode", "encode_udf"]
__dir__ = __all__.copy

_PLACES = {
    "decode": "pyspark_kafka._typed.typed.values",
    "decode_udf": "pyspark_kafka._connector.spark.udfs.values",
    "encode": "pyspark_kafka._typed.typed.values",
    "encode_udf": "pyspark_kafka._connector.spark.udfs.values",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
