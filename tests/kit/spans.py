"""Spans in memory: a tracer of OpenTelemetry's SDK whose ended spans a test reads."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pyspark_kafka._base.traces.otel.provider import Provider
from pyspark_kafka._base.traces.otel.spans import OtelTracer
from pyspark_kafka._base.traces.otel.trace_ids import ChosenTraceIds


class KeptTracer(OtelTracer):
    """A tracer that keeps its ended spans.

    Attributes:
        flushes: how often a step has waited for the exporter.
    """

    def __init__(self, sampler: Any = None) -> None:
        ids, self._exporter = ChosenTraceIds(), InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, id_generator=ids, sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.flushes = 0
        super().__init__(Provider(self.provider, self._count, ids))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        """Return the only ended span with a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def _count(self, _: int) -> None:
        self.flushes += 1


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    """Return trace id and span id of each link."""
    return [(link.context.trace_id, link.context.span_id) for link in span.links]
