"""The options of spans. Data only."""

from __future__ import annotations

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option
from pyspark_kafka._client.options.catalogue.parity import OURS
from pyspark_kafka._client.options.parse import scalars
from pyspark_kafka._client.options.parse.traces import trace_parent

TRACE_OPTIONS: tuple[Option, ...] = (
    Option(
        "traceContext",
        "Whether the query has spans of OpenTelemetry, and which header `traceparent` written records have. `off`: no "
        "spans, headers as they are. `link`: each record names the span of the task that has written it. `continue`: a "
        "row whose headers have a `traceparent` keeps it, and other records are as with `link`. A read has the same "
        "spans with both, with links to the spans that its records name. Needs the extra `otel`; see "
        "[traces](traces.md).",
        parity=OURS,
        field="trace.mode",
        parse=scalars.words("off", "link", "continue"),
        kind="`off`, `link`, `continue`",
        scopes=EVERYWHERE,
    ),
    Option(
        "traceParent",
        "The `traceparent` of the span that runs the query, which is the parent of its spans. A continuous query takes "
        "the span in which it is started.",
        parity=OURS,
        field="trace.parent",
        parse=trace_parent,
        kind="`traceparent` of W3C",
        default_doc="the variable `TRACEPARENT` of the driver's processes, or none",
        scopes=EVERYWHERE,
    ),
)
