"""ApiVersions and Metadata."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE = 3, 5


def api_versions(cluster: TcpCluster, _: Any) -> Any:
    """Name all versions that kafka-python knows, or those that the test says."""
    keys = {key: cls.valid_versions for key, cls in cluster.known_requests.items()} | cluster.versions
    entry = ApiVersionsResponse.ApiVersion
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[entry(api_key=key, min_version=low, max_version=high) for key, (low, high) in sorted(keys.items())],
        throttle_time_ms=0,
    )


def metadata(cluster: TcpCluster, request: Any) -> Any:
    """Describe the topics asked for, or all, with the leaders that the test set."""
    topic_class = MetadataResponse.MetadataResponseTopic
    names = list(cluster.topic_ids) if request.topics is None else [topic.name for topic in request.topics]
    topics = []
    for name in names:
        known = name in cluster.topic_ids
        partitions = [
            topic_class.MetadataResponsePartition(
                error_code=0 if leader >= 0 else LEADER_NOT_AVAILABLE,
                partition_index=number,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=[],
                isr_nodes=[],
                offline_replicas=[],
            )
            for (topic, number), (leader, epoch) in cluster.leaders.items()
            if topic == name
        ]
        topics.append(
            topic_class(
                error_code=0 if known else UNKNOWN_TOPIC,
                name=name,
                topic_id=cluster.topic_ids.get(name, uuid.UUID(int=0)),
                is_internal=False,
                partitions=partitions if known else [],
                authorized_operations=set(),
            )
        )
    addresses = {number: cluster.elsewhere.get(number) or cluster.address(number) for number in range(cluster.count)}
    nodes = [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker_id, host=host, port=port, rack=cluster.racks.get(broker_id)
        )
        for broker_id, (host, port) in addresses.items()
    ]
    return MetadataResponse(
        throttle_time_ms=0, brokers=nodes, cluster_id="fake", controller_id=0, topics=topics, error_code=0
    )
