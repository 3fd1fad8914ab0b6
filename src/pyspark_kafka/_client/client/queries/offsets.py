"""The ends of logs, and offsets by time, for any number of partitions: one ListOffsets request to each leader.

Which offsets a query starts from is decided by `_connector/source/driver/`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._client.client.cluster.fanout import RequestFanout, call_leaders
from pyspark_kafka._client.client.cluster.leaders import fetch_leaders, leaderless
from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.queries.offset_messages import build_request, parse_response
from pyspark_kafka._client.client.waiting.retry import RetryAction, attempts, decide
from pyspark_kafka._client.client.waiting.stalls import note_failure
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.fanout import BrokerResponse
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# How often a partition may be unknown to its leader, or have none, before that is believed (metadata lags behind).
_UNKNOWN_LOOKS = 4
# A broker that is silent for that time may have died: leaders are requested from others, at that interval.
_SILENT_S = 2.0


def list_offsets(
    client: KafkaClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    deadline: Deadline | None = None,
) -> dict[TopicPartition, int]:
    """Return one offset for each partition.

    All leaders are queried at the same time, each with one request, and connected to side by side: a silent one delays
    only the partitions that it leads, until another broker leads them. `Latest` is the high watermark, or with
    `read_committed` the last stable offset. Partitions whose leader has moved are requested again.

    Runs on: driver, once or twice in a micro-batch; executor, for open ends and after lost offsets; blocks.
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
    try:
        with RequestFanout(client, deadline) as fanout:
            return _LookUp(client, fanout, specs, isolation_level, deadline).run()
    except AccessError as error:
        name_user(error, client.options)
        raise


def list_offsets_now(
    client: KafkaClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ConnectorError]]:
    """Return one offset for each partition: a broker that does not respond costs only its part, and only for a time.

    All leaders are queried side by side, as the client remembers them: fetch metadata before. After a lost connection
    or a leader's move, metadata are fetched and the leader is queried again, for `answer_timeout_ms`. A silent broker
    has had that time, and is not queried again; a partition without a leader is looked up a few times.

    Runs on: driver; blocks until all have responded, or for `answer_timeout_ms`. Units: offsets.

    Args:
        client: the cluster.
        specs: what to look up.
        deadline: for all of it.
        isolation_level: what counts as the end.

    Returns:
        Offsets by partition, without partitions that have no record at or after their time; and, by partition without
        an offset in the response, why.
    """
    found: dict[TopicPartition, int] = {}
    failures: dict[TopicPartition, ConnectorError] = {}
    limit = deadline.within(client.options.answer_timeout_ms)
    pending = list(specs)
    for look in attempts(client.backoff(), deadline=deadline):
        if look > 1:
            topics = {topic_partition.topic for topic_partition in pending}
            try:
                client.fetch_metadata(topics, deadline.within(client.options.answer_timeout_ms))
            except ConnectorError:
                # Each partition has a failure of its own, which says more.
                break
        failed = _ask_once(client, pending, specs, deadline, isolation_level, found)
        for topic_partition in pending:
            error = failed.get(topic_partition)
            if error is None:
                failures.pop(topic_partition, None)
            elif topic_partition not in failures or not isinstance(error, DeadlineError):
                # An attempt that the deadline cut short says less than the failure before it.
                failures[topic_partition] = error
        pending = [each for each, error in failed.items() if _may_pass(client, each, error, look)]
        if not pending or (look > 1 and limit.expired):
            break
        for error in dict.fromkeys(failed[each] for each in pending):
            note_failure(error)
    return found, failures


def _ask_once(
    client: KafkaClient,
    partitions: Sequence[TopicPartition],
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation_level: IsolationLevel,
    found: dict[TopicPartition, int],
) -> dict[TopicPartition, ConnectorError]:
    """Query all leaders side by side, once; add to `found`, and return the errors of partitions without an offset."""
    leaders = {topic_partition: client.cached_leader(topic_partition) for topic_partition in partitions}
    timeout_ms = min(deadline.remaining_s() * 1000, client.options.answer_timeout_ms)

    def take_offsets(done: BrokerResponse, led: list[PartitionMetadata]) -> dict[TopicPartition, ConnectorError]:
        offsets, refused = parse_response(done.response, led, specs, done.address)
        found.update(offsets)
        return refused

    failures = call_leaders(
        client,
        [leader for leader in leaders.values() if leader is not None],
        lambda led: build_request(led, specs, isolation_level, timeout_ms),
        take_offsets,
        deadline,
    )
    return failures | {each: leaderless(client, each) for each, leader in leaders.items() if leader is None}


def _may_pass(client: KafkaClient, topic_partition: TopicPartition, error: ConnectorError, look: int) -> bool:
    """Return whether another look at a partition may find its offset soon."""
    if isinstance(error, DeadlineError) or decide(error).action is RetryAction.FAIL:
        return False
    is_patient = client.cached_leader(topic_partition) is not None and not _is_unknown(error)
    return is_patient or look < _UNKNOWN_LOOKS


class _LookUp:
    """One look-up: offsets that are found, partitions in flight by leader, and partitions that are pending."""

    def __init__(
        self,
        client: KafkaClient,
        fanout: RequestFanout,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel,
        deadline: Deadline,
    ) -> None:
        self._client = client
        self._fanout = fanout
        self._specs = specs
        self._isolation_level = isolation_level
        self._deadline = deadline
        self._backoff = client.backoff()
        self._found: dict[TopicPartition, int] = {}
        self._pending = dict.fromkeys(specs)
        # By the broker that has the request.
        self._in_flight: dict[int, list[PartitionMetadata]] = {}
        self._unknown_looks: dict[TopicPartition, int] = {}
        # When to send requests for what is pending, and when to check whether silent brokers still lead.
        self._send_at = 0.0
        self._check_silent_at = 0.0
        self._last_failure: ConnectorError | None = None

    def run(self) -> dict[TopicPartition, int]:
        # Not `retry.attempts`: partitions that are requested again do not wait for brokers that are still silent.
        while self._pending or self._in_flight:
            if self._pending and time.monotonic() >= self._send_at:
                self._send()
            for done in self._fanout.wait(self._until_next_s()):
                self._receive(done)
            self._check_silent()
            if self._pending or self._in_flight:
                self._deadline.check(self._step(), self._last_failure)
        return self._found

    def _until_next_s(self) -> float:
        until = [self._deadline.remaining_s()]
        now = time.monotonic()
        if self._pending:
            until.append(max(0.0, self._send_at - now))
        if self._in_flight:
            until.append(max(0.0, self._check_silent_at - now))
        return min(until)

    def _send(self) -> None:
        """Send requests to the leaders of what is pending; what has no leader now stays pending."""
        client = self._client
        unknown = [tp for tp in self._pending if client.cached_leader(tp) is None]
        if unknown:
            new = {tp for tp in unknown if self._unknown_looks.get(tp, 0) + 1 < _UNKNOWN_LOOKS}
            try:
                fetch_leaders(client, unknown, self._deadline, new)
            except DeadlineError as error:
                raise self._deadline.error(self._step(), self._last_failure or error) from error
        by_broker: dict[int, list[PartitionMetadata]] = {}
        for topic_partition in self._pending:
            leader = client.cached_leader(topic_partition)
            if leader is None:
                self._unknown_looks[topic_partition] = self._unknown_looks.get(topic_partition, 0) + 1
                self._retry_later(leaderless(client, topic_partition))
            elif leader.leader_id not in self._fanout:
                by_broker.setdefault(leader.leader_id, []).append(leader)
            else:
                # Moved to a broker that has a request for others in flight.
                self._send_later()
        if not self._in_flight:
            self._check_silent_at = time.monotonic() + _SILENT_S
        for broker_id, partitions in by_broker.items():
            timeout_ms = self._deadline.remaining_s() * 1000
            request = build_request(partitions, self._specs, self._isolation_level, timeout_ms)
            self._in_flight[broker_id] = partitions
            for partition in partitions:
                del self._pending[partition.topic_partition]
            self._fanout.send_to_broker(broker_id, request)

    def _receive(self, done: BrokerResponse) -> None:
        partitions = self._in_flight.pop(done.broker_id)
        if done.error is not None:
            failures = {partition.topic_partition: done.error for partition in partitions}
        else:
            offsets, failures = parse_response(done.response, partitions, self._specs, done.address)
            self._found.update(offsets)
        for topic_partition, error in failures.items():
            self._client.forget_topic(topic_partition.topic)
            if _is_unknown(error):
                looks = self._unknown_looks[topic_partition] = self._unknown_looks.get(topic_partition, 0) + 1
                if looks >= _UNKNOWN_LOOKS:
                    raise unknown_topic(topic_partition.topic, partition=topic_partition.partition) from error
            elif decide(error).action is RetryAction.FAIL:
                raise error
            self._pending[topic_partition] = None
            self._retry_later(error)

    def _check_silent(self) -> None:
        """Request the leaders of silent brokers' partitions; moved partitions become pending."""
        if not self._in_flight or time.monotonic() < self._check_silent_at:
            return
        silent = [broker_id for broker_id in self._fanout.silent_for(_SILENT_S) if broker_id in self._in_flight]
        if silent:
            topics = {
                partition.topic_partition.topic for broker_id in silent for partition in self._in_flight[broker_id]
            }
            try:
                self._client.fetch_metadata(topics, self._deadline.within(self._client.options.answer_timeout_ms))
            except ConnectorError as error:
                # Not the failure of this look-up: the silent brokers may still respond.
                self._last_failure = self._last_failure or error
            for broker_id in silent:
                self._leave_moved(broker_id)
        self._check_silent_at = time.monotonic() + _SILENT_S

    def _leave_moved(self, broker_id: int) -> None:
        kept: list[PartitionMetadata] = []
        for partition in self._in_flight[broker_id]:
            leader = self._client.cached_leader(partition.topic_partition)
            if leader is None or leader.leader_id == broker_id:
                kept.append(partition)
            else:
                self._pending[partition.topic_partition] = None
                self._send_at = 0.0
        if kept:
            # A response that has what moved as well is right: brokers refuse what they lead no longer.
            self._in_flight[broker_id] = kept
        else:
            del self._in_flight[broker_id]
            self._fanout.give_up(broker_id)

    def _retry_later(self, error: ConnectorError) -> None:
        # An attempt that the deadline cut short says less than the failure before it.
        if self._last_failure is None or not isinstance(error, DeadlineError):
            self._last_failure = error
        self._send_later()

    def _send_later(self) -> None:
        now = time.monotonic()
        if self._send_at <= now:
            self._send_at = now + self._backoff.next_s()

    def _step(self) -> str:
        left = [*self._pending, *(each.topic_partition for asked in self._in_flight.values() for each in asked)]
        silent = self._fanout.addresses()
        others = f" and {len(silent) - 1} other brokers" if len(silent) > 1 else ""
        waiting = f", waiting for {silent[0]}{others}," if silent else ""
        return f"Looking up the offset of {left[0]} ({len(left)} of {len(self._specs)} left){waiting}"


def _is_unknown(error: ConnectorError) -> bool:
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
