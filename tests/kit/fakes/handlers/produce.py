"""Produce."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kafka.protocol.producer import ProduceResponse

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, MESSAGE_TOO_LARGE = 3, 10
# The broker's default of max.message.bytes.
MAX_MESSAGE_BYTES = 1_048_588


def produce(cluster: TcpCluster, request: Any) -> Any:
    """Append to the logs; return None for a request that wants no response."""
    topic_class = ProduceResponse.TopicProduceResponse
    names = {topic_id: name for name, topic_id in cluster.topic_ids.items()}
    topics = []
    for topic in request.topic_data:
        name = topic.name or names.get(topic.topic_id, "")
        entries = []
        for asked in topic.partition_data:
            code, offset = _append(cluster, (name, asked.index), bytes(asked.records), request.transactional_id)
            log = cluster.logs.get((name, asked.index))
            entries.append(
                topic_class.PartitionProduceResponse(
                    index=asked.index,
                    error_code=code,
                    base_offset=offset,
                    log_append_time_ms=-1,
                    log_start_offset=-1 if code or log is None else log.start,
                    record_errors=[],
                    error_message=None,
                )
            )
        topics.append(topic_class(name=topic.name, topic_id=topic.topic_id, partition_responses=entries))
    return None if request.acks == 0 else ProduceResponse(responses=topics, throttle_time_ms=0)


def _append(cluster: TcpCluster, key: tuple[str, int], data: bytes, transactional_id: str | None) -> tuple[int, int]:
    log = cluster.logs.get(key)
    if log is None:
        return UNKNOWN_TOPIC, -1
    if len(data) > cluster.max_message_bytes.get(key[0], MAX_MESSAGE_BYTES):
        return MESSAGE_TOO_LARGE, -1
    if transactional_id is not None:
        # A transaction of the second generation takes a partition in by the write to it (KIP-890).
        transaction = cluster.transactions[transactional_id]
        if struct.unpack_from(">qh", data, 43) == (transaction.producer_id, transaction.epoch):
            transaction.partitions.add(key)
    return log.append(data)
