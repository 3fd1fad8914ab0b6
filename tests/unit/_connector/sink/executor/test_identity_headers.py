"""Headers by which readers can tell a record that was written twice."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from kit.texts import said
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.at_least_once import (
    KafkaBatchWrite,
    KafkaDataWriterFactory,
    KafkaStreamingWrite,
)
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaOutboxWriterFactory
from pyspark_kafka._connector.sink.executor.identity_headers import TaskOrigin, task_origin, with_identity
from pyspark_kafka._connector.sink.executor.record_batch_encoder import RecordBatchEncoder
from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.errors import OptionError
from pyspark_kafka.records import decode

ORIGIN = TaskOrigin("q", 7, 3)
NARROW = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
WIDE = pa.large_list(
    pa.struct([pa.field("key", pa.large_string(), nullable=False), pa.field("value", pa.large_binary())])
)
OWN = [[("a", b"1"), ("b", None)], None, [], [("c", b"3")]]


class Partitions:
    """A topic that does not change, all of whose partitions are led."""

    def __init__(self, count: int) -> None:
        self._count = count

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        assert topic
        assert beyond < self._count
        return self._count

    def available_partitions(self, topic: str) -> range:
        assert topic
        return range(self._count)


def identity(index: int, origin: TaskOrigin = ORIGIN) -> list[tuple[str, bytes]]:
    return [
        ("pyspark-kafka-query", origin.query_id.encode()),
        ("pyspark-kafka-batch", b"%d" % origin.batch_id),
        ("pyspark-kafka-partition", b"%d" % origin.partition_id),
        ("pyspark-kafka-index", b"%d" % index),
    ]


def pairs(headers: Any) -> list[list[tuple[str, bytes | None]]]:
    return [[(entry["key"], entry["value"]) for entry in row or ()] for row in headers.to_pylist()]


def options(*, identity_headers: bool = True, topic: str | None = "t") -> WriteOptions:
    return WriteOptions(ConnectionOptions((("not-asked", 9092),)), topic, identity_headers=identity_headers)


@pytest.mark.parametrize("kind", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize(("start", "stop"), [(0, 4), (1, 4), (1, 3), (2, 2)])
def test_identity_headers_stand_behind_those_of_the_row(kind: pa.DataType, start: int, stop: int) -> None:
    own = pa.array(OWN, kind).slice(start, stop - start)
    found = with_identity(own, ORIGIN, 100, stop - start)
    found.validate(full=True)
    expected = [[*(OWN[row] or ()), *identity(100 + row - start)] for row in range(start, stop)]
    assert pairs(found) == expected


def test_rows_without_headers_get_identity_headers_alone() -> None:
    assert pairs(with_identity(None, ORIGIN, 9, 3)) == [identity(9), identity(10), identity(11)]


def encoded_headers(encoder: RecordBatchEncoder, batches: list[pa.RecordBatch]) -> dict[str, list[Any]]:
    """Return the headers of each record and its place, by value."""
    found: dict[str, list[Any]] = {}
    for batches_of in (*(encoder.gather_rows(batch) for batch in batches), encoder.finish()):
        for where, data, _ in batches_of:
            for record in decode(data, start_offset=0).batch.to_pylist():
                headers = [(header["key"], header["value"]) for header in record["headers"] or ()]
                found[record["value"].decode()] = [where.topic, headers]
    return found


def test_the_index_counts_the_rows_of_the_task_whatever_topic_and_batch_they_come_in() -> None:
    columns = SinkColumns(topic=0, value=1)
    batches = [
        pa.record_batch({"topic": ["a", "b"], "value": [b"0", b"1"]}),
        pa.record_batch({"topic": ["b", "a"], "value": [b"2", b"3"]}),
    ]
    runs = []
    # Gathered together, or each encoded alone: the same.
    for cut in (False, True):
        encoder = RecordBatchEncoder(options(topic=None), columns, Partitions(3), ORIGIN)
        found: dict[str, list[Any]] = {}
        for group in [[batches[0]], [batches[1]]] if cut else [batches]:
            found |= encoded_headers(encoder, group)
        runs.append(found)
    assert (
        runs[0]
        == runs[1]
        == {
            "0": ["a", identity(0)],
            "1": ["b", identity(1)],
            "2": ["b", identity(2)],
            "3": ["a", identity(3)],
        }
    )


def test_gathered_bytes_include_the_identity_headers_of_short_rows() -> None:
    rows = pa.record_batch({"value": pa.array([b""] * 10_000, pa.binary())})
    plain = RecordBatchEncoder(options(), SinkColumns(value=0), Partitions(1))
    assert sum(len(list(plain.gather_rows(rows))) for _ in range(3)) == 0
    encoder = RecordBatchEncoder(options(), SinkColumns(value=0), Partitions(1), ORIGIN)
    assert sum(len(list(encoder.gather_rows(rows))) for _ in range(3)) > 0


def test_identity_headers_are_not_added_without_the_option() -> None:
    assert task_origin(options(identity_headers=False), "q", 1, 2) is None
    assert task_origin(options(), "q", 1, 2) == TaskOrigin("q", 1, 2)
    encoder = RecordBatchEncoder(options(), SinkColumns(value=0), Partitions(1))
    assert encoded_headers(encoder, [pa.record_batch({"value": [b"v"]})]) == {"v": ["t", []]}


@pytest.mark.parametrize(
    "factory",
    [
        KafkaDataWriterFactory(options(), SinkColumns(value=0)),
        KafkaOutboxWriterFactory(options(), ExactlyOnceOptions(), SinkColumns(value=0)),
    ],
    ids=["at least once", "exactly once"],
)
def test_a_task_that_does_not_know_its_query_is_refused(factory: KafkaDataWriterFactory) -> None:
    with pytest.raises(OptionError) as caught:
        factory.of_query(None).createWriter(0, 1, 2)
    assert said(caught.value) == (
        "[QUERY_ID_UNKNOWN] Option 'identityHeaders' is set, but Spark does not tell the task its query and "
        "micro-batch (the local properties sql.streaming.queryId and streaming.sql.batchId). Nothing of this task was "
        "written. Hint: Set option 'identityHeaders' to false, and put an id into the rows instead."
    )
    factory.of_query("q").createWriter(0, 1, 2).close()


def test_each_batch_write_has_an_id_of_its_own_and_a_stream_none_before_its_query_runs() -> None:
    columns = SinkColumns(value=0)
    info = PhysicalWriteInfo(2)
    first, second = (KafkaBatchWrite(options(), columns).createBatchWriterFactory(info) for _ in range(2))
    assert isinstance(first, KafkaDataWriterFactory)
    assert isinstance(second, KafkaDataWriterFactory)
    assert first.query_id
    assert first.query_id != second.query_id
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301 - our own bytes
    stream = KafkaStreamingWrite(options(), columns).createStreamingWriterFactory(PhysicalWriteInfo())
    assert isinstance(stream, KafkaDataWriterFactory)
    assert stream.query_id is None
