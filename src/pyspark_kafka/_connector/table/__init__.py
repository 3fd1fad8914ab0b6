"""Kafka as a `Table` of the connector API: the plan of a read or a write.

Entry point: `kafka_table.KafkaTable`, which names the capabilities. `scan` is one read, `filtering_scan` one with
pushed filters, which `record_filters` and `arrow_filters` apply; `write` is one write. They resolve options, check
columns, and build the objects of `source/` and `sink/`. `arrow_read` drives a batch read with threads, without Spark.
With `traceContext`, `traced_reads` and `traced_writes` put spans around their steps, and `request_spans` adds the
requests of a step.

Invariant: no PySpark, and nothing that is Kafka's own passes between an engine and this table but the contracts of
`pyspark_kafka.connector`.
"""
