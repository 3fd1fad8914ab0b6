"""Writing rows as an executor does, against real brokers; what was written is read by an independent client."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from kit.administration import create_partitions
from kit.fixtures.broker import MortalBroker, TopicMaker
from kit.independent_client import Record, consume, consume_all
from kit.reading import options_for
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.identity import request_identity
from pyspark_kafka._client.client.produce.pool import drop_producers
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka.errors import DeliveryError, RecordError, TransportError
from pyspark_kafka.testing import EmbeddedKafka

# Also where a test has a broker of its own.
KIB, MIB = 1 << 10, 1 << 20
VALUE_ONLY = SinkColumns(value=0)


def writer_to(
    bootstrap_servers: str | ConnectionOptions, topic: str | None, columns: SinkColumns = VALUE_ONLY, **producer: Any
) -> KafkaDataWriter:
    if isinstance(bootstrap_servers, str):
        bootstrap_servers = options_for(bootstrap_servers)
    return KafkaDataWriter(WriteOptions(bootstrap_servers, topic, ProducerOptions(**producer)), columns)


def numbered(start: int, stop: int, size: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"%07d" % n + b"." * size for n in range(start, stop)], pa.binary())})


def by_partition(records: list[Record]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for record in sorted(records, key=lambda record: record.offset):
        found.setdefault(record.partition or 0, []).append(record.value or b"")
    return found


def test_every_row_is_there_once_and_in_order_within_its_partition(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=3)
    writer = writer_to(bootstrap_servers, topic, compression="lz4", batch_size=16 * KIB)
    try:
        for start in range(0, 20_000, 2_500):
            writer.write(numbered(start, start + 2_500, 400))
        assert writer.commit().records == 20_000
    finally:
        writer.close()
    records = consume(bootstrap_servers, topic, 20_000)
    assert Counter(r.value for r in records) == Counter(numbered(0, 20_000, 400).column(0).to_pylist())
    found = by_partition(records)
    # Sticky runs: every partition has its share, none of them out of order.
    assert sorted(found) == [0, 1, 2]
    assert all(values == sorted(values) for values in found.values())


@pytest.mark.full("Waits for limits of time")
def test_rows_that_come_slowly_are_not_counted_against_the_brokers(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=4)
    # Long enough for the brokers, and shorter than the pause of whoever makes the rows.
    writer = writer_to(bootstrap_servers, topic, delivery_timeout_ms=8_000, request_timeout_ms=6_000)
    try:
        for start in (0, 5_000):
            writer.write(numbered(start, start + 5_000, 1_000))
            time.sleep(8.5)
        assert writer.commit().records == 10_000
    finally:
        writer.close()
    assert len(consume(bootstrap_servers, topic, 10_000)) == 10_000


def test_a_partition_that_was_added_meanwhile_is_written_to_by_a_worker_that_knew_fewer(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=4)

    def write(writer: KafkaDataWriter, partition: int) -> None:
        rows = {"value": pa.array([b"p%d" % partition]), "partition": pa.array([partition], pa.int32())}
        writer.write(pa.record_batch(rows))

    def task(*partitions: int) -> None:
        writer = writer_to(bootstrap_servers, topic, SinkColumns(value=0, partition=1))
        try:
            for partition in partitions:
                write(writer, partition)
            writer.commit()
        finally:
            writer.close()

    task(0)
    with borrow_client(options_for(bootstrap_servers)) as client:
        create_partitions(client, {topic: 8})
    task(5)
    assert sorted(record.value or b"" for record in consume(bootstrap_servers, topic, 2)) == [b"p0", b"p5"]
    with pytest.raises(RecordError, match=r"PARTITION_OUT_OF_RANGE.*8"):
        task(8)


def test_rows_of_several_topics_and_partitions_go_where_they_say(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    first, second = make_topic(partitions=2), make_topic(partitions=3)
    rows = [(first if n % 3 else second, b"%03d" % n, n % 2) for n in range(60)]
    batch = pa.record_batch(
        {
            "topic": pa.array([topic for topic, _, _ in rows]),
            "value": pa.array([value for _, value, _ in rows], pa.binary()),
            "partition": pa.array([partition for _, _, partition in rows], pa.int32()),
        }
    )
    writer = writer_to(bootstrap_servers, None, SinkColumns(topic=0, value=1, partition=2))
    try:
        writer.write(batch.slice(0, 30))
        writer.write(batch.slice(30))
        writer.commit()
    finally:
        writer.close()
    for topic, count in ((first, 40), (second, 20)):
        expected = {
            partition: [value for to, value, at in rows if (to, at) == (topic, partition)] for partition in (0, 1)
        }
        assert by_partition(consume(bootstrap_servers, topic, count)) == expected


def test_a_task_without_rows_needs_no_broker() -> None:
    writer = writer_to("127.0.0.1:1", "t")
    writer.write(numbered(0, 0))
    assert writer.commit().records == 0
    writer.close()


def test_a_row_for_a_partition_that_does_not_exist_is_named_and_nothing_of_it_is_sent(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    batch = pa.record_batch({"value": pa.array([b"a", b"b"]), "partition": pa.array([0, 2], pa.int32())})
    writer = writer_to(bootstrap_servers, topic, SinkColumns(value=0, partition=1))
    writer.write(batch)
    with pytest.raises(RecordError) as caught:
        writer.commit()
    writer.abort()
    writer.close()
    assert str(caught.value).startswith(
        f"[PARTITION_OUT_OF_RANGE] Writing to topic '{topic}': row 1 is for partition 2"
    )
    assert consume(bootstrap_servers, topic, 0) == []


def test_an_aborted_writer_sends_no_more_and_leaves_a_client_that_works(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    connection = options_for(bootstrap_servers, client_id=f"abort-{topic}")
    writer = writer_to(connection, topic)
    # More than is gathered, so some of it is in flight when the task fails.
    for start in range(0, 6_000, 1_000):
        writer.write(numbered(start, start + 1_000, KIB))
    writer.abort()
    writer.close()
    writer.close()
    after = writer_to(connection, topic)
    after.write(pa.record_batch({"value": pa.array([b"after"])}))
    after.commit()
    after.close()
    # However much it is: the broker may still be about to store what was in flight.
    values = [record.value for record in consume_all(bootstrap_servers, topic)]
    assert values.count(b"after") == 1
    # What was in flight may be there; it has no gap and no repetition.
    written = [value for value in values if value != b"after"]
    assert written == numbered(0, len(written), KIB).column(0).to_pylist()


# -- brokers that go away


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_goes_away_in_the_middle_costs_no_row_and_doubles_none(
    mortal_broker: MortalBroker, how: str
) -> None:
    topic = f"write-{how}"
    mortal_broker.kafka.create_topic(topic, 2)
    # The broker is away for longer than one step of the client may take.
    connection = options_for(mortal_broker.bootstrap_servers, api_timeout_ms=1_000, connect_timeout_ms=1_000)
    writer = writer_to(
        connection, topic, batch_size=32 * KIB, delivery_timeout_ms=60_000, request_timeout_ms=3_000, compression="lz4"
    )
    try:
        for start in range(0, 5_000, 500):
            writer.write(numbered(start, start + 500, KIB))
        # Some of it is in flight now, and nobody has looked for the responses.
        assert writer._producer is not None
        getattr(mortal_broker.kafka, how)()
        mortal_broker.start_soon()
        for start in range(5_000, 10_000, 500):
            writer.write(numbered(start, start + 500, KIB))
        assert writer.commit().records == 10_000
    finally:
        writer.close()
        mortal_broker.wait()
    records = consume(mortal_broker.bootstrap_servers, topic, 10_000)
    assert sorted(r.value or b"" for r in records) == numbered(0, 10_000, KIB).column(0).to_pylist()
    assert all(values == sorted(values) for values in by_partition(records).values())


@pytest.mark.full("Waits for limits of time")
def test_broker_that_stays_away_ends_a_write_with_its_address_and_the_counts_of_rows(
    mortal_broker: MortalBroker,
) -> None:
    mortal_broker.kafka.create_topic("unwritten")
    short = {"api_timeout_ms": 1_000, "connect_timeout_ms": 1_000}
    times: dict[str, Any] = {"delivery_timeout_ms": 5_000, "request_timeout_ms": 2_000}
    writer = writer_to(options_for(mortal_broker.bootstrap_servers, **short), "unwritten", **times)
    never = writer_to(options_for(mortal_broker.bootstrap_servers, **short, client_id="never"), "unwritten", **times)
    try:
        for start in range(0, 6_000, 500):
            writer.write(numbered(start, start + 500, KIB))
        assert writer._producer is not None
        sent = writer._encoder.records
        assert 0 < sent < 6_000
        writer._producer.flush()
        mortal_broker.kafka.kill()
        began = time.monotonic()
        with pytest.raises(DeliveryError) as caught:
            writer.commit()
        # Not after the time of a request by default, 30 s, nor that of a delivery, 120 s.
        assert time.monotonic() - began < 25
        text = str(caught.value)
        assert text.startswith("[DELIVERY_TIMED_OUT] Writing to unwritten-0")
        assert mortal_broker.bootstrap_servers in text
        assert f"delivered {sent}, " in text

        never.write(numbered(0, 10))
        began = time.monotonic()
        with pytest.raises(TransportError, match=r"\[BOOTSTRAP_FAILED\].*Nothing was read or written") as unreached:
            never.commit()
        assert time.monotonic() - began < 25
        assert mortal_broker.bootstrap_servers in str(unreached.value)
    finally:
        writer.abort()
        writer.close()
        never.close()


def test_tasks_of_one_process_write_one_after_the_other_under_one_identity(
    bootstrap_servers: str, make_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counting(client: Any, topic: str) -> Any:
        asked.append(request_identity(client, topic))
        return asked[-1]

    monkeypatch.setattr("pyspark_kafka._client.client.produce.identity.request_identity", counting)
    drop_producers()
    topic = make_topic(partitions=2)
    for task in range(5):
        writer = writer_to(bootstrap_servers, topic, batch_size=4 * KIB)
        writer.write(numbered(task * 100, task * 100 + 100, size=100))
        assert writer.commit().records == 100
        writer.close()
    assert len(asked) == 1
    found = by_partition(consume(bootstrap_servers, topic, 500))
    assert sorted(value for values in found.values() for value in values) == [
        b"%07d" % number + b"." * 100 for number in range(500)
    ]
    for values in found.values():
        assert values == sorted(values)


def test_task_writes_to_a_topic_that_was_recreated_meanwhile(
    bootstrap_servers: str, make_topic: TopicMaker, kafka: EmbeddedKafka
) -> None:
    topic = make_topic()
    for _ in range(2):
        writer = writer_to(bootstrap_servers, topic)
        writer.write(numbered(0, 10))
        assert writer.commit().records == 10
        writer.close()
        kafka.delete_topic(topic)
        kafka.create_topic(topic)
    writer = writer_to(bootstrap_servers, topic)
    writer.write(numbered(0, 10))
    assert writer.commit().records == 10
    writer.close()
    assert len(consume(bootstrap_servers, topic, 10)) == 10
