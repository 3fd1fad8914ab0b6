"""ListOffsets: the ends of logs, and offsets by time, for any number of partitions with one request a broker.

What must not live here: which offsets a query starts from; that is the source's. Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from pyspark_kafka.client.metadata import unknown_topic
from pyspark_kafka.client.protocol import ErrorCode, ListOffsetsRequest, broker_error
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.errors import BrokerError, ConnectorError, DeadlineError
from pyspark_kafka.model import IsolationLevel, TopicPartition
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.connection import Connection
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.metadata import PartitionMetadata

OffsetSpec = Union[Earliest, Latest, AtTimestamp]  # noqa: UP007 - evaluated when imported, also on Python 3.10

_LATEST_TIMESTAMP = -1
_EARLIEST_TIMESTAMP = -2
# How often a partition may be unknown to its leader before that is believed (metadata lags behind a creation).
_UNKNOWN_LOOKS = 4


def list_offsets(
    client: KafkaClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    deadline: Deadline | None = None,
) -> dict[TopicPartition, int]:
    """Look up one offset for each partition.

    All brokers are asked at the same time, each with one request. `Latest` is the high watermark, or with
    `read_committed` the last stable offset. Moved leaders are followed.

    Runs on: driver, once or twice a micro-batch; blocks.
    Units: offsets; timestamps in milliseconds since 1970-01-01 UTC.

    Args:
        client: the cluster.
        specs: what to look up.
        isolation_level: what counts as the end.
        deadline: for all attempts; None takes `api_timeout_ms`.

    Returns:
        Offsets by partition. A partition with no record at or after its `AtTimestamp` is left out.

    Raises:
        BrokerError: a topic or partition does not exist (condition UNKNOWN_TOPIC), or a broker refused.
        AccessError: not allowed.
        DeadlineError: not all partitions could be looked up in time; names one of them and the last failure.
        TransportError: no broker can be reached.

    Source: KIP-79, KIP-98; Java `OffsetFetcher`.
    """
    deadline = deadline or client.deadline()
    backoff = client.backoff()
    found: dict[TopicPartition, int] = {}
    pending = dict(specs)
    unknown_looks = 0
    last: ConnectorError | None = None
    while pending:
        try:
            failures = _round(client, pending, isolation_level, found, deadline)
        except DeadlineError as cut_short:
            if last is None:
                raise
            raise deadline.error(_step(pending, specs), last) from cut_short
        pending = {topic_partition: pending[topic_partition] for topic_partition in failures}
        if not pending:
            break
        if any(_is_unknown(error) for error in failures.values()):
            unknown_looks += 1
        for topic_partition, error in failures.items():
            client.forget(topic_partition.topic)
            if _is_unknown(error):
                if unknown_looks >= _UNKNOWN_LOOKS:
                    raise unknown_topic(topic_partition.topic, partition=topic_partition.partition) from error
            elif decide(error).action is Action.FAIL:
                raise error
        # An attempt that the deadline cut short says less than the failure before it.
        first = next(iter(failures.values()))
        last = first if last is None or not isinstance(first, DeadlineError) else last
        deadline.check(_step(pending, specs), last)
        deadline.pause(backoff.next_s())
    return found


def _step(pending: Mapping[TopicPartition, OffsetSpec], specs: Mapping[TopicPartition, OffsetSpec]) -> str:
    return f"Looking up the offset of {next(iter(pending))} ({len(pending)} of {len(specs)} left)"


def _is_unknown(error: ConnectorError) -> bool:
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _round(
    client: KafkaClient,
    pending: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel,
    found: dict[TopicPartition, int],
    deadline: Deadline,
) -> dict[TopicPartition, ConnectorError]:
    """Ask every leader once; put what came back into `found` and give the failures by partition."""
    by_broker: dict[int, list[PartitionMetadata]] = {}
    for partition in client.leaders(pending, deadline).values():
        by_broker.setdefault(partition.leader_id, []).append(partition)
    failures: dict[TopicPartition, ConnectorError] = {}
    asked: list[tuple[int, Connection, list[PartitionMetadata]]] = []
    step = deadline.within(client.options.answer_timeout_ms)
    try:
        for broker_id, partitions in by_broker.items():
            try:
                connection = client.borrow(broker_id, step)
                connection.send(_build_request(partitions, pending, isolation_level, step))
            except ConnectorError as error:
                failures.update((partition.topic_partition, error) for partition in partitions)
            else:
                asked.append((broker_id, connection, partitions))
        while asked:
            broker_id, connection, partitions = asked[0]
            try:
                response = connection.receive(step)
            except ConnectorError as error:
                failures.update((partition.topic_partition, error) for partition in partitions)
                # Who leads instead must not be asked of a broker that has just been silent.
                client.drop_idle_connections(broker_id)
            else:
                failures.update(_parse_response(response, partitions, pending, found, connection.address))
            client.give_back(broker_id, connection)
            asked.pop(0)
    finally:
        # Left only when interrupted in the middle. Giving back closes a connection that still owes an answer.
        for broker_id, connection, _ in asked:
            client.give_back(broker_id, connection)
    return failures


def _build_request(
    partitions: list[PartitionMetadata],
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel,
    deadline: Deadline,
) -> Any:
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
        timeout_ms=max(1, int(deadline.remaining_s() * 1000)),
    )


def _wire_timestamp(spec: OffsetSpec) -> int:
    if isinstance(spec, Latest):
        return _LATEST_TIMESTAMP
    if isinstance(spec, Earliest):
        return _EARLIEST_TIMESTAMP
    return spec.timestamp_ms


def _parse_response(
    response: Any,
    partitions: list[PartitionMetadata],
    specs: Mapping[TopicPartition, OffsetSpec],
    found: dict[TopicPartition, int],
    address: str,
) -> dict[TopicPartition, ConnectorError]:
    waiting = {partition.topic_partition for partition in partitions}
    failures: dict[TopicPartition, ConnectorError] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            topic_partition = TopicPartition(topic.name, entry.partition_index)
            if topic_partition not in waiting:
                # Not asked for, or answered twice: the first answer counts.
                continue
            waiting.discard(topic_partition)
            if entry.error_code != ErrorCode.NONE:
                failures[topic_partition] = broker_error(
                    entry.error_code,
                    f"Looking up an offset of {topic_partition} at {address} failed",
                    topic=topic_partition.topic,
                    partition=topic_partition.partition,
                )
            elif entry.offset >= 0:
                found[topic_partition] = entry.offset
            elif not isinstance(specs[topic_partition], AtTimestamp):
                # Only a time may have no offset; an end of the log that is not known yet is asked for again.
                failures[topic_partition] = broker_error(
                    ErrorCode.OFFSET_NOT_AVAILABLE, f"{address} gave offset {entry.offset} for {topic_partition}"
                )
    for topic_partition in waiting:
        failures[topic_partition] = broker_error(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{address} left {topic_partition} out of its answer about offsets"
        )
    return failures
