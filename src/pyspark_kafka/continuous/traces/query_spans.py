"""The spans of a continuous query on the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.roles import trace_parent_of, tracer_of
from pyspark_kafka._base.traces.steps import step

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark_kafka._base.traces.roles import Span, Tracer


@dataclass(frozen=True, slots=True)
class QuerySpans:
    """Opens the spans of one start of a query.

    Runs on: driver. Does not pickle.

    Attributes:
        tracer: of this process.
        parent: the span that runs the query; empty: each epoch begins a trace.
        query_id: of the query.
        run_id: of this start of it.
    """

    tracer: Tracer
    parent: str
    query_id: str
    run_id: str

    def planning(self) -> AbstractContextManager[Span]:
        """Return the span of a plan."""
        return step(self.tracer, "plan", parent=self.parent, attributes=self._attributes)

    def committing(self, epoch: int) -> AbstractContextManager[Span]:
        """Return the span of a commit, in the trace of its epoch."""
        attributes = {**self._attributes, "pyspark_kafka.epoch": epoch}
        trace_id = batch_trace_id(self.run_id, epoch)
        return step(self.tracer, "commit", parent=self.parent, trace_id=trace_id, attributes=attributes)

    @property
    def _attributes(self) -> dict[str, str | int]:
        return {"pyspark_kafka.query.id": self.query_id, "pyspark_kafka.run.id": self.run_id}


def query_spans(stream: object, write: object, query_id: str, run_id: str) -> QuerySpans | None:
    """Return the spans of a query; None if neither its source nor its sink asks for them.

    Without an option the parent is the span in which the caller is.

    Raises:
        OptionError: an administrator does not allow the exporter.
        MissingDependencyError: OpenTelemetry is not installed here.
    """
    tracer = tracer_of(stream, write)
    if tracer is None:
        return None
    from pyspark_kafka._base.traces.process_tracer import program_span  # noqa: PLC0415 - needs OpenTelemetry

    return QuerySpans(tracer, trace_parent_of(stream, write) or program_span(), query_id, run_id)
