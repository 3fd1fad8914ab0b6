"""Lineage: events of OpenLineage about queries, by its own client.

- `values`: the facts of a query's run: topics, columns, counts. `naming` has the names that OpenLineage's agent for
  Spark uses, `datasets` makes topics of options, `column_paths` finds columns that pass through unchanged.
- `events` makes events of the facts. `sender` sends them in a thread of its own.
- `runs` keeps the facts of running queries, `plans/` reads them from their plans, `reports` from Spark's reports.
- `listener` listens to a session, with `batch_ends` for batches of classic Spark and `connect_queries` for the queries
  of a Spark Connect client; users import it from `pyspark_kafka.lineage`.
- `client` opens OpenLineage's client.

Runs on the driver, or in the client of Spark Connect.

Invariant: no failure here ends or delays a query, and no event has a secret.
"""

from pyspark_kafka._connector.spark.processes.required_version import require_pyspark

# As for metrics: users import this room without the package's own names, which require PySpark.
require_pyspark()
