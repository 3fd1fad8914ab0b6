"""The executor side of the source: fetch, decode, return rows as Arrow batches.

Entry points: `partition_reader.KafkaPartitionReader`, `continuous_reader.KafkaContinuousPartitionReader`.
Invariant: it reads what the plan says, or fails. It decides nothing about offsets but where an open end lies.
"""
