"""Apache Kafka for PySpark: `format("pyspark_kafka")`, for batch and streaming, reading and writing.

PySpark finds `DefaultSource` here by itself, with no import and no registration. The names are loaded when they are
first used, so that the parts that need no Spark (`pyspark_kafka.records`, `pyspark_kafka.testing`) can be had alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from pyspark_kafka.source.driver.micro_batch import KafkaMicroBatchStream
    from pyspark_kafka.spark.data_source import KafkaDataSource as DefaultSource
    from pyspark_kafka.spark.kafka_source import KafkaSource
    from pyspark_kafka.spark.processes.prepare import prepare

__all__ = ["DefaultSource", "KafkaMicroBatchStream", "KafkaSource", "__version__", "prepare"]

_PLACES = {
    "DefaultSource": ("pyspark_kafka.spark.data_source", "KafkaDataSource"),
    "KafkaMicroBatchStream": ("pyspark_kafka.source.driver.micro_batch", "KafkaMicroBatchStream"),
    "KafkaSource": ("pyspark_kafka.spark.kafka_source", "KafkaSource"),
    "prepare": ("pyspark_kafka.spark.processes.prepare", "prepare"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
