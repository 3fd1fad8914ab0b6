"""`pyspark-kafka tail`: `command` has its options, `text` shows a record.

Invariant: nothing is computed here; `pyspark_kafka._ops.operations` does so. No command deletes.
"""
