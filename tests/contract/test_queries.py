"""Metadata, ListOffsets, DescribeLogDirs and DescribeConfigs."""

from __future__ import annotations

import uuid

import pytest

from kit.brokers.requests import AskedBroker
from kit.record_batches import batch, plain_batch, record
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.queries.log_sizes import fetch_log_sizes
from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec
from pyspark_kafka._client.client.queries.offsets import list_offsets_now
from pyspark_kafka._client.client.queries.topic_configs import fetch_topic_configs

UNKNOWN_TOPIC = 3
LATEST, EARLIEST = -1, -2


def test_metadata_names_partitions_leaders_and_id_of_a_topic(broker: AskedBroker) -> None:
    name = broker.make_topic(partitions=3)
    found = broker.client.fetch_metadata([name])
    topic = found.topics[name]
    assert topic.error is None
    assert topic.topic_id not in (None, uuid.UUID(int=0))
    assert [partition.topic_partition.partition for partition in topic.partitions] == [0, 1, 2]
    assert {partition.leader_id for partition in topic.partitions} == set(found.brokers)
    assert {partition.leader_epoch for partition in topic.partitions} == {0}


def test_metadata_has_an_error_for_a_topic_that_does_not_exist(broker: AskedBroker) -> None:
    name = f"missing-{uuid.uuid4().hex}"
    topic = broker.client.fetch_metadata([name]).topics[name]
    assert (topic.error_code, topic.partitions) == (UNKNOWN_TOPIC, ())


def test_offsets_are_both_0_if_the_log_is_empty(broker: AskedBroker) -> None:
    name = broker.make_topic()
    assert broker.offset(name, EARLIEST).offset == 0
    assert broker.offset(name, LATEST).offset == 0


def test_offsets_are_the_ends_of_the_log(broker: AskedBroker) -> None:
    name = broker.make_topic()
    broker.produce(name, plain_batch(0, 5))
    broker.produce(name, plain_batch(0, 2))
    for timestamp, expected in ((EARLIEST, 0), (LATEST, 7)):
        found = broker.offset(name, timestamp)
        assert (found.error_code, found.offset, found.timestamp) == (0, expected, -1)


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(0, (0, 1_000)), (1_000, (0, 1_000)), (1_001, (1, 2_000)), (3_000, (2, 3_000))]
)
def test_offset_of_a_time_is_the_first_record_of_that_time_or_later(
    broker: AskedBroker, timestamp: int, expected: tuple[int, int]
) -> None:
    name = broker.make_topic()
    records = [record(delta, time_delta=1_000 * delta) for delta in range(3)]
    broker.produce(name, batch(records, base_time=1_000, max_time=3_000))
    found = broker.offset(name, timestamp)
    assert (found.error_code, (found.offset, found.timestamp)) == (0, expected)


def test_offset_of_a_time_is_none_if_all_records_are_older(broker: AskedBroker) -> None:
    name = broker.make_topic()
    broker.produce(name, batch([record(0)], base_time=1_000, max_time=1_000))
    found = broker.offset(name, 1_001)
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


def test_offset_has_an_error_if_the_partition_does_not_exist(broker: AskedBroker) -> None:
    name = broker.make_topic()
    found = broker.offset(name, LATEST, partition=1)
    assert (found.error_code, found.offset, found.timestamp) == (UNKNOWN_TOPIC, -1, -1)


def test_sizes_of_logs_are_the_bytes_of_their_batches(broker: AskedBroker) -> None:
    name = broker.make_topic(partitions=2)
    batches = [plain_batch(0, 5), plain_batch(0, 2)]
    for each in batches:
        broker.produce(name, each)
    where = [TopicPartition(name, number) for number in (0, 1)]
    assert fetch_log_sizes(broker.client, where) == {where[0]: sum(map(len, batches)), where[1]: 0}


def test_offsets_that_are_told_now_are_the_ends_of_the_log_and_errors(broker: AskedBroker) -> None:
    name = broker.make_topic(partitions=2)
    broker.produce(name, plain_batch(0, 5))
    one, two, missing = (TopicPartition(name, number) for number in (0, 1, 2))
    broker.client.fetch_metadata([name])
    specs: dict[TopicPartition, OffsetSpec] = {one: Latest(), two: Earliest(), missing: Latest()}
    offsets, failures = list_offsets_now(broker.client, specs, broker.client.deadline())
    assert offsets == {one: 5, two: 0}
    assert [(where, error.condition) for where, error in failures.items()] == [(missing, "LEADER_NOT_AVAILABLE")]


def test_configuration_of_a_topic_has_the_value_of_a_default(broker: AskedBroker) -> None:
    name = broker.make_topic()
    found = fetch_topic_configs(broker.client, [name], ("segment.jitter.ms",), broker.client.deadline())
    assert found == {name: {"segment.jitter.ms": "0"}}
