"""The figures of queries and of this package's processes where operators look: Prometheus, OpenTelemetry.

`families` makes series of the figures of queries, `process_families` of the figures of processes, `exporter` has both
of this moment; `prometheus` and `otel` show them. `lag_poller` asks brokers at intervals, if there is a connection.

Invariant: to collect asks nobody for anything, and the number of series is bounded.
"""
