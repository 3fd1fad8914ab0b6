"""Reads whose plans have spans."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.traces.steps import reason, span_name
from pyspark_kafka._client.options import option_tracer
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka._connector.table.request_spans import step_with_requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._base.traces.roles import Span
    from pyspark_kafka._client.options import BatchReadOptions, StreamReadOptions
    from pyspark_kafka.connector import InputPartition, Offset, ReadLimit


class TracedBatch(KafkaBatch):
    """A batch read whose plan has a span, which its tasks belong to."""

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Return the tasks; see `KafkaBatch`."""
        with step_with_requests(option_tracer(), _name(self._options), parent=_parent(self._options)) as span:
            return _told(super().planInputPartitions(), span)


class TracedMicroBatchStream(KafkaMicroBatchStream):
    """A stream whose plans have spans.

    A look-up of ends is shown in the plan of the micro-batch that it has begun: most look-ups find nothing new. A
    look-up that fails has a span of its own.
    """

    def __init__(self, options: StreamReadOptions, *more: Any, **named: Any) -> None:
        super().__init__(options, *more, **named)
        # The look-up that found the end of the next micro-batch: its times in ns since 1970.
        self._looked_up: tuple[int, int] | None = None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> KafkaSourceOffset:
        """Return the end of the next micro-batch; see `KafkaMicroBatchStream`."""
        began = time.time_ns()
        try:
            end = super().latestOffset(start, limit)
        except BaseException as error:
            tracer = option_tracer()
            span = tracer.start(_name(self._options), parent=_parent(self._options))
            span.add_child("look up ends", began, time.time_ns(), {}, reason(error))
            span.fail(error)
            span.end()
            tracer.flush()
            raise
        if end != start:
            self._looked_up = began, time.time_ns()
        return end

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tasks; see `KafkaMicroBatchStream`."""
        if start == end:
            return super().planInputPartitions(start, end)
        tracer = option_tracer()
        looked_up, self._looked_up = self._looked_up, None
        with step_with_requests(tracer, _name(self._options), parent=_parent(self._options)) as span:
            if looked_up is not None:
                span.add_child("look up ends", *looked_up, {})
            return _told(super().planInputPartitions(start, end), span)


def _name(options: BatchReadOptions | StreamReadOptions) -> str:
    """Return the name of a plan: a pattern is not part of it."""
    return span_name("plan", options.subscription.only_topic)


def _parent(options: BatchReadOptions | StreamReadOptions) -> str:
    return "" if options.trace is None else options.trace.parent


def _told(partitions: Sequence[InputPartition], span: Span) -> Sequence[InputPartition]:
    """Return the tasks, which know the span of their plan."""
    span.set_attributes({"pyspark_kafka.tasks": len(partitions)})
    return [
        replace(each, trace_parent=span.traceparent) if isinstance(each, KafkaInputPartition) else each
        for each in partitions
    ]
