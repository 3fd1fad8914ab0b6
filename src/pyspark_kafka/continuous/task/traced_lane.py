"""A lane whose epochs have spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.traces.steps import part_of
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.traces.epoch_spans import EpochSpan, EpochSpans

if TYPE_CHECKING:
    from pyspark_kafka._base.traces.roles import Tracer


class TracedLane(Lane):
    """A lane whose epochs have spans, which the records that it writes name.

    Args:
        tracer: of the process.
        parent: the span that runs the query; empty: each epoch begins a trace.
        run_id: of this start of the query.
        number, reader, more, named: as in `Lane`.
    """

    def __init__(
        self, tracer: Tracer, parent: str, run_id: str, number: int, reader: Any, *more: Any, **named: Any
    ) -> None:
        super().__init__(number, reader, *more, **named)
        self._spans = EpochSpans(tracer, reader, parent=parent, run_id=run_id, lane=number)
        self._span: EpochSpan | None = None

    def _run_epoch(self, epoch: int) -> None:
        self._span = span = self._spans.open(epoch)
        try:
            with part_of(span):
                super()._run_epoch(epoch)
        finally:
            self._spans.close(span, self._rows_read, self._rows_written)

    def _say_moved(self, epoch: int, patience: float) -> None:
        if self._span is not None:
            self._span.begin()
        super()._say_moved(epoch, patience)
