"""Lineage: events of OpenLineage about queries, by its own client.

- `values`: the facts of a query's run: topics, columns, counts. `naming` has the names that OpenLineage's agent for
  Spark uses, `datasets` makes topics of options, `column_paths` finds columns that pass through unchanged.
- `events` makes events of the facts. `sender` sends them in a thread of its own.
- `runs` keeps the facts of running queries, `continuous_queries` and `spark_plans` read them from queries.
- `listener` listens to a session; users import it from `pyspark_kafka.lineage`.

Runs on the driver, or in the client of Spark Connect.

Invariant: no failure here ends or delays a query, and no event has a secret.
"""
