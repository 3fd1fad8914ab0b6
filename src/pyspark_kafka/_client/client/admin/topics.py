"""Topics created, by the controller. Of sources and sinks only the commit topic of an exactly-once sink needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.waiting.retry import attempts
from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka._client.client.wire.messages import CreateTopicsRequest, ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right, name_user
from pyspark_kafka.errors import AccessError, DeadlineError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created.

    Attributes:
        name: the topic.
        partitions: how many it has; -1 takes the broker's default.
        replication_factor: -1 takes the broker's default.
        configs: topic configuration by Kafka's names.
    """

    name: str
    partitions: int = 1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


def create_topics(client: KafkaClient, topics: Iterable[NewTopic], deadline: Deadline | None = None) -> None:
    """Create topics and wait until all their partitions have leaders.

    Runs on: driver; blocks.

    Raises:
        BrokerError: refused, e.g. TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    wanted = list(topics)
    deadline = deadline or client.deadline()
    tolerated = {int(ErrorCode.NONE)}
    topic_class = CreateTopicsRequest.CreatableTopic
    creations = [
        topic_class(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=[],
            configs=[topic_class.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
        )
        for topic in wanted
    ]

    def attempt(step: Deadline) -> None:
        timeout_ms = max(1, int(step.remaining_s() * 1000))
        request = CreateTopicsRequest(topics=creations, timeout_ms=timeout_ms, validate_only=False)
        # Looked up each time, for it moves; with KRaft any broker passes the request on.
        controller_id = client.fetch_metadata((), step).controller_id
        try:
            response = client.call(request, broker_id=controller_id if controller_id >= 0 else None, deadline=step)
            results = ((entry.name, entry) for entry in response.topics)
            names = [topic.name for topic in wanted]
            created = match_entries(names, results, "CreateTopics", f"broker {controller_id}")
        except (TransportError, DeadlineError, ProtocolError):
            # After a lost or incomplete response, the topic may exist because of this request.
            tolerated.add(ErrorCode.TOPIC_ALREADY_EXISTS)
            raise
        for entry in created.values():
            if entry.error_code not in tolerated:
                raise broker_error(
                    entry.error_code,
                    f"Creating topic '{entry.name}' failed",
                    # Older versions of the response have no message.
                    detail=getattr(entry, "error_message", None),
                    rights=(Right("Create", "topic", entry.name),),
                    topic=entry.name,
                )

    client.retrying("Creating topics", deadline, attempt)
    counts = {topic.name: topic.partitions for topic in wanted}
    waiting = f"Waiting for leaders of new topics ({', '.join(counts)})"
    for look in attempts(client.backoff(), deadline=deadline):
        try:
            seen = client.fetch_metadata(list(counts), deadline)
        except DeadlineError as error:
            # The first look failed itself; a later one was only cut short.
            raise deadline.error(waiting, error if look == 1 else None) from error
        _raise_hidden(seen, client)
        if _all_led(seen, counts):
            return
    raise deadline.error(waiting)


def _raise_hidden(seen: ClusterMetadata, client: KafkaClient) -> None:
    """Raise if a new topic may not be looked up: CREATE does not include DESCRIBE, and waiting does not help."""
    for topic in seen.topics.values():
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            error = broker_error(
                topic.error_code,
                f"Topic '{topic.name}' was created; looking it up failed",
                rights=(Right("Describe", "topic", topic.name),),
                topic=topic.name,
            )
            if isinstance(error, AccessError):
                name_user(error, client.options)
            raise error


def _all_led(seen: ClusterMetadata, counts: Mapping[str, int]) -> bool:
    for name, count in counts.items():
        topic = seen.topics.get(name)
        if topic is None or topic.error_code != ErrorCode.NONE or len(topic.partitions) < max(1, count):
            return False
        if not all(partition.has_leader for partition in topic.partitions):
            return False
    return True
