"""OffsetCommit: positions of a consumer group without members."""

from __future__ import annotations

import uuid

import pytest

from kit.brokers.requests import AskedBroker
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.group_commits import GroupCommits
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions


@pytest.fixture
def group_id() -> str:
    return f"contract-{uuid.uuid4().hex}"


def test_group_has_the_positions_that_were_set_last(broker: AskedBroker, group_id: str) -> None:
    topic = broker.make_topic(partitions=3)
    group = GroupCommits(broker.client, group_id)
    assert group.commit_positions({TopicPartition(topic, number): 10 * number for number in range(3)}) == {}
    # Back, too; what is not named stays.
    assert group.commit_positions({TopicPartition(topic, 2): 5}) == {}
    assert GroupPositions(broker.client, group_id).fetch() == {
        TopicPartition(topic, 0): GroupPosition(0),
        TopicPartition(topic, 1): GroupPosition(10),
        TopicPartition(topic, 2): GroupPosition(5),
    }


def test_partition_that_does_not_exist_is_refused_alone(broker: AskedBroker, group_id: str) -> None:
    topic = broker.make_topic()
    missing = TopicPartition(f"missing-{uuid.uuid4().hex}", 0)
    refused = GroupCommits(broker.client, group_id).commit_positions({missing: 3, TopicPartition(topic, 0): 4})
    assert {tp: error.condition for tp, error in refused.items()} == {missing: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert GroupPositions(broker.client, group_id).fetch() == {TopicPartition(topic, 0): GroupPosition(4)}


def test_no_positions_are_no_request(broker: AskedBroker, group_id: str) -> None:
    assert GroupCommits(broker.client, group_id).commit_positions({}) == {}
    assert GroupPositions(broker.client, group_id).fetch() == {}
