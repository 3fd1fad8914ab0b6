"""Apache Kafka for PySpark: `format("pyspark_kafka")`, for batch and streaming, reading and writing.

PySpark finds `DefaultSource` here by itself, with no import and no registration. The names are loaded when they are
first used, so that the parts that need no Spark (`pyspark_kafka.records`, `pyspark_kafka.testing`) can be had alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from pyspark_kafka.spark.data_source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "DefaultSource":
        return import_module("pyspark_kafka.spark.data_source").KafkaDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
