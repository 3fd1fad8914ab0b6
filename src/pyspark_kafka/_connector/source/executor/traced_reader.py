"""The span of a task that reads: around its reader, whatever that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.roles import SpanKind
from pyspark_kafka._base.traces.steps import messaging_attributes, part_of, span_name
from pyspark_kafka._base.traces.task_place import current_place
from pyspark_kafka._base.traces.trace_parent import parse_trace_parent
from pyspark_kafka.connector import PartitionReader

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._base.traces.link_sample import LinkSample
    from pyspark_kafka._base.traces.roles import Span, Tracer


def start_read(tracer: Tracer, topic: str, *, parent: str, plan: str) -> Span:
    """Start the span of a task that reads.

    The tasks of a micro-batch begin its trace, unless the query has a parent. Tasks of a batch read belong to its plan.

    Args:
        tracer: of the process.
        topic: the only topic; empty: there are several.
        parent: the span that runs the query; empty: none is known.
        plan: the span of the plan; empty: none is known.
    """
    place = current_place()
    trace_id = 0 if place is None else place.trace_id
    span = tracer.start(
        span_name("poll", topic),
        SpanKind.CLIENT,
        parent=parent or ("" if trace_id else plan),
        trace_id=trace_id,
        attributes=messaging_attributes("poll", "receive", topic) | ({} if place is None else place.attributes),
    )
    planned = parse_trace_parent(plan)
    if planned is not None and (parent or trace_id):
        span.add_links((planned,))
    return span


class TracedPartitionReader(PartitionReader):
    """A reader whose task has a span, with links to the spans that have written its records.

    Runs on: executor. The spans are handed to the exporter at the end of the task, which waits for it a moment.

    Args:
        reader: what reads; this one closes it.
        sample: what the reader finds in headers.
        span: of the task.
        tracer: of the process.
    """

    def __init__(self, reader: PartitionReader, sample: LinkSample, span: Span, tracer: Tracer) -> None:
        self._reader, self._sample, self._span, self._tracer = reader, sample, span, tracer
        self._rows = 0

    def next(self) -> bool:
        """Move to the next batch of records."""
        with part_of(self._span):
            return self._reader.next()

    def get(self) -> pa.RecordBatch:
        """Return the batch that `next()` moved to."""
        batch = self._reader.get()
        self._rows += batch.num_rows
        return batch

    def close(self) -> None:
        """Close the reader, and end the span."""
        try:
            self._reader.close()
        finally:
            self._span.add_links(self._sample.take_new())
            self._span.set_attributes({"messaging.batch.message_count": self._rows, **self._sample.counts()})
            self._span.end()
            self._tracer.flush()
