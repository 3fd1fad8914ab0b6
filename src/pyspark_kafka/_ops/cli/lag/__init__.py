"""`pyspark-kafka lag`: how far a query or a consumer group is behind.

`command` is the command, `thresholds` checks a report, `words` turns figures into words, `tables` shows a report,
`watch` shows it repeatedly.

Invariant: nothing is measured here; `pyspark_kafka._ops.operations.lag` does so.
"""
