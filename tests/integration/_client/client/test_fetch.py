"""Reading ranges from a real broker: exact cuts, transactions, trimmed and re-created logs, a broker that dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from kit.administration import create_topic, delete_records, delete_topics
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import options_for, read_range
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.pool import ClientPool
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import BrokerError, DataLossError, DeadlineError
from pyspark_kafka.testing import EmbeddedKafka

MIB = 1 << 20


# Also where a test starts a broker of its own.
def numbered(count: int, size: int = 0) -> list[Record]:
    return [Record(None, b"%d" % number + b"." * size, 0, timestamp_ms=1) for number in range(count)]


def read(client: KafkaClient, topic: str, start: int, end: int, fetch: FetchOptions | None = None) -> list[bytes]:
    """Return the values of a range of partition 0."""
    return [value for values in read_stepwise(client, topic, start, end, fetch) for value in values]


def read_stepwise(
    client: KafkaClient, topic: str, start: int, end: int, fetch: FetchOptions | None
) -> Iterator[list[bytes]]:
    for rows in read_range(client, OffsetRange(TopicPartition(topic, 0), start, end), fetch):
        yield [row["value"] or b"" for row in rows]


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_a_range_inside_batches_is_read_exactly(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, compression: str | None
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(500), compression_type=compression, batch_size=2_000, linger_ms=20)
    for start, end in ((0, 500), (0, 1), (499, 500), (123, 377)):
        assert read(client, topic, start, end) == [b"%d" % number for number in range(start, end)]


def test_a_log_of_many_fetches_is_read_completely(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(20_000, 1_000), batch_size=100_000, linger_ms=20)
    steps = list(read_stepwise(client, topic, 0, 20_000, FetchOptions(max_bytes_per_fetch=2 * MIB)))
    assert len(steps) >= 9
    assert [value for values in steps for value in values] == [record.value for record in numbered(20_000, 1_000)]


def test_a_batch_larger_than_the_fetch_size_comes_whole(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(3, 500_000), batch_size=600_000)
    fetch = FetchOptions(max_bytes_per_fetch=1_000, max_partition_fetch_bytes=1_000)
    assert [len(value) for value in read(client, topic, 0, 3, fetch)] == [500_001] * 3


def test_read_committed_gives_no_aborted_records_and_reaches_the_end(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"tx-{topic}")
    try:
        producer.init_transactions()
        for number, commit in enumerate([True, False, True, False]):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(topic, b"%d" % number, partition=0).get(timeout=PATIENCE_S)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    partition, end = TopicPartition(topic, 0), 16
    committed = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED)
    # Reading waits for the last marker, which is written after the producer has its answer.
    assert read(client, topic, 0, end, committed) == [b"0"] * 3 + [b"2"] * 3
    assert read(client, topic, 0, end) == [b"0"] * 3 + [b"1"] * 3 + [b"2"] * 3 + [b"3"] * 3
    assert list_offsets(client, {partition: Latest()}) == {partition: end}


def test_an_open_transaction_is_named_when_the_range_lies_behind_it(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"tx-{topic}")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).get(timeout=PATIENCE_S)
        fetch = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, poll_timeout_ms=2_000, max_wait_ms=50)
        with pytest.raises(DeadlineError) as caught:
            read(client, topic, 0, 1, fetch)
        producer.abort_transaction()
    finally:
        producer.close()
    text = str(caught.value)
    assert f"Reading {topic}-0 [0, 1): no progress at offset 0 for 2000 ms" in text
    assert "high watermark was 1 and its last stable offset 0" in text


def test_records_removed_before_the_read_give_the_bounds_of_the_log(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(100))
    delete_records(client, {TopicPartition(topic, 0): 40})
    with pytest.raises(OffsetOutOfRangeError) as caught:
        read(client, topic, 10, 60)
    error = caught.value
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (10, 40, 100)
    assert read(client, topic, 40, 60) == [b"%d" % number for number in range(40, 60)]


def test_a_position_beyond_the_log_gives_the_bounds_of_the_log(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(10))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        read(client, topic, 500, 600)
    assert (caught.value.log_start_offset, caught.value.log_end_offset) == (0, 10)


def test_a_topic_made_again_while_it_is_read_is_noticed(client: KafkaClient, bootstrap_servers: str) -> None:
    topic = f"recreated-{id(client)}"
    create_topic(client, topic)
    produce(bootstrap_servers, topic, numbered(2_000, 1_000), batch_size=20_000)
    steps = read_stepwise(client, topic, 0, 2_000, FetchOptions(max_bytes_per_fetch=300_000))
    assert next(steps)
    with KafkaClient(client.options) as other:
        delete_topics(other, [topic])
        create_topic(other, topic)
    produce(bootstrap_servers, topic, numbered(2_000, 1_000), batch_size=20_000)
    with pytest.raises(DataLossError, match=r"TOPIC_RECREATED.* was recreated"):
        list(steps)


def test_a_topic_that_does_not_exist_is_named(client: KafkaClient) -> None:
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 'not-there' does not exist"):
        read(client, "not-there", 0, 10)


def test_a_broker_that_dies_and_comes_back_costs_no_record_and_repeats_none() -> None:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        produce(kafka.bootstrap_servers, "t", numbered(3_000, 1_000), batch_size=20_000)
        options = options_for(kafka.bootstrap_servers)
        with KafkaClient(options) as client:
            steps = read_stepwise(client, "t", 0, 3_000, FetchOptions(max_bytes_per_fetch=300_000))
            found = next(steps) + next(steps)
            kafka.kill()
            kafka.restart()
            for values in steps:
                found += values
        assert found == [record.value for record in numbered(3_000, 1_000)]


@pytest.mark.full("Frozen brokers")
def test_a_frozen_broker_ends_the_read_with_the_place() -> None:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        produce(kafka.bootstrap_servers, "t", numbered(3_000, 1_000), batch_size=20_000)
        options = options_for(kafka.bootstrap_servers, request_timeout_ms=1_000, connect_timeout_ms=1_000)
        fetch = FetchOptions(max_bytes_per_fetch=300_000, poll_timeout_ms=5_000)
        with KafkaClient(options) as client:
            steps = read_stepwise(client, "t", 0, 3_000, fetch)
            next(steps)
            next(steps)
            kafka.pause()
            try:
                with pytest.raises(DeadlineError, match=r"\[FETCH_NO_PROGRESS\] Reading t-0 \[0, 3000\)"):
                    list(steps)
            finally:
                kafka.resume()


def test_a_warm_pool_reads_again_over_the_same_connections(make_topic: TopicMaker, bootstrap_servers: str) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(10))
    pool, options = ClientPool(), options_for(bootstrap_servers)
    with pool.borrow(options) as client:
        assert len(read(client, topic, 0, 10)) == 10
        before = {id(connection) for connection in client.connections.all()}
    with pool.borrow(options) as client:
        assert len(read(client, topic, 0, 10)) == 10
        assert {id(connection) for connection in client.connections.all()} == before
    pool.close()
