"""Kafka as a source, written against the contracts of `pyspark_kafka.connector`. Knows Kafka, knows no PySpark.

- `driver/` plans: which offsets each batch reads, and which task reads what. Runs on the driver at each trigger.
- `executor/` obeys: fetches, decodes, returns Arrow batches. Runs in the tasks.
- `read_columns`: the columns of a read, and what its keys and values are. Runs on the driver.
- `input_partition`: what the driver pickles for the tasks; `read_settings`: what all readers of a read have in common.

Entry points: `driver.micro_batch.KafkaMicroBatchStream`, `driver.batch.KafkaBatch`,
`driver.continuous.KafkaContinuousStream`; the factories in `input_partition`.
Invariant: `executor/` imports nothing of `driver/`.
"""
