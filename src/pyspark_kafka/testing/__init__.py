"""A real Apache Kafka for demos, tests and notebooks: started from Python, gone with it.

Entry point: `EmbeddedKafka`, which finds Java (`java`) and the broker's jars (`jars`), writes its configuration
(`broker_config`) and starts it under a supervisor (`supervised`). Invariant: a broker never outlives the process that
started it, however that ends. Nothing here reads or writes records or imports pyspark.
Layer: above _connector/source/ and _connector/sink/, below _connector/spark/.
"""

from __future__ import annotations

from pyspark_kafka.testing.embedded_kafka import EmbeddedKafka
from pyspark_kafka.testing.java import ensure_java_for_spark
from pyspark_kafka.testing.secured.listeners import Listener

__all__ = ["EmbeddedKafka", "Listener", "ensure_java_for_spark"]
