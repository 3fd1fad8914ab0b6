"""DeleteRecords: the records of partitions deleted up to an offset, by one request to each leader. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.cluster.exchanges import call_brokers
from pyspark_kafka.client.wire.messages import DeleteRecordsRequest, ErrorCode, broker_error
from pyspark_kafka.client.wire.missing_rights import Right
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError


def delete_records(
    client: KafkaClient, before: Mapping[TopicPartition, int], deadline: Deadline | None = None
) -> dict[TopicPartition, int]:
    """Delete all records below the given offsets, as retention does.

    Runs on: driver; blocks.

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
        left = {tp: offset for tp, offset in before.items() if tp not in starts}
        by_broker: dict[int, dict[TopicPartition, int]] = {}
        for topic_partition, leader in client.find_leaders(left, step).items():
            by_broker.setdefault(leader.leader_id, {})[topic_partition] = left[topic_partition]
        requests = {broker_id: _build_request(asked, step) for broker_id, asked in by_broker.items()}
        failures: dict[TopicPartition, ConnectorError] = {}
        for broker_id, done in call_brokers(client, requests, step).items():
            if done.error is not None:
                failures.update(dict.fromkeys(by_broker[broker_id], done.error))
                continue
            for topic in done.response.topics:
                for entry in topic.partitions:
                    topic_partition = TopicPartition(topic.name, entry.partition_index)
                    if entry.error_code == ErrorCode.NONE:
                        starts[topic_partition] = entry.low_watermark
                    else:
                        text = f"Deleting records of {topic_partition} below {before[topic_partition]} failed"
                        failures[topic_partition] = broker_error(
                            entry.error_code, text, rights=(Right("Delete", "topic", topic.name),)
                        )
        for topic_partition in left.keys() - starts.keys() - failures.keys():
            text = f"{topic_partition} was left out of a response about the deletion of records"
            failures[topic_partition] = broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        for topic_partition in failures:
            client.forget_topic(topic_partition.topic)
        if failures:
            # One that waiting does not help against comes first.
            raise min(failures.values(), key=lambda error: error.retriable)
        return starts

    return client.retrying("Deleting records", deadline or client.deadline(), attempt)


def _build_request(before: Mapping[TopicPartition, int], deadline: Deadline) -> Any:
    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    by_topic: dict[str, list[Any]] = {}
    for topic_partition, offset in before.items():
        by_topic.setdefault(topic_partition.topic, []).append(
            topic_class.DeleteRecordsPartition(partition_index=topic_partition.partition, offset=offset)
        )
    return DeleteRecordsRequest(
        topics=[topic_class(name=name, partitions=entries) for name, entries in by_topic.items()],
        timeout_ms=max(1, int(deadline.remaining_s() * 1000)),
    )
