"""The span of a lane's epoch, which begins with its first rows."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.roles import SamplesLinks, SpanKind
from pyspark_kafka._base.traces.steps import span_name
from pyspark_kafka._base.traces.task_place import current_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.traces.roles import Attribute, Span, Tracer
    from pyspark_kafka._base.traces.trace_parent import TraceParent


class EpochSpan:
    """A span that begins when it is needed: a lane waits for rows as long as there are none.

    Runs on: executor; its first use may be on the thread of a function that reads ahead.

    Args:
        tracer: of the process.
        name: of the span.
        parent: the span that runs the query; empty: the epoch begins a trace.
        trace_id: of that trace.
        attributes: of the span.
    """

    def __init__(
        self, tracer: Tracer, name: str, parent: str, trace_id: int, attributes: Mapping[str, Attribute]
    ) -> None:
        self._tracer, self._name, self._parent, self._trace_id = tracer, name, parent, trace_id
        self._attributes = attributes
        self._lock = threading.Lock()
        self._begun: Span | None = None

    def begin(self) -> Span:
        """Begin the span, unless it has begun."""
        with self._lock:
            if self._begun is None:
                self._begun = self._tracer.start(
                    self._name,
                    SpanKind.CONSUMER,
                    parent=self._parent,
                    trace_id=self._trace_id,
                    attributes=self._attributes,
                )
            return self._begun

    @property
    def has_begun(self) -> bool:
        """Whether there is a span."""
        return self._begun is not None

    @property
    def traceparent(self) -> str:
        """The header by which records name this span."""
        return self.begin().traceparent

    def set_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Set attributes."""
        self.begin().set_attributes(attributes)

    def add_links(self, parents: Iterable[TraceParent]) -> None:
        """Link spans that this one has continued."""
        self.begin().add_links(parents)

    def add_child(
        self, name: str, began_ns: int, ended_ns: int, attributes: Mapping[str, Attribute], error: str = ""
    ) -> None:
        """Add a step of this step that is over."""
        self.begin().add_child(name, began_ns, ended_ns, attributes, error)

    def fail(self, error: BaseException) -> None:
        """Note why the epoch failed."""
        self.begin().fail(error)

    def end(self) -> None:
        """End the span, if it has begun."""
        if self._begun is not None:
            self._begun.end()


class EpochSpans:
    """The spans of one lane, epoch by epoch.

    Runs on: executor, on the thread of the lane.

    Args:
        tracer: of the process.
        reader: of the lane; one that samples links says them, and the names of spans.
        parent: the span that runs the query; empty: each epoch begins a trace.
        run_id: of this start of the query.
        lane: its number.
    """

    def __init__(self, tracer: Tracer, reader: object, *, parent: str, run_id: str, lane: int) -> None:
        self._tracer, self._parent, self._run_id = tracer, parent, run_id
        self._reader = reader if isinstance(reader, SamplesLinks) else None
        place = current_place()
        self._attributes: dict[str, Attribute] = {
            **({} if place is None else place.attributes),
            "pyspark_kafka.lane": lane,
            **({} if self._reader is None else self._reader.span_attributes()),
        }
        self._name = span_name("process", str(self._attributes.get("messaging.destination.name", "")))

    def open(self, epoch: int) -> EpochSpan:
        """Return the span of an epoch, which has not begun."""
        attributes = {**self._attributes, "pyspark_kafka.epoch": epoch}
        trace_id = batch_trace_id(self._run_id, epoch)
        return EpochSpan(self._tracer, self._name, self._parent, trace_id, attributes)

    def close(self, span: EpochSpan, read: int, written: int) -> None:
        """End the span of an epoch, if it has begun.

        Args:
            span: of the epoch.
            read: how many rows the lane has read in it.
            written: how many it has written.
        """
        sample = None if self._reader is None else self._reader.take_sample()
        if not span.has_begun:
            return
        if sample is not None:
            span.add_links(sample.take_new())
            span.set_attributes(sample.counts())
        span.set_attributes({"messaging.batch.message_count": read, "pyspark_kafka.rows.written": written})
        span.end()
