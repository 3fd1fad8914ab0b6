"""What time the brokers have, by the one response that says so without a write. Layer: client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.messages import DescribeQuorumRequest, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.net.connection import Connection

_TOPIC = "__cluster_metadata"


def probe_clock(
    connection: Connection, deadline: Deadline, *, now_ms: Callable[[], float] = lambda: time.time() * 1000
) -> tuple[float, float] | None:
    """Compare this machine's clock with that of the leader of the controllers.

    The leader reports the current time as the time when it was last in sync with itself (KIP-836, Kafka 3.3). Needs the
    right DESCRIBE on the cluster.

    Runs on: driver and executor; blocks.

    Returns:
        By how many milliseconds the clock of the brokers is ahead, and by how much that may be wrong: half of the time
        that the response took. None if the brokers do not tell.
    """
    if not connection.supports(DescribeQuorumRequest, 1):
        return None
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=_TOPIC, partitions=[partition])])
    before = now_ms()
    response = connection.call(request, deadline)
    after = now_ms()
    if response.error_code != ErrorCode.NONE:
        return None
    for told in (each for topic in response.topics for each in topic.partitions):
        for replica in told.current_voters:
            if replica.replica_id == told.leader_id and replica.last_caught_up_timestamp > 0:
                return replica.last_caught_up_timestamp - (before + after) / 2, (after - before) / 2
    return None
