"""The executor side of the source: fetch, decode, return rows as Arrow batches.

Entry points: `partition_reader.KafkaPartitionReader`, `continuous_reader.KafkaContinuousPartitionReader`.
Invariant: it reads the planned ranges, or fails. About offsets it decides nothing but the place of an open end.
"""
