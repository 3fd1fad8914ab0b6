"""`pyspark-kafka checkpoint`.

Invariant: nothing is computed here; `pyspark_kafka.operations` does so.
"""
