"""A cluster as one task sees it: what its topics look like, and a connection to each broker that is asked.

What lives here: bootstrap, cached metadata, connections by broker id, and the loop that tries a step again. What must
not: what is done with the answers (fetching, producing, offsets, administration have their own modules). Layer: client.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.client.bootstrap import connect_to_any
from pyspark_kafka.client.buffers import FrameBuffers
from pyspark_kafka.client.connection import Connection
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch_request import RecordSizes
from pyspark_kafka.client.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, parse_metadata, unknown_topic
from pyspark_kafka.client.offset_lookup import OffsetSpec, list_offsets
from pyspark_kafka.client.protocol import ErrorCode, MetadataRequest, broker_error
from pyspark_kafka.client.retry import Action, Backoff, decide
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError
from pyspark_kafka.model import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from uuid import UUID

    from pyspark_kafka.options.connection import ConnectionOptions

_T = TypeVar("_T")
_Client = TypeVar("_Client", bound="KafkaClient")
# A topic made a moment ago is not yet known to every broker; look that often before saying that it does not exist.
_UNKNOWN_TOPIC_LOOKS = 4
_IDLE_KEPT_PER_BROKER = 2


class KafkaClient:
    """Conversation with one cluster, for one user of it at a time.

    Nothing is connected before it is needed. Connections found dead are replaced without a word, as long as nothing
    was in flight on them. Use as a context manager, or call `close`.

    Runs on: driver and executor; methods block, each within a deadline. Not thread-safe; does not pickle: build it
    where it is used (`client.pool` keeps clients of reused workers).

    Args:
        options: how to reach the cluster.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.created_in = os.getpid()
        # One set for all connections: only so many raw answers are held at a time, whatever the number of brokers.
        self._buffers = FrameBuffers()
        self.record_sizes = RecordSizes()
        self._bootstrap: Connection | None = None
        self._control: dict[int, Connection] = {}
        self._idle: dict[int, list[Connection]] = {}
        self._brokers: dict[int, BrokerNode] = {}
        self._partitions: dict[TopicPartition, PartitionMetadata] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._partitions_known_at: dict[str, float] = {}

    def __enter__(self: _Client) -> _Client:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        servers = ",".join(f"{host}:{port}" for host, port in self.options.bootstrap_servers)
        return f"KafkaClient({servers}, {self.options.security_protocol})"

    def close(self) -> None:
        """Close all connections that are not borrowed. Safe to call again; the client can be used again after it."""
        for connection in self._all_connections():
            connection.close()
        self._bootstrap = None
        self._control.clear()
        self._idle.clear()
        self._buffers.clear()

    def rest(self) -> None:
        """Make ready for the next user: close connections that still owe an answer."""
        if self._bootstrap is not None and self._bootstrap.in_flight:
            self._bootstrap.close()
        for broker_id, connection in list(self._control.items()):
            if connection.in_flight or connection.closed:
                connection.close()
                del self._control[broker_id]

    def _all_connections(self) -> list[Connection]:
        found = [] if self._bootstrap is None else [self._bootstrap]
        found.extend(self._control.values())
        for idle in self._idle.values():
            found.extend(idle)
        return found

    def deadline(self) -> Deadline:
        """Start the time of a whole step, `api_timeout_ms`."""
        return Deadline(self.options.api_timeout_ms)

    def backoff(self) -> Backoff:
        """Give fresh waiting times of the options."""
        return Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms)

    # Metadata

    def metadata(self, topics: Iterable[str] | None = None, deadline: Deadline | None = None) -> ClusterMetadata:
        """Ask the cluster about brokers and topics, and remember the answer.

        Topics are never created by asking. A topic that does not exist is in the answer, with its error.

        Args:
            topics: names; None asks for all topics that this user may describe, an empty collection for none.
            deadline: for all attempts; None takes `api_timeout_ms`.

        Raises:
            TransportError: no broker can be reached; names every server that was tried.
            DeadlineError: brokers were reached, but did not answer in time.
            AccessError: credentials refused.
        """
        names = None if topics is None else sorted(set(topics))

        def attempt(step: Deadline) -> ClusterMetadata:
            connection = self.any_connection(step)
            wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            response = connection.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), step)
            # Only version 13 has a code for the whole answer; the default of older ones is 0.
            if response.error_code != ErrorCode.NONE:
                raise broker_error(response.error_code, f"Asking {connection.address} for metadata failed")
            return parse_metadata(response)

        found = self.retrying("Asking the cluster for metadata", deadline or self.deadline(), attempt)
        self._remember(found)
        return found

    def _remember(self, found: ClusterMetadata) -> None:
        now = time.monotonic()
        for node in found.brokers.values():
            self._learn_node(node)
        if found.brokers:
            self._brokers = dict(found.brokers)
        for name, topic in found.topics.items():
            self.forget(name)
            if topic.topic_id is not None:
                self._topic_ids[name] = topic.topic_id
            self._partitions_known_at[name] = now
            for partition in topic.partitions:
                self._partitions[partition.topic_partition] = partition
        self._adopt_bootstrap()

    def _adopt_bootstrap(self) -> None:
        """Let the bootstrap connection serve its broker too, when it was made to the advertised address."""
        connection = self._bootstrap
        if connection is None:
            return
        for node in self._brokers.values():
            if (node.host, node.port) == (connection.host, connection.port) and node.broker_id not in self._control:
                self._control[node.broker_id] = connection
                self._bootstrap = None
                return

    def forget(self, topic: str) -> None:
        """Drop what is known of a topic, so that the next question about it goes to the cluster."""
        if self._partitions_known_at.pop(topic, None) is not None:
            self._topic_ids.pop(topic, None)
            for topic_partition in [known for known in self._partitions if known.topic == topic]:
                del self._partitions[topic_partition]

    def topic_id(self, topic: str) -> UUID | None:
        """Give the id of a topic as last heard; None if the brokers do not tell, or were not asked."""
        return self._topic_ids.get(topic)

    def broker(self, broker_id: int) -> BrokerNode | None:
        """Give a broker as last heard."""
        return self._brokers.get(broker_id)

    def known_leader(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Give a partition with its leader from memory; None if it is not known, is leaderless, or is old."""
        known = self._partitions.get(topic_partition)
        if known is None or not known.has_leader:
            return None
        age_s = time.monotonic() - self._partitions_known_at.get(topic_partition.topic, 0.0)
        return known if age_s * 1000 < self.options.metadata_max_age_ms else None

    def learn_leader(
        self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int, node: BrokerNode | None
    ) -> bool:
        """Take over what a broker that leads no longer said of the new leader.

        Args:
            topic_partition: the partition.
            leader_id: who leads it.
            leader_epoch: since when.
            node: the leader's address, if the broker gave it.

        Returns:
            Whether that was news of use: newer than what is known, and of a leader whose address is known. False
            leaves everything as it is.

        Source: KIP-951.
        """
        known = self._partitions.get(topic_partition)
        # Only ever newer: two brokers that name each other must not send us to and fro.
        if leader_id < 0 or known is None or leader_epoch <= known.leader_epoch:
            return False
        if node is not None:
            self._learn_node(node)
        if leader_id not in self._brokers:
            return False
        self._partitions[topic_partition] = replace(
            known, leader_id=leader_id, leader_epoch=leader_epoch, error_code=ErrorCode.NONE
        )
        return True

    def _learn_node(self, node: BrokerNode) -> None:
        known = self._brokers.get(node.broker_id)
        if known is not None and (known.host, known.port) != (node.host, node.port):
            self._drop_connections(node.broker_id)
        self._brokers[node.broker_id] = node

    def leader(self, topic_partition: TopicPartition, deadline: Deadline | None = None) -> PartitionMetadata:
        """Give a partition with its leader, from memory or from the cluster; waits for an election.

        Raises:
            BrokerError: the topic or the partition does not exist (condition UNKNOWN_TOPIC).
            AccessError: the topic may not be described.
            DeadlineError: there was no leader all the time.
            TransportError: no broker can be reached.
        """
        return self.leaders([topic_partition], deadline)[topic_partition]

    def leaders(
        self, topic_partitions: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, PartitionMetadata]:
        """Give the leaders of many partitions with at most one question a round; see `leader`."""
        wanted = list(topic_partitions)
        deadline = deadline or self.deadline()
        backoff = self.backoff()
        while True:
            found: dict[TopicPartition, PartitionMetadata] = {}
            missing: list[TopicPartition] = []
            for topic_partition in wanted:
                known = self.known_leader(topic_partition)
                if known is None:
                    missing.append(topic_partition)
                else:
                    found[topic_partition] = known
            if not missing:
                return found
            step = f"Looking up the leader of {', '.join(map(str, missing[:5]))}{' …' if len(missing) > 5 else ''}"
            if backoff.attempts:
                deadline.check(step, self._why_leaderless(missing[0]))
                deadline.pause(backoff.next_s())
            else:
                backoff.next_s()
            try:
                answer = self.metadata({topic_partition.topic for topic_partition in missing}, deadline)
            except DeadlineError as error:
                # The first question failed by itself; a later one was only cut short, and why it was asked says more.
                cause = error if backoff.attempts == 1 else self._why_leaderless(missing[0])
                raise deadline.error(step, cause) from error
            for topic_partition in missing:
                _check_exists(answer, topic_partition, last_look=backoff.attempts >= _UNKNOWN_TOPIC_LOOKS)

    def _why_leaderless(self, topic_partition: TopicPartition) -> ConnectorError | None:
        known = self._partitions.get(topic_partition)
        code = known.error_code if known is not None and known.error_code else ErrorCode.LEADER_NOT_AVAILABLE
        return broker_error(code, f"{topic_partition} has no leader")

    # Connections

    def any_connection(self, deadline: Deadline) -> Connection:
        """Give a connection on which a call can start now, to whichever broker.

        Raises:
            TransportError: no broker can be reached.
            AccessError: credentials refused.
        """
        if self._bootstrap is not None:
            if self._bootstrap.idle_and_alive:
                return self._bootstrap
            if not self._bootstrap.in_flight:
                self._bootstrap.close()
                self._bootstrap = None
        for connection in self._control.values():
            if connection.idle_and_alive:
                return connection
        self._bootstrap = connect_to_any(self.options, deadline, self._buffers)
        return self._bootstrap

    def connection_to(self, broker_id: int, deadline: Deadline | None = None) -> Connection:
        """Give this client's own connection to a broker; opened if there is none, replaced if it is dead.

        It may have requests of the caller in flight. For a conversation that lasts, use `borrow`.

        Raises:
            TransportError: the broker is unknown, or its advertised address cannot be reached.
            DeadlineError: no answer in time.
            AccessError: credentials refused.
        """
        deadline = deadline or self.deadline()
        if broker_id not in self._brokers:
            # First: the answer may make the bootstrap connection this broker's.
            self.metadata((), deadline)
        known = self._control.get(broker_id)
        if known is not None:
            if (known.in_flight and not known.closed) or known.idle_and_alive:
                return known
            known.close()
        self._control[broker_id] = opened = self._open(broker_id, deadline)
        return opened

    def borrow(self, broker_id: int, deadline: Deadline | None = None) -> Connection:
        """Give a connection to a broker for the caller alone, until `give_back`; see `connection_to` for errors."""
        idle = self._idle.get(broker_id, [])
        while idle:
            connection = idle.pop()
            if connection.idle_and_alive:
                return connection
            connection.close()
        return self._open(broker_id, deadline or self.deadline())

    def give_back(self, broker_id: int, connection: Connection) -> None:
        """Take back a borrowed connection; one with requests in flight is closed, their answers are of no use."""
        idle = self._idle.setdefault(broker_id, [])
        if connection.closed or connection.in_flight or len(idle) >= _IDLE_KEPT_PER_BROKER:
            connection.close()
        else:
            idle.append(connection)

    def drop_idle_connections(self, broker_id: int) -> None:
        """Close the connections to a broker that did not answer on another one, so that none is chosen next."""
        if not ((known := self._control.get(broker_id)) and known.in_flight):
            self._drop_connections(broker_id)

    def _open(self, broker_id: int, deadline: Deadline) -> Connection:
        node = self._brokers.get(broker_id)
        if node is None:
            self.metadata((), deadline)
            node = self._brokers.get(broker_id)
        if node is None:
            raise TransportError(
                f"Broker {broker_id} is not a member of the cluster now; members are "
                f"{', '.join(f'{known} ({found.address})' for known, found in sorted(self._brokers.items()))}.",
                condition="BROKER_UNKNOWN",
                retriable=True,
                facts={"broker_id": broker_id},
            )
        try:
            return Connection.open(node.host, node.port, self.options, deadline, buffers=self._buffers)
        except TransportError as error:
            if error.condition not in ("CONNECTION_FAILED", "HOST_UNKNOWN"):
                raise
            servers = ",".join(f"{host}:{port}" for host, port in self.options.bootstrap_servers)
            raise TransportError(
                f"Broker {broker_id} advertises the address {node.address}, which this machine cannot reach, although "
                f"the cluster was found through {servers}. {error}",
                condition="ADVERTISED_ADDRESS_UNREACHABLE",
                hint="if the broker runs, its advertised.listeners names an address that is not valid from here "
                "(a guess); it must be reachable from the driver and from all executors.",
                retriable=True,
                facts={"broker_id": broker_id, "broker": node.address, "servers": servers},
            ) from error

    def _drop_connections(self, broker_id: int) -> None:
        control = self._control.pop(broker_id, None)
        if control is not None:
            control.close()
        for connection in self._idle.pop(broker_id, []):
            connection.close()

    # Steps

    def retrying(self, step: str, deadline: Deadline, attempt: Callable[[Deadline], _T]) -> _T:
        """Run `attempt` until it succeeds, fails for good, or time is over.

        Args:
            step: what is done, as the subject of the sentence in an error.
            deadline: for all attempts and the waits between them.
            attempt: gets the deadline to hand on; raises ConnectorError on failure.

        Raises:
            ConnectorError: the failure of the last attempt, if it is final (see `retry.decide`).
            DeadlineError: time is over; names the step and the last failure.
        """
        backoff = self.backoff()
        last: ConnectorError | None = None
        while True:
            try:
                return attempt(deadline)
            except ConnectorError as error:
                if error.condition == "BOOTSTRAP_FAILED" or decide(error).action is Action.FAIL:
                    # Bootstrap has used up the deadline itself, and its text names more than a deadline's would.
                    raise
                # An attempt that the deadline cut short says less than the failure before it.
                if last is None or not isinstance(error, DeadlineError):
                    last = error
                if deadline.expired:
                    if isinstance(last, DeadlineError):
                        raise
                    raise deadline.error(step, last) from error
            deadline.pause(backoff.next_s())

    def call(self, request: Any, *, broker_id: int | None = None, deadline: Deadline | None = None) -> Any:
        """Send one request to a broker (None: to any) on an idle connection and wait for the answer; no retry.

        Raises:
            ConnectorError: as `Connection.call` and `connection_to`.
        """
        deadline = deadline or self.deadline()
        connection = self.any_connection(deadline) if broker_id is None else self.connection_to(broker_id, deadline)
        return connection.call(request, deadline)

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        deadline: Deadline | None = None,
    ) -> dict[TopicPartition, int]:
        """Look up offsets with one request a broker; see `offset_lookup.list_offsets`."""
        return list_offsets(self, specs, isolation_level, deadline)


def _check_exists(answer: ClusterMetadata, topic_partition: TopicPartition, *, last_look: bool) -> None:
    topic = answer.topics.get(topic_partition.topic)
    error = topic.error if topic is not None else unknown_topic(topic_partition.topic)
    if error is not None:
        patient = error.condition == "UNKNOWN_TOPIC" and not last_look
        if not patient and decide(error).action is Action.FAIL:
            raise error
        return
    if last_look and topic is not None and topic.partition(topic_partition.partition) is None:
        raise unknown_topic(topic_partition.topic, partition=topic_partition.partition)
