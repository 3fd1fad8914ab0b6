"""Metadata as one client remembers it: brokers, topics, leaders. No sockets.

The callers decide which error makes an entry worthless.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.messages import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import (
        BrokerNode,
        ClusterMetadata,
        PartitionMetadata,
        TopicMetadata,
    )

# Metadata is used for that time, even if `metadata.max.age.ms` is less: with 0, which is allowed, no response would be
# young enough to be used.
_MIN_AGE_MS = 1_000


@dataclass(slots=True)
class _Topic:
    """A topic from the last response, and the time."""

    described: TopicMetadata
    known_at: float
    # Built when one of its partitions is first looked up: a response may describe all topics of a large cluster.
    by_number: dict[int, PartitionMetadata] | None = None

    def partitions(self) -> dict[int, PartitionMetadata]:
        if self.by_number is None:
            self.by_number = {found.topic_partition.partition: found for found in self.described.partitions}
        return self.by_number


class MetadataCache:
    """Brokers by id, and topics by name, each as in the last response about it.

    Remembering a response costs a step for each broker and topic in it, none for each partition.

    Runs on: driver and executor. Not thread-safe.

    Args:
        max_age_ms: leaders that are older are not returned (`metadata.max.age.ms`).
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, max_age_ms: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age_s = max(max_age_ms, _MIN_AGE_MS) / 1000
        self._clock = clock
        self._brokers: dict[int, BrokerNode] = {}
        self._topics: dict[str, _Topic] = {}

    @property
    def brokers(self) -> Mapping[int, BrokerNode]:
        """The brokers from the last response, by id."""
        return self._brokers

    def remember(self, found: ClusterMetadata, *, all_topics: bool = False) -> list[int]:
        """Take over a response; return the ids of brokers that have another address now.

        Args:
            found: the response.
            all_topics: whether it describes every topic; topics that it leaves out are forgotten.
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
        """Take over a broker; return whether it had another address before."""
        known = self._brokers.get(node.broker_id)
        self._brokers[node.broker_id] = node
        return known is not None and (known.host, known.port) != (node.host, node.port)

    def forget(self, topic: str) -> None:
        """Drop what is known about a topic."""
        self._topics.pop(topic, None)

    def topic_id(self, topic: str) -> UUID | None:
        """Return the topic id; None if no response had it."""
        known = self._topics.get(topic)
        return None if known is None else known.described.topic_id

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return a partition, however old the metadata; None if it is not known."""
        known = self._topics.get(topic_partition.topic)
        return None if known is None else known.partitions().get(topic_partition.partition)

    def led_partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return a partition with its leader; None if it is not known, has none, or the metadata is too old."""
        known = self._topics.get(topic_partition.topic)
        if known is None or self._clock() - known.known_at >= self._max_age_s:
            return None
        found = (known.by_number or known.partitions()).get(topic_partition.partition)
        return found if found is not None and found.has_leader else None

    def learn_leader(self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int) -> bool:
        """Take over a leader whose epoch is newer and whose address is known; return whether it was taken over."""
        known = self.partition(topic_partition)
        # Only newer ones: two brokers that name each other must not send a client back and forth.
        if leader_id < 0 or known is None or leader_epoch <= known.leader_epoch or leader_id not in self._brokers:
            return False
        self._topics[topic_partition.topic].partitions()[topic_partition.partition] = replace(
            known, leader_id=leader_id, leader_epoch=leader_epoch, error_code=ErrorCode.NONE
        )
        return True
