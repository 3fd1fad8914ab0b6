"""The span of a task that reads, and the headers that its sampler looks at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.record_batches import batch, record
from kit.spans import KeptTracer, links_of
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.traces import task_place
from pyspark_kafka._base.traces.batch_ids import batch_trace_id
from pyspark_kafka._base.traces.link_sample import RECORDS_AT_A_TIME, LinkSample
from pyspark_kafka._base.traces.steps import looking_up
from pyspark_kafka._base.traces.task_place import TaskPlace
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
from pyspark_kafka._client.options.values.read import FetchOptions
from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler
from pyspark_kafka._connector.source.executor.traced_reader import TracedPartitionReader, start_read
from pyspark_kafka.connector import PartitionReader

RANGE = OffsetRange(TopicPartition("source", 0), 0, 100)
ROWS = pa.record_batch({"value": [b"a", b"b"]})
PLAN = TraceParent(0x77, 0x88)


class Rows(PartitionReader):
    """Returns one batch, and fails then if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        self._left, self._fails = 1, fails
        self.is_closed = False

    def next(self) -> bool:
        with looking_up("look up schema", schema_id="7"):
            pass
        if self._fails and not self._left:
            raise ValueError("secret-value")
        self._left -= 1
        return self._left >= 0

    def get(self) -> pa.RecordBatch:
        return ROWS

    def close(self) -> None:
        self.is_closed = True


def read_all(reader: PartitionReader) -> int:
    rows = 0
    try:
        while reader.next():
            rows += reader.get().num_rows
    finally:
        reader.close()
    return rows


def test_task_that_reads_has_a_span_with_links_and_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_place, "_find", lambda: TaskPlace("query", "run", "3", 1, 2, 9))
    tracer, sample, rows = KeptTracer(), LinkSample(), Rows()
    sample.add_headers(8, [str(TraceParent(1, 2))])
    span = start_read(tracer, "source", parent="", plan=str(PLAN))
    assert read_all(TracedPartitionReader(rows, sample, span, tracer)) == 2
    found = tracer.span("poll source")
    assert (found.kind.name, found.parent) == ("CLIENT", None)
    assert found.context.trace_id == batch_trace_id("run", 3)
    assert links_of(found) == [PLAN[:2], (1, 2)]
    attributes = dict(found.attributes or {})
    assert attributes["messaging.operation.type"] == "receive"
    assert attributes["messaging.destination.name"] == "source"
    assert attributes["messaging.batch.message_count"] == 2
    assert attributes["pyspark_kafka.links.records"] == 8
    assert attributes["pyspark_kafka.query.id"] == "query"
    assert {span.parent.span_id for span in tracer.spans if span.parent} == {found.context.span_id}
    assert rows.is_closed
    assert tracer.flushes == 1


def test_task_of_a_batch_read_is_a_child_of_its_plan() -> None:
    tracer = KeptTracer()
    start_read(tracer, "", parent="", plan=str(PLAN)).end()
    found = tracer.span("poll")
    assert found.parent is not None
    assert (found.parent.trace_id, found.parent.span_id) == PLAN[:2]
    assert links_of(found) == []


def test_task_of_a_query_with_a_parent_is_its_child_and_linked_to_its_plan() -> None:
    tracer, parent = KeptTracer(), TraceParent(0x1, 0x2)
    start_read(tracer, "", parent=str(parent), plan=str(PLAN)).end()
    found = tracer.span("poll")
    assert found.parent is not None
    assert (found.parent.trace_id, found.parent.span_id) == parent[:2]
    assert links_of(found) == [PLAN[:2]]


def test_task_that_fails_has_a_span_with_the_error() -> None:
    tracer = KeptTracer()
    span = start_read(tracer, "source", parent="", plan="")
    with pytest.raises(ValueError, match="secret-value"):
        read_all(TracedPartitionReader(Rows(fails=True), LinkSample(), span, tracer))
    found = tracer.span("poll source")
    assert found.status.description == "ValueError"
    assert "secret-value" not in found.to_json()


def fetched(data: bytes, start: int = 0) -> FetchedRecords:
    return FetchedRecords(memoryview(data), start, 100, (), 100, 100, 0)


def of_span(number: int) -> Any:
    return [(b"other", b"x"), (b"traceparent", str(TraceParent(number + 1, 1)).encode())]


def data(count: int) -> bytes:
    return batch([record(number, value=b"v", headers=of_span(number)) for number in range(count)])


def test_sampler_looks_at_the_first_records_that_the_range_has() -> None:
    sampler = HeaderSampler(FetchOptions())
    sampler.look(fetched(data(20), start=3), RANGE)
    assert sampler.sample.records == RECORDS_AT_A_TIME
    assert sampler.sample.take_new() == [TraceParent(number + 1, 1) for number in range(3, 3 + RECORDS_AT_A_TIME)]
    sampler.look(fetched(data(20)), OffsetRange(RANGE.topic_partition, 0, 2))
    assert sampler.sample.records == RECORDS_AT_A_TIME + 2


def test_sampler_leaves_damaged_records_to_the_reader() -> None:
    sampler = HeaderSampler(FetchOptions())
    damaged = bytearray(data(2))
    damaged[-3] ^= 0xFF
    damaged[62] = 0xFF
    sampler.look(fetched(bytes(damaged)), RANGE)
    assert sampler.sample.looks == 1


def test_sampler_is_done_with_records_without_the_header() -> None:
    sampler = HeaderSampler(FetchOptions())
    sampler.look(fetched(batch([record(0, value=b"v"), record(1, value=b"v", headers=[(b"a", None)])])), RANGE)
    assert sampler.sample.counts()["pyspark_kafka.links.found"] == 0
    assert sampler.sample.records == 2
