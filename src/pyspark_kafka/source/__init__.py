"""Kafka as a source, written against the contracts of `pyspark_kafka.streaming`. Knows Kafka, knows no PySpark."""
