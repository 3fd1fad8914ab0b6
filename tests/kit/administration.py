"""Topics of a real broker, changed as tests need it, mostly by kafka-python's admin client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient

from kit.waiting import eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.testing import administration


def create_topic(client: KafkaClient, name: str, partitions: int = 1) -> None:
    """Create a topic as the client's user, and wait until its partitions have leaders."""
    create_topics(client, [NewTopic(name, partitions)])


def delete_topics(client: KafkaClient, names: Iterable[str]) -> None:
    """Delete topics, and wait until brokers and the client do not know them."""
    for name in names:
        administration.delete_topic(_address(client), name)
        client.forget_topic(name)


def create_partitions(client: KafkaClient, counts: Mapping[str, int]) -> None:
    """Add partitions to topics, and wait until all have leaders."""
    _administer(client, lambda admin: admin.create_partitions(dict(counts)))

    def all_led() -> bool:
        topics = client.fetch_metadata(list(counts)).topics
        return all(sum(each.has_leader for each in topics[name].partitions) == count for name, count in counts.items())

    eventually(all_led)


def delete_records(client: KafkaClient, before: Mapping[TopicPartition, int]) -> None:
    """Delete the records below offsets, as retention does; -1: all of a partition."""
    wanted = {KafkaPartition(where.topic, where.partition): offset for where, offset in before.items()}
    _administer(client, lambda admin: admin.delete_records(wanted))


def _administer(client: KafkaClient, action: Callable[[Any], object]) -> None:
    admin: Any = KafkaAdminClient(bootstrap_servers=_address(client))
    try:
        action(admin)
    finally:
        admin.close()


def _address(client: KafkaClient) -> str:
    host, port = client.options.bootstrap_servers[0]
    return f"{host}:{port}"
