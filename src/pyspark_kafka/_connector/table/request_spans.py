"""The requests of a step, as children of its span."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.steps import step
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._base.traces.roles import Span, Tracer


@contextmanager
def step_with_requests(tracer: Tracer, name: str, *, parent: str = "", trace_id: int = 0) -> Iterator[Span]:
    """Record the block as a span, and each request that its thread sends as a child; see `Tracer.start`.

    Requests of other threads, which only set connections up, are left out. The end waits a moment for the exporters.
    """
    attributes = {"messaging.system": "kafka"}
    try:
        with step(tracer, name, parent=parent, trace_id=trace_id, attributes=attributes) as span:
            of_thread = threading.get_ident()

            def note(event: WireEvent) -> None:
                if threading.get_ident() == of_thread:
                    add_request(span, event, time.time_ns())

            with listening(note):
                yield span
    finally:
        tracer.flush()


def add_request(span: Span, event: WireEvent, now_ns: int) -> None:
    """Add a request that has ended to a span; other events are not shown.

    Args:
        span: of the step.
        event: of the request.
        now_ns: when it has ended, in ns since 1970.
    """
    if event.step not in (WireStep.RECEIVED, WireStep.FAILED) or event.elapsed_ms is None or not event.request:
        return
    host, _, port = event.broker.rpartition(":")
    attributes: dict[str, str | int] = {"messaging.system": "kafka", "server.address": host or event.broker}
    if port.isdigit():
        attributes["server.port"] = int(port)
    failure = "" if event.step is WireStep.RECEIVED else event.reason.partition("]")[0].strip("[")
    span.add_child(event.request, now_ns - int(event.elapsed_ms * 1e6), now_ns, attributes, failure)
