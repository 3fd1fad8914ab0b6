"""A cluster as one task sees it: what its topics look like, and a connection to each broker that is asked.

What lives here: asking for metadata, choosing a connection, and the loop that tries a step again. What must not: what
is remembered (metadata_cache), what is open (connections), and what is done with answers (fetching, producing, offsets,
administration have their own modules). Layer: client.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.client.cluster.any_broker import PATIENCE_S, call_any
from pyspark_kafka.client.cluster.bootstrap import connect_to_any
from pyspark_kafka.client.cluster.broker_connections import Connections
from pyspark_kafka.client.cluster.metadata import (
    BrokerNode,
    ClusterMetadata,
    PartitionMetadata,
    parse_metadata,
    unknown_topic,
)
from pyspark_kafka.client.cluster.metadata_cache import MetadataCache
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.net.connection import Connection
from pyspark_kafka.client.net.dials import Dials
from pyspark_kafka.client.retry import Action, Backoff, attempts, decide, retrying
from pyspark_kafka.client.wire.messages import ErrorCode, MetadataRequest, broker_error
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import TracebackType
    from uuid import UUID

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import ConnectionOptions

_T = TypeVar("_T")
_Client = TypeVar("_Client", bound="KafkaClient")
# A topic made a moment ago is not yet known to every broker; look that often before saying that it does not exist.
_UNKNOWN_TOPIC_LOOKS = 4
# A broker may take longer to describe more topics than that; it is not to be done twice where nothing is wrong.
_FEW_TOPICS = 100
_LONG_PATIENCE_S = 4.0
# How many brokers are passed on to other clients, and with each task of a read.
_LEARNED_SERVERS = 5
# Of a large cluster, so many brokers are tried in one search: with all of them, each would have little time before the
# next one is connected to as well.
_SEARCHED_SERVERS = 16


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
        self._cache = MetadataCache(options.metadata_max_age_ms)
        self._connections = Connections()
        # Where the last metadata came from, and where it is not to come from next.
        self._told_by: tuple[str, int] | None = None
        self._doubted: tuple[str, int] | None = None

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
        self._connections.close()

    def rest(self) -> None:
        """Make ready for the next user: close connections that still owe an answer."""
        self._connections.close_unfinished()

    def deadline(self) -> Deadline:
        """Start the time of a whole step, `api_timeout_ms`."""
        return Deadline(self.options.api_timeout_ms)

    def backoff(self) -> Backoff:
        """Give fresh waiting times of the options."""
        return Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms)

    # Metadata

    def fetch_metadata(self, topics: Iterable[str] | None = None, deadline: Deadline | None = None) -> ClusterMetadata:
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
            wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            patience_s = PATIENCE_S if names is not None and len(names) <= _FEW_TOPICS else _LONG_PATIENCE_S
            response, connection = call_any(self, request, step, patience_s=patience_s)
            # Only version 13 has a code for the whole answer; the default of older ones is 0.
            if response.error_code != ErrorCode.NONE:
                raise broker_error(response.error_code, f"Asking {connection.address} for metadata failed")
            if not response.brokers:
                # What a broker says before it has heard of the cluster itself; the next one asked may know more.
                connection.close()
                raise TransportError(
                    f"{connection.address} knows of no brokers: it has only just started, or lost its cluster.",
                    condition="METADATA_WITHOUT_BROKERS",
                    retriable=True,
                    facts={"broker": connection.address},
                )
            self._told_by = (connection.host, connection.port)
            return parse_metadata(response, connection.api_version(MetadataRequest))

        found = self.retrying("Asking the cluster for metadata", deadline or self.deadline(), attempt)
        for broker_id in self._cache.remember(found, all_topics=names is None):
            self._connections.drop(broker_id)
        self._connections.name(found.brokers.values())
        return found

    def doubt(self) -> None:
        """Have the next question for metadata asked of another broker than the last one, if another one answers.

        For answers that contradict what is known: a broker may lag behind the cluster.
        """
        self._doubted = self._told_by
        for connection in self._connections.all():
            if (connection.host, connection.port) == self._doubted and not connection.in_flight:
                connection.close()

    def forget(self, topic: str) -> None:
        """Drop what is known of a topic, so that the next question about it goes to the cluster."""
        self._cache.forget(topic)

    def cached_topic_id(self, topic: str) -> UUID | None:
        """Give the id of a topic as last heard; None if the brokers do not tell, or were not asked."""
        return self._cache.topic_id(topic)

    def cached_broker(self, broker_id: int) -> BrokerNode | None:
        """Give a broker as last heard."""
        return self._cache.brokers.get(broker_id)

    def cached_leader(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Give a partition with its leader from memory; None if it is not known, is leaderless, or is old."""
        return self._cache.led_partition(topic_partition)

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
        known = self._cache.partition(topic_partition)
        is_news = known is not None and leader_epoch > known.leader_epoch
        if node is not None and is_news and self._cache.learn_node(node):
            self._connections.drop(node.broker_id)
        return self._cache.learn_leader(topic_partition, leader_id, leader_epoch)

    def find_leader(self, topic_partition: TopicPartition, deadline: Deadline | None = None) -> PartitionMetadata:
        """Give a partition with its leader, from memory or from the cluster; waits for an election.

        Raises:
            BrokerError: the topic or the partition does not exist (condition UNKNOWN_TOPIC).
            AccessError: the topic may not be described.
            DeadlineError: there was no leader all the time.
            TransportError: no broker can be reached.
        """
        return self.find_leaders([topic_partition], deadline)[topic_partition]

    def find_leaders(
        self, topic_partitions: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, PartitionMetadata]:
        """Give the leaders of many partitions with at most one question a round; see `leader`."""
        wanted = list(dict.fromkeys(topic_partitions))
        found = self._cached_leaders(wanted)
        if len(found) == len(wanted):
            return found
        deadline = deadline or self.deadline()
        for look in attempts(self.backoff(), deadline=deadline):
            missing = [tp for tp in wanted if tp not in found]
            try:
                self.fetch_leaders(missing, deadline, () if look >= _UNKNOWN_TOPIC_LOOKS else missing)
            except DeadlineError as error:
                # The first look failed itself; a later one was only cut short, and the reason for it explains more.
                cause = error if look == 1 else self.why_leaderless(missing[0])
                raise deadline.error(_looking_up(missing), cause) from error
            found = self._cached_leaders(wanted)
            if len(found) == len(wanted):
                return found
        missing = [tp for tp in wanted if tp not in found]
        leaderless = self.why_leaderless(missing[0])
        raise deadline.error(_looking_up(missing), leaderless) from leaderless

    def _cached_leaders(self, wanted: list[TopicPartition]) -> dict[TopicPartition, PartitionMetadata]:
        return {tp: known for tp in wanted if (known := self.cached_leader(tp)) is not None}

    def fetch_leaders(
        self,
        topic_partitions: Iterable[TopicPartition],
        deadline: Deadline,
        perhaps_new: Collection[TopicPartition] = (),
    ) -> None:
        """Ask the cluster once for the leaders of partitions; `cached_leader` has what came of it.

        Args:
            topic_partitions: those to ask for.
            deadline: for the question.
            perhaps_new: those that may be too new for every broker to know them: no error if they are not there.

        Raises:
            BrokerError: a topic or partition does not exist (condition UNKNOWN_TOPIC).
            AccessError: a topic may not be described.
            DeadlineError, TransportError: as `metadata`.
        """
        wanted, patient = list(topic_partitions), set(perhaps_new)
        answer = self.fetch_metadata({topic_partition.topic for topic_partition in wanted}, deadline)
        for topic_partition in wanted:
            _check_exists(answer, topic_partition, last_look=topic_partition not in patient)

    def why_leaderless(self, topic_partition: TopicPartition) -> ConnectorError:
        """Build the error for a partition that had no leader when it was last heard of."""
        known = self._cache.partition(topic_partition)
        code = known.error_code if known is not None and known.error_code else ErrorCode.LEADER_NOT_AVAILABLE
        return broker_error(code, f"{topic_partition} has no leader")

    # Connections

    def any_connection(self, deadline: Deadline) -> Connection:
        """Give a connection on which a call can start now, to whichever broker.

        Raises:
            TransportError: no broker can be reached.
            AccessError: credentials refused.
        """
        idle = self._connections.any_idle()
        if idle is not None:
            return idle
        opened = connect_to_any(self.options, deadline, self._connections.buffers, self._servers())
        if opened is None:
            raise RuntimeError("the search ends with a connection or an error")
        self._connections.keep_unnamed(opened)
        return opened

    def another_connection(self, silent: Connection, deadline: Deadline) -> Connection | None:
        """Give a connection to another broker than one that has not answered yet; None if there is no other.

        Also None as soon as there is something to read from the silent one.

        Raises:
            TransportError: no other broker can be reached.
            AccessError: credentials refused.
        """
        idle = self._connections.any_idle()
        if idle is not None:
            return idle
        servers = [server for server in self._servers() if server != (silent.host, silent.port)]
        if not servers:
            return None
        return connect_to_any(self.options, deadline, self._connections.buffers, servers, unless=silent)

    def keep(self, connection: Connection) -> None:
        """Keep a connection of `another_connection` for requests to whichever broker."""
        if connection not in self._connections.all():
            self._connections.keep_unnamed(connection)

    def learned_servers(self) -> tuple[tuple[str, int], ...]:
        """Give some of the brokers that are known, for `ConnectionOptions.learned_servers` of others."""
        return tuple(self._known_servers(_LEARNED_SERVERS)) or self.options.learned_servers

    def learn_servers(self, servers: tuple[tuple[str, int], ...]) -> None:
        """Take over brokers that another client has learned of; they take the place of those taken over before."""
        self.options = replace(self.options, learned_servers=servers)

    def _servers(self) -> list[tuple[str, int]]:
        """Give where the cluster may be reached: its brokers as last heard, then the servers of the options."""
        known = self._known_servers(_SEARCHED_SERVERS)
        servers = [*known, *self.options.bootstrap_servers, *self.options.learned_servers]
        return sorted(servers, key=lambda server: server == self._doubted)

    def _known_servers(self, most: int) -> list[tuple[str, int]]:
        known = list(self._cache.brokers.values())
        # Not the same ones, nor in the same order, by every task and at every attempt.
        return [(node.host, node.port) for node in random.sample(known, min(most, len(known)))]

    def connection_to(self, broker_id: int, deadline: Deadline | None = None) -> Connection:
        """Give this client's own connection to a broker; opened if there is none, replaced if it is dead.

        It may have requests of the caller in flight. For a conversation that lasts, use `borrow`.

        Raises:
            TransportError: the broker is unknown, or its advertised address cannot be reached.
            DeadlineError: no answer in time.
            AccessError: credentials refused.
        """
        deadline = deadline or self.deadline()
        # First: the answer may make the connection to whichever server this broker's.
        node = self.find_broker(broker_id, deadline)
        known = self._connections.shared.get(broker_id)
        if known is not None:
            if (known.in_flight and not known.closed) or known.idle_and_alive:
                return known
            known.close()
        self._connections.shared[broker_id] = opened = self._open(node, deadline)
        return opened

    def borrow(self, broker_id: int, deadline: Deadline | None = None) -> Connection:
        """Give a connection to a broker for the caller alone, until `give_back`; see `connection_to` for errors."""
        idle = self._connections.take_idle(broker_id)
        if idle is not None:
            return idle
        deadline = deadline or self.deadline()
        return self._open(self.find_broker(broker_id, deadline), deadline)

    def borrow_idle(self, broker_id: int) -> Connection | None:
        """Give a connection as `borrow` does, if there is one already."""
        return self._connections.take_idle(broker_id)

    def give_back(self, broker_id: int, connection: Connection) -> None:
        """Take back a borrowed connection; one with requests in flight is closed, their answers are of no use."""
        self._connections.give_back(broker_id, connection)

    def drop_idle_connections(self, broker_id: int) -> None:
        """Close the connections to a broker that did not answer on another one, so that none is chosen next."""
        self._connections.drop_idle(broker_id)

    def dials(self) -> Dials[int]:
        """Give what connects to several brokers side by side, by broker id; the caller closes it."""
        return Dials(self.options, self._connections.buffers)

    def find_broker(self, broker_id: int, deadline: Deadline) -> BrokerNode:
        """Give the address of a broker, from memory or from the cluster.

        Raises:
            TransportError: it is no member (condition BROKER_UNKNOWN), or no broker can be reached.
        """
        if broker_id not in self._cache.brokers:
            self.fetch_metadata((), deadline)
        node = self._cache.brokers.get(broker_id)
        if node is not None:
            return node
        members = sorted(self._cache.brokers.items())
        raise TransportError(
            f"Broker {broker_id} is not a member of the cluster now; members are "
            f"{', '.join(f'{known} ({found.address})' for known, found in members)}.",
            condition="BROKER_UNKNOWN",
            retriable=True,
            facts={"broker_id": broker_id},
        )

    def _open(self, node: BrokerNode, deadline: Deadline) -> Connection:
        try:
            return Connection.open(node.host, node.port, self.options, deadline, buffers=self._connections.buffers)
        except TransportError as error:
            raise self.explain_unreachable(node, error) from error

    def explain_unreachable(self, node: BrokerNode, error: ConnectorError) -> ConnectorError:
        """Give the error for a broker that cannot be connected to: of its advertised address, where it is that."""
        if error.condition not in ("CONNECTION_FAILED", "HOST_UNKNOWN"):
            return error
        servers = ",".join(f"{host}:{port}" for host, port in self.options.bootstrap_servers)
        return TransportError(
            f"Broker {node.broker_id} advertises the address {node.address}, which this machine cannot reach, although "
            f"the cluster was found through {servers}. {error}",
            condition="ADVERTISED_ADDRESS_UNREACHABLE",
            hint="If the broker runs, its advertised.listeners names an address that is not valid from here "
            "(a guess); it must be reachable from the driver and from all executors.",
            retriable=True,
            facts={"broker_id": node.broker_id, "broker": node.address, "servers": servers},
        )

    # Steps

    def retrying(self, step: str, deadline: Deadline, attempt: Callable[[Deadline], _T]) -> _T:
        """Run `attempt` until it succeeds, with the waits of the options; see `retry.retrying`."""
        return retrying(step, deadline, self.backoff(), attempt)

    def call(self, request: Any, *, broker_id: int | None = None, deadline: Deadline | None = None) -> Any:
        """Send one request to a broker (None: to any) on an idle connection and wait for the answer; no retry.

        Raises:
            ConnectorError: as `Connection.call` and `connection_to`.
        """
        deadline = deadline or self.deadline()
        connection = self.any_connection(deadline) if broker_id is None else self.connection_to(broker_id, deadline)
        return connection.call(request, deadline)


def _looking_up(missing: list[TopicPartition]) -> str:
    return f"Looking up the leader of {', '.join(map(str, missing[:5]))}{' …' if len(missing) > 5 else ''}"


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
