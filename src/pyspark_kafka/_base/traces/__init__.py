"""Spans of queries: what a step of a query reports about itself, without the package that records it.

`trace_parent` reads and writes W3C's header, `link_sample` picks the few parents that become links of a span,
`batch_ids` makes the trace id that the processes of a micro-batch share. `roles` are the tracer and the span as this
package sees them, `steps` opens spans and knows the span of a thread, `task_place` says which task a process runs.
`process_tracer` opens the tracer of a process, `otel/` is the tracer of OpenTelemetry.

Private. Invariant: only `otel/` imports OpenTelemetry; a span has names, numbers and errors, and no key, value or
secret.
"""
