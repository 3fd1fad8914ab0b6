"""Topics of a cluster: listed, and created. Runs on: driver; blocks, within the client's deadlines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.admin.topics import create_topics
from pyspark_kafka.client.queries.missing_topics import explain_missing_topic
from pyspark_kafka.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, BrokerError

if TYPE_CHECKING:
    from pyspark_kafka.client.admin.topics import NewTopic
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import TopicMetadata


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in few words.

    Attributes:
        name: the topic.
        partitions: the number of its partitions.
        replication_factor: the number of replicas of a partition; the largest, if partitions differ.
        is_internal: whether the topic is internal to the brokers.
        under_replicated: the number of partitions with a replica that is not in sync.
        leaderless: the number of partitions without a leader, which can be neither read nor written.
    """

    name: str
    partitions: int
    replication_factor: int
    is_internal: bool
    under_replicated: int
    leaderless: int


@dataclass(frozen=True, slots=True)
class Creation:
    """The result of creating a topic.

    Attributes:
        created: whether it was created; if not, it existed already.
        topic: the topic as it is now.
        differs: sentences about each difference between an existing topic and the requested topic.
    """

    created: bool
    topic: TopicSummary
    differs: tuple[str, ...] = ()


def list_topics(client: KafkaClient) -> list[TopicSummary]:
    """Return all topics that the user may describe, by name: brokers leave out the others silently.

    One request to any broker. Topics that brokers report with an error are left out.

    Raises:
        ConnectorError: no broker responds, or the login is refused.
    """
    topics = client.fetch_metadata(None).topics.values()
    return sorted((summarize(each) for each in topics if not each.error_code), key=lambda summary: summary.name)


def create_topic(client: KafkaClient, topic: NewTopic, *, if_not_exists: bool = False) -> Creation:
    """Create a topic, and return how it is then.

    Args:
        client: the cluster.
        topic: what to create.
        if_not_exists: whether an existing topic of that name is compared; else it is an error.

    Raises:
        BrokerError: the topic exists already, or brokers refuse it.
        AccessError: not allowed.
        ConnectorError: brokers do not respond; the topic may have been created then.
    """
    try:
        create_topics(client, [topic])
    except BrokerError as error:
        if error.condition != "TOPIC_ALREADY_EXISTS":
            raise
        if not if_not_exists:
            error.change_hint("Choose another name, or pass --if-not-exists to leave the topic as it is.")
            raise
        found = _fetch_summary(client, topic.name)
        return Creation(created=False, topic=found, differs=tuple(_differences(found, topic)))
    return Creation(created=True, topic=_fetch_summary(client, topic.name))


def summarize(topic: TopicMetadata) -> TopicSummary:
    """Return the summary of a topic's metadata. Pure."""
    return TopicSummary(
        name=topic.name,
        partitions=len(topic.partitions),
        replication_factor=max((len(each.replica_ids) for each in topic.partitions), default=0),
        is_internal=topic.is_internal,
        under_replicated=sum(len(each.in_sync_ids) < len(each.replica_ids) for each in topic.partitions),
        leaderless=sum(not each.has_leader for each in topic.partitions),
    )


def _fetch_summary(client: KafkaClient, name: str) -> TopicSummary:
    topic = client.fetch_metadata([name]).topics.get(name)
    error = None if topic is None else topic.error
    if topic is None or (error is not None and error.condition == "UNKNOWN_TOPIC"):
        raise explain_missing_topic(client, name)
    if error is not None:
        if isinstance(error, AccessError):
            name_user(error, client.options)
        raise error
    return summarize(topic)


def _differences(found: TopicSummary, wanted: NewTopic) -> list[str]:
    differs = []
    if wanted.partitions not in (-1, found.partitions):
        differs.append(f"It has {found.partitions} partitions, not {wanted.partitions}.")
    if wanted.replication_factor not in (-1, found.replication_factor):
        differs.append(f"It has the replication factor {found.replication_factor}, not {wanted.replication_factor}.")
    return differs
