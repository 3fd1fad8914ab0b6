"""The figures of queries and of this package's processes where operators look: Prometheus, OpenTelemetry.

`families` makes series of the figures of queries, `process_families` of those of processes, `figures` has both of this
moment; `prometheus` and `otel` show them. `headroom` asks brokers at intervals, if it is asked to.

Invariant: to collect asks nobody for anything, and the number of series is bounded. Layer: spark.
"""
