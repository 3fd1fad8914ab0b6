"""Kafka as a sink, written against the contracts of `pyspark_kafka.connector`. No PySpark.

- `driver/` commits: at-least-once jobs, exactly-once jobs, the publisher of prepared batches, takeovers.
- `executor/` encodes rows: to the brokers (at least once), into the outbox (exactly once), or into transactions
  (exactly once in a continuous query).
- `tasks/`: the data of transactions of tasks, for `exactlyOnceCommit=tasks`.
- `columns`, `commit_marker`, `commit_message`, `source_positions`, `spool`: shared by both sides.

Entry points: `driver.at_least_once`, `driver.exactly_once`, `driver.transactional`.
Invariant: `executor/` imports nothing of `driver/`.
"""
