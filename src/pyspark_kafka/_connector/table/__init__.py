"""Kafka as a `Table` of the connector API: what an engine asks before it reads or writes a topic.

Entry point: `kafka_table.KafkaTable`.
Invariant: no PySpark, and nothing that is Kafka's own passes between an engine and this table but the contracts of
`pyspark_kafka.connector`.
"""
