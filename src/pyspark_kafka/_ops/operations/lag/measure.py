"""Measurement of lag: the requests to brokers, and the computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._connector.source.positions import fetch_policies, query_positions
from pyspark_kafka._ops.operations.lag.compute import partition_lag
from pyspark_kafka._ops.operations.lag.positions import without_old_rates
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag
from pyspark_kafka.errors import AccessError, ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka._base.model import IsolationLevel, TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.queries.logs import LogStatus
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._connector.planning.retention import RetentionPolicy
    from pyspark_kafka._connector.source.positions import LogsAtPositions
    from pyspark_kafka._ops.operations.lag.positions import LagPositions

_TOO_LARGE = "the time of the record at its position: record batches are large, and enough bytes were read for others"


def measure_lag(
    client: KafkaClient,
    positions: LagPositions,
    deadline: Deadline,
    *,
    isolation_level: IsolationLevel,
    times: bool = True,
) -> LagReport:
    """Fetch the log bounds, and return the lag of positions.

    Runs on: driver and executor; blocks. A broker that is silent is waited for once, and only its partitions are not
    known then.

    Args:
        client: the cluster.
        positions: to compare with the logs.
        deadline: for everything.
        isolation_level: what counts as the end.
        times: whether to read a record at each position that is behind, for its time.

    Raises:
        ConnectorError: nothing can be found out, because the cluster cannot be reached or refuses the login.
    """
    logs_now = query_positions(client, positions.partitions, deadline, isolation_level=isolation_level, times=times)
    positions = without_old_rates(positions, logs_now.now_ms, is_behind=bool(logs_now.waiting))
    topics = {tp.topic for tp in positions.partitions if logs_now.logs[tp].end is not None}
    policies, failures = fetch_policies(client, topics, deadline)
    reasons = [f"the headroom of topic '{topic}': {reason_of(error)}" for topic, error in failures.items()]
    partitions = [
        _lag_of(topic_partition, positions, logs_now, policies)
        for topic_partition in sorted({*positions.partitions, *positions.errors})
    ]
    elapsed_ms = deadline.elapsed_ms()
    missing = (*positions.missing, *reasons)
    times_ms = logs_now.now_ms, positions.reached_at_ms
    return LagReport(positions.origin, *times_ms, tuple(partitions), missing, elapsed_ms, positions.waiting)


def _lag_of(
    topic_partition: TopicPartition,
    positions: LagPositions,
    logs_now: LogsAtPositions,
    policies: dict[str, RetentionPolicy],
) -> PartitionLag:
    position = positions.partitions.get(topic_partition)
    if position is None:
        reason = f"its position: {reason_of(positions.errors[topic_partition])}"
        return PartitionLag(*topic_partition, missing=(reason,))
    log_status, log = (
        logs_now.logs[topic_partition],
        logs_now.log_of(topic_partition, policies.get(topic_partition.topic)),
    )
    if log_status.error is not None or log is None:
        return _unknown(topic_partition, position, log_status)
    read_id, now_id = positions.topic_ids.get(topic_partition.topic), logs_now.topic_ids.get(topic_partition.topic)
    if read_id is not None and now_id is not None and read_id != now_id:
        reason = f"the topic was recreated: its id is {now_id}, and records of {read_id} were read"
        return PartitionLag(
            *topic_partition,
            state=LagState.RECREATED,
            position=position,
            log_start=log.start,
            end=log.end,
            missing=(reason,),
        )
    missing: list[str] = []
    if log_status.size_error is not None:
        missing.append(f"how many bytes are behind: {reason_of(log_status.size_error)}")
    if (found := logs_now.times) is not None:
        if topic_partition in found.errors:
            missing.append(f"the time of the record at its position: {reason_of(found.errors[topic_partition])}")
        elif topic_partition in found.too_large:
            missing.append(_TOO_LARGE)
    return partition_lag(
        topic_partition,
        position,
        log,
        now_ms=logs_now.now_ms,
        consumed_per_s=positions.consumed_per_s.get(topic_partition),
        missing=tuple(missing),
    )


def _unknown(topic_partition: TopicPartition, position: int, log_status: LogStatus) -> PartitionLag:
    error = log_status.error
    is_gone = error is not None and error.condition in ("UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PARTITION")
    reason = "the ends of its log" if error is None else f"its log: {reason_of(error)}"
    return PartitionLag(
        *topic_partition,
        state=LagState.GONE if is_gone else LagState.UNKNOWN,
        position=position,
        log_start=log_status.start,
        end=log_status.end,
        missing=(reason,),
    )


def reason_of(error: ConnectorError) -> str:
    """Return the reason for missing information: the message of an error, and the way to grant a missing right."""
    grant = error.grant if isinstance(error, AccessError) else ""
    return f"{error.message} {grant}".strip()
