"""OffsetCommit: the positions of a consumer group without members, set outside of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.coordinator import CoordinatorCalls, find_group_coordinator
from pyspark_kafka._client.client.transactions.position_parts import split_positions
from pyspark_kafka._client.client.wire.api_versions import MAX_OFFSET_COMMIT_VERSION
from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka._client.client.wire.messages import ErrorCode, OffsetCommitRequest, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# Codes that are about one partition, with the codes of others in the same response.
_OF_PARTITION = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
# Codes for somebody who is not a member of a group that has members.
_IN_USE = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS})


class GroupCommits:
    """Sets the positions of one consumer group as a consumer without subscription does ("simple" consumer).

    Brokers take them as long as the group has no members. Other writers are not detected: the last one wins.

    Runs on: driver; one thread; `commit_positions` blocks, for at most `api_timeout_ms` with all its requests'
    retries each. Does not pickle.

    Args:
        client: the cluster; not used by anyone else in the meantime.
        group_id: the group; it is created by its first position.

    Source: Java `KafkaConsumer.commitSync` after `assign`; Kafka `GroupMetadataManager`, `OffsetMetadataManager`.
    """

    def __init__(self, client: KafkaClient, group_id: str) -> None:
        self.group_id = group_id
        self._coordinator = CoordinatorCalls(
            client, lambda deadline: find_group_coordinator(client, group_id, deadline)
        )

    def commit_positions(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, BrokerError]:
        """Set positions, in as many requests as needed; positions of other partitions do not change.

        Args:
            positions: next offset to read by partition.

        Returns:
            The partitions that the broker refused, and why: a topic that does not exist, or that the user may not read.
            All others are set.

        Raises:
            AccessError: the user may not read the group.
            BrokerError: the group has members (condition GROUP_HAS_MEMBERS), or the broker refused.
            DeadlineError: not done in time.
            TransportError: no broker can be reached.
        """
        refused: dict[TopicPartition, BrokerError] = {}
        for topics in split_positions(self.group_id, positions):
            request = build_request(self.group_id, topics)
            asked = [TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers]

            def attempt(
                connection: Connection, deadline: Deadline, request: Any = request, asked: Any = asked
            ) -> dict[TopicPartition, BrokerError]:
                response = connection.call(request, deadline, max_version=MAX_OFFSET_COMMIT_VERSION)
                return parse_response(response, asked, self.group_id, connection.address)

            refused.update(self._coordinator.run(f"Setting the positions of group '{self.group_id}'", attempt))
        return refused


def build_request(group_id: str, topics: Mapping[str, Mapping[int, int]]) -> Any:
    """Build the request of someone who is not a member: no generation, no member id. Pure."""
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_class = topic_class.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            topic_class(
                name=name,
                partitions=[
                    partition_class(partition_index=number, committed_offset=offset, committed_metadata="")
                    for number, offset in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
    )


def parse_response(
    response: Any, asked: Collection[TopicPartition], group_id: str, address: str
) -> dict[TopicPartition, BrokerError]:
    """Return the partitions that were refused; raise what is about the group. Pure.

    Raises:
        AccessError: the user may not read the group.
        BrokerError: the group has members, or the broker refused.
        ProtocolError: a requested partition is missing.
    """
    codes = (
        (TopicPartition(topic.name, entry.partition_index), entry.error_code)
        for topic in response.topics
        for entry in topic.partitions
    )
    refused: dict[TopicPartition, BrokerError] = {}
    for topic_partition, code in match_entries(asked, codes, "OffsetCommit", address).items():
        if code == ErrorCode.NONE:
            continue
        if code in _IN_USE:
            raise _has_members(group_id, address, code)
        error = broker_error(
            code,
            f"Setting the position of consumer group '{group_id}' in {topic_partition} at {address} failed",
            rights=(Right("Read", "group", group_id), Right("Read", "topic", topic_partition.topic)),
            group_id=group_id,
            topic_partition=topic_partition,
            broker=address,
        )
        if code not in _OF_PARTITION:
            raise error
        refused[topic_partition] = error
    return refused


def _has_members(group_id: str, address: str, code: int) -> BrokerError:
    kind = broker_error(code, "", rights=()).condition
    return BrokerError(
        f"Consumer group '{group_id}' has members: another application reads with it. {address} takes positions from "
        f"them only, and answered {kind} ({code}). The group stays as it was.",
        code=code,
        condition="GROUP_HAS_MEMBERS",
        hint="Name a group that no other application uses.",
        parameters={"group_id": group_id, "broker": address, "cause": kind},
    )
