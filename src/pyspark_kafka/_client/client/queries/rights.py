"""The rights of a user, found by requests that change nothing on the cluster.

Rights on topics and on the cluster are in responses to Metadata and DescribeCluster (KIP-430). Rights on transactional
ids and consumer groups are not. Brokers check a right before the subject of a request, so a request that cannot have
an effect shows whether the right is there: one about an unused producer id, or about a member that no group has.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.wire.messages import (
    DescribeClusterRequest,
    EndTxnRequest,
    ErrorCode,
    HeartbeatRequest,
    MetadataRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# The largest one. Coordinators count up from 0, and compare before they do anything (`TransactionCoordinator.
# handleEndTransaction`): the transaction of the id, open or not, stays as it is.
_NOBODY = (1 << 63) - 1
_NO_MEMBER = "pyspark-kafka-check"


class Operation(IntEnum):
    """An operation that a right allows, with the number on the wire (`AclOperation`)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DESCRIBE = 8


def probe_topic_rights(
    connection: Connection, topics: Iterable[str], deadline: Deadline
) -> dict[str, frozenset[int] | None]:
    """Return the operations that this user may do on topics; no topic is created.

    Returns:
        Operations by topic. None if the topic does not exist, or is hidden from this user, or if the broker does not
        return them (before Kafka 2.3).
    """
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    response = connection.call(request, deadline)
    return {
        topic.name: _operations(topic.authorized_operations)
        for topic in response.topics
        if topic.error_code == ErrorCode.NONE
    }


def probe_cluster_rights(connection: Connection, deadline: Deadline) -> frozenset[int] | None:
    """Return what this user may do to the cluster; None if the broker does not return it (before Kafka 2.8)."""
    if not connection.supports(DescribeClusterRequest):
        return None
    response = connection.call(DescribeClusterRequest(include_cluster_authorized_operations=True), deadline)
    return _operations(response.authorized_operations) if response.error_code == ErrorCode.NONE else None


def may_write_transactions(connection: Connection, transactional_id: str, deadline: Deadline) -> bool | None:
    """Return whether this user may write under a transactional id; None if the service has no transactions.

    Requests the end of a missing producer's transaction, which brokers refuse after they have checked the right.
    """
    if not connection.supports(EndTxnRequest):
        return None
    request = EndTxnRequest(transactional_id=transactional_id, producer_id=_NOBODY, producer_epoch=0, committed=False)
    response = connection.call(request, deadline)
    return bool(response.error_code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def may_read_group(connection: Connection, group_id: str, deadline: Deadline) -> bool | None:
    """Return whether this user may commit offsets of a consumer group; None if the service has no groups.

    Sends the heartbeat of a member that does not exist, which brokers refuse after they have checked the right.
    """
    if not connection.supports(HeartbeatRequest):
        return None
    request = HeartbeatRequest(group_id=group_id, generation_id=0, member_id=_NO_MEMBER)
    response = connection.call(request, deadline)
    return bool(response.error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED)


def _operations(told: Any) -> frozenset[int] | None:
    return None if told is None else frozenset(int(number) for number in told)
