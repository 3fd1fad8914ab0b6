"""Metadata as plain values: brokers, topics, partitions and their leaders. Pure: no sockets, no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.wire.completeness import match_entries, response_incomplete
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import BrokerError, ProtocolError

_NO_ID = UUID(int=0)
# Before Kafka 2.4, a broker that has not received a leader's new epoch returns the old one, and every request with that
# is refused (KAFKA-9212; Java `MetadataResponse.hasReliableLeaderEpochs`).
_FIRST_WITH_RELIABLE_EPOCHS = 9


def unknown_topic(
    topic: str, *, partition: int | None = None, cluster: str = "", nearest: str | None = None
) -> BrokerError:
    """Build the error for a topic, or one partition of it, that does not exist (or is hidden).

    Args:
        topic: the topic.
        partition: its partition, if the topic itself exists.
        cluster: the cluster that lacks it, in words; empty if that is not known.
        nearest: an existing topic that was perhaps meant.
    """
    place = f" in {cluster}" if cluster else ""
    missing = (
        f"Topic '{topic}' does not exist" if partition is None else f"Topic '{topic}' has no partition {partition}"
    )
    meant = f"Did you mean '{nearest}'? Otherwise check" if nearest else "Check"
    return BrokerError(
        f"{missing}{place}, or this user may not describe it: the brokers answered UNKNOWN_TOPIC_OR_PARTITION (3). "
        "Nothing was read or written.",
        code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        condition="UNKNOWN_TOPIC",
        hint=f"{meant} the spelling in option 'subscribe', 'assign' or 'topic'; create the topic first; "
        "a topic made a moment ago is known to all brokers after some seconds.",
        parameters={"topic": topic} if partition is None else {"topic": topic, "partition": partition},
    )


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker by the address that it advertises."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """The advertised `host:port`."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition and its leader.

    Attributes:
        topic_partition: the partition.
        leader_id: -1 while there is no leader.
        leader_epoch: -1 if the broker does not return it.
        replica_ids: the brokers that have a copy.
        in_sync_ids: those whose copy is complete.
        error_code: 0, or why the leader is not known, such as LEADER_NOT_AVAILABLE.
    """

    topic_partition: TopicPartition
    leader_id: int
    leader_epoch: int = -1
    replica_ids: tuple[int, ...] = ()
    in_sync_ids: tuple[int, ...] = ()
    error_code: int = 0

    @property
    def has_leader(self) -> bool:
        """Whether there is a leader to send requests to."""
        return self.leader_id >= 0


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic and its partitions.

    Attributes:
        name: the topic.
        topic_id: None if the broker is too old to have ids, or returns none.
        is_internal: whether it is one of the brokers' own.
        partitions: ordered by number.
        error_code: 0, or why there is no description, such as UNKNOWN_TOPIC_OR_PARTITION.
    """

    name: str
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: tuple[PartitionMetadata, ...] = ()
    error_code: int = 0

    @property
    def error(self) -> BrokerError | None:
        """The error of the code, naming the topic; not raised."""
        return self.error_for("")

    def error_for(self, purpose: Literal["Read", "Write", ""]) -> BrokerError | None:
        """Return the error of the code, naming the topic; not raised.

        Args:
            purpose: what the topic is looked up for: the right that is to be granted if this one is missing.
        """
        if self.error_code == ErrorCode.NONE:
            return None
        if self.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return unknown_topic(self.name)
        right = Right("Describe", "topic", self.name, granted_by=purpose)
        what = f"Looking up topic '{self.name}' failed"
        return broker_error(self.error_code, what, rights=(right,), topic=self.name)

    def partition(self, number: int) -> PartitionMetadata | None:
        """Return a partition by its number; None if there is none."""
        if 0 <= number < len(self.partitions) and self.partitions[number].topic_partition.partition == number:
            return self.partitions[number]
        # Brokers leave out partitions in some error states, so the index is not always the number.
        return next((found for found in self.partitions if found.topic_partition.partition == number), None)


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A response about the cluster and the requested topics.

    Attributes:
        brokers: by broker id.
        topics: by name; a topic that does not exist is among them, with its error code.
        cluster_id: None if the broker returns none.
        controller_id: -1 if unknown. With KRaft, any broker that passes requests on to the controller.
    """

    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return a partition; None if it is not described here."""
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partition(topic_partition.partition)

    def error_for(self, topic_partition: TopicPartition, purpose: Literal["Read", "Write"]) -> BrokerError | None:
        """Return why no request about a partition can be sent: no such topic or partition, or no leader; not raised.

        Args:
            topic_partition: of a requested topic.
            purpose: see `TopicMetadata.error_for`.
        """
        topic = self.topics.get(topic_partition.topic)
        error = unknown_topic(topic_partition.topic) if topic is None else topic.error_for(purpose)
        if error is not None or topic is None:
            return error
        found = topic.partition(topic_partition.partition)
        if found is None:
            return unknown_topic(topic_partition.topic, partition=topic_partition.partition)
        if found.has_leader:
            return None
        return broker_error(found.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"{topic_partition} has no leader")


def parse_metadata(
    response: Any, version: int, *, asked: Collection[str] | None = None, address: str = ""
) -> ClusterMetadata:
    """Turn a decoded Metadata response into values.

    Args:
        response: as kafka-python decodes it.
        version: the version of the response. Before `_FIRST_WITH_RELIABLE_EPOCHS`, the epochs of leaders are left out.
        asked: the topics of the request; other topics are left out. None if it was about all topics.
        address: of the broker, for errors.

    Raises:
        ProtocolError: a topic or broker has a name that no Kafka cluster has: it would change what logs show. Or a
            requested topic or a partition is missing, or there twice (condition RESPONSE_INCOMPLETE).
    """
    epochs = version >= _FIRST_WITH_RELIABLE_EPOCHS
    # Null only if a topic was requested by id, which this package does not do.
    entries = [(topic.name, topic) for topic in response.topics if topic.name is not None]
    wanted = asked if asked is not None else [name for name, _ in entries]
    topics: dict[str, TopicMetadata] = {}
    for name, topic in match_entries(wanted, entries, "Metadata", address).items():
        if asked is None or topic.error_code == ErrorCode.NONE:
            _check_name(name, "topic")
        by_number = {entry.partition_index: entry for entry in topic.partitions}
        if len(by_number) < len(topic.partitions):
            raise response_incomplete("Metadata", address, f"names a partition of topic '{name}' twice")
        numbers = sorted(by_number)
        if topic.error_code == ErrorCode.NONE and (not numbers or numbers[0] or numbers[-1] != len(numbers) - 1):
            # They would silently be neither read nor written to.
            raise response_incomplete("Metadata", address, f"lacks partitions of topic '{name}'")
        topics[name] = TopicMetadata(
            name=name,
            topic_id=topic.topic_id if topic.topic_id not in (None, _NO_ID) else None,
            is_internal=bool(topic.is_internal),
            partitions=tuple(_parse_partition(name, by_number[number], epochs=epochs) for number in numbers),
            error_code=topic.error_code,
        )
    for node in response.brokers:
        _check_name(node.host, "broker")
    return ClusterMetadata(
        brokers={node.node_id: BrokerNode(node.node_id, node.host, node.port, node.rack) for node in response.brokers},
        topics=topics,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
    )


def _check_name(name: str, of: str) -> None:
    if not name.isprintable():
        raise ProtocolError(
            f"The metadata of the cluster name a {of} {name!r}, with characters that are not printable. Nothing was "
            "used of them.",
            condition="RESPONSE_INVALID",
            hint="Check kafka.bootstrap.servers: the server is perhaps not a Kafka broker.",
            parameters={of: name},
        )


def _parse_partition(topic: str, entry: Any, *, epochs: bool) -> PartitionMetadata:
    return PartitionMetadata(
        topic_partition=TopicPartition(topic, entry.partition_index),
        leader_id=entry.leader_id,
        leader_epoch=entry.leader_epoch if epochs else -1,
        replica_ids=tuple(entry.replica_nodes or ()),
        in_sync_ids=tuple(entry.isr_nodes or ()),
        error_code=entry.error_code,
    )
