"""Metrics of queries and of this package's processes, for Prometheus and OpenTelemetry.

`families` makes series of the metrics of queries, `process_families` of the counters of processes, `exporter` has both
of this moment; `prometheus` and `otel` show them. `lag_poller` looks up lag at intervals, if there is a connection.

Invariant: a collection sends no request, and the number of series is bounded.
"""
