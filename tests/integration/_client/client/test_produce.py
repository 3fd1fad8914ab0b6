"""The producer against a real broker; what it wrote is read with kafka-python."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

from kit.fixtures.broker import FREEZE, TopicMaker
from kit.independent_client import Record, consume
from kit.reading import options_for
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce import identity
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka.errors import DeliveryError
from pyspark_kafka.records import HEADERS_TYPE, RecordColumns, encode_rows
from pyspark_kafka.testing import EmbeddedKafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def batch_of(values: list[bytes | None], *, compression: str = "none", **columns: Any) -> bytearray:
    columns = {"key": None, **columns}
    prepared = RecordColumns(columns.pop("key"), pa.array(values, pa.binary()), **columns)
    data, taken = encode_rows(prepared, None, 0, len(values), max_batch_bytes=1 << 24, compression=compression)
    assert taken == len(values)
    return data


def values_by_partition(records: list[Record]) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for record in sorted(records, key=lambda record: record.offset):
        found.setdefault(record.partition or 0, []).append(record.value)
    return found


@pytest.mark.parametrize("compression", CODECS)
def test_another_client_reads_what_was_written_with_every_codec(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, compression: str
) -> None:
    topic = make_topic(2)
    keys = [b"k1", None, b"", b"k4"]
    values = [b"v" * 5_000, b"", None, "ü".encode()]
    headers: list[Any] = [[("a", b"1"), ("a", None)], None, [], [("é", b"")]]
    times = [1_700_000_000_000, 1_700_000_000_001, 0, 1_600_000_000_000]
    with Producer(client, ProducerOptions(compression=compression)) as producer:
        assert producer.partition_count(topic) == 2
        for _ in range(3):
            data = batch_of(
                values,
                compression=compression,
                key=pa.array(keys, pa.binary()),
                headers=pa.array(headers, HEADERS_TYPE),
                timestamps=pa.array(times, pa.int64()),
            )
            producer.send_batch(TopicPartition(topic, 1), data, 4)
        producer.flush()
        assert (producer.metrics.records, producer.metrics.batches) == (12, 3)
    assert consume(bootstrap_servers, topic, 12) == [
        Record(keys[row], values[row], 1, times[row], headers[row] or [], offset=4 * repeat + row)
        for repeat in range(3)
        for row in range(4)
    ]


@pytest.mark.parametrize("version", [3, 7, 8, 9, 11])
def test_older_versions_of_the_request_are_taken_too(
    client: KafkaClient,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity, "MAX_PRODUCE_VERSION", version)
    topic = make_topic(3)
    with Producer(client, ProducerOptions()) as producer:
        for number in range(30):
            # Above and below the size from which a batch is a piece of its own.
            value = b"%d" % number + b"." * (40_000 * (number % 2))
            producer.send_batch(TopicPartition(topic, number % 3), batch_of([value]), 1)
        producer.flush()
    found = values_by_partition(consume(bootstrap_servers, topic, 30))
    assert {key: [int((value or b"").rstrip(b".")) for value in values] for key, values in found.items()} == {
        partition: list(range(partition, 30, 3)) for partition in range(3)
    }


@pytest.mark.parametrize("acks", [0, 1])
def test_weaker_acknowledgements_write_too(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, acks: int
) -> None:
    topic = make_topic()
    with Producer(client, ProducerOptions(acks=acks, idempotence=False)) as producer:
        for number in range(10):
            producer.send_batch(TopicPartition(topic, 0), batch_of([b"%d" % number]), 1)
        producer.flush()
    # Nothing tells when a write without acknowledgement is done; the next request on the same connection comes after.
    with Producer(client, ProducerOptions()) as producer:
        producer.send_batch(TopicPartition(topic, 0), batch_of([b"10"]), 1)
        producer.flush()
    found = values_by_partition(consume(bootstrap_servers, topic, 11))
    assert found == {0: [b"%d" % number for number in range(11)]}


def test_two_producers_do_not_take_each_other_s_batches_for_duplicates(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    with (
        KafkaClient(options_for(bootstrap_servers)) as other,
        Producer(client, ProducerOptions()) as first,
        Producer(other, ProducerOptions()) as second,
    ):
        for _ in range(5):
            for producer in (first, second):
                producer.send_batch(TopicPartition(topic, 0), batch_of([b"same"]), 1)
                producer.flush()
    consume(bootstrap_servers, topic, 10)


def send_numbered(producer: Producer, topic: str, numbers: range, partitions: int) -> None:
    for number in numbers:
        data = batch_of([b"%d-%d" % (number, row) for row in range(100)], compression="lz4")
        producer.send_batch(TopicPartition(topic, number % partitions), data, 100)


def expected_values(batches: int, partitions: int) -> dict[int, list[bytes | None]]:
    return {
        partition: [b"%d-%d" % (number, row) for number in range(partition, batches, partitions) for row in range(100)]
        for partition in range(partitions)
    }


@pytest.mark.parametrize("how", ["kill", "stop", FREEZE])
def test_records_are_there_once_and_in_order_when_the_broker_goes_away_in_the_middle(how: str) -> None:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t", 3)
        options = options_for(kafka.bootstrap_servers, connect_timeout_ms=3_000)
        producer_options = ProducerOptions(request_timeout_ms=1_500, delivery_timeout_ms=100_000)
        with KafkaClient(options) as client, Producer(client, producer_options) as producer:
            send_numbered(producer, "t", range(300), 3)
            # Requests are in flight now, and nobody has looked for their responses.
            if how == "freeze":
                kafka.pause()
                send_numbered(producer, "t", range(300, 600), 3)
                # The producer looks for responses from here on: a request must time out before the broker resumes.
                back = threading.Timer(6.0, kafka.resume)
                back.start()
            else:
                getattr(kafka, how)()
                back = threading.Timer(0.0, kafka.start)
                back.start()
                send_numbered(producer, "t", range(300, 600), 3)
            producer.flush()
            back.join()
            assert producer.metrics.records == 60_000
            assert producer.metrics.retries > 0
        assert values_by_partition(consume(kafka.bootstrap_servers, "t", 60_000)) == expected_values(600, 3)


def test_broker_that_stays_away_fails_delivery_with_counts_and_its_address() -> None:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        options = options_for(kafka.bootstrap_servers, connect_timeout_ms=1_000)
        with (
            KafkaClient(options) as client,
            Producer(client, ProducerOptions(delivery_timeout_ms=5_000)) as producer,
        ):
            send_numbered(producer, "t", range(1), 1)
            producer.flush()
            kafka.kill()
            send_numbered(producer, "t", range(1, 3), 1)
            started = time.monotonic()
            with pytest.raises(DeliveryError) as raised:
                producer.flush()
            # Not after the time of a request by default, 30 s, nor that of a delivery, 120 s.
            assert time.monotonic() - started < 25
    text = str(raised.value)
    assert text.startswith("[DELIVERY_TIMED_OUT] Writing to t-0")
    assert kafka.bootstrap_servers in text
    assert "Records of t-0: delivered 100, " in text
    parameters = raised.value.parameters
    assert int(parameters["not_delivered"]) + int(parameters["unknown"]) == 200


def test_batch_above_the_topic_s_limit_names_both_limits(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(1, {"max.message.bytes": "1000"})
    with Producer(client, ProducerOptions()) as producer:
        producer.send_batch(TopicPartition(topic, 0), batch_of([b"small"]), 1)
        producer.send_batch(TopicPartition(topic, 0), batch_of([b"x" * 2_000]), 1)
        with pytest.raises(DeliveryError) as raised:
            producer.flush()
    text = str(raised.value)
    assert raised.value.condition == "MESSAGE_TOO_LARGE"
    for fact in (
        "kafka.max.request.size",
        "max.message.bytes",
        "delivered 1, not delivered 1, unknown 0",
        f"{topic}-0",
    ):
        assert fact in text


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_batches_above_the_topic_s_limit_are_cut(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, compression: str
) -> None:
    topic = make_topic(1, {"max.message.bytes": "5000"})
    values = [b"%05d" % number + random.Random(number).randbytes(number % 400) for number in range(3_000)]
    with Producer(client, ProducerOptions(compression=compression)) as producer:
        for start in range(0, 3_000, 500):
            batch = batch_of([*values[start : start + 500]], compression=compression)
            producer.send_batch(TopicPartition(topic, 0), batch, 500)
        producer.flush()
    assert [record.value for record in consume(bootstrap_servers, topic, 3_000)] == values


def test_topic_that_does_not_exist_is_named(client: KafkaClient) -> None:
    with Producer(client, ProducerOptions(), topic_timeout_ms=2_000) as producer:
        producer.send_batch(TopicPartition("no-such-topic", 0), batch_of([b"a"]), 1)
        with pytest.raises(DeliveryError, match=r"^\[UNKNOWN_TOPIC\] .*'no-such-topic' does not exist"):
            producer.flush()


def test_partition_that_does_not_exist_is_named(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(2)
    with Producer(client, ProducerOptions(), topic_timeout_ms=2_000) as producer:
        producer.send_batch(TopicPartition(topic, 2), batch_of([b"a"]), 1)
        with pytest.raises(DeliveryError, match=f"'{topic}' has no partition 2"):
            producer.flush()


def test_record_without_key_in_a_compacted_topic_is_named(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(1, {"cleanup.policy": "compact"})
    data = batch_of([b"a", b"b", b"c"], key=pa.array([b"1", None, b"3"], pa.binary()))
    with Producer(client, ProducerOptions()) as producer:
        producer.send_batch(TopicPartition(topic, 0), data, 3)
        with pytest.raises(
            DeliveryError, match=r"^\[INVALID_RECORD\] .*Refused: record 1 of the batch: .*not delivered 3"
        ):
            producer.flush()


def test_record_time_that_the_topic_refuses_names_its_options(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(1, {"message.timestamp.before.max.ms": "1000"})
    with Producer(client, ProducerOptions()) as producer:
        producer.send_batch(TopicPartition(topic, 0), batch_of([b"a"], timestamp_ms=1_000), 1)
        with pytest.raises(DeliveryError, match=r"^\[INVALID_TIMESTAMP\] .*message\.timestamp\.before\.max\.ms"):
            producer.flush()


def test_hundreds_of_thousands_of_records_are_written_in_seconds(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(4)
    # A leader is known a moment before it takes writes.
    with Producer(client, ProducerOptions()) as producer:
        for partition in range(4):
            producer.send_batch(TopicPartition(topic, partition), batch_of([b"first"]), 1)
        producer.flush()
    noise = random.Random(7)
    columns = RecordColumns(None, pa.array([noise.randbytes(100) for _ in range(10_000)], pa.binary()))
    started = time.monotonic()
    with Producer(client, ProducerOptions()) as producer:
        for number in range(40):
            data, taken = encode_rows(columns, None, 0, 5_000, max_batch_bytes=1 << 20, compression="lz4")
            producer.send_batch(TopicPartition(topic, number % 4), data, taken)
        producer.flush()
        assert producer.metrics.records == 200_000
        assert producer.metrics.retries == 0
    # The usual time is a tenth of a second; the bound only tells a stall from a slow machine.
    assert time.monotonic() - started < 10
