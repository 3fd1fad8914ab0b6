"""The logs of a checkpoint's partitions, from the brokers: their starts and ends, and offsets by time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import ConnectionOptions


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The bounds of some logs.

    Attributes:
        earliest: the first offset of the log.
        latest: the end: the offset of the next record.
        at: the first offset whose record has the requested time or a later one; partitions without such a record are
            missing.
        topic_ids: of the topics, by name; brokers before Kafka 2.8 do not return them.
        gone: partitions that do not exist.
        stable: the last stable offset, if it differs from the end: the first offset of an open transaction.
    """

    earliest: Mapping[TopicPartition, int] = field(default_factory=dict)
    latest: Mapping[TopicPartition, int] = field(default_factory=dict)
    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[TopicPartition] = frozenset()
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)

    def last_start(self, topic_partition: TopicPartition) -> int | None:
        """Return the last offset at which any query may start; None if the partition does not exist.

        A checkpoint does not show whether its query reads with read_committed. If so, the log ends at the last stable
        offset, and a later start is after the end of the log.
        """
        return self.stable.get(topic_partition, self.latest.get(topic_partition))


def fetch_log_bounds(
    connection: ConnectionOptions, partitions: Collection[TopicPartition], timestamp_ms: int | None = None
) -> LogBounds:
    """Fetch the log bounds of partitions: a few requests to each leader, for any number of partitions.

    Runs on: any program; blocks, at most `api_timeout_ms` for each look-up.

    Args:
        connection: the options of the cluster.
        partitions: the partitions; they may be deleted.
        timestamp_ms: also look up the offsets of this time, milliseconds since 1970-01-01 UTC.

    Raises:
        TransportError, DeadlineError: brokers cannot be reached, or do not respond.
        AccessError: a topic may not be described.
    """
    if not partitions:
        return LogBounds()
    with borrow_client(connection) as client:
        found = client.fetch_metadata({each.topic for each in partitions}).topics
        for topic in found.values():
            error = topic.error_for("Read")
            if error is not None and topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
        there = {each.topic_partition for topic in found.values() for each in topic.partitions}
        wanted = [each for each in sorted(partitions) if each in there]
        if not wanted:
            return LogBounds(gone=frozenset(partitions))
        # Ends first: a record that is written between two look-ups must not be skipped.
        stable = list_offsets(client, dict.fromkeys(wanted, Latest()), IsolationLevel.READ_COMMITTED)
        latest = list_offsets(client, dict.fromkeys(wanted, Latest()))
        earliest = list_offsets(client, dict.fromkeys(wanted, Earliest()))
        at = {}
        if timestamp_ms is not None:
            at = list_offsets(client, dict.fromkeys(wanted, AtTimestamp(timestamp_ms)))
    open_at = {each: offset for each, offset in stable.items() if offset < latest[each]}
    ids = {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id is not None}
    return LogBounds(earliest, latest, at, ids, frozenset(partitions) - set(wanted), open_at)
