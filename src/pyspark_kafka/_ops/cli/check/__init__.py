"""`pyspark-kafka check`: `command` is the command, `lines` shows findings.

Invariant: nothing is checked here; `pyspark_kafka._ops.diagnosis` does so.
"""
