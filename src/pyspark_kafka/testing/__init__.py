"""A real Apache Kafka for demos, tests and notebooks: started from Python, gone with it.

Entry point: `EmbeddedKafka`, which finds Java (`java`) and the broker's jars (`jars`, kept in the `cache`), writes its
configuration (`broker_config`) and starts it under a supervisor (`supervised`, `_supervisor`), on free `ports`, until
it serves (`readiness`). `administration` changes a running broker: rights, passwords, settings, deleted topics.
`secured/` has listeners that encrypt and authenticate, `conformance/` the contracts of connectors as pytest cases.

Invariant: a broker never outlives the process that started it, however that ends. Nothing here reads or writes records
or imports pyspark.
"""

from __future__ import annotations

from pyspark_kafka.testing.embedded_kafka import EmbeddedKafka
from pyspark_kafka.testing.java import ensure_java_for_spark
from pyspark_kafka.testing.secured.listeners import Listener

__all__ = ["EmbeddedKafka", "Listener", "ensure_java_for_spark"]
__dir__ = __all__.copy
