"""Metrics of queries and of the program, for Prometheus and OpenTelemetry.

`families` makes series of the metrics of queries, `exporter` has them and the counters of this process, of this moment;
`prometheus` and `otel` show them. `lag_poller` looks up lag at intervals, if there is a connection.

Invariant: a collection sends no request, and the number of series is bounded.
"""
