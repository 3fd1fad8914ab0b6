"""Kafka as a sink, written against the contracts of `pyspark_kafka.connector`. No PySpark.

- `driver/` commits: at-least-once jobs, exactly-once jobs, the publisher of prepared batches, takeovers.
- `executor/` encodes rows: to the brokers (at least once), into the outbox (exactly once), into transactions of tasks
  (`exactlyOnceCommit=tasks`) or of lanes (exactly once in a continuous query).
- `tasks/`: the data of tasks' transactions, for `exactlyOnceCommit=tasks`.
- `transactional_ids` makes up the ids of sinks, tasks and lanes.
- `columns`, `commit_marker`, `commit_message`, `source_positions`, `spool`, `lane_settings`: shared by both sides.

A continuous query that is exactly once has neither outbox nor markers: its lanes write rows and source positions in
transactions, under identities that the driver takes over before each run.

Entry points: `driver.at_least_once`, `driver.exactly_once`, `driver.tasks.exactly_once`, `driver.transactional`.
Invariant: `executor/` imports nothing of `driver/`. With `exactlyOnceCommit=driver` tasks send nothing; lanes never ask
for an identity.
"""
