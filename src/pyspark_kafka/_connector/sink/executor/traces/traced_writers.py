"""The span of a task that writes: around its writer, whatever that does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.traces.roles import SpanKind, Traced
from pyspark_kafka._base.traces.steps import current_span, inside, messaging_attributes, part_of, span_name
from pyspark_kafka._base.traces.task_place import current_place
from pyspark_kafka._client.options import TraceOptions, option_tracer
from pyspark_kafka.connector import DataWriter, DataWriterFactory, StreamingDataWriterFactory, WriterCommitMessage

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._base.traces.roles import Span, Tracer


@dataclass(frozen=True, slots=True)
class TracedMessage(WriterCommitMessage):
    """The commit message of a writer, with the span of its task.

    Attributes:
        message: of the writer.
        traceparent: of the task.
    """

    message: WriterCommitMessage
    traceparent: str


class TracedWriter(DataWriter):
    """A writer whose task has a span, which the records of the task name.

    Runs on: executor. The spans are handed to the exporter at the end of the task, which waits for it a moment.

    Args:
        writer: what writes; this one closes it.
        span: of the task.
        tracer: of the process.
    """

    def __init__(self, writer: DataWriter, span: Span, tracer: Tracer) -> None:
        self._writer, self._span, self._tracer = writer, span, tracer
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._rows += batch.num_rows
        with part_of(self._span):
            self._writer.write(batch)

    def commit(self) -> TracedMessage:
        """Commit the rows."""
        with part_of(self._span):
            return TracedMessage(self._writer.commit(), self._span.traceparent)

    def abort(self) -> None:
        """Abort the rows."""
        with inside(self._span):
            self._writer.abort()

    def close(self) -> None:
        """Close the writer, and end the span."""
        try:
            self._writer.close()
        finally:
            self._span.set_attributes({"messaging.batch.message_count": self._rows})
            self._span.end()
            self._tracer.flush()


@dataclass(frozen=True, slots=True)
class TracedWriterFactory(DataWriterFactory, StreamingDataWriterFactory, Traced):
    """Builds the writers of a write with spans. Plain data, pickled to executors.

    Attributes:
        factory: builds the writers.
        trace: the spans of the write.
        topic: of every row; empty: each row names its own.
    """

    factory: Any
    trace: TraceOptions
    topic: str

    def of_query(self, query_id: str | None) -> TracedWriterFactory:
        """Return the factory for the tasks of one query."""
        return replace(self, factory=self.factory.of_query(query_id))

    def for_tasks(self) -> TracedWriterFactory:
        """Return the factory that is sent to tasks."""
        return replace(self, factory=self.factory.for_tasks())

    def createWriter(self, partition_id: int, task_id: int, *epoch_id: int) -> DataWriter:
        """Build the writer of one task attempt; in a lane, whose epochs have spans, the plain one."""
        if current_span() is not None:
            writer: DataWriter = self.factory.createWriter(partition_id, task_id, *epoch_id)
            return writer
        tracer = option_tracer()
        span = start_write(tracer, self.topic, self.trace.parent)
        try:
            writer = self.factory.createWriter(partition_id, task_id, *epoch_id)
        except BaseException as error:
            span.fail(error)
            span.end()
            raise
        return TracedWriter(writer, span, tracer)

    def open_tracer(self) -> Tracer:
        """Return the tracer of this process; see `Traced`."""
        return option_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query."""
        return self.trace.parent


def start_write(tracer: Tracer, topic: str, parent: str) -> Span:
    """Start the span of a task that writes; without a parent, the tasks of a micro-batch begin its trace.

    Args:
        tracer: of the process.
        topic: of every row; empty: each row names its own.
        parent: the span that runs the query; empty: none is known.
    """
    place = current_place()
    return tracer.start(
        span_name("send", topic),
        SpanKind.PRODUCER,
        parent=parent,
        trace_id=0 if place is None else place.trace_id,
        attributes=messaging_attributes("send", "send", topic) | ({} if place is None else place.attributes),
    )
