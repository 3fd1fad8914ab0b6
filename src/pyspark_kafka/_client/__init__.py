"""A Kafka client for batches of records, and the options that configure it.

Private: its door is `format("pyspark_kafka")` with its options.
Invariant: nothing here imports PySpark.
"""
