"""Our tracer and our spans, on the API of OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace as api
from opentelemetry.trace.status import Status, StatusCode

from pyspark_kafka._base.traces.roles import SpanKind
from pyspark_kafka._base.traces.steps import reason
from pyspark_kafka._base.traces.trace_parent import TraceParent, parse_trace_parent
from pyspark_kafka.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.traces.otel.provider import Provider
    from pyspark_kafka._base.traces.roles import Attribute

_NAME = "pyspark_kafka"
# The maximum wait for exporters at the end of a step.
_FLUSH_MS = 500
# The maximum number of children of one span: a plan may send hundreds of requests.
_MAX_CHILDREN = 128

_KINDS = {
    SpanKind.INTERNAL: api.SpanKind.INTERNAL,
    SpanKind.CLIENT: api.SpanKind.CLIENT,
    SpanKind.PRODUCER: api.SpanKind.PRODUCER,
    SpanKind.CONSUMER: api.SpanKind.CONSUMER,
}


class OtelSpan:
    """One span. Its methods may be called from one thread at a time."""

    def __init__(self, span: api.Span, tracer: api.Tracer) -> None:
        self._span, self._tracer = span, tracer
        self._children = 0
        context = span.get_span_context()
        self._traceparent = (
            str(TraceParent(context.trace_id, context.span_id, context.trace_flags)) if context.is_valid else ""
        )

    @property
    def traceparent(self) -> str:
        """The header by which records name this span; empty if there is no tracer that counts."""
        return self._traceparent

    def set_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Set attributes."""
        self._span.set_attributes(dict(attributes))

    def add_links(self, parents: Iterable[TraceParent]) -> None:
        """Link spans that this one has continued."""
        for parent in parents:
            self._span.add_link(_context(parent))

    def add_child(
        self, name: str, began_ns: int, ended_ns: int, attributes: Mapping[str, Attribute], error: str = ""
    ) -> None:
        """Add a step of this step that is over."""
        self._children += 1
        if self._children > _MAX_CHILDREN:
            self._span.set_attribute(f"{_NAME}.children.dropped", self._children - _MAX_CHILDREN)
            return
        child = self._tracer.start_span(
            name,
            api.set_span_in_context(self._span),
            kind=api.SpanKind.CLIENT,
            attributes=dict(attributes),
            start_time=began_ns,
        )
        if error:
            _fail(child, error)
        child.end(ended_ns)

    def fail(self, error: BaseException) -> None:
        """Note why the step failed."""
        # How Spark and Python end a generator that nobody reads to its end.
        if not isinstance(error, GeneratorExit):
            _fail(self._span, reason(error))

    def end(self) -> None:
        """End the span."""
        if self._span.is_recording():
            self._span.end()


class OtelTracer:
    """Starts spans with a provider. Safe to use from several threads."""

    def __init__(self, provider: Provider) -> None:
        self._tracer = provider.tracers.get_tracer(_NAME, __version__)
        self._provider = provider

    def start(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        parent: str = "",
        trace_id: int = 0,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> OtelSpan:
        """Start a span; see `roles.Tracer`."""
        ids: Any = self._provider.ids
        found = parse_trace_parent(parent)
        # Without a parent it begins a trace, whatever span this thread is in: the caller names the parent.
        outer = api.INVALID_SPAN if found is None else api.NonRecordingSpan(_context(found))
        if ids is not None:
            ids.choose(trace_id)
        span = self._tracer.start_span(
            name, api.set_span_in_context(outer), kind=_KINDS[kind], attributes=dict(attributes or {})
        )
        return OtelSpan(span, self._tracer)

    def flush(self) -> None:
        """Wait a moment for the exporters."""
        self._provider.flush(_FLUSH_MS)


def current_trace_parent() -> str:
    """Return the `traceparent` of the program's own span that this thread is in; empty without one."""
    context = api.get_current_span().get_span_context()
    return str(TraceParent(context.trace_id, context.span_id, context.trace_flags)) if context.is_valid else ""


def _context(parent: TraceParent) -> api.SpanContext:
    return api.SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=api.TraceFlags(parent.flags))


def _fail(span: api.Span, name: str) -> None:
    span.set_attribute("error.type", name)
    span.set_status(Status(StatusCode.ERROR, name))
