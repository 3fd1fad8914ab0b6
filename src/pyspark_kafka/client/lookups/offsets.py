"""ListOffsets: the ends of logs, and offsets by time, for any number of partitions with one request a broker.

What must not live here: which offsets a query starts from; that is the source's. Layer: client.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Union

from pyspark_kafka.client.cluster.exchanges import Exchanges
from pyspark_kafka.client.cluster.leaders import fetch_leaders, leaderless
from pyspark_kafka.client.cluster.metadata import unknown_topic
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.client.wire.messages import ErrorCode, ListOffsetsRequest, broker_error
from pyspark_kafka.errors import BrokerError, ConnectorError, DeadlineError
from pyspark_kafka.model import IsolationLevel, TopicPartition
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.exchanges import BrokerResponse
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka.client.deadline import Deadline

OffsetSpec = Union[Earliest, Latest, AtTimestamp]  # noqa: UP007 - evaluated when imported, also on Python 3.10

_LATEST_TIMESTAMP = -1
_EARLIEST_TIMESTAMP = -2
# How often a partition may be unknown to its leader before that is believed (metadata lags behind a creation).
_UNKNOWN_LOOKS = 4
# A broker that has said nothing for so long may have died: others are asked who leads, as often as that.
_SILENT_S = 2.0


def list_offsets(
    client: KafkaClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    deadline: Deadline | None = None,
) -> dict[TopicPartition, int]:
    """Look up one offset for each partition.

    All brokers are asked at the same time, each with one request, and connected to side by side: one that is silent
    holds up only the partitions that it leads, until another one leads them. `Latest` is the high watermark, or with
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
    with Exchanges(client, deadline) as exchanges:
        return _LookUp(client, exchanges, specs, isolation_level, deadline).run()


class _LookUp:
    """A look-up under way: what is found, who is asked for what, and what is to be asked for (again)."""

    def __init__(
        self,
        client: KafkaClient,
        exchanges: Exchanges,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel,
        deadline: Deadline,
    ) -> None:
        self._client = client
        self._exchanges = exchanges
        self._specs = specs
        self._isolation_level = isolation_level
        self._deadline = deadline
        self._backoff = client.backoff()
        self._found: dict[TopicPartition, int] = {}
        self._open = dict.fromkeys(specs)
        self._asked: dict[int, list[PartitionMetadata]] = {}
        self._unknown_looks: dict[TopicPartition, int] = {}
        # When to ask for what is open, and when to look whether those that are silent still lead.
        self._ask_at = 0.0
        self._look_at = 0.0
        self._last: ConnectorError | None = None

    def run(self) -> dict[TopicPartition, int]:
        # Not `retry.attempts`: partitions that are asked for again do not wait for brokers that are still silent.
        while self._open or self._asked:
            if self._open and time.monotonic() >= self._ask_at:
                self._ask()
            for done in self._exchanges.wait(self._until_next_s()):
                self._take(done)
            self._look_at_silent()
            if self._open or self._asked:
                self._deadline.check(self._step(), self._last)
        return self._found

    def _until_next_s(self) -> float:
        until = [self._deadline.remaining_s()]
        now = time.monotonic()
        if self._open:
            until.append(max(0.0, self._ask_at - now))
        if self._asked:
            until.append(max(0.0, self._look_at - now))
        return min(until)

    def _ask(self) -> None:
        """Ask the leaders of what is open; what has no leader now is asked for again later."""
        client = self._client
        unknown = [tp for tp in self._open if client.cached_leader(tp) is None]
        if unknown:
            new = {tp for tp in unknown if self._unknown_looks.get(tp, 0) + 1 < _UNKNOWN_LOOKS}
            try:
                fetch_leaders(client, unknown, self._deadline, new)
            except DeadlineError as error:
                raise self._deadline.error(self._step(), self._last or error) from error
        by_broker: dict[int, list[PartitionMetadata]] = {}
        for topic_partition in self._open:
            leader = client.cached_leader(topic_partition)
            if leader is None:
                self._unknown_looks[topic_partition] = self._unknown_looks.get(topic_partition, 0) + 1
                self._retry_later(leaderless(client, topic_partition))
            elif leader.leader_id not in self._exchanges:
                by_broker.setdefault(leader.leader_id, []).append(leader)
            else:
                # Moved to a broker that owes an answer about others.
                self._ask_later()
        if not self._asked:
            self._look_at = time.monotonic() + _SILENT_S
        for broker_id, partitions in by_broker.items():
            request = _build_request(partitions, self._specs, self._isolation_level, self._deadline)
            self._asked[broker_id] = partitions
            for partition in partitions:
                del self._open[partition.topic_partition]
            self._exchanges.send(broker_id, request)

    def _take(self, done: BrokerResponse) -> None:
        partitions = self._asked.pop(done.broker_id)
        if done.error is not None:
            failures = {partition.topic_partition: done.error for partition in partitions}
        else:
            failures = _parse_response(done.response, partitions, self._specs, self._found, done.address)
        for topic_partition, error in failures.items():
            self._client.forget_topic(topic_partition.topic)
            if _is_unknown(error):
                looks = self._unknown_looks[topic_partition] = self._unknown_looks.get(topic_partition, 0) + 1
                if looks >= _UNKNOWN_LOOKS:
                    raise unknown_topic(topic_partition.topic, partition=topic_partition.partition) from error
            elif decide(error).action is Action.FAIL:
                raise error
            self._open[topic_partition] = None
            self._retry_later(error)

    def _look_at_silent(self) -> None:
        """Ask the cluster who leads what silent brokers were asked for; what has moved is asked for elsewhere."""
        if not self._asked or time.monotonic() < self._look_at:
            return
        silent = [broker_id for broker_id in self._exchanges.silent_for(_SILENT_S) if broker_id in self._asked]
        if silent:
            topics = {partition.topic_partition.topic for broker_id in silent for partition in self._asked[broker_id]}
            try:
                self._client.fetch_metadata(topics, self._deadline.within(self._client.options.answer_timeout_ms))
            except ConnectorError as error:
                # Not what was asked for: the silent ones may answer yet.
                self._last = self._last or error
            for broker_id in silent:
                self._leave_moved(broker_id)
        self._look_at = time.monotonic() + _SILENT_S

    def _leave_moved(self, broker_id: int) -> None:
        kept: list[PartitionMetadata] = []
        for partition in self._asked[broker_id]:
            leader = self._client.cached_leader(partition.topic_partition)
            if leader is None or leader.leader_id == broker_id:
                kept.append(partition)
            else:
                self._open[partition.topic_partition] = None
                self._ask_at = 0.0
        if kept:
            # An answer about what has moved as well is not wrong: brokers refuse what they lead no longer.
            self._asked[broker_id] = kept
        else:
            del self._asked[broker_id]
            self._exchanges.give_up(broker_id)

    def _retry_later(self, error: ConnectorError) -> None:
        # An attempt that the deadline cut short says less than the failure before it.
        if self._last is None or not isinstance(error, DeadlineError):
            self._last = error
        self._ask_later()

    def _ask_later(self) -> None:
        now = time.monotonic()
        if self._ask_at <= now:
            self._ask_at = now + self._backoff.next_s()

    def _step(self) -> str:
        left = [*self._open, *(each.topic_partition for asked in self._asked.values() for each in asked)]
        silent = self._exchanges.addresses()
        others = f" and {len(silent) - 1} other brokers" if len(silent) > 1 else ""
        waiting = f", waiting for {silent[0]}{others}," if silent else ""
        return f"Looking up the offset of {left[0]} ({len(left)} of {len(self._specs)} left){waiting}"


def _is_unknown(error: ConnectorError) -> bool:
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


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
