"""The commit topic, which holds the commit markers of exactly-once sinks: created if it is missing."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.queries.rights import Operation, probe_topic_rights
from pyspark_kafka._client.client.queries.topic_configs import fetch_topic_configs
from pyspark_kafka._client.client.waiting.retry import attempts
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import Right, ask_for, missing_sentence, name_user
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError
from pyspark_kafka.records import encode, murmur2_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.client.wire.missing_rights import Operation as OperationName
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker

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
# What a user of the topic needs, if somebody else has created it.
_NEEDED: dict[OperationName, Operation] = {"Read": Operation.READ, "Write": Operation.WRITE}
_ANOTHER_NAME = "Another name is set with option 'commitTopic'."
_CREATE_IT = f"create it (cleanup.policy=compact, {_PARTITIONS} partitions, {_REPLICAS} replicas)"


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
        except AccessError as refused:
            if not refused.rights:
                # Not this topic: the credentials.
                raise
            reason = "This user may not see it, or it is not there."
            hint = f"If it is not there: {_CREATE_IT}, or grant Create as well."
            raise self._unusable(refused, reason, _NEEDED, hint) from refused
        try:
            self._create()
        except AccessError as refused:
            reason = "It is not there, and this user may not create it."
            hint = f"Or {_CREATE_IT}."
            raise self._unusable(refused, reason, ("Create",), hint) from refused
        except BrokerError as refused:
            # Another query was faster.
            if refused.condition != "TOPIC_ALREADY_EXISTS":
                raise
        # The next broker may not have its metadata yet.
        deadline = self._client.deadline()
        for _ in attempts(self._client.backoff(), deadline=deadline):
            if self._learn():
                return
        raise deadline.error(f"Waiting for the commit topic '{self.name}' to be known")

    def check(self) -> None:
        """Check the topic before any work; see `ensure`, `check_rights` and `check_policy`."""
        self.ensure()
        self.check_rights()
        self.check_policy()

    def check_rights(self) -> None:
        """Check that this user may read and write the topic, before any work; markers are read by the second batch.

        Raises:
            AccessError: the user may not; the text names what is missing.
        """

        def attempt(step: Deadline) -> frozenset[int] | None:
            return probe_topic_rights(self._client.any_broker.connect(step), [self.name], step).get(self.name)

        told = self._client.retrying("Asking what this user may do", self._client.deadline(), attempt)
        # Who sees the topic may describe it: without that right, the broker returns no rights at all.
        if told is None or Operation.DESCRIBE not in told:
            return
        missing = [name for name, operation in _NEEDED.items() if operation not in told]
        if not missing:
            return
        rights = [Right(operation, "topic", self.name) for operation in missing]
        error = AccessError(
            f"The topic '{self.name}' keeps the commit markers of exactly-once writes. {missing_sentence(rights)} "
            "Nothing was written.",
            code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            condition="COMMIT_TOPIC_UNUSABLE",
            parameters={"topic": self.name},
        )
        ask_for(error, rights, _ANOTHER_NAME)
        raise error

    def check_policy(self) -> None:
        """Warn if the topic, created by someone else, does not keep the newest commit marker of each sink for ever.

        If this user may not see the topic's configuration, the warning says so: that right is optional.
        """
        deadline = self._client.deadline()
        configs = fetch_topic_configs(self._client, [self.name], ("cleanup.policy",), deadline)[self.name]
        if isinstance(configs, AccessError):
            _LOG.warning(
                "Whether commit topic '%s' keeps its markers for ever cannot be checked; the query continues. Check "
                "that it has cleanup.policy=compact, or grant the right: %s",
                self.name, configs,
            )  # fmt: skip
            return
        if isinstance(configs, ConnectorError):
            _LOG.debug("The configuration of commit topic '%s' cannot be seen: %s", self.name, configs)
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

    def _unusable(
        self, refused: AccessError, reason: str, operations: Iterable[OperationName], hint: str
    ) -> AccessError:
        error = AccessError(
            f"The topic '{self.name}' keeps the commit markers of exactly-once writes. {reason} Nothing was written. "
            f"{refused.message}",
            code=refused.code,
            condition="COMMIT_TOPIC_UNUSABLE",
            parameters={"topic": self.name},
        )
        ask_for(
            error,
            [Right(operation, "topic", self.name) for operation in operations],
            f"{hint} {_ANOTHER_NAME}",
        )
        return error

    def _learn(self) -> bool:
        """Request the number of partitions; return False if the topic does not exist, or not yet."""
        known = self._client.fetch_metadata([self.name]).topics.get(self.name)
        if known is None:
            return False
        error = known.error_for("Read")
        if error is not None:
            if error.condition == "UNKNOWN_TOPIC" or error.retriable:
                return False
            if isinstance(error, AccessError):
                name_user(error, self._client.options)
            raise error
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
