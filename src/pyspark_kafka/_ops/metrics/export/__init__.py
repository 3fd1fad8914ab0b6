"""Metrics of queries and of the program, for Prometheus and OpenTelemetry.

`families` has names and help texts for the metrics of queries, and makes their series. `exporter` adds the metrics of
this process, `lag_poller` the lag that it looks up at intervals, if there is a connection. `prometheus` and `otel` show
them all.

Invariant: a collection sends no request, and the number of series is bounded.
"""
