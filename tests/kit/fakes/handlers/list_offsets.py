"""ListOffsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import ListOffsetsResponse

from kit.fakes.logs import PartitionLog

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC = 3
LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1


def list_offsets(cluster: TcpCluster, request: Any, errors: dict[int, int] | None = None) -> Any:
    """Look up in `cluster.ends` where the test set it, else in the log; partitions in `errors` get that code."""
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = []
    for topic in request.topics:
        entries = []
        for asked in topic.partitions:
            code, offset, timestamp = _look_up(cluster, topic.name, asked, request.isolation_level)
            code = (errors or {}).get(asked.partition_index, code)
            entries.append(
                topic_class.ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=code,
                    timestamp=-1 if code else timestamp,
                    offset=-1 if code else offset,
                    leader_epoch=0,
                )
            )
        topics.append(topic_class(name=topic.name, partitions=entries))
    return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def _look_up(cluster: TcpCluster, name: str, asked: Any, isolation_level: int) -> tuple[int, int, int]:
    """Return error code, offset and timestamp."""
    key = (name, asked.partition_index)
    if key not in cluster.logs and key not in cluster.ends:
        return UNKNOWN_TOPIC, -1, -1
    log = cluster.logs.get(key) or PartitionLog()
    start, end = cluster.ends.get(key) or (
        log.start,
        log.last_stable if isolation_level == READ_COMMITTED else log.end,
    )
    if asked.timestamp in (LATEST, EARLIEST):
        return 0, end if asked.timestamp == LATEST else start, -1
    found = log.find_time(asked.timestamp, end)
    return (0, *found) if found else (0, -1, -1)
