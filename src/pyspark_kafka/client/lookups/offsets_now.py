"""Offsets as brokers tell them now, without waiting for those that do not: one ListOffsets request to each leader.

`offsets.list_offsets` waits until every partition has its offset; this says what is missing. Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.fanout import call_brokers
from pyspark_kafka.client.cluster.leaders import leaderless
from pyspark_kafka.client.lookups.offset_messages import build_request, parse_response
from pyspark_kafka.model import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.lookups.offset_messages import OffsetSpec
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.model import TopicPartition


def glance_at_offsets(
    client: KafkaClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ConnectorError]]:
    """Look up one offset for each partition, once: a broker that does not respond costs only its part.

    All leaders are asked side by side, as the client remembers them: fetch metadata before. Nothing is asked twice.

    Runs on: driver; blocks until all have responded, or for `answer_timeout_ms`. Units: offsets.

    Args:
        client: the cluster.
        specs: what to look up.
        deadline: for all of it.
        isolation_level: what counts as the end.

    Returns:
        Offsets by partition, without those that have no record at or after their time; and by partition why its offset
        was not told.
    """
    by_broker: dict[int, list[PartitionMetadata]] = {}
    found: dict[TopicPartition, int] = {}
    failures: dict[TopicPartition, ConnectorError] = {}
    for topic_partition in specs:
        leader = client.cached_leader(topic_partition)
        if leader is None:
            failures[topic_partition] = leaderless(client, topic_partition)
        else:
            by_broker.setdefault(leader.leader_id, []).append(leader)
    timeout_ms = min(deadline.remaining_s() * 1000, client.options.answer_timeout_ms)
    requests = {
        broker_id: build_request(partitions, specs, isolation_level, timeout_ms)
        for broker_id, partitions in by_broker.items()
    }
    for broker_id, done in call_brokers(client, requests, deadline).items():
        partitions = by_broker[broker_id]
        if done.error is not None:
            failures.update(dict.fromkeys((each.topic_partition for each in partitions), done.error))
            continue
        offsets, refused = parse_response(done.response, partitions, specs, done.address)
        found.update(offsets)
        failures.update(refused)
    return found, failures
