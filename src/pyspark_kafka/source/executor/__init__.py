"""The executor side of the source: fetch, decode, return rows as Arrow batches.

Entry point: `partition_reader.KafkaPartitionReader`.
Invariant: it reads what the plan says, or fails. It decides nothing about offsets but where an open end lies.
"""
