"""The commit topic, which holds the commit markers of exactly-once sinks: created if it is missing. Layer: sink."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.client.admin.topics import NewTopic, create_topics, describe_topic_configs
from pyspark_kafka.client.cluster.errors import unknown_topic
from pyspark_kafka.client.retry import attempts
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.records import encode, murmur2_partitions

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.sink.commit_marker import CommitMarker

_LOG = logging.getLogger(__name__)

# Several sinks share a topic; one that has a transaction open in a partition keeps the others from reading its end.
_PARTITIONS = 16
_CONFIGS = {
    "cleanup.policy": "compact",
    # Markers are small and few. If they are compacted soon, little has to be read for a sink that never wrote.
    "segment.ms": "3600000",
    "segment.bytes": str(8 << 20),
}
# As Kafka's own internal topics have; a cluster's default is 1 unless somebody has set another.
_REPLICAS = 3


class CommitTopic:
    """The topic of commit markers: its partitions, and the record batch of a marker.

    Runs on: driver; methods block, except `encode`. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        name: its name.

    Attributes:
        name: its name.
        partition_count: how many partitions it has; 0 until it was looked up.
    """

    def __init__(self, client: KafkaClient, name: str) -> None:
        self._client = client
        self.name = name
        # Looked up by `ensure`: a publisher needs it several times a batch.
        self.partition_count = 0

    def ensure(self) -> None:
        """Create the topic if it is not there; learn how many partitions it has.

        It gets three replicas, as many brokers as there are in a smaller cluster, or what the brokers prescribe.

        Raises:
            AccessError: it is not there and the user may not create it, or may not see it.
            BrokerError: the brokers refused it.
            DeadlineError: it was created, and the brokers do not list its partitions in time.
        """
        try:
            if self._learn():
                return
            self._create()
        except AccessError as refused:
            raise AccessError(
                f"The topic '{self.name}' keeps the commit markers of exactly-once writes. It is not there and this "
                f"user may not create it, or this user may not describe it. Nothing was written. {refused.message}",
                code=refused.code,
                condition="COMMIT_TOPIC_UNUSABLE",
                hint=f"Create it (cleanup.policy=compact, {_PARTITIONS} partitions, {_REPLICAS} replicas), or grant "
                "CREATE on it; and grant READ and WRITE on it. Another name is set with option 'commitTopic'.",
                facts={"topic": self.name},
            ) from refused
        except BrokerError as refused:
            # Another query was faster.
            if refused.condition != "TOPIC_ALREADY_EXISTS":
                raise
        # The broker that is asked next may not have heard of it yet.
        deadline = self._client.deadline()
        for _ in attempts(self._client.backoff(), deadline=deadline):
            if self._learn():
                return
        raise deadline.error(f"Waiting for the commit topic '{self.name}' to be known")

    def check_policy(self) -> None:
        """Warn if the topic, created by someone else, does not keep the newest commit marker of each sink for ever.

        No warning if this user may not see the topic's configuration.
        """
        try:
            configs = describe_topic_configs(self._client, self.name)
        except ConnectorError as error:
            _LOG.debug("The configuration of commit topic '%s' cannot be seen: %s", self.name, error)
            return
        policy = configs.get("cleanup.policy", "compact")
        if policy != "compact":
            _LOG.warning(
                "Commit topic '%s' has cleanup.policy=%s: markers are deleted after its retention, and a query "
                "that was paused for longer may write a micro-batch twice. Set cleanup.policy=compact on it.",
                self.name, policy,
            )  # fmt: skip

    def partition_of(self, key: str) -> TopicPartition:
        """Return the partition for commit markers of a key, which is mostly a sink's id."""
        if not self.partition_count and not self._learn():
            raise unknown_topic(self.name)
        (number,) = murmur2_partitions(pa.array([key.encode()]), self.partition_count).to_pylist()
        return TopicPartition(self.name, number)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions."""
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]

    def encode(self, key: str, marker: CommitMarker) -> bytes:
        """Return the record batch of one commit marker; compaction keeps the newest of each key."""
        value = replace(marker, partitions=self.partition_count).to_bytes()
        return encode(pa.RecordBatch.from_pydict({"key": [key.encode()], "value": [value]}))

    def _learn(self) -> bool:
        """Ask how many partitions there are; return False if there is no such topic, or not yet."""
        known = self._client.fetch_metadata([self.name]).topics.get(self.name)
        if known is None:
            return False
        if known.error is not None:
            if known.error.condition == "UNKNOWN_TOPIC" or known.error.retriable:
                return False
            raise known.error
        self.partition_count = len(known.partitions)
        return True

    def _create(self) -> None:
        brokers = len(self._client.fetch_metadata([]).brokers)
        wanted = NewTopic(self.name, _PARTITIONS, min(_REPLICAS, brokers), configs=_CONFIGS)
        try:
            create_topics(self._client, [wanted])
        except BrokerError as refused:
            if refused.condition not in ("INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION"):
                raise
            # A broker that is down just now, or hosts that prescribe the number.
            create_topics(self._client, [replace(wanted, replication_factor=-1)])
