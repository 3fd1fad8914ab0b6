"""Kafka as a sink, written against the contracts of `pyspark_kafka.connector`. No PySpark.

- `driver/` commits: at-least-once jobs, exactly-once jobs, the publisher of prepared batches.
- `executor/` encodes rows: to the brokers (at least once) or into the outbox (exactly once).
- `columns`, `commit_marker`, `commit_message`, `spool`: shared by both sides.

Entry points: `driver.at_least_once`, `driver.exactly_once`.
Invariant: `executor/` imports nothing of `driver/`. Layer: sink.
"""
