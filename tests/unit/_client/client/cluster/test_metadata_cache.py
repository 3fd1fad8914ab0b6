"""What is remembered of a cluster, for how long, and what remembering costs."""

from __future__ import annotations

import uuid

from kit.costs import processor_s
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache

T0 = TopicPartition("t", 0)


def cluster_of(*topics: str, partitions: int = 1, port: int = 9092) -> ClusterMetadata:
    return ClusterMetadata(
        {0: BrokerNode(0, "h", port)},
        {
            name: TopicMetadata(
                name,
                uuid.uuid4(),
                partitions=tuple(PartitionMetadata(TopicPartition(name, n), 0, 0) for n in range(partitions)),
            )
            for name in topics
        },
    )


def test_leader_is_not_returned_when_it_is_old() -> None:
    now = [0.0]
    cache = MetadataCache(5_000, clock=lambda: now[0])
    assert cache.led_partition(T0) is None
    cache.remember(cluster_of("t"))
    now[0] = 4.9
    assert cache.led_partition(T0) is not None
    now[0] = 5.0
    assert cache.led_partition(T0) is None


def test_leader_is_returned_when_it_was_just_heard_whatever_age_is_allowed() -> None:
    now = [0.0]
    cache = MetadataCache(0, clock=lambda: now[0])
    cache.remember(cluster_of("t"))
    now[0] = 0.9
    assert cache.led_partition(T0) is not None
    now[0] = 1.0
    assert cache.led_partition(T0) is None


def test_response_about_all_topics_forgets_those_that_are_gone() -> None:
    cache = MetadataCache(5_000)
    cache.remember(cluster_of("t", "u"))
    cache.remember(cluster_of("u"))
    assert cache.topic_id("t") is not None
    cache.remember(cluster_of("u"), all_topics=True)
    assert cache.topic_id("t") is None
    assert cache.partition(T0) is None


def test_partition_is_forgotten_when_its_topic_has_it_no_more() -> None:
    cache = MetadataCache(5_000)
    cache.remember(cluster_of("t", partitions=2))
    cache.remember(cluster_of("t"))
    assert cache.partition(TopicPartition("t", 1)) is None


def test_broker_is_returned_when_its_address_changed() -> None:
    cache = MetadataCache(5_000)
    assert cache.remember(cluster_of("t")) == []
    assert cache.remember(cluster_of("t")) == []
    assert cache.remember(cluster_of("t", port=9093)) == [0]


def test_leader_is_learned_if_it_is_newer_and_has_an_address() -> None:
    cache = MetadataCache(5_000)
    assert not cache.learn_leader(T0, 0, 1)
    cache.remember(cluster_of("t"))
    assert not cache.learn_leader(T0, 0, 0)
    assert not cache.learn_leader(T0, 7, 1)
    cache.learn_node(BrokerNode(7, "h", 9093))
    assert cache.learn_leader(T0, 7, 1)
    found = cache.led_partition(T0)
    assert found is not None
    assert (found.leader_id, found.leader_epoch) == (7, 1)


def test_cache_remembers_ten_thousand_topics_in_no_time_to_speak_of() -> None:
    found = cluster_of(*(f"topic-{number}" for number in range(10_000)), partitions=6)
    cache = MetadataCache(300_000)
    cache.remember(found)
    assert processor_s(lambda: cache.remember(found)) < 0.3
