"""Metadata, offsets and topic administration against a real broker."""

from __future__ import annotations

import uuid

import pytest
from kafka import KafkaProducer

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.queries.log_sizes import fetch_log_sizes
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka.errors import BrokerError


def test_metadata_describes_a_topic_and_the_broker_that_leads_it(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=12)
    found = client.fetch_metadata([topic])
    described = found.topics[topic]
    assert described.error is None
    assert described.topic_id is not None
    assert [partition.topic_partition.partition for partition in described.partitions] == list(range(12))
    assert {partition.leader_id for partition in described.partitions} == set(found.brokers)
    assert all(partition.leader_epoch >= 0 for partition in described.partitions)


def test_missing_topic_is_not_created_by_asking(client: KafkaClient) -> None:
    name = f"missing-{uuid.uuid4().hex}"
    for _ in range(2):
        error = client.fetch_metadata([name]).topics[name].error
        assert error is not None
        assert error.condition == "UNKNOWN_TOPIC"
    assert name not in client.fetch_metadata().topics


def test_offsets_are_found_by_end_and_by_time(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic(partitions=2)
    first, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    records = [Record(None, b"x", 0, timestamp_ms=1_000 * number) for number in range(1, 11)]
    produce(bootstrap_servers, topic, records)
    assert list_offsets(client, {first: Earliest(), empty: Earliest()}) == {first: 0, empty: 0}
    assert list_offsets(client, {first: Latest(), empty: Latest()}) == {first: 10, empty: 0}
    assert list_offsets(client, {first: AtTimestamp(4_001), empty: AtTimestamp(0)}) == {first: 4}
    assert list_offsets(client, {first: AtTimestamp(10_001)}) == {}


def test_end_under_read_committed_is_before_an_open_transaction(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, [Record(None, b"x", 0)] * 3)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"tx-{topic}")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).get(timeout=PATIENCE_S)
        assert list_offsets(client, {partition: Latest()}) == {partition: 4}
        assert list_offsets(client, {partition: Latest()}, IsolationLevel.READ_COMMITTED) == {partition: 3}
        producer.commit_transaction()
    finally:
        producer.close()


def test_log_sizes_are_those_that_brokers_store(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic(partitions=3)
    large, small, empty = (TopicPartition(topic, number) for number in range(3))
    produce(bootstrap_servers, topic, [Record(None, b"." * 1000, 0)] * 100 + [Record(None, b"x", 1)])
    found = fetch_log_sizes(client, [large, small, empty])
    assert 100_000 < found[large] < 120_000
    assert 0 < found[small] < 200
    assert found[empty] == 0


def test_missing_topic_or_partition_is_named(client: KafkaClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    with pytest.raises(BrokerError, match=rf"\[UNKNOWN_TOPIC\] Topic '{topic}' has no partition 5"):
        list_offsets(client, {TopicPartition(topic, 5): Latest()})
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 'not-there' does not exist"):
        list_offsets(client, {TopicPartition("not-there", 0): Latest()})


def test_topic_is_created_once(client: KafkaClient) -> None:
    topic = f"admin-{uuid.uuid4().hex[:8]}"
    create_topics(client, [NewTopic(topic, 2, configs={"retention.ms": "100000"})])
    assert len(client.fetch_metadata([topic]).topics[topic].partitions) == 2
    with pytest.raises(BrokerError, match=rf"\[TOPIC_ALREADY_EXISTS\] Creating topic '{topic}' failed"):
        create_topics(client, [NewTopic(topic)])


def test_topic_configuration_that_is_not_valid_is_refused_with_the_brokers_words(client: KafkaClient) -> None:
    with pytest.raises(BrokerError, match=r'\[INVALID_CONFIG\] Creating topic .* The broker said: ".*retention.ms'):
        create_topics(client, [NewTopic(f"bad-{uuid.uuid4().hex[:8]}", configs={"retention.ms": "soon"})])
