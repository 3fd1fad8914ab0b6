"""A collector of OpenTelemetry in Python: keeps the spans that exporters post to it by OpenTelemetry's own protocol."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from kit.posts import served_posts


@dataclass
class SpanCollector:
    """What was posted to a collector.

    Attributes:
        url: where it is, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
        spans: what has arrived.
        services: the names of the processes that have sent them.
    """

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def take(self, body: bytes) -> int:
        """Keep the spans of a request; return the status of the response."""
        plain = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        for found in ExportTraceServiceRequest.FromString(plain).resource_spans:
            names = {each.key: each.value.string_value for each in found.resource.attributes}
            self.services.add(names["service.name"])
            self.spans += [span for scope in found.scope_spans for span in scope.spans]
        return 200


@contextmanager
def span_collector() -> Iterator[SpanCollector]:
    """Serve a collector on a free port of the loopback interface."""
    collector = SpanCollector()
    with served_posts("/v1/traces", collector.take) as collector.url:
        yield collector
