"""What is asked of brokers about topics, and creating one. Runs on: driver; blocks, within the client's deadlines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.admin.topic_configs import ConfigSource, fetch_topic_configs
from pyspark_kafka.client.admin.topics import create_topics
from pyspark_kafka.client.lookups.log_sizes import glance_at_log_sizes
from pyspark_kafka.client.lookups.missing_topics import explain_missing_topic
from pyspark_kafka.client.lookups.offsets_now import glance_at_offsets
from pyspark_kafka.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError
from pyspark_kafka.offsets import Earliest, Latest
from pyspark_kafka.operations.topics.descriptions import describe
from pyspark_kafka.operations.topics.sizes import LedLog, LogSizes
from pyspark_kafka.operations.topics.summaries import TopicChoice, summarize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka.client.admin.topic_configs import TopicConfig
    from pyspark_kafka.client.admin.topics import NewTopic
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.operations.topics.descriptions import TopicDescription
    from pyspark_kafka.operations.topics.summaries import TopicSummary


@dataclass(frozen=True, slots=True)
class Creation:
    """What became of a topic that was to be created.

    Attributes:
        created: whether it was created; if not, it was there already.
        topic: how it is now.
        differs: sentences about what is not as it was asked for, of a topic that was there already.
    """

    created: bool
    topic: TopicSummary
    differs: tuple[str, ...] = ()


def list_topics(client: KafkaClient, choice: TopicChoice) -> list[TopicSummary]:
    """Return the topics that are chosen, of those that the user may describe: brokers leave out the others silently.

    One request to any broker.

    Raises:
        ConnectorError: no broker responds, or the login is refused.
    """
    return summarize(client.fetch_metadata(None).topics.values(), choice)


def describe_topic(client: KafkaClient, name: str) -> TopicDescription:
    """Return what brokers tell about one topic, and what they do not.

    One request for metadata, two to each leader, one for the configuration.

    Raises:
        BrokerError: the topic does not exist, or the user may not describe it; names the likely one.
        ConnectorError: no broker responds, or the login is refused.
    """
    metadata = client.fetch_metadata([name])
    topic = _existing(client, metadata, name)
    missing: list[str] = []
    partitions = [each.topic_partition for each in topic.partitions]
    begins, first_failures = glance_at_offsets(client, dict.fromkeys(partitions, Earliest()), client.deadline())
    # Who has just been silent is not asked again.
    asked = [where for where in partitions if where in begins]
    ends, last_failures = glance_at_offsets(client, dict.fromkeys(asked, Latest()), client.deadline())
    failures = {**first_failures, **last_failures}
    for error, places in _by_cause(topic, failures):
        missing.append(_sentence(client, f"The offsets of {_partitions_text(places)} were not found out", error))
    configs: tuple[TopicConfig, ...] | None = None
    try:
        configs = fetch_topic_configs(client, name)
    except ConnectorError as error:
        missing.append(_sentence(client, "The configuration was not found out", error))
    if configs is not None:
        configs = tuple(each for each in configs if each.source is not ConfigSource.DEFAULT)
    return describe(topic, _addresses(metadata), begins, ends, configs, missing)


def fetch_sizes(client: KafkaClient, choice: TopicChoice) -> LogSizes:
    """Return how many bytes the logs of the chosen topics take on the disks of their leaders, and what is not known.

    One request for metadata, one to each leader.

    Raises:
        BrokerError: a topic that is named does not exist, or the user may not describe it.
        ConnectorError: no broker has told a size; the error is that of the first.
    """
    metadata = client.fetch_metadata(choice.names or None)
    topics = [_existing(client, metadata, name) for name in sorted(choice.names)] or [
        topic
        for topic in metadata.topics.values()
        if not topic.error_code and choice.takes(topic.name, is_internal=topic.is_internal)
    ]
    leaders = {each.topic_partition: each.leader_id for topic in topics for each in topic.partitions}
    by_broker: dict[int, list[PartitionMetadata]] = {}
    for topic in topics:
        for each in topic.partitions:
            if each.has_leader:
                by_broker.setdefault(each.leader_id, []).append(each)
    found, failures = glance_at_log_sizes(client, by_broker, client.deadline())
    if by_broker and len(failures) == len(by_broker):
        first = next(iter(failures.values()))
        if isinstance(first, AccessError):
            name_user(first, client.options)
        raise first
    addresses = _addresses(metadata)
    missing = [
        _sentence(
            client,
            f"The sizes of {len(by_broker[broker_id])} partitions that broker {broker_id} leads were not found out",
            error,
        )
        for broker_id, error in failures.items()
    ]
    leaderless = sum(leader_id < 0 for leader_id in leaders.values())
    if leaderless:
        missing.append(f"{leaderless} partitions have no leader, which could tell their sizes.")
    left_out = sum(
        each.topic_partition not in found
        for broker_id, led in by_broker.items()
        if broker_id not in failures
        for each in led
    )
    if left_out:
        missing.append(f"Brokers have left out {left_out} partitions that they lead: they move, or a disk is broken.")
    logs = {where: LedLog(leader_id, found.get(where)) for where, leader_id in leaders.items()}
    return LogSizes(logs, addresses, tuple(missing))


def create_topic(client: KafkaClient, topic: NewTopic, *, if_not_exists: bool = False) -> Creation:
    """Create a topic, and return how it is then.

    Args:
        client: the cluster.
        topic: what to create.
        if_not_exists: whether a topic of that name is left as it is; else it is an error.

    Raises:
        BrokerError: there is one already, or brokers refuse the topic.
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
        return _compared(_look(client, topic.name), topic)
    return Creation(created=True, topic=_look(client, topic.name))


def _look(client: KafkaClient, name: str) -> TopicSummary:
    topic = _existing(client, client.fetch_metadata([name]), name)
    (summary,) = summarize([topic], TopicChoice(frozenset([name])))
    return summary


def _compared(found: TopicSummary, wanted: NewTopic) -> Creation:
    differs = []
    if wanted.partitions not in (-1, found.partitions):
        differs.append(f"It has {found.partitions} partitions, not {wanted.partitions}.")
    if wanted.replication_factor not in (-1, found.replication_factor):
        differs.append(f"It has the replication factor {found.replication_factor}, not {wanted.replication_factor}.")
    return Creation(created=False, topic=found, differs=tuple(differs))


def _existing(client: KafkaClient, metadata: ClusterMetadata, name: str) -> TopicMetadata:
    topic = metadata.topics.get(name)
    error = None if topic is None else topic.error
    if topic is None or (error is not None and error.condition == "UNKNOWN_TOPIC"):
        raise explain_missing_topic(client, name)
    if error is not None:
        if isinstance(error, AccessError):
            name_user(error, client.options)
        raise error
    return topic


def _addresses(metadata: ClusterMetadata) -> dict[int, str]:
    return {broker_id: node.address for broker_id, node in metadata.brokers.items()}


def _by_cause(
    topic: TopicMetadata, failures: Mapping[TopicPartition, ConnectorError]
) -> list[tuple[ConnectorError, list[TopicPartition]]]:
    """Return what failed with its error; partitions of one leader that failed alike share the first one's."""
    leaders = {each.topic_partition: each.leader_id for each in topic.partitions}
    found: dict[tuple[int, str], tuple[ConnectorError, list[TopicPartition]]] = {}
    for where, error in failures.items():
        found.setdefault((leaders[where], error.condition), (error, []))[1].append(where)
    return list(found.values())


def _partitions_text(places: Collection[TopicPartition]) -> str:
    numbers = sorted(where.partition for where in places)
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    return f"{len(numbers)} partitions, {numbers[0]} first,"


def _sentence(client: KafkaClient, what: str, error: ConnectorError) -> str:
    if isinstance(error, AccessError):
        name_user(error, client.options)
    return f"{what}: {error}"
