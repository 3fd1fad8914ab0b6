"""The combined meaning of the options of spans."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.trace_parent import parse_trace_parent
from pyspark_kafka._client.options.values.traces import TraceOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems

_VARIABLE = "TRACEPARENT"


def resolve_traces(options: Parsed, problems: Problems) -> TraceOptions | None:
    """Return the spans of a read or write; None if it has none.

    Without an option the parent is in the variable `TRACEPARENT` of this process, if that names a span.

    Source: OpenTelemetry, Environment Variables as Context Propagation Carriers.
    """
    resolved = TraceOptions(**options.fields("trace"))
    if resolved.mode == "off":
        if options.given("traceParent"):
            problems.notes.append("Option 'traceParent' has no effect: 'traceContext' is off.")
        return None
    if resolved.parent:
        return resolved
    found = parse_trace_parent(os.environ.get(_VARIABLE))
    return resolved if found is None else replace(resolved, parent=str(found))
