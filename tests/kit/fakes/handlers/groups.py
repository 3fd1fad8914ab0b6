"""OffsetCommit and OffsetFetch of consumer groups without members: broker 0 is the coordinator of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import OffsetCommitResponse, OffsetFetchResponse

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC = 3


def offset_commit(cluster: TcpCluster, request: Any, errors: dict[int, int] | None = None) -> Any:
    """Take positions of partitions that exist; those in `errors` get that code."""
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    topics = []
    for topic in request.topics:
        entries = []
        for each in topic.partitions:
            key = (topic.name, each.partition_index)
            code = (errors or {}).get(each.partition_index, 0 if key in cluster.logs else UNKNOWN_TOPIC)
            if not code:
                cluster.groups[request.group_id][key] = (each.committed_offset, each.committed_metadata)
            entries.append(
                topic_class.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        topics.append(topic_class(name=topic.name, partitions=entries))
    return OffsetCommitResponse(throttle_time_ms=0, topics=topics)


def offset_fetch(cluster: TcpCluster, request: Any) -> Any:
    """Return all positions of one group."""
    topic_class = OffsetFetchResponse.OffsetFetchResponseTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), (offset, metadata) in sorted(cluster.groups[request.group_id].items()):
        by_topic.setdefault(topic, []).append(
            topic_class.OffsetFetchResponsePartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=-1,
                metadata=metadata,
                error_code=0,
            )
        )
    topics = [topic_class(name=name, partitions=entries) for name, entries in by_topic.items()]
    return OffsetFetchResponse(throttle_time_ms=0, topics=topics, error_code=0)
