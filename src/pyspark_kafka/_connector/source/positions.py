"""The logs at positions, the times of the records there, and the retention of the topics."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.fetch.record_times import fetch_record_times
from pyspark_kafka._client.client.queries.logs import query_logs
from pyspark_kafka._client.client.queries.offsets import list_offsets_now
from pyspark_kafka._client.client.queries.topic_configs import fetch_topic_configs
from pyspark_kafka._connector.planning.lag import Log
from pyspark_kafka._connector.planning.retention import CONFIG_NAMES, parse_policy
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.fetch.record_times import RecordTimes
    from pyspark_kafka._client.client.queries.logs import LogStatus
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._connector.planning.retention import RetentionPolicy


@dataclass(frozen=True, slots=True)
class LogsAtPositions:
    """Log bounds and sizes from brokers, and the times of the records at positions.

    Attributes:
        logs: by partition, one for each position.
        topic_ids: the id of each topic, by name, as text; topics for which brokers return no id are left out.
        waiting: the partitions with unread records.
        times: the times of the records at the positions of these partitions; None if they were not requested.
        now_ms: the time before records were read, in ms since 1970: no record that waits is younger.
    """

    logs: Mapping[TopicPartition, LogStatus]
    topic_ids: Mapping[str, str]
    waiting: frozenset[TopicPartition]
    times: RecordTimes | None
    now_ms: int

    def log_of(self, topic_partition: TopicPartition, policy: RetentionPolicy | None) -> Log | None:
        """Return the log of a partition; None if its start or its end is not known."""
        log_status = self.logs[topic_partition]
        if log_status.start is None or log_status.end is None:
            return None
        time_ms = None if self.times is None else self.times.times.get(topic_partition)
        return Log(log_status.start, log_status.end, log_status.newest_ms, log_status.size, policy, time_ms)


def query_positions(
    client: KafkaClient,
    positions: Mapping[TopicPartition, int],
    deadline: Deadline,
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    newest: bool = True,
    times: bool = True,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> LogsAtPositions:
    """Fetch the log bounds, and the time of the record at each position that is behind.

    Runs on: driver and executor; blocks. A broker that is silent is waited for once.

    Args:
        client: the cluster.
        positions: next offset to read by partition.
        deadline: for everything.
        isolation_level: what counts as the end. With `read_committed`, the end of a log is not before a position that
            its high watermark reaches.
        newest: whether to fetch the times of the newest records (KIP-734).
        times: whether to read a record at each position that is behind, for its time. Those with most records come
            first, because the bytes that are read are limited.
        now_ms: ms since 1970.

    Raises:
        ConnectorError: nothing can be found out, because the cluster cannot be reached or refuses the login.
    """
    logs_now = query_logs(client, positions, deadline, isolation_level=isolation_level, newest=newest)
    if isolation_level is IsolationLevel.READ_COMMITTED:
        _move_hidden_ends(client, positions, logs_now.logs, deadline)
    asked_at_ms = now_ms()
    behind = []
    for topic_partition, position in positions.items():
        log_status = logs_now.logs[topic_partition]
        if log_status.leader is not None and log_status.start is not None and log_status.end is not None:
            log = Log(log_status.start, log_status.end)
            if records := log.records_behind(position):
                behind.append((records, log_status.leader, log.first_unread(position)))
    behind.sort(key=lambda each: -each[0])
    found = fetch_record_times(client, [(leader, first) for _, leader, first in behind], deadline) if times else None
    waiting = frozenset(leader.topic_partition for _, leader, _ in behind)
    return LogsAtPositions(logs_now.logs, logs_now.topic_ids, waiting, found, asked_at_ms)


def _move_hidden_ends(
    client: KafkaClient,
    positions: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, LogStatus],
    deadline: Deadline,
) -> None:
    """Move the end of a log that an open transaction hides to a position after it: nothing is behind, nor was cut."""
    after = {tp: Latest() for tp, position in positions.items() if (end := logs[tp].end) is not None and end < position}
    found = list_offsets_now(client, after, deadline)[0] if after else {}
    for topic_partition, end in found.items():
        if end >= positions[topic_partition]:
            logs[topic_partition].end = positions[topic_partition]


def fetch_policies(
    client: KafkaClient, topics: Iterable[str], deadline: Deadline
) -> tuple[dict[str, RetentionPolicy], dict[str, ConnectorError]]:
    """Return the retention policies by topic, and the errors of the other topics.

    Runs on: driver and executor; blocks.
    """
    policies: dict[str, RetentionPolicy] = {}
    failures: dict[str, ConnectorError] = {}
    for topic, configs in fetch_topic_configs(client, topics, CONFIG_NAMES, deadline).items():
        if isinstance(configs, ConnectorError):
            failures[topic] = configs
        else:
            policies[topic] = parse_policy(configs)
    return policies, failures
