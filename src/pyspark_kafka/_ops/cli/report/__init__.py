"""`pyspark-kafka report`.

Invariant: nothing is computed here; `pyspark_kafka._ops.operations` does so.
"""
