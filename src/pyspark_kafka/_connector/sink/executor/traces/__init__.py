"""The spans of tasks that write, and the header by which their records name them.

`traced_writers` puts a span around the writer of a task. `trace_headers` adds the header `traceparent` to rows, for
every writer, and also in lanes of continuous queries, whose epochs have the span.

Invariant: with `traceContext=continue` a row that has a `traceparent` is written as it is.
"""
