"""The tracer of OpenTelemetry: the only importer of its API and SDK for spans.

`spans` turns our roles into calls of the API. `provider` returns the provider of a process: of its program, if that
has configured one, or of this package, made of the variables `OTEL_…`. `export_queue` hands the spans of the latter to
exporters on a thread of its own, and `trace_ids` chooses their trace ids.

Private. Invariant: no exporter delays or fails a query: the queue is bounded, waits have a deadline, and what is
dropped is counted.
"""
