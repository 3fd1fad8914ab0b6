"""Writes whose tasks and commits have spans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.link_sample import MAX_LINKS
from pyspark_kafka._base.traces.roles import Traced
from pyspark_kafka._base.traces.steps import current_span, span_name
from pyspark_kafka._base.traces.trace_parent import TraceParent, parse_trace_parent
from pyspark_kafka._client.options import TraceOptions, option_tracer
from pyspark_kafka._connector.sink.executor.traces.traced_writers import TracedMessage, TracedWriterFactory
from pyspark_kafka._connector.table.request_spans import step_with_requests
from pyspark_kafka.connector import BatchWrite, StreamingWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._base.traces.roles import Tracer
    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka.connector import (
        DataWriterFactory,
        PhysicalWriteInfo,
        StreamingDataWriterFactory,
        WriterCommitMessage,
    )


class TracedBatchWrite(BatchWrite):
    """A batch write with spans: of its plan, and as children of that, of its tasks and its commit.

    Runs on: driver; pickles, as the write does.

    Args:
        job: the write.
        trace: its spans; the parent is the plan.
        topic: of every row; empty: each row names its own.
    """

    def __init__(self, job: BatchWrite, trace: TraceOptions, topic: str) -> None:
        self._job, self._trace, self._topic = job, trace, topic

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:
        """Return the factory that executors write with."""
        return TracedWriterFactory(self._job.createBatchWriterFactory(info), self._trace, self._topic)

    def useCommitCoordinator(self) -> bool:
        """Return what the write returns."""
        return self._job.useCommitCoordinator()

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish the job, in a span."""
        plain, tasks = _told(messages)
        _commit(self._trace, self._topic, tasks, lambda: self._job.commit(plain))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the job."""
        self._job.abort(_plain(messages))


class TracedStreamingWrite(StreamingWrite, Traced):
    """A streaming write with spans of its tasks and commits; in a continuous query the engine has those.

    Runs on: driver; pickles, as the write does.

    Args:
        job: the write.
        trace: its spans.
        topic: of every row; empty: each row names its own.
    """

    def __init__(self, job: StreamingWrite, trace: TraceOptions, topic: str) -> None:
        self._job, self._trace, self._topic = job, trace, topic

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        """Return the factory that executors write with."""
        return TracedWriterFactory(self._job.createStreamingWriterFactory(info), self._trace, self._topic)

    def useCommitCoordinator(self) -> bool:
        """Return what the write returns."""
        return self._job.useCommitCoordinator()

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        """Return the message of a lane, which has no span in it."""
        return self._job.deserializeMessage(text)

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish one micro-batch, in a span of its trace."""
        plain, tasks = _told(messages)
        if current_span() is None:
            _commit(self._trace, self._topic, tasks, lambda: self._job.commit(epoch_id, plain), epoch_id)
        else:
            self._job.commit(epoch_id, plain)

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort one micro-batch."""
        self._job.abort(epoch_id, _plain(messages))

    def open_tracer(self) -> Tracer:
        """Return the tracer of this process; see `Traced`."""
        return option_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query."""
        return self._trace.parent


def traced_batch_write(
    options: WriteOptions, trace: TraceOptions, build: Callable[[WriteOptions], BatchWrite]
) -> BatchWrite:
    """Build a batch write in the span of its plan.

    Args:
        options: of the write.
        trace: its spans.
        build: builds the write.
    """
    topic = options.topic or ""
    with step_with_requests(option_tracer(), span_name("plan write", topic), parent=trace.parent) as span:
        return TracedBatchWrite(build(options), replace(trace, parent=span.traceparent or trace.parent), topic)


def _commit(
    trace: TraceOptions, topic: str, tasks: Sequence[TraceParent], commit: Callable[[], None], batch: int | None = None
) -> None:
    trace_id, name = tasks[0].trace_id if tasks else 0, span_name("commit", topic)
    with step_with_requests(option_tracer(), name, parent=trace.parent, trace_id=trace_id) as span:
        span.add_links(tasks[:MAX_LINKS])
        span.set_attributes(
            {"pyspark_kafka.tasks": len(tasks), **({} if batch is None else {"pyspark_kafka.batch.id": str(batch)})}
        )
        commit()


def _told(messages: Sequence[WriterCommitMessage]) -> tuple[list[WriterCommitMessage], list[TraceParent]]:
    """Return the messages of the writers, and the spans of the tasks."""
    spans = [parse_trace_parent(each.traceparent) for each in messages if isinstance(each, TracedMessage)]
    plain = [each.message if isinstance(each, TracedMessage) else each for each in messages]
    return plain, [span for span in spans if span is not None]


def _plain(messages: Sequence[WriterCommitMessage | None]) -> list[WriterCommitMessage | None]:
    return [each.message if isinstance(each, TracedMessage) else each for each in messages]
