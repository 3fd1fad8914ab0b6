"""Kafka as a source and a sink: planning, driver and executor sides, the table, the adapters to PySpark.

Private: its doors are `format("pyspark_kafka")` and the names of `pyspark_kafka`.
Invariant: only `spark/` imports PySpark.
"""
