"""Kafka as a source, written against the contracts of `pyspark_kafka.connector`. No PySpark.

- `driver/` plans: the offsets of each batch, and its tasks. Runs on the driver at each trigger.
- `executor/` obeys: fetches, decodes, returns Arrow batches. Runs in the tasks.
- `read_columns`: the columns of a read, and the formats of its keys and values. Keeps the version of a registry's
  schema in the checkpoint. Runs on the driver.
- `input_partition`: the data that the driver pickles for the tasks; `read_settings`: the settings of all readers.
- `positions`: the logs and the record times at positions.

Entry points: `driver.micro_batch.KafkaMicroBatchStream`, `driver.batch.KafkaBatch`,
`driver.continuous.KafkaContinuousStream`; the factories in `input_partition`.
Invariant: `executor/` imports nothing of `driver/`: a task cannot plan.
"""
