"""Metrics of streaming queries: `values` has them, `store` the newest of each query, `totals` their sums.

Entry point: `listener.listen`; users import it from `pyspark_kafka.metrics`. Runs on the driver, or in the client of
Spark Connect, where `connect_bus` keeps programs from waiting forever for their listener. `query_lag` has the positions
of running queries, `export/` shows metrics to Prometheus and OpenTelemetry.

Invariant: a progress event that cannot be read is logged and disturbs no query.
"""

from pyspark_kafka._connector.spark.processes.required_version import require_pyspark

# Users import this room without the package's own names, which require PySpark.
require_pyspark()
