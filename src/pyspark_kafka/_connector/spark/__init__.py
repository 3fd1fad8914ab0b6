"""The only code below the engine that imports PySpark: adapters between its data source API and `connector/`.

- `data_source`: what Spark finds as `pyspark_kafka.DefaultSource`. `table_source` runs any table as a PySpark data
  source, with `readers`, `stream_readers` and `writers`.
- `compat`: what differs between versions of PySpark; `filters`, `source_schema`: pushed filters and columns in Spark's
  types.
- `kafka_source`: for programs that drive their own batches. `dead_letters/`, `udfs/`: functions over DataFrames and
  columns.
- `processes/`, `worker_python`: the Python processes that Spark starts. `local_bus` hands events of queries to
  listeners, `token_provider` reads the delegation tokens that Spark has obtained.

Invariant: an adapter decides nothing about Kafka, and each method imports only what its step needs.
"""
