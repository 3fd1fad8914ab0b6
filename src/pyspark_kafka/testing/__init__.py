"""A real Apache Kafka for demos, tests and notebooks: started from Python, gone with it.

What lives here starts and stops brokers and finds what they need (Java, jars). Nothing here reads or writes records,
and nothing imports pyspark. Layer: above source/ and sink/, below spark/.
"""

from __future__ import annotations

from pyspark_kafka.testing.embedded_kafka import EmbeddedKafka
from pyspark_kafka.testing.java import ensure_java_for_spark

__all__ = ["EmbeddedKafka", "ensure_java_for_spark"]
