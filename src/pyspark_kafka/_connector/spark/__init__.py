"""The only code that imports PySpark: adapters between its data source API and the contracts of `connector/`.

Entry point: `data_source.KafkaDataSource`, which Spark finds as `pyspark_kafka.DefaultSource`. `readers`,
`stream_readers` and `writers` adapt, `kafka_source` is for programs that drive their own batches, `metrics` and
`processes` are rooms of their own.
Invariant: an adapter decides nothing about Kafka, and each method imports only what its step needs.
"""
