"""The spans of a lane's epochs, with a reader, a writer and a driver in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from kit.spans import KeptTracer, links_of
from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.link_sample import LinkSample
from pyspark_kafka._base.traces.roles import SamplesLinks
from pyspark_kafka._base.traces.steps import current_span
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka.connector import ContinuousPartitionReader, DataWriter, PartitionOffset, WriterCommitMessage
from pyspark_kafka.continuous.epochs.messages import Moved, Started
from pyspark_kafka.continuous.task.traced_lane import TracedLane


class At(PartitionOffset):
    def __init__(self, position: int) -> None:
        self.position = position

    def __eq__(self, other: object) -> bool:
        return isinstance(other, At) and other.position == self.position

    def __hash__(self) -> int:
        return self.position

    def json(self) -> str:
        return str(self.position)


class Driver:
    """Ends the epochs that the reader says have ended."""

    epoch_s = None

    def __init__(self) -> None:
        self.ended_epoch = -1
        self.last_epoch: int | None = None
        self.stopped = False
        self.sent: list[Any] = []

    def send_message(self, message: Any) -> None:
        self.sent.append(message)

    def wait_for_go(self) -> None:
        assert isinstance(self.sent[-1], Started)


class Reader(ContinuousPartitionReader, SamplesLinks):
    """Reads numbers, each a batch whose producer has the number as its trace; "end" ends an epoch, None is no row."""

    def __init__(self, driver: Driver, *steps: Any) -> None:
        self._driver, self._steps, self._position = driver, list(steps), 0
        self._sample = LinkSample()
        self._batch: pa.RecordBatch | None = None

    def next(self) -> bool:
        step = self._steps.pop(0) if self._steps else "last"
        if step in ("end", "last"):
            self._driver.ended_epoch += 1
            if step == "last":
                self._driver.last_epoch = self._driver.ended_epoch
            return False
        if isinstance(step, Exception):
            raise step
        if step is None:
            return False
        self._batch = pa.record_batch({"n": [step]})
        self._sample.add_headers(1, [str(TraceParent(int(step), 1))])
        self._position += 1
        return True

    def get(self) -> pa.RecordBatch:
        assert self._batch is not None
        return self._batch

    def getOffset(self) -> PartitionOffset:
        return At(self._position)

    def close(self) -> None:
        pass

    def span_attributes(self) -> Mapping[str, str]:
        return {"messaging.system": "kafka", "messaging.destination.name": "source"}

    def take_sample(self) -> LinkSample:
        sample, self._sample = self._sample, LinkSample()
        return sample


class Done(WriterCommitMessage):
    def json(self) -> str:
        return "{}"


class Writer(DataWriter):
    """Notes the span that its rows name."""

    def __init__(self, named: list[str]) -> None:
        self._named, self._rows = named, 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows

    def commit(self) -> WriterCommitMessage:
        span = current_span()
        assert span is not None
        if self._rows:
            self._named.append(span.traceparent)
        return Done()

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


def as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def run(tracer: KeptTracer, *steps: Any, parent: str = "") -> tuple[list[str], Driver]:
    """Run a lane, and return the spans that its records name."""
    named: list[str] = []
    driver = Driver()
    reader = Reader(driver, *steps)
    TracedLane(tracer, parent, "run", 3, reader, as_it_is, lambda _: Writer(named), driver).run(0)
    return named, driver


def test_epoch_has_a_span_in_a_trace_of_its_own_with_links_of_its_records() -> None:
    tracer = KeptTracer()
    named, _ = run(tracer, 7, 8, "end", 9, "last")
    first, second = tracer.spans
    assert (first.name, first.kind.name) == ("process source", "CONSUMER")
    assert [span.context.trace_id for span in tracer.spans] == [batch_trace_id("run", 0), batch_trace_id("run", 1)]
    assert links_of(first) == [(7, 1), (8, 1)]
    assert links_of(second) == [(9, 1)]
    assert [text.split("-")[2] for text in named] == [f"{span.context.span_id:016x}" for span in tracer.spans]
    attributes = dict(first.attributes or {})
    assert attributes["messaging.batch.message_count"] == 2
    assert attributes["pyspark_kafka.rows.written"] == 2
    assert attributes["pyspark_kafka.links.records"] == 2
    assert (attributes["pyspark_kafka.lane"], attributes["pyspark_kafka.epoch"]) == (3, 0)


def test_epoch_without_rows_has_no_span() -> None:
    tracer = KeptTracer()
    named, driver = run(tracer, None, "end", 9, "end", None, "last")
    (found,) = tracer.spans
    assert found.context.trace_id == batch_trace_id("run", 1)
    assert len(named) == 1
    assert sum(isinstance(message, Moved) for message in driver.sent) == 1


def test_epoch_of_a_query_with_a_parent_is_its_child() -> None:
    tracer, parent = KeptTracer(), TraceParent(5, 6)
    run(tracer, 7, "last", parent=str(parent))
    (found,) = tracer.spans
    assert found.parent is not None
    assert (found.parent.trace_id, found.parent.span_id) == (5, 6)


@pytest.mark.parametrize("steps", [(), (7,)])
def test_epoch_that_fails_has_a_span_with_the_error(steps: tuple[int, ...]) -> None:
    tracer = KeptTracer()
    with pytest.raises(ValueError, match="secret-value"):
        run(tracer, *steps, ValueError("secret-value"))
    (found,) = tracer.spans
    assert found.status.description == "ValueError"
    assert "secret-value" not in found.to_json()
