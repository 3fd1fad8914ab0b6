"""Topics made, changed and removed: what tests, the embedded broker and the demo need of Kafka's administration.

Sources and sinks never call this. Layer: client.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.cluster.exchanges import call_brokers
from pyspark_kafka.client.cluster.metadata import unknown_topic
from pyspark_kafka.client.retry import attempts
from pyspark_kafka.client.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ErrorCode,
    IncrementalAlterConfigsRequest,
    broker_error,
)
from pyspark_kafka.errors import DeadlineError, TransportError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

_TOPIC_RESOURCE = 2
_SET_OPERATION = 0


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made.

    Attributes:
        replication_factor: -1 takes the broker's default.
        configs: topic configuration by Kafka's names.
    """

    name: str
    partitions: int = 1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


def create_topics(client: KafkaClient, topics: Iterable[NewTopic], deadline: Deadline | None = None) -> None:
    """Make topics and wait until all their partitions have leaders.

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
            # After a lost answer the topic may exist because of us.
            when_lost=lambda: tolerated.add(ErrorCode.TOPIC_ALREADY_EXISTS),
        )
        _raise_first(response.topics, "Creating topic", tolerated)

    client.retrying("Creating topics", deadline, attempt)
    sizes = {topic.name: topic.partitions for topic in wanted}
    _wait_for_metadata(client, sizes, deadline, "Waiting for leaders of new topics", lambda seen: _all_led(seen, sizes))


def create_topic(
    client: KafkaClient,
    name: str,
    partitions: int = 1,
    *,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Make one topic; see `create_topics`."""
    create_topics(client, [NewTopic(name, partitions, replication_factor, configs or {})])


def delete_topics(client: KafkaClient, names: Iterable[str], deadline: Deadline | None = None) -> None:
    """Remove topics and wait until the brokers no longer know them.

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
            # After a lost answer the topic may be gone because of us.
            when_lost=lambda: tolerated.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        )
        _raise_first(response.responses, "Deleting topic", tolerated)

    client.retrying("Deleting topics", deadline, attempt)
    _wait_for_metadata(
        client,
        wanted,
        deadline,
        "Waiting for topics to be gone",
        lambda seen: all(topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in seen.topics.values()),
    )


def create_partitions(client: KafkaClient, counts: Mapping[str, int], deadline: Deadline | None = None) -> None:
    """Raise topics to so many partitions in all, and wait until the new ones have leaders.

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
        _raise_first(response.results, "Adding partitions to topic", set())

    client.retrying("Adding partitions", deadline, attempt)
    _wait_for_metadata(
        client, counts, deadline, "Waiting for leaders of new partitions", lambda seen: _all_led(seen, counts)
    )


def delete_records(
    client: KafkaClient, before: Mapping[TopicPartition, int], deadline: Deadline | None = None
) -> dict[TopicPartition, int]:
    """Remove all records below the given offsets, as retention does.

    Args:
        client: the cluster.
        before: the new log start offset of each partition.
        deadline: None takes `api_timeout_ms`.

    Returns:
        The log start offsets, by partition.

    Raises:
        BrokerError: refused, e.g. OFFSET_OUT_OF_RANGE beyond the high watermark.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """
    starts: dict[TopicPartition, int] = {}

    def attempt(step: Deadline) -> dict[TopicPartition, int]:
        left = {where: offset for where, offset in before.items() if where not in starts}
        by_broker: dict[int, dict[TopicPartition, int]] = {}
        for where, leader in client.find_leaders(left, step).items():
            by_broker.setdefault(leader.leader_id, {})[where] = left[where]
        requests = {broker_id: _delete_request(asked, step) for broker_id, asked in by_broker.items()}
        failures: dict[TopicPartition, ConnectorError] = {}
        for broker_id, answer in call_brokers(client, requests, step).items():
            if answer.error is not None:
                failures.update(dict.fromkeys(by_broker[broker_id], answer.error))
                continue
            for topic in answer.response.topics:
                for entry in topic.partitions:
                    where = TopicPartition(topic.name, entry.partition_index)
                    if entry.error_code == ErrorCode.NONE:
                        starts[where] = entry.low_watermark
                    else:
                        text = f"Deleting records of {where} below {before[where]} failed"
                        failures[where] = broker_error(entry.error_code, text)
        for where in left.keys() - starts.keys() - failures.keys():
            text = f"{where} was left out of an answer about the deletion of records"
            failures[where] = broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        for where in failures:
            client.forget_topic(where.topic)
        if failures:
            # One that will not pass comes first.
            raise min(failures.values(), key=lambda error: error.retriable)
        return starts

    return client.retrying("Deleting records", deadline or client.deadline(), attempt)


def _delete_request(before: Mapping[TopicPartition, int], deadline: Deadline) -> Any:
    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    by_topic: dict[str, list[Any]] = {}
    for where, offset in before.items():
        by_topic.setdefault(where.topic, []).append(
            topic_class.DeleteRecordsPartition(partition_index=where.partition, offset=offset)
        )
    return DeleteRecordsRequest(
        topics=[topic_class(name=name, partitions=entries) for name, entries in by_topic.items()],
        timeout_ms=_remaining_ms(deadline),
    )


def alter_topic_configs(
    client: KafkaClient, topic: str, configs: Mapping[str, str], deadline: Deadline | None = None
) -> None:
    """Set configuration values of a topic; values not named stay.

    Raises:
        BrokerError: refused, e.g. INVALID_CONFIG.
        AccessError: not allowed.
        DeadlineError: not done in time.
    """

    def attempt(step: Deadline) -> None:
        resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource
        response = _call_controller(
            client,
            IncrementalAlterConfigsRequest(
                resources=[
                    resource_class(
                        resource_type=_TOPIC_RESOURCE,
                        resource_name=topic,
                        configs=[
                            resource_class.AlterableConfig(name=name, config_operation=_SET_OPERATION, value=value)
                            for name, value in configs.items()
                        ],
                    )
                ],
                validate_only=False,
            ),
            step,
        )
        for entry in response.responses:
            if entry.error_code != ErrorCode.NONE:
                raise broker_error(
                    entry.error_code,
                    f"Changing the configuration of topic '{topic}' failed",
                    detail=entry.error_message,
                )

    client.retrying(f"Changing the configuration of topic '{topic}'", deadline or client.deadline(), attempt)


def describe_topic_configs(client: KafkaClient, topic: str) -> dict[str, str]:
    """Give the configuration of a topic by Kafka's names, defaults included; values that are hidden are left out.

    Raises:
        AccessError: the user may not see it (DESCRIBE_CONFIGS).
        BrokerError: refused.
        DeadlineError: no answer in time.
        TransportError: no broker can be reached.
    """

    def attempt(step: Deadline) -> dict[str, str]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
        )
        response = client.call(DescribeConfigsRequest(resources=[resource]), deadline=step)
        for result in response.results:
            if result.error_code != ErrorCode.NONE:
                what = f"Describing the configuration of topic '{topic}' failed"
                raise broker_error(result.error_code, what, detail=result.error_message)
        return {
            config.name: config.value
            for result in response.results
            for config in result.configs
            if config.value is not None
        }

    return client.retrying("Describing a topic's configuration", client.deadline(), attempt)


def _call_controller(
    client: KafkaClient, request: Any, deadline: Deadline, *, when_lost: Callable[[], None] | None = None
) -> Any:
    """Ask the broker that is the controller, or with KRaft passes on to it; asked for anew, for it moves."""
    controller_id = client.fetch_metadata((), deadline).controller_id
    try:
        return client.call(request, broker_id=controller_id if controller_id >= 0 else None, deadline=deadline)
    except (TransportError, DeadlineError):
        if when_lost is not None:
            when_lost()
        raise


def _remaining_ms(deadline: Deadline) -> int:
    return max(1, int(deadline.remaining_s() * 1000))


def _raise_first(entries: Iterable[Any], what: str, tolerated: set[int]) -> None:
    for entry in entries:
        if entry.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and entry.error_code not in tolerated:
            # The controller knows every topic, so this does not pass by waiting.
            raise unknown_topic(entry.name)
        if entry.error_code not in (ErrorCode.NONE, *tolerated):
            raise broker_error(
                entry.error_code,
                f"{what} '{entry.name}' failed",
                # Older versions of these answers carry no message.
                detail=getattr(entry, "error_message", None),
                topic=entry.name,
            )


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
