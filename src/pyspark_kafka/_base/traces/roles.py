"""The tracer and the span as this package sees them, and who has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.traces.link_sample import LinkSample
    from pyspark_kafka._base.traces.trace_parent import TraceParent

    Attribute = str | int | float | bool


class SpanKind(str, Enum):
    """The kinds of OpenTelemetry that occur here."""

    INTERNAL = "internal"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    """One step of a query. A span that has ended takes nothing more."""

    @property
    def traceparent(self) -> str:
        """The header by which records name this span; empty if there is no tracer that counts."""

    def set_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Set attributes; later ones replace earlier ones."""

    def add_links(self, parents: Iterable[TraceParent]) -> None:
        """Link spans that this one has continued."""

    def add_child(
        self, name: str, began_ns: int, ended_ns: int, attributes: Mapping[str, Attribute], error: str = ""
    ) -> None:
        """Add a step of this step that is over, with its times in ns since 1970, and why it failed."""

    def fail(self, error: BaseException) -> None:
        """Note why the step failed: the condition, or the class. Texts of errors may quote records."""

    def end(self) -> None:
        """End the span. Further calls do nothing."""


class Tracer(Protocol):
    """Records spans. No method waits for an exporter but `flush`, and none raises."""

    def start(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        parent: str = "",
        trace_id: int = 0,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Span:
        """Start a span.

        Args:
            name: of the step.
            kind: of the step.
            parent: the `traceparent` of its parent; empty: it begins a trace.
            trace_id: of the trace that it begins; 0: any. Only a provider of this package can choose it.
            attributes: of the span.
        """

    def flush(self) -> None:
        """Wait a moment for the spans to be exported; not at all while the exporter does not respond."""


class Traced(ABC):
    """A stream, a write or a factory whose query may have spans."""

    @abstractmethod
    def open_tracer(self) -> Tracer | None:
        """Return the tracer of this process; None if the query has no spans.

        Raises:
            OptionError: an administrator does not allow the exporter.
            MissingDependencyError: OpenTelemetry is not installed here.
        """

    @property
    @abstractmethod
    def trace_parent(self) -> str:
        """The span that runs the query; empty if none is known."""


class SamplesLinks(ABC):
    """A reader that knows which spans have written some of its records."""

    @abstractmethod
    def span_attributes(self) -> Mapping[str, Attribute]:
        """Return what the span of its task says about the source."""

    @abstractmethod
    def take_sample(self) -> LinkSample:
        """Return the sample since the last call, and begin another one."""


def tracer_of(*parts: object) -> Tracer | None:
    """Return the tracer of the first part that has one; None if the query has no spans."""
    for part in parts:
        if isinstance(part, Traced) and (tracer := part.open_tracer()) is not None:
            return tracer
    return None


def trace_parent_of(*parts: object) -> str:
    """Return the span that runs the query, as the first part names it."""
    return next((part.trace_parent for part in parts if isinstance(part, Traced) and part.trace_parent), "")
