"""Tools for operators: the program `pyspark-kafka`, diagnosis, checkpoint tools, lag, reports, metrics. The top storey.

Private: its doors are `pyspark_kafka`, `pyspark_kafka.metrics` and the program.
Invariant: nothing below imports it.
"""
