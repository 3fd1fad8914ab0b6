"""ListOffsets, the request and its response for the partitions of one leader. Pure: no sockets, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.wire.completeness import response_incomplete
from pyspark_kafka._client.client.wire.messages import ErrorCode, ListOffsetsRequest, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import IsolationLevel
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka.errors import ConnectorError

OffsetSpec = Union[Earliest, Latest, AtTimestamp]  # noqa: UP007 - evaluated when imported, also on Python 3.10

_LATEST_TIMESTAMP = -1
_EARLIEST_TIMESTAMP = -2


def build_request(
    partitions: list[PartitionMetadata],
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel,
    timeout_ms: float,
) -> Any:
    """Build the request for partitions that one broker leads.

    Args:
        partitions: with the epochs of their leaders, so that a broker refuses what it leads no longer.
        specs: what to look up, by topic-partition.
        isolation_level: what counts as the end.
        timeout_ms: how long the broker may take.
    """
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for partition in partitions:
        topic_partition = partition.topic_partition
        by_topic.setdefault(topic_partition.topic, []).append(
            topic_class.ListOffsetsPartition(
                partition_index=topic_partition.partition,
                current_leader_epoch=partition.leader_epoch,
                timestamp=_wire_timestamp(specs[topic_partition]),
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level.wire_value,
        topics=[topic_class(name=name, partitions=entries) for name, entries in by_topic.items()],
        timeout_ms=max(1, int(timeout_ms)),
    )


def _wire_timestamp(spec: OffsetSpec) -> int:
    if isinstance(spec, Latest):
        return _LATEST_TIMESTAMP
    if isinstance(spec, Earliest):
        return _EARLIEST_TIMESTAMP
    return spec.timestamp_ms


def parse_response(
    response: Any,
    partitions: list[PartitionMetadata],
    specs: Mapping[TopicPartition, OffsetSpec],
    address: str,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ConnectorError]]:
    """Turn a decoded response into offsets and failures, by topic-partition.

    A partition that has no record at or after its time is in neither.

    Args:
        response: as kafka-python decodes it.
        partitions: the partitions of the request.
        specs: what was looked up, by topic-partition.
        address: of the broker, for errors.
    """
    offsets: dict[TopicPartition, int] = {}
    waiting = {partition.topic_partition for partition in partitions}
    taken: set[TopicPartition] = set()
    doubled: set[TopicPartition] = set()
    failures: dict[TopicPartition, ConnectorError] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            topic_partition = TopicPartition(topic.name, entry.partition_index)
            if topic_partition in taken:
                doubled.add(topic_partition)
            if topic_partition not in waiting:
                continue
            waiting.discard(topic_partition)
            taken.add(topic_partition)
            if entry.error_code != ErrorCode.NONE:
                failures[topic_partition] = broker_error(
                    entry.error_code,
                    f"Looking up an offset of {topic_partition} at {address} failed",
                    rights=(Right("Describe", "topic", topic_partition.topic, granted_by="Read"),),
                    topic=topic_partition.topic,
                    partition=topic_partition.partition,
                )
            elif entry.offset >= 0:
                offsets[topic_partition] = entry.offset
            elif not isinstance(specs[topic_partition], AtTimestamp):
                # Only a time may have no offset; an unknown end of the log is requested again.
                failures[topic_partition] = broker_error(
                    ErrorCode.OFFSET_NOT_AVAILABLE, f"{address} returned offset {entry.offset} for {topic_partition}"
                )
    for topic_partition in doubled:
        # One of the entries is another partition's, and it is unknown which.
        offsets.pop(topic_partition, None)
        failures[topic_partition] = response_incomplete("ListOffsets", address, f"names {topic_partition} twice")
    for topic_partition in waiting:
        failures[topic_partition] = broker_error(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{address} left {topic_partition} out of its response about offsets"
        )
    return offsets, failures
