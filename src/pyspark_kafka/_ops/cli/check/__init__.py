"""`pyspark-kafka check`: the options of a query as users have them, and the lines that are shown.

`command` is the command, `query_options` collects the options from files and arguments, `lines` shows findings.

Invariant: nothing is checked here; `pyspark_kafka._ops.diagnosis` does so.
"""
