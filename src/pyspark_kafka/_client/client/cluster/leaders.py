"""The leaders of partitions: from memory, or requested from the cluster until there is a leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.waiting.retry import RetryAction, attempts, decide
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata, PartitionMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

# A topic that was created a moment ago is not yet known to every broker: it is looked for that often before it is said
# not to exist.
_UNKNOWN_TOPIC_LOOKS = 4
# How many partitions an error names.
_NAMED = 5


def find_leaders(
    client: KafkaClient, topic_partitions: Iterable[TopicPartition], deadline: Deadline | None = None
) -> dict[TopicPartition, PartitionMetadata]:
    """Return partitions with their leaders, from memory or from the cluster; waits for elections.

    Requests all missing leaders together in each round.

    Runs on: driver and executor; blocks.

    Args:
        client: the cluster.
        topic_partitions: those whose leaders are needed.
        deadline: for all rounds; None takes `api_timeout_ms`.

    Raises:
        BrokerError: a topic or a partition does not exist (condition UNKNOWN_TOPIC).
        AccessError: a topic may not be described.
        DeadlineError: there was no leader all the time.
        TransportError: no broker can be reached.
    """
    wanted = list(dict.fromkeys(topic_partitions))
    found = _cached_leaders(client, wanted)
    if len(found) == len(wanted):
        return found
    deadline = deadline or client.deadline()
    for look in attempts(client.backoff(), deadline=deadline):
        missing = [tp for tp in wanted if tp not in found]
        try:
            fetch_leaders(client, missing, deadline, () if look >= _UNKNOWN_TOPIC_LOOKS else missing)
        except DeadlineError as error:
            # The first look failed itself; a later one was only cut short, and the reason for it explains more.
            cause = error if look == 1 else leaderless(client, missing[0])
            raise deadline.error(_step(missing), cause) from error
        found = _cached_leaders(client, wanted)
        if len(found) == len(wanted):
            return found
    missing = [tp for tp in wanted if tp not in found]
    cause = leaderless(client, missing[0])
    raise deadline.error(_step(missing), cause) from cause


def fetch_leaders(
    client: KafkaClient,
    topic_partitions: Iterable[TopicPartition],
    deadline: Deadline,
    perhaps_new: Collection[TopicPartition] = (),
) -> None:
    """Request the leaders of partitions from the cluster once; `KafkaClient.cached_leader` has them afterwards.

    Args:
        client: the cluster.
        topic_partitions: the partitions to request.
        deadline: for the request.
        perhaps_new: partitions that may be too new for some brokers: no error if they do not exist.

    Raises:
        BrokerError: a topic or partition does not exist (condition UNKNOWN_TOPIC).
        AccessError: a topic may not be described.
        DeadlineError, TransportError: as `KafkaClient.fetch_metadata`.
    """
    wanted, patient = list(topic_partitions), set(perhaps_new)
    found = client.fetch_metadata({topic_partition.topic for topic_partition in wanted}, deadline)
    for topic_partition in wanted:
        _check_exists(found, topic_partition, last_look=topic_partition not in patient)


def leaderless(client: KafkaClient, topic_partition: TopicPartition) -> ConnectorError:
    """Build the error for a partition that had no leader in the last response."""
    known = client.cache.partition(topic_partition)
    code = known.error_code if known is not None and known.error_code else ErrorCode.LEADER_NOT_AVAILABLE
    return broker_error(code, f"{topic_partition} has no leader")


def _cached_leaders(client: KafkaClient, wanted: list[TopicPartition]) -> dict[TopicPartition, PartitionMetadata]:
    return {tp: known for tp in wanted if (known := client.cached_leader(tp)) is not None}


def _step(missing: list[TopicPartition]) -> str:
    named = ", ".join(map(str, missing[:_NAMED]))
    return f"Looking up the leader of {named}{' …' if len(missing) > _NAMED else ''}"


def _check_exists(found: ClusterMetadata, topic_partition: TopicPartition, *, last_look: bool) -> None:
    topic = found.topics.get(topic_partition.topic)
    # Of all that looks up leaders here, reading alone meets a topic first without having been asked about it.
    error = topic.error_for("Read") if topic is not None else unknown_topic(topic_partition.topic)
    if error is not None:
        patient = error.condition == "UNKNOWN_TOPIC" and not last_look
        if not patient and decide(error).action is RetryAction.FAIL:
            raise error
        return
    if last_look and topic is not None and topic.partition(topic_partition.partition) is None:
        raise unknown_topic(topic_partition.topic, partition=topic_partition.partition)
