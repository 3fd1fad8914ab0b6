"""Brokers: their release, as far as their request versions show it, and their clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.messages import DescribeQuorumRequest, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline

_TOPIC = "__cluster_metadata"
# The newest version of a request that came with a release: brokers do not name their release (KIP-35). Only requests
# that every listener for clients offers. Source: `ApiKeys` and the schemas of the releases.
_FIRST_WITH = (
    ("4.3", 35, 5),
    ("4.2", 2, 11),
    ("4.1", 0, 13),
    ("4.0", 2, 10),
    ("3.9", 1, 17),
    ("3.8", 0, 11),
    ("3.7", 1, 16),
    ("3.6", 24, 4),
    ("3.5", 1, 15),
    ("3.3", 29, 3),
    ("3.2", 11, 9),
    ("3.1", 1, 13),
    ("3.0", 2, 7),
    ("2.8", 0, 9),
    ("2.7", 1, 12),
    ("2.6", 48, 0),
    ("2.5", 29, 2),
    ("2.4", 0, 8),
    ("2.3", 1, 11),
    ("2.2", 2, 5),
    ("2.1", 1, 10),
)
_OLDER = "older than 2.1"


def probe_clock(
    connection: Connection, deadline: Deadline, *, now_ms: Callable[[], float] = lambda: time.time() * 1000
) -> tuple[float, float] | None:
    """Compare this machine's clock with the clock of the leader of the controllers.

    The leader reports the current time as the time when it was last in sync with itself (KIP-836, Kafka 3.3). Needs the
    right DESCRIBE on the cluster.

    Runs on: driver and executor; blocks.

    Returns:
        By how many milliseconds the clock of the brokers is ahead, and by how much that may be wrong: half of the time
        that the response took. None if the brokers do not return it.
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


def guess_release(offered: Mapping[int, tuple[int, int]]) -> str:
    """Return the release that first had these versions of requests, such as `4.3`; a guess.

    Services that speak Kafka's protocol, and gateways, look like the release whose requests they offer.

    Args:
        offered: the lowest and highest version of each request, by API key.
    """
    for release, api_key, version in _FIRST_WITH:
        if api_key in offered and offered[api_key][1] >= version:
            return release
    return _OLDER
