"""Our spans as those of OpenTelemetry."""

from __future__ import annotations

from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind as OtelKind

from kit.spans import KeptTracer, links_of
from pyspark_kafka._base.traces.otel import spans
from pyspark_kafka._base.traces.otel.spans import current_trace_parent
from pyspark_kafka._base.traces.roles import SpanKind
from pyspark_kafka._base.traces.trace_parent import TraceParent, parse_trace_parent

PARENT = TraceParent(0x1234, 0x56)


def test_span_has_kind_attributes_links_and_a_header() -> None:
    tracer = KeptTracer()
    span = tracer.start("send orders", SpanKind.PRODUCER, attributes={"messaging.system": "kafka"})
    span.add_links([PARENT])
    span.set_attributes({"messaging.batch.message_count": 3})
    span.end()
    span.end()
    (found,) = tracer.spans
    assert found.kind is OtelKind.PRODUCER
    assert dict(found.attributes or {}) == {"messaging.system": "kafka", "messaging.batch.message_count": 3}
    assert links_of(found) == [(PARENT.trace_id, PARENT.span_id)]
    parent = parse_trace_parent(span.traceparent)
    assert parent is not None
    assert parent[:2] == (found.context.trace_id, found.context.span_id)
    assert parent.flags & 1


def test_span_of_a_parent_is_in_its_trace() -> None:
    tracer = KeptTracer()
    tracer.start("a", parent=str(PARENT), trace_id=99).end()
    (found,) = tracer.spans
    assert found.context.trace_id == PARENT.trace_id
    assert found.parent is not None
    assert (found.parent.span_id, found.parent.is_remote) == (PARENT.span_id, True)


def test_spans_of_a_chosen_trace_begin_it_side_by_side() -> None:
    tracer = KeptTracer()
    for name in ("read", "write"):
        tracer.start(name, trace_id=99).end()
    tracer.start("other").end()
    assert [span.context.trace_id == 99 for span in tracer.spans] == [True, True, False]
    assert [span.parent for span in tracer.spans] == [None] * 3


def test_span_of_a_program_is_no_parent_unless_it_is_named() -> None:
    tracer = KeptTracer()
    with tracer.provider.get_tracer("program").start_as_current_span("job") as job:
        tracer.start("a").end()
        context = job.get_span_context()
        parent = parse_trace_parent(current_trace_parent())
        assert parent is not None
        assert parent[:2] == (context.trace_id, context.span_id)
    assert tracer.span("a").parent is None
    assert current_trace_parent() == ""


def test_span_that_is_not_sampled_has_a_header_that_says_so() -> None:
    tracer = KeptTracer(ALWAYS_OFF)
    span = tracer.start("a")
    span.set_attributes({"a": 1})
    span.end()
    parent = parse_trace_parent(span.traceparent)
    assert parent is not None
    assert parent.flags & 1 == 0
    assert tracer.spans == ()


def test_children_of_a_span_are_bounded_and_counted() -> None:
    tracer = KeptTracer()
    span = tracer.start("plan")
    for number in range(spans._MAX_CHILDREN + 2):
        span.add_child("Metadata", number, number + 1, {})
    span.end()
    assert len(tracer.spans) == spans._MAX_CHILDREN + 1
    assert dict(tracer.span("plan").attributes or {}) == {"pyspark_kafka.children.dropped": 2}


def test_generator_that_is_not_read_to_its_end_is_no_error() -> None:
    tracer = KeptTracer()
    span = tracer.start("poll")
    span.fail(GeneratorExit())
    span.end()
    assert tracer.span("poll").status.is_unset
