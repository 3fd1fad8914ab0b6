"""The positions of a consumer group, whoever commits them: read, and nothing else. Layer: client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.transactions.coordinator import CoordinatorCalls, find_group_coordinator
from pyspark_kafka.client.wire.messages import ErrorCode, OffsetFetchRequest, broker_error
from pyspark_kafka.client.wire.missing_rights import Right, name_user
from pyspark_kafka.client.wire.versions import OFFSET_FETCH_VERSION
from pyspark_kafka.errors import AccessError, ConnectorError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.net.connection import Connection


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """What a coordinator tells about the positions of a group.

    Attributes:
        positions: the next offset to read, by partition.
        errors: why a position is not known, by partition.
    """

    positions: Mapping[TopicPartition, int]
    errors: Mapping[TopicPartition, ConnectorError]


def fetch_group_offsets(client: KafkaClient, group_id: str) -> GroupOffsets:
    """Return all positions of a consumer group, as committed last; open transactions are not waited for.

    A group that does not exist has no positions, as one that has committed none: brokers make no difference.

    Runs on: driver and executor; blocks for at most `api_timeout_ms`.

    Raises:
        AccessError: the user may not describe the group.
        BrokerError: the coordinator refused, or is not available.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.

    Source: Java `Admin.listConsumerGroupOffsets`.
    """

    def attempt(connection: Connection, deadline: Deadline) -> GroupOffsets:
        request = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=False)
        response = connection.call(request, deadline, max_version=OFFSET_FETCH_VERSION)
        what = f"of consumer group '{group_id}' at {connection.address} failed"
        if response.error_code != ErrorCode.NONE:
            right = Right("Describe", "group", group_id, granted_by="Read")
            raise broker_error(response.error_code, f"Reading the positions {what}", rights=(right,))
        positions: dict[TopicPartition, int] = {}
        errors: dict[TopicPartition, ConnectorError] = {}
        for topic in response.topics:
            right = Right("Describe", "topic", topic.name, granted_by="Read")
            for entry in topic.partitions:
                topic_partition = TopicPartition(topic.name, entry.partition_index)
                if entry.error_code != ErrorCode.NONE:
                    error = broker_error(
                        entry.error_code, f"Reading the position in {topic_partition} {what}", rights=(right,)
                    )
                    if isinstance(error, AccessError):
                        name_user(error, client.options)
                    errors[topic_partition] = error
                elif entry.committed_offset >= 0:
                    positions[topic_partition] = entry.committed_offset
        return GroupOffsets(positions, errors)

    calls = CoordinatorCalls(client, lambda deadline: find_group_coordinator(client, group_id, deadline))
    return calls.run(f"Reading the positions of consumer group '{group_id}'", attempt)
