"""The leaders of written partitions: remembered until a broker contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.metadata import unknown_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka.errors import BrokerError


# How long a task relies on which partitions had a leader in an earlier task.
_KEPT_BETWEEN_TASKS_S = 10.0


class PartitionLeaders:
    """Leaders, kept until they are forgotten, and partition counts, kept for the age of metadata.

    Leaders need no age: a write to a previous leader is refused, and then metadata are fetched again. New partitions
    are seen only by asking the cluster.

    Runs on: executor; `look_up` and `count` block within the client's deadline.

    Args:
        client: the cluster.
        clock: monotonic seconds.

    Attributes:
        known: the ids of the leading brokers, from memory.
    """

    def __init__(self, client: KafkaClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self.known: dict[TopicPartition, int] = {}
        self._counts: dict[str, int] = {}
        self._available: dict[str, tuple[int, ...]] = {}
        self._counted_at: dict[str, float] = {}
        self._task_began_at = clock()
        self._unknown_since: dict[TopicPartition, float] = {}

    def ask(self, client: KafkaClient) -> None:
        """Use another client of the same cluster from now on, for another task."""
        self._client = client
        self._task_began_at = self._clock()

    def forget(self, topic_partition: TopicPartition) -> None:
        """Forget the leader, so that it is requested again."""
        self.known.pop(topic_partition, None)

    def known_count(self, topic: str) -> int:
        """Return how many partitions a topic had when it was last seen; 0 if it never was."""
        return self._counts.get(topic, 0)

    def available(self, topic: str) -> tuple[int, ...]:
        """Return the partitions that had a leader when the topic was last seen, in order; from memory."""
        return self._available.get(topic, ())

    def count(self, topic: str, *, beyond: int = -1) -> int | BrokerError:
        """Return how many partitions a topic has, from memory or from the cluster, or why that is not known.

        Args:
            topic: its name.
            beyond: a partition that rows are for; if memory does not have it, metadata are fetched.

        Raises:
            ConnectorError: no broker returned metadata.
        """
        if self._outdated(topic) or self._counts[topic] <= beyond:
            found = self._client.fetch_metadata([topic])
            self._counts.pop(topic, None)
            self._learn(found)
            if topic not in self._counts:
                described = found.topics.get(topic)
                error = None if described is None else described.error_for("Write")
                return unknown_topic(topic) if error is None else error
        return self._counts[topic]

    def _outdated(self, topic: str) -> bool:
        counted_at = self._counted_at.get(topic, float("-inf"))
        longest_s = self._client.options.metadata_max_age_ms / 1000
        if counted_at < self._task_began_at:
            # Between tasks a lost broker is not noticed; while a topic is written to, refusals show it.
            longest_s = min(longest_s, _KEPT_BETWEEN_TASKS_S)
        return self._clock() - counted_at >= longest_s

    def look_up(
        self, topic_partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, BrokerError]:
        """Request leaders from the cluster once; return the partitions that still have none, each with the reason.

        Raises:
            ConnectorError: no broker returned metadata.
        """
        found = self._client.fetch_metadata({topic_partition.topic for topic_partition in topic_partitions}, deadline)
        self._learn(found)
        missing: dict[TopicPartition, BrokerError] = {}
        for topic_partition in topic_partitions:
            error = found.error_for(topic_partition, "Write")
            if error is None:
                self._unknown_since.pop(topic_partition, None)
            else:
                missing[topic_partition] = error
        return missing

    def unknown_for_ms(self, topic_partition: TopicPartition, why: BrokerError, now: float) -> int:
        """Return for how long a partition that never was there has been looked up in vain; 0 for all others.

        Args:
            topic_partition: which one.
            why: what the last look-up said.
            now: seconds of the clock that counts for delivery.
        """
        if why.condition != "UNKNOWN_TOPIC" or topic_partition.partition < self.known_count(topic_partition.topic):
            return 0
        return int((now - self._unknown_since.setdefault(topic_partition, now)) * 1000)

    def _learn(self, found: ClusterMetadata) -> None:
        for topic in found.topics.values():
            if topic.error is not None or not topic.partitions:
                continue
            self._counts[topic.name] = len(topic.partitions)
            self._available[topic.name] = tuple(
                sorted(partition.topic_partition.partition for partition in topic.partitions if partition.has_leader)
            )
            self._counted_at[topic.name] = self._clock()
            for partition in topic.partitions:
                if partition.has_leader:
                    self.known[partition.topic_partition] = partition.leader_id
                else:
                    self.known.pop(partition.topic_partition, None)
