"""DescribeLogDirs and DescribeConfigs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, DEFAULT = 3, 5


def log_dirs(cluster: TcpCluster, request: Any) -> Any:
    """Tell the bytes of the logs that were asked for, on one disk; those that are not there are left out."""
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic_class = result.DescribeLogDirsTopic
    topics = [
        topic_class(
            name=topic.topic,
            partitions=[
                topic_class.DescribeLogDirsPartition(
                    partition_index=number,
                    partition_size=sum(len(data) for _, _, data in cluster.logs[topic.topic, number].batches),
                    offset_lag=0,
                    is_future_key=False,
                )
                for number in topic.partitions
                if (topic.topic, number) in cluster.logs
            ],
        )
        for topic in request.topics
    ]
    return DescribeLogDirsResponse(
        throttle_time_ms=0, error_code=0, results=[result(error_code=0, log_dir="/data", topics=topics)]
    )


def topic_configs(cluster: TcpCluster, request: Any) -> Any:
    """Tell one value of the configuration of topics, a default."""
    result_class = DescribeConfigsResponse.DescribeConfigsResult
    results = []
    for resource in request.resources:
        known = resource.resource_name in cluster.topic_ids
        entry = result_class.DescribeConfigsResourceResult(
            name="segment.jitter.ms", value="0", read_only=False, config_source=DEFAULT, is_sensitive=False
        )
        results.append(
            result_class(
                error_code=0 if known else UNKNOWN_TOPIC,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[entry] if known else [],
            )
        )
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)
