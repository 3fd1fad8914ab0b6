"""How rows become record batches, over a producer in memory."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kit.spans import KeptTracer
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.traces.steps import inside
from pyspark_kafka._client.client.produce.pool import ProducerSettings
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions, TraceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage
from pyspark_kafka._connector.sink.driver.at_least_once import KafkaBatchWrite, KafkaStreamingWrite
from pyspark_kafka._connector.sink.executor import task_producer
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.sink.executor.identity_headers import NAMES, TaskOrigin
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.errors import DeliveryError, RecordError
from pyspark_kafka.records import decode, murmur2_partitions

MIB = 1 << 20


class FakeProducer:
    """Keeps what it is given.

    Attributes:
        counts: partitions of each topic; 2 for one that is not named.
        available: those that are led, where that is known.
        sent: (where, records, bytes) of every batch, in order.
        events: what happened, by name.
        fail_on: the name of a call that fails.
        buffer_bytes: expected of whoever borrows it.
    """

    def __init__(self) -> None:
        self.buffer_bytes = 32 * MIB
        self.counts: dict[str, int] = {}
        self.available: dict[str, tuple[int, ...]] = {}
        self.sent: list[tuple[TopicPartition, list[dict[str, Any]], int]] = []
        self.events: list[str] = []
        self.fail_on = ""

    def partition_count(self, topic: str, *, beyond: int) -> int:
        self._note(f"count {topic}" if beyond < 2 else f"count {topic} beyond {beyond}")
        return self.counts.get(topic, 2)

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        return self.available.get(topic, ())

    def send_batches(self, batches: list[tuple[TopicPartition, bytearray, int]]) -> None:
        for batch in batches:
            self.send_batch(*batch, at_once=False)
        self._note("send all")

    def poll(self, *, everything: bool) -> None:
        if everything:
            self._note("poll everything")

    def send_batch(
        self, topic_partition: TopicPartition, data: bytearray, record_count: int, *, at_once: bool = True
    ) -> None:
        self._note("send" if at_once else "queue")
        records = decode(data, start_offset=0).batch.to_pylist()
        assert len(records) == record_count
        self.sent.append((topic_partition, records, len(data)))

    def flush(self) -> None:
        self._note("flush")

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event == self.fail_on:
            raise DeliveryError("not delivered", condition="DELIVERY_TIMED_OUT")

    def values(self, topic: str, partition: int) -> list[bytes]:
        where = TopicPartition(topic, partition)
        return [record["value"] for found, records, _ in self.sent if found == where for record in records]


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    fake = FakeProducer()

    @contextmanager
    def borrow(settings: ProducerSettings) -> Iterator[FakeProducer]:
        assert (settings.buffer_bytes, settings.topic_timeout_ms) == (fake.buffer_bytes, 15_000)
        fake.events.append("borrow")
        try:
            yield fake
        finally:
            fake.events.append("return")

    monkeypatch.setattr(task_producer, "borrow_producer", borrow)
    return fake


def write_options(topic: str | None = "t", **producer: Any) -> WriteOptions:
    return WriteOptions(ConnectionOptions((("not-asked", 9092),)), topic, ProducerOptions(**producer))


def writer_of(columns: SinkColumns, topic: str | None = "t", **producer: Any) -> KafkaDataWriter:
    return KafkaDataWriter(write_options(topic, **producer), columns)


def rows_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def values_of(*values: bytes | None) -> pa.RecordBatch:
    return rows_of(value=pa.array(values, pa.binary()))


VALUE_ONLY = SinkColumns(value=0)


def test_keys_values_and_headers_arrive_as_they_are(producer: FakeProducer) -> None:
    headers = pa.array(
        [[("h", b"1"), ("h", None)], None, []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    writer = writer_of(SinkColumns(headers=0, key=1, value=3))
    producer.counts["t"] = 1
    writer.write(
        rows_of(headers=headers, key=pa.array(["k", None, ""]), other=pa.array([1, 2, 3]), value=[b"v", None, b""])
    )
    assert writer.commit() == KafkaCommitMessage(3, producer.sent[0][2])
    ((where, records, _),) = producer.sent
    assert where == TopicPartition("t", 0)
    assert [(r["key"], r["value"], r["headers"]) for r in records] == [
        (b"k", b"v", [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]),
        (None, None, None),
        (b"", b"", None),
    ]


def typed_columns(**others: int) -> SinkColumns:
    """Keys in Avro as strings, values as records with a number; the id of the schema in a header."""
    key = RegisteredSchema("AVRO", '"string"', schema_id=7)
    record = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
    value = RegisteredSchema("AVRO", record, schema_id="0123abcd-0123-abcd-0123-abcd0123abcd")
    return SinkColumns(
        value=1,
        key=0,
        key_format=ColumnFormat("avro", "confluent", pa.string(), key),
        value_format=ColumnFormat("avro", "confluentHeader", pa.struct([("a", pa.int64())]), value),
        **others,
    )


def typed_rows(*rows: tuple[str | None, dict[str, Any] | None]) -> pa.RecordBatch:
    return rows_of(
        key=pa.array([key for key, _ in rows], pa.string()),
        value=pa.array([value for _, value in rows], pa.struct([("a", pa.int64())])),
    )


def test_typed_keys_are_hashed_as_the_bytes_that_are_sent(producer: FakeProducer) -> None:
    producer.counts["t"] = 50
    writer = writer_of(typed_columns())
    writer.write(typed_rows(*[(f"key {number}", {"a": number}) for number in range(100)]))
    writer.commit()
    found = [(where.partition, record["key"]) for where, records, _ in producer.sent for record in records]
    assert len(found) == 100
    assert {key[:5] for _, key in found} == {b"\0\0\0\0\x07"}
    keys = pa.array([key for _, key in found], pa.binary())
    assert [partition for partition, _ in found] == murmur2_partitions(keys, 50).to_pylist()


def test_nothing_of_an_arrow_batch_is_sent_if_one_of_its_rows_does_not_fit(producer: FakeProducer) -> None:
    writer = writer_of(typed_columns())
    writer.write(typed_rows(("k", {"a": 1}), ("k", None)))
    writer.flushNow()
    with pytest.raises(RecordError, match=r"Row 3 of the task, .* column 'value', field 'a': it is null"):
        writer.write(typed_rows(("k", {"a": 2}), ("k", {"a": None}), ("k", {"a": 3})))
    writer.abort()
    assert [record["value"] for _, records, _ in producer.sent for record in records] == [b"\x02", None]


def test_identity_headers_stand_behind_those_of_a_schema(producer: FakeProducer) -> None:
    producer.counts["t"] = 1
    writer = KafkaDataWriter(write_options(), typed_columns(), TaskOrigin("q", 3, 1))
    writer.write(typed_rows(("k", {"a": 1})))
    writer.write(typed_rows(("k", None)))
    writer.commit()
    ((_, records, _),) = producer.sent
    names = [[each["key"] for each in record["headers"]] for record in records]
    assert names == [["__value_schema_id", *NAMES], list(NAMES)]
    assert [record["headers"][-1]["value"] for record in records] == [b"0", b"1"]


def test_rows_of_one_partition_keep_their_order_over_batches(producer: FakeProducer) -> None:
    writer = writer_of(SinkColumns(value=0, partition=1), batch_size=300)
    numbers = [*range(500)]
    for at in range(0, 500, 50):
        part = numbers[at : at + 50]
        writer.write(
            rows_of(value=[b"%05d" % n for n in part], partition=pa.array([n * 7 % 2 for n in part], pa.int32()))
        )
    assert writer.commit().records == 500
    for partition in (0, 1):
        assert producer.values("t", partition) == [b"%05d" % n for n in numbers if n * 7 % 2 == partition]
    assert all(size <= 300 for _, _, size in producer.sent)


def test_rows_are_sent_when_enough_are_gathered_and_the_rest_at_commit(producer: FakeProducer) -> None:
    writer = writer_of(VALUE_ONLY)
    quarter = values_of(*[b"x" * 1_024] * 1_024)
    for _ in range(3):
        writer.write(quarter)
    assert producer.events == []
    writer.write(quarter)
    assert "send" in producer.events
    assert sum(len(records) for _, records, _ in producer.sent) == 4_096
    writer.write(values_of(b"last"))
    sent = len(producer.sent)
    assert writer.commit().records == 4_097
    assert len(producer.sent) == sent + 1
    assert producer.events[-1] == "flush"


def test_gathered_rows_are_sent_by_flush_now_without_waiting_for_acknowledgements(producer: FakeProducer) -> None:
    writer = writer_of(VALUE_ONLY)
    writer.write(values_of(b"first"))
    writer.flushNow()
    assert [len(records) for _, records, _ in producer.sent] == [1]
    # Also beside requests in flight.
    assert producer.events[-1] == "send all"
    assert "flush" not in producer.events
    writer.flushNow()
    assert len(producer.sent) == 1
    assert writer.commit().records == 1


# 4 MiB while nothing is known of the topic; then 512 KiB a partition, at most half of the buffer.
@pytest.mark.parametrize(
    ("buffer_mib", "expected"),
    [pytest.param(32, [8, 40], id="default"), pytest.param(2, [8, 16, 24, 32, 40, 48, 56], id="less"), (40, [8, 48])],
)
def test_topics_of_many_partitions_gather_more_rows_within_a_bound(
    producer: FakeProducer, buffer_mib: int, expected: list[int]
) -> None:
    producer.counts["t"] = 1_000
    producer.buffer_bytes = buffer_mib * MIB
    options = replace(write_options("t"), max_unacknowledged_bytes=producer.buffer_bytes)
    writer = KafkaDataWriter(options, VALUE_ONLY)
    half_mib = values_of(*[b"x" * 1_024] * 512)
    sends_after: list[int] = []
    for number in range(1, 60):
        before = len(producer.sent)
        writer.write(half_mib)
        if len(producer.sent) > before:
            sends_after.append(number)
    assert sends_after == expected


def test_slice_counts_with_its_own_bytes(producer: FakeProducer) -> None:
    large = values_of(*[b"x" * 1_024] * 10_000)
    writer = writer_of(VALUE_ONLY)
    for start in range(100):
        writer.write(large.slice(start, 1))
    assert producer.events == []


def test_columns_that_share_buffers_count_each(producer: FakeProducer) -> None:
    column = values_of(*[b"x" * 1_024] * 1_024).column(0)
    writer = writer_of(SinkColumns(key=0, value=1))
    writer.write(rows_of(key=column, value=column))
    assert producer.events == []
    writer.write(rows_of(key=column, value=column))
    assert "send" in producer.events


def test_fields_that_share_buffers_count_each(producer: FakeProducer) -> None:
    column = values_of(*[b"x" * 100] * 1_024).column(0)
    fields = [pa.field(str(number), pa.binary()) for number in range(40)]
    writer = writer_of(VALUE_ONLY)
    writer.write(rows_of(value=column, not_read=pa.StructArray.from_arrays([column] * 40, fields=fields)))
    assert "send" in producer.events


def test_slices_of_a_batch_fill_a_partition_with_their_own_bytes(producer: FakeProducer) -> None:
    producer.counts["t"] = 4
    batch = values_of(*[b"x" * 50] * 1_000)
    writer = writer_of(VALUE_ONLY)
    for start in range(200):
        writer.write(batch.slice(start, 1))
        writer.flushNow()
    assert len({where for where, _, _ in producer.sent}) == 1


def test_a_task_without_rows_borrows_nothing(producer: FakeProducer) -> None:
    writer = writer_of(VALUE_ONLY)
    writer.write(values_of())
    assert writer.commit() == KafkaCommitMessage(0, 0)
    writer.close()
    assert producer.events == []


def test_a_record_above_the_batch_size_has_a_batch_of_its_own(producer: FakeProducer) -> None:
    producer.counts["t"] = 1
    writer = writer_of(VALUE_ONLY, batch_size=1_000, max_request_size=10_000)
    writer.write(values_of(b"a", b"b" * 5_000, b"c", b"d"))
    writer.commit()
    assert [len(records) for _, records, _ in producer.sent] == [1, 1, 2]
    assert producer.values("t", 0) == [b"a", b"b" * 5_000, b"c", b"d"]


def test_a_record_above_the_request_size_is_named_and_not_sent(producer: FakeProducer) -> None:
    producer.counts["t"] = 1
    writer = writer_of(VALUE_ONLY, batch_size=1_000, max_request_size=2_000)
    writer.write(values_of(b"a", b"b" * 5_000, b"c"))
    with pytest.raises(RecordError) as caught:
        writer.commit()
    text = str(caught.value)
    assert text.startswith("[RECORD_TOO_LARGE] Writing to topic 't': row 1 ")
    assert "2000" in text
    assert producer.values("t", 0) == [b"a"]
    assert "flush" not in producer.events


@pytest.mark.parametrize("wrong", [2, -1])
def test_a_partition_that_does_not_exist_is_named_and_nothing_is_sent(producer: FakeProducer, wrong: int) -> None:
    writer = writer_of(SinkColumns(value=0, partition=1))
    writer.write(rows_of(value=[b"a", b"b"], partition=pa.array([0, wrong], pa.int32())))
    with pytest.raises(RecordError) as caught:
        writer.commit()
    assert said(caught.value) == (
        f"[PARTITION_OUT_OF_RANGE] Writing to topic 't': row 1 is for partition {wrong}, but the topic has 2 "
        "partitions, counted from 0. The row was not sent. "
        "Hint: Correct column 'partition', leave it out, or add partitions to the topic."
    )
    assert producer.sent == []


def test_rows_go_to_the_topics_they_name_in_their_order(producer: FakeProducer) -> None:
    producer.counts = {"a": 1, "b": 1, "c": 1}
    topics = ["b", "a", "b", "c", "a", "b"]
    writer = writer_of(SinkColumns(topic=0, value=1), topic=None)
    writer.write(rows_of(topic=topics[:4], value=[b"0", b"1", b"2", b"3"]))
    writer.write(rows_of(topic=topics[4:], value=[b"4", b"5"]))
    assert writer.commit().records == 6
    for topic in "abc":
        assert producer.values(topic, 0) == [b"%d" % n for n in range(6) if topics[n] == topic]
    # Each topic is looked up once, however often it comes.
    assert sorted(event for event in producer.events if event.startswith("count")) == ["count a", "count b", "count c"]


def test_a_null_topic_is_an_error_and_none_of_the_rows_is_sent(producer: FakeProducer) -> None:
    writer = writer_of(SinkColumns(topic=0, value=1), topic=None)
    writer.write(rows_of(topic=pa.array(["a", None, None]), value=[b"0", b"1", b"2"]))
    with pytest.raises(RecordError) as caught:
        writer.commit()
    assert said(caught.value) == (
        "[KAFKA_NULL_TOPIC_IN_DATA] 2 of 3 rows have null in column 'topic', and the option 'topic' is not set. None "
        "of these rows was sent; earlier rows of the task may have been. Hint: Set the option 'topic' for all rows, or "
        "fill or filter the nulls."
    )
    assert producer.sent == []


def test_the_topic_option_makes_null_topics_of_rows_harmless(producer: FakeProducer) -> None:
    writer = writer_of(SinkColumns(value=1), topic="t")
    writer.write(rows_of(topic=pa.array([None, "x"]), value=[b"0", b"1"]))
    assert writer.commit().records == 2
    assert {where.topic for where, _, _ in producer.sent} == {"t"}


def test_aborted_writer_sends_nothing_more_and_returns_its_producer_once(producer: FakeProducer) -> None:
    writer = writer_of(VALUE_ONLY)
    writer.write(values_of(*[b"x" * 1_024] * 6_000))
    writer.write(values_of(b"gathered"))
    sent = len(producer.sent)
    writer.abort()
    writer.close()
    writer.close()
    assert len(producer.sent) == sent
    assert producer.events[0] == "borrow"
    assert producer.events[-1] == "return"


@pytest.mark.parametrize("call", ["send", "flush", "count t"])
def test_failed_delivery_is_raised_by_the_writer(producer: FakeProducer, call: str) -> None:
    producer.fail_on = call
    writer = writer_of(VALUE_ONLY)
    writer.write(values_of(b"a"))
    with pytest.raises(DeliveryError, match="not delivered"):
        writer.commit()
    writer.close()
    assert producer.events[-1] == "return"


def test_jobs_make_writers_from_plain_data_and_have_nothing_to_commit(producer: FakeProducer) -> None:
    batch, stream = (kind(write_options(), VALUE_ONLY) for kind in (KafkaBatchWrite, KafkaStreamingWrite))
    assert isinstance(batch, KafkaBatchWrite)
    assert isinstance(stream, KafkaStreamingWrite)
    assert not batch.useCommitCoordinator()
    assert not stream.useCommitCoordinator()
    info = PhysicalWriteInfo()
    for factory in (batch.createBatchWriterFactory(info), stream.createStreamingWriterFactory(info)):
        copy = pickle.loads(pickle.dumps(factory))  # noqa: S301 - our own bytes
        assert copy == factory
        writer = copy.createWriter(0, 7)
        writer.write(values_of(b"v"))
        message = writer.commit()
        assert pickle.loads(pickle.dumps(message)) == message == KafkaCommitMessage(1, message.encoded_bytes)  # noqa: S301
    batch.commit([])
    batch.abort([None])
    stream.commit(0, [])
    stream.abort(0, [None])
    assert len(producer.sent) == 2


@pytest.mark.parametrize("of_rows", [True, False])
def test_records_name_the_span_that_writes_them_behind_their_own_headers(of_rows: bool, producer: FakeProducer) -> None:
    producer.counts["t"] = 1
    tracer = KeptTracer()
    options = replace(write_options(), trace=TraceOptions("link"))
    own = [[("h", b"1")], [("traceparent", b"of a producer")]]
    headers = pa.array(own, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    named = []
    writer = KafkaDataWriter(options, SinkColumns(value=0, headers=1 if of_rows else -1), TaskOrigin("q", 3, 1))
    plain = KafkaDataWriter(options, SinkColumns(value=0, headers=1 if of_rows else -1))
    for each in (writer, plain):
        span = tracer.start("send")
        with inside(span):
            each.write(rows_of(value=[b"a", b"b"], headers=headers))
            each.commit()
        named.append(span.traceparent)
    found = [
        [(h["key"], h["value"]) for h in record["headers"]] for _, records, _ in producer.sent for record in records
    ]
    assert [len(headers) for headers in found] == ([6, 5, 2, 1] if of_rows else [5, 5, 1, 1])
    assert [headers[-1] for headers in found] == [("traceparent", named[number].encode()) for number in (0, 0, 1, 1)]


def test_records_of_a_writer_without_a_span_have_no_header(producer: FakeProducer) -> None:
    writer = KafkaDataWriter(replace(write_options(), trace=TraceOptions("link")), SinkColumns(value=0))
    writer.write(rows_of(value=[b"a"]))
    writer.commit()
    assert [record["headers"] for _, records, _ in producer.sent for record in records] == [None]
