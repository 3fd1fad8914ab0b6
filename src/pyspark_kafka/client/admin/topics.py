"""Topics: created, given more partitions, configured, deleted. All of it goes through the controller.

Of sources and sinks only the commit topic of an exactly-once sink needs it. Layer: client.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.admin.configs import TOPIC_RESOURCE, build_alter_request, raise_refused
from pyspark_kafka.client.admin.topic_configs import fetch_topic_configs
from pyspark_kafka.client.cluster.errors import unknown_topic
from pyspark_kafka.client.retry import attempts
from pyspark_kafka.client.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    broker_error,
)
from pyspark_kafka.client.wire.missing_rights import Right, name_user
from pyspark_kafka.errors import AccessError, DeadlineError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.wire.missing_rights import Operation


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
    tolerated: set[int] = set()

    def attempt(step: Deadline) -> None:
        topic_class = CreateTopicsRequest.CreatableTopic
        response = _call_controller(
            client,
            CreateTopicsRequest(
                topics=[
                    topic_class(
                        name=topic.name,
                        num_partitions=topic.partitions,
                        replication_factor=topic.replication_factor,
                        assignments=[],
                        configs=[
                            topic_class.CreatableTopicConfig(name=name, value=value)
                            for name, value in topic.configs.items()
                        ],
                    )
                    for topic in wanted
                ],
                timeout_ms=_remaining_ms(step),
                validate_only=False,
            ),
            step,
            # After a lost response the topic may exist because of this request.
            when_lost=lambda: tolerated.add(ErrorCode.TOPIC_ALREADY_EXISTS),
        )
        _raise_first(response.topics, "Creating topic", "Create", tolerated)

    client.retrying("Creating topics", deadline, attempt)
    sizes = {topic.name: topic.partitions for topic in wanted}

    def is_done(seen: ClusterMetadata) -> bool:
        _raise_hidden(seen, client)
        return _all_led(seen, sizes)

    _wait_for_metadata(client, sizes, deadline, "Waiting for leaders of new topics", is_done)


def create_topic(
    client: KafkaClient,
    name: str,
    partitions: int = 1,
    *,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create one topic; see `create_topics`."""
    create_topics(client, [NewTopic(name, partitions, replication_factor, configs or {})])


def delete_topics(client: KafkaClient, names: Iterable[str], deadline: Deadline | None = None) -> None:
    """Delete topics and wait until the brokers no longer know them.

    Runs on: driver; blocks.

    Raises:
        BrokerError: refused, or a topic does not exist (condition UNKNOWN_TOPIC).
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    wanted = list(names)
    deadline = deadline or client.deadline()
    tolerated: set[int] = set()

    def attempt(step: Deadline) -> None:
        state_class = DeleteTopicsRequest.DeleteTopicState
        response = _call_controller(
            client,
            DeleteTopicsRequest(
                topics=[state_class(name=name) for name in wanted],
                topic_names=wanted,
                timeout_ms=_remaining_ms(step),
            ),
            step,
            # After a lost response the topic may be deleted because of this request.
            when_lost=lambda: tolerated.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        )
        _raise_first(response.responses, "Deleting topic", "Delete", tolerated)

    client.retrying("Deleting topics", deadline, attempt)
    _wait_for_metadata(
        client,
        wanted,
        deadline,
        "Waiting for topics to be deleted",
        lambda seen: all(topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in seen.topics.values()),
    )


def create_partitions(client: KafkaClient, counts: Mapping[str, int], deadline: Deadline | None = None) -> None:
    """Add partitions to topics, and wait until the new ones have leaders.

    Runs on: driver; blocks.

    Args:
        client: the cluster.
        counts: the number of partitions that each topic has afterwards.
        deadline: None takes `api_timeout_ms`.

    Raises:
        BrokerError: refused, e.g. INVALID_PARTITIONS.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    deadline = deadline or client.deadline()

    def attempt(step: Deadline) -> None:
        response = _call_controller(
            client,
            CreatePartitionsRequest(
                topics=[
                    CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
                    for name, count in counts.items()
                ],
                timeout_ms=_remaining_ms(step),
                validate_only=False,
            ),
            step,
        )
        _raise_first(response.results, "Adding partitions to topic", "Alter", set())

    client.retrying("Adding partitions", deadline, attempt)
    _wait_for_metadata(
        client, counts, deadline, "Waiting for leaders of new partitions", lambda seen: _all_led(seen, counts)
    )


def alter_topic_configs(
    client: KafkaClient, topic: str, configs: Mapping[str, str], deadline: Deadline | None = None
) -> None:
    """Set configuration values of a topic; the others stay as they are.

    Runs on: driver; blocks.

    Raises:
        BrokerError: refused, e.g. INVALID_CONFIG.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    what = f"Changing the configuration of topic '{topic}'"

    def attempt(step: Deadline) -> None:
        request = build_alter_request(TOPIC_RESOURCE, topic, configs)
        raise_refused(_call_controller(client, request, step), what, Right("AlterConfigs", "topic", topic))

    client.retrying(what, deadline or client.deadline(), attempt)


def describe_topic_configs(client: KafkaClient, topic: str) -> dict[str, str]:
    """Return the configuration of a topic by Kafka's names, defaults included; values that are hidden are left out.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not see it (DESCRIBE_CONFIGS).
        BrokerError: refused.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.
    """
    return {config.name: config.value for config in fetch_topic_configs(client, topic) if config.value is not None}


def _call_controller(
    client: KafkaClient, request: Any, deadline: Deadline, *, when_lost: Callable[[], None] | None = None
) -> Any:
    """Call the controller, which is looked up each time, for it moves; with KRaft any broker passes the request on.

    Args:
        client: the cluster.
        request: an instance of a class of `wire.messages`.
        deadline: for the request.
        when_lost: called if the response is lost: the request may have been carried out.
    """
    controller_id = client.fetch_metadata((), deadline).controller_id
    try:
        return client.call(request, broker_id=controller_id if controller_id >= 0 else None, deadline=deadline)
    except (TransportError, DeadlineError):
        if when_lost is not None:
            when_lost()
        raise


def _remaining_ms(deadline: Deadline) -> int:
    return max(1, int(deadline.remaining_s() * 1000))


def _raise_first(entries: Iterable[Any], what: str, operation: Operation, tolerated: set[int]) -> None:
    for entry in entries:
        if entry.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and entry.error_code not in tolerated:
            # The controller knows every topic, so waiting does not help.
            raise unknown_topic(entry.name)
        if entry.error_code not in (ErrorCode.NONE, *tolerated):
            raise broker_error(
                entry.error_code,
                f"{what} '{entry.name}' failed",
                # Older versions of these responses have no message.
                detail=getattr(entry, "error_message", None),
                rights=(Right(operation, "topic", entry.name),),
                topic=entry.name,
            )


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


def _wait_for_metadata(
    client: KafkaClient,
    topics: Iterable[str],
    deadline: Deadline,
    step: str,
    done: Callable[[ClusterMetadata], bool],
) -> None:
    names = list(topics)
    for _ in attempts(client.backoff(), deadline=deadline):
        if done(client.fetch_metadata(names, deadline)):
            return
    raise deadline.error(f"{step} ({', '.join(names)})")
