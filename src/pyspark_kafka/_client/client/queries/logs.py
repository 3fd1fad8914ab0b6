"""The first and last offsets and the sizes of logs, as far as brokers return them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.fanout import call_leaders
from pyspark_kafka._client.client.queries import log_sizes, offset_messages
from pyspark_kafka._client.client.waiting.retry import RetryAction, attempts, decide
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka._client.client.cluster.fanout import BrokerResponse
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# How often leaders are looked up again for partitions that have moved, or have no leader yet.
_LOOKS = 3
# A word of the protocol for the record with the latest timestamp, which older versions would take for a time (KIP-734).
_NEWEST, _FIRST_WITH_NEWEST = -3, 7


@dataclass(slots=True)
class LogStatus:
    """A log's state, as far as brokers return it. Filled in as they respond; not changed afterwards.

    Attributes:
        leader: the partition with its leader; None if there is none, or it is not known.
        start: the first offset; None if it is not known.
        end: the offset after the last record, or the last stable offset; None if it is not known.
        newest_ms: the latest timestamp of all records, in ms since 1970-01-01 UTC; None if the log is empty, or the
            broker is older than Kafka 3.0.
        size: bytes on the disk of the leader; None if it is not known.
        error: why the start or the end is not known; None if both are.
        size_error: why the size is not known; None if it is, or was not requested.
    """

    leader: PartitionMetadata | None = None
    start: int | None = None
    end: int | None = None
    newest_ms: int | None = None
    size: int | None = None
    error: ConnectorError | None = None
    size_error: ConnectorError | None = None


@dataclass(frozen=True, slots=True)
class LogQueryResult:
    """The state of logs, as far as brokers return it.

    Attributes:
        logs: by partition, one for each requested partition.
        topic_ids: the id of each topic, by name, as text; topics for which brokers return no id are left out.
    """

    logs: Mapping[TopicPartition, LogStatus]
    topic_ids: Mapping[str, str]


def query_logs(
    client: KafkaClient,
    partitions: Iterable[TopicPartition],
    deadline: Deadline,
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    newest: bool = True,
) -> LogQueryResult:
    """Return the ends and sizes of logs; one request of each kind to each leader, side by side.

    Sizes need the right DESCRIBE on the cluster. Starts are looked up before ends, so that none is after its end.

    Runs on: driver and executor; blocks. Units: offsets, bytes.

    Args:
        client: the cluster.
        partitions: those to look at.
        deadline: for everything. A silent broker is waited for once, for at most `answer_timeout_ms`.
        isolation_level: what counts as the end.
        newest: whether to request the times of the newest records (KIP-734).

    Raises:
        ConnectorError: nothing can be found out, because the cluster cannot be reached or refuses the login.
    """
    query = _LogQuery(client, sorted(set(partitions)), deadline)
    query.find(Earliest(), IsolationLevel.READ_UNCOMMITTED)
    query.find(Latest(), isolation_level)
    if newest:
        query.find_newest()
    query.find_sizes()
    return LogQueryResult(query.log_status, query.topic_ids)


class _LogQuery:
    """The results so far, and the silent brokers, which receive no further request."""

    def __init__(self, client: KafkaClient, partitions: list[TopicPartition], deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self._silent: dict[int, ConnectorError] = {}
        self.log_status: dict[TopicPartition, LogStatus] = {each: LogStatus() for each in partitions}
        self.topic_ids: dict[str, str] = {}
        self._find_leaders(partitions)

    def find(self, spec: OffsetSpec, isolation_level: IsolationLevel) -> None:
        """Request an offset for each partition without a failure so far; a moved leader is followed."""
        pending = [tp for tp, log_status in self.log_status.items() if log_status.error is None]
        for look in attempts(self._client.backoff(), deadline=self._deadline, max_attempts=_LOOKS):
            if look > 1 and not self._found_leaders_again(pending):
                return
            asked = [tp for tp in pending if self.log_status[tp].error is None]
            failures = self._ask_leaders(
                asked, lambda led: self._offset_request(led, spec, isolation_level), partial(self._take, spec)
            )
            for topic_partition, error in failures.items():
                self.log_status[topic_partition].error = error
            pending = [tp for tp in pending if self._may_pass(self.log_status[tp])]
            if not pending or self._deadline.expired:
                return
            for topic in {tp.topic for tp in pending}:
                self._client.forget_topic(topic)

    def find_newest(self) -> None:
        """Request the time of the newest record in each log that is not empty; it stays unknown after a failure."""
        asked = [
            tp
            for tp, log_status in self.log_status.items()
            if None not in (log_status.end, log_status.start) and log_status.end != log_status.start
        ]
        level = IsolationLevel.READ_UNCOMMITTED
        self._ask_leaders(
            asked,
            lambda led: self._offset_request(led, AtTimestamp(_NEWEST), level),
            self._take_newest,
            min_version=_FIRST_WITH_NEWEST,
        )

    def find_sizes(self) -> None:
        """Request the size of each log whose leader has returned its end."""
        asked = [tp for tp, log_status in self.log_status.items() if log_status.end is not None]
        failures = self._ask_leaders(asked, log_sizes.build_request, self._take_sizes)
        for topic_partition, error in failures.items():
            self.log_status[topic_partition].size_error = error

    def _may_pass(self, log_status: LogStatus) -> bool:
        """Return whether a failure is worth another look at the leader."""
        error = log_status.error
        if error is None or isinstance(error, DeadlineError) or decide(error).action is RetryAction.FAIL:
            return False
        return not isinstance(error, BrokerError) or error.condition != "UNKNOWN_TOPIC"

    def _found_leaders_again(self, partitions: list[TopicPartition]) -> bool:
        try:
            self._find_leaders(partitions)
        except ConnectorError:
            # What is known stays known, and each partition has its own failure.
            return False
        return True

    def _find_leaders(self, partitions: list[TopicPartition]) -> None:
        found = self._client.fetch_metadata({tp.topic for tp in partitions}, self._deadline)
        for name, topic in found.topics.items():
            if topic.topic_id is not None:
                self.topic_ids[name] = str(topic.topic_id)
        for topic_partition in partitions:
            error = found.error_for(topic_partition, "Read")
            if isinstance(error, AccessError):
                name_user(error, self._client.options)
            log_status = self.log_status[topic_partition]
            log_status.leader, log_status.error = (found.partition(topic_partition) if error is None else None), error

    def _ask_leaders(
        self,
        partitions: list[TopicPartition],
        build: Callable[[list[PartitionMetadata]], Any],
        take: Callable[[BrokerResponse, list[PartitionMetadata]], dict[TopicPartition, ConnectorError]],
        *,
        min_version: int = 0,
    ) -> dict[TopicPartition, ConnectorError]:
        """Send a request to each leader that was not silent, hand over the responses, and return what failed."""
        leaders = [leader for each in partitions if (leader := self.log_status[each].leader) is not None]
        asked = [leader for leader in leaders if leader.leader_id not in self._silent]
        failures = call_leaders(self._client, asked, build, take, self._deadline, min_version=min_version)
        for leader in leaders:
            error = failures.get(leader.topic_partition)
            if isinstance(error, DeadlineError):
                self._silent[leader.leader_id] = error
            elif leader.leader_id in self._silent:
                failures[leader.topic_partition] = self._silent[leader.leader_id]
        return failures

    def _offset_request(self, led: list[PartitionMetadata], spec: OffsetSpec, level: IsolationLevel) -> Any:
        specs = {each.topic_partition: spec for each in led}
        return offset_messages.build_request(led, specs, level, self._deadline.remaining_s() * 1000)

    def _take(
        self, spec: OffsetSpec, done: BrokerResponse, led: list[PartitionMetadata]
    ) -> dict[TopicPartition, ConnectorError]:
        specs = {each.topic_partition: spec for each in led}
        offsets, failures = offset_messages.parse_response(done.response, led, specs, done.address)
        for topic_partition, offset in offsets.items():
            log_status = self.log_status[topic_partition]
            if isinstance(spec, Earliest):
                log_status.start = offset
            else:
                log_status.end = offset
        for topic_partition, error in failures.items():
            if isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # The metadata have it: its leadership, or its deletion, has not reached the broker yet.
                self._client.forget_topic(topic_partition.topic)
        return failures

    def _take_newest(self, done: BrokerResponse, led: list[PartitionMetadata]) -> dict[TopicPartition, ConnectorError]:
        asked = {each.topic_partition for each in led}
        for topic in done.response.topics:
            for entry in topic.partitions:
                topic_partition = TopicPartition(topic.name, entry.partition_index)
                if topic_partition in asked and entry.error_code == ErrorCode.NONE and entry.timestamp >= 0:
                    self.log_status[topic_partition].newest_ms = entry.timestamp
        return {}

    def _take_sizes(self, done: BrokerResponse, led: list[PartitionMetadata]) -> dict[TopicPartition, ConnectorError]:
        asked = {each.topic_partition for each in led}
        for topic_partition, size in log_sizes.parse_response(done.response, asked, done.address).items():
            self.log_status[topic_partition].size = size
        return {}
