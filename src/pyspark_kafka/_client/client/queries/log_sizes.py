"""DescribeLogDirs: how many bytes the logs of partitions take, by one request to each leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.fanout import call_leaders, raise_first
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.wire.messages import DescribeLogDirsRequest, ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.cluster.fanout import BrokerResponse
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

_HINT = "A service that does not offer DescribeLogDirs refuses it as well: leave out option 'maxBytesPerTrigger'."
_RIGHT = Right("Describe", "cluster")


def fetch_log_sizes(
    client: KafkaClient, partitions: Iterable[TopicPartition], deadline: Deadline | None = None
) -> dict[TopicPartition, int]:
    """Return the log size of each partition on its leader's disk.

    As stored, so usually compressed; segments in tiered storage (KIP-405) do not count.

    Runs on: driver; blocks. Units: bytes.

    Returns:
        Bytes by partition. A partition that is not in its leader's response is left out: it moved, or has no log yet.

    Raises:
        AccessError: the user may not describe the cluster.
        BrokerError: a broker refused, or a topic does not exist.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.

    Source: KIP-113.
    """
    pending = dict.fromkeys(sorted(partitions))
    found: dict[TopicPartition, int] = {}

    def take_sizes(done: BrokerResponse, led: Iterable[PartitionMetadata]) -> dict[TopicPartition, ConnectorError]:
        asked = {partition.topic_partition for partition in led}
        found.update(parse_response(done.response, asked, done.address))
        for topic_partition in asked:
            del pending[topic_partition]
        return {}

    def attempt(step: Deadline) -> dict[TopicPartition, int]:
        failures = call_leaders(client, find_leaders(client, pending, step).values(), build_request, take_sizes, step)
        for topic_partition in failures:
            client.forget_topic(topic_partition.topic)
        raise_first(failures)
        return found

    return client.retrying("Looking up the sizes of logs", deadline or client.deadline(), attempt)


def build_request(partitions: Iterable[PartitionMetadata]) -> Any:
    """Build the request for partitions that one broker leads."""
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic_partition.topic, []).append(partition.topic_partition.partition)
    topic_class = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[topic_class(topic=name, partitions=numbers) for name, numbers in by_topic.items()]
    )


def parse_response(response: Any, asked: set[TopicPartition], address: str) -> dict[TopicPartition, int]:
    """Return the bytes of each partition in a decoded response; partitions that it does not describe are left out.

    Raises:
        AccessError: the user may not describe the cluster.
        BrokerError: the broker refused.
    """
    # Before version 3 there is no code for the whole response: it has no directories if the user lacks the right.
    code = response.error_code or (ErrorCode.NONE if response.results else ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if code != ErrorCode.NONE:
        raise broker_error(code, f"Asking {address} for the sizes of logs failed", hint=_HINT, rights=(_RIGHT,))
    found: dict[TopicPartition, int] = {}
    for directory in response.results:
        if directory.error_code != ErrorCode.NONE:
            # One broken disk of a broker; what is on it is led by another broker, or not at all.
            continue
        for topic in directory.topics:
            for entry in topic.partitions:
                topic_partition = TopicPartition(topic.name, entry.partition_index)
                # A log that is being moved between disks is there twice; the future one is not complete.
                if topic_partition in asked and not entry.is_future_key:
                    found[topic_partition] = entry.partition_size
    return found
