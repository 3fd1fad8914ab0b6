"""What a client remembers of its cluster: brokers, topics, leaders. No I/O but the clock.

What must not live here: asking (cluster), and when an error makes something known worthless. Layer: client.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.messages import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from pyspark_kafka.client.cluster.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
    from pyspark_kafka.model import TopicPartition

# What has been asked for a moment ago is used, whatever `metadata.max.age.ms` says: with 0, which is allowed, no answer
# would ever be young enough to be used.
_SHORTEST_AGE_MS = 1_000


@dataclass(slots=True)
class _Topic:
    """A topic as last heard."""

    described: TopicMetadata
    known_at: float
    # Built when one of its partitions is first asked for: an answer may describe all topics of a large cluster.
    by_number: dict[int, PartitionMetadata] | None = None

    def partitions(self) -> dict[int, PartitionMetadata]:
        if self.by_number is None:
            self.by_number = {found.topic_partition.partition: found for found in self.described.partitions}
        return self.by_number


class MetadataCache:
    """Brokers by id, and topics by name, each as the last answer about it had it.

    Remembering an answer costs a step for each broker and topic in it, none for each partition.

    Runs on: driver and executor. Not thread-safe.

    Args:
        max_age_ms: what is older is not given any more (`metadata.max.age.ms`).
        clock: monotonic seconds; tests give their own.
    """

    def __init__(self, max_age_ms: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age_s = max(max_age_ms, _SHORTEST_AGE_MS) / 1000
        self._clock = clock
        self._brokers: dict[int, BrokerNode] = {}
        self._topics: dict[str, _Topic] = {}

    @property
    def brokers(self) -> Mapping[int, BrokerNode]:
        """The brokers as last heard, by id."""
        return self._brokers

    def remember(self, found: ClusterMetadata, *, all_topics: bool = False) -> list[int]:
        """Take over an answer; give the ids of brokers that have another address now.

        Args:
            found: the answer.
            all_topics: whether it describes every topic; those that it leaves out are forgotten.
        """
        moved = [node.broker_id for node in found.brokers.values() if self.learn_node(node)]
        if found.brokers:
            self._brokers = dict(found.brokers)
        if all_topics:
            self._topics.clear()
        now = self._clock()
        for name, described in found.topics.items():
            self._topics[name] = _Topic(described, now)
        return moved

    def learn_node(self, node: BrokerNode) -> bool:
        """Take over a broker; give whether it had another address before."""
        known = self._brokers.get(node.broker_id)
        self._brokers[node.broker_id] = node
        return known is not None and (known.host, known.port) != (node.host, node.port)

    def forget(self, topic: str) -> None:
        """Drop what is known of a topic."""
        self._topics.pop(topic, None)

    def topic_id(self, topic: str) -> UUID | None:
        """Give the id of a topic; None if the brokers do not tell, or were not asked."""
        known = self._topics.get(topic)
        return None if known is None else known.described.topic_id

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Give a partition, however old what is known of it."""
        known = self._topics.get(topic_partition.topic)
        return None if known is None else known.partitions().get(topic_partition.partition)

    def led_partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Give a partition with its leader; None if it is not known, has none, or what is known is old."""
        known = self._topics.get(topic_partition.topic)
        if known is None or self._clock() - known.known_at >= self._max_age_s:
            return None
        found = known.partitions().get(topic_partition.partition)
        return found if found is not None and found.has_leader else None

    def learn_leader(self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int) -> bool:
        """Take over a leader that is newer than the known one and whose address is known; give whether it was."""
        known = self.partition(topic_partition)
        # Only ever newer: two brokers that name each other must not send us to and fro.
        if leader_id < 0 or known is None or leader_epoch <= known.leader_epoch or leader_id not in self._brokers:
            return False
        self._topics[topic_partition.topic].partitions()[topic_partition.partition] = replace(
            known, leader_id=leader_id, leader_epoch=leader_epoch, error_code=ErrorCode.NONE
        )
        return True
