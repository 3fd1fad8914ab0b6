"""A cluster as one task sees it: its metadata, and a connection to each broker in use.

`KafkaClient` holds the parts and joins them. Each part has a file:

- `metadata_cache.py`: brokers, topics and leaders from the last responses.
- `broker_connections.py`: open connections.
- `known_servers.py`: where to look for the cluster; `bootstrap.py` connects there.
- `any_broker.py`: a request to any broker. `metadata_request.py`: one for metadata.
- `errors.py`: unusable brokers.

What is done with a cluster takes a client: `leaders.py` waits for leaders, `fanout.py` sends requests to many brokers,
and the upper rooms fetch, produce, query and administer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka._client.client.cluster import errors
from pyspark_kafka._client.client.cluster.any_broker import AnyBroker
from pyspark_kafka._client.client.cluster.broker_connections import Connections
from pyspark_kafka._client.client.cluster.known_servers import KnownServers
from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache
from pyspark_kafka._client.client.cluster.metadata_request import request_metadata
from pyspark_kafka._client.client.net.dials import Dials
from pyspark_kafka._client.client.net.handshake import is_alive, open_connection
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import Backoff, retrying
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from uuid import UUID

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import BrokerNode, ClusterMetadata, PartitionMetadata
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import ConnectorError

_T = TypeVar("_T")
_Client = TypeVar("_Client", bound="KafkaClient")


class KafkaClient:
    """Conversation with one cluster, for one user of it at a time.

    Nothing is connected before it is needed. Connections found dead are replaced silently, if nothing was in flight on
    them. Use as a context manager, or call `close`.

    Runs on: driver and executor; methods block, each within a deadline; methods named `cached_…` only read memory.
    Not thread-safe; does not pickle: build it where it is used (`cluster/pool.py` keeps clients of reused workers).

    Args:
        options: how to reach the cluster.

    Attributes:
        options: how to reach the cluster.
        created_in: the id of the process that created it.
        cache: metadata from the last responses.
        connections: open connections.
        servers: where to look for the cluster.
        any_broker: requests for any broker.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.created_in = os.getpid()
        self.cache = MetadataCache(options.metadata_max_age_ms)
        self.connections = Connections()
        self.servers = KnownServers(options, self.cache)
        self.any_broker = AnyBroker(options, self.connections, self.servers)

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
        self.connections.close()

    # Steps

    def deadline(self) -> Deadline:
        """Return the deadline of a whole step that begins now, `api_timeout_ms`."""
        return Deadline(self.options.api_timeout_ms)

    def backoff(self) -> Backoff:
        """Return new waits between attempts, as the options set them."""
        return Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms)

    def retrying(self, step: str, deadline: Deadline, attempt: Callable[[Deadline], _T]) -> _T:
        """Run `attempt` until it succeeds, with the waits of the options; see `retry.retrying`."""
        try:
            return retrying(step, deadline, self.backoff(), attempt)
        except AccessError as error:
            name_user(error, self.options)
            raise

    def call(self, request: Any, *, broker_id: int | None = None, deadline: Deadline | None = None) -> Any:
        """Send one request to a broker (None: to any) on an idle connection and wait for the response; no retry.

        Raises:
            ConnectorError: as `Connection.call` and `connection_to`.
        """
        deadline = deadline or self.deadline()
        connection = self.any_broker.connect(deadline) if broker_id is None else self.connection_to(broker_id, deadline)
        return connection.call(request, deadline)

    # Metadata

    def fetch_metadata(self, topics: Iterable[str] | None = None, deadline: Deadline | None = None) -> ClusterMetadata:
        """Request the cluster's brokers and topics, and remember the response.

        Topics are never created by asking. A topic that does not exist is in the result, with its error.

        Args:
            topics: names; None requests all topics that this user may describe, an empty collection for none.
            deadline: for all attempts; None takes `api_timeout_ms`.

        Raises:
            TransportError: no broker can be reached; names every server that was tried.
            DeadlineError: brokers were reached, but did not respond in time.
            AccessError: credentials refused.
        """
        names = None if topics is None else sorted(set(topics))

        def attempt(step: Deadline) -> ClusterMetadata:
            found, self.servers.last_asked = request_metadata(self.any_broker, names, step)
            return found

        found = self.retrying("Asking the cluster for metadata", deadline or self.deadline(), attempt)
        for broker_id in self.cache.remember(found, all_topics=names is None):
            self.connections.drop(broker_id)
        self.connections.assign_unnamed(found.brokers.values())
        return found

    def avoid_last_asked(self) -> None:
        """Request metadata from another broker than last time from now on, if another one can be reached.

        For metadata that contradicts what is known: a broker may lag behind the cluster.
        """
        avoided = self.servers.avoid_last_asked()
        for connection in self.connections.all():
            if (connection.host, connection.port) == avoided and not connection.in_flight:
                connection.close()

    def find_broker(self, broker_id: int, deadline: Deadline) -> BrokerNode:
        """Return a broker with its address, from memory or from the cluster.

        Raises:
            TransportError: it is not a member (condition BROKER_UNKNOWN), or no broker can be reached.
        """
        if broker_id not in self.cache.brokers:
            self.fetch_metadata((), deadline)
        node = self.cache.brokers.get(broker_id)
        if node is None:
            raise errors.broker_unknown(broker_id, self.cache.brokers)
        return node

    def cached_topic_id(self, topic: str) -> UUID | None:
        """Return the topic id from the last response; None without one."""
        return self.cache.topic_id(topic)

    def cached_broker(self, broker_id: int) -> BrokerNode | None:
        """Return a broker from the last response."""
        return self.cache.brokers.get(broker_id)

    def cached_leader(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return a partition with its leader from memory; None if it is not known, is leaderless, or is old."""
        return self.cache.led_partition(topic_partition)

    def forget_topic(self, topic: str) -> None:
        """Drop what is known about a topic, so that the next question about it goes to the cluster."""
        self.cache.forget(topic)

    def learn_leader(
        self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int, node: BrokerNode | None
    ) -> bool:
        """Remember the leader that a broker which leads no longer named in its response.

        Args:
            topic_partition: the partition.
            leader_id: who leads it.
            leader_epoch: since when.
            node: the leader's address, if the broker sent it.

        Returns:
            True if the leader was adopted: its epoch is newer and its address is known. False leaves everything as it
            is.

        Source: KIP-951.
        """
        known = self.cache.partition(topic_partition)
        is_newer = known is not None and leader_epoch > known.leader_epoch
        if node is not None and is_newer and self.cache.learn_node(node):
            self.connections.drop(node.broker_id)
        return self.cache.learn_leader(topic_partition, leader_id, leader_epoch)

    # Connections

    def connection_to(self, broker_id: int, deadline: Deadline | None = None) -> Connection:
        """Return this client's own connection to a broker; opened if there is none, replaced if it is dead.

        It may have requests of the caller in flight. For many requests use
        `Connections.take_idle` and `dials`.

        Raises:
            TransportError: the broker is unknown, or its advertised address cannot be reached.
            DeadlineError: no response in time.
            AccessError: credentials refused.
        """
        deadline = deadline or self.deadline()
        # First: the metadata may make the unnamed connection this broker's.
        node = self.find_broker(broker_id, deadline)
        connection = self.connections.usable_shared(broker_id)
        if connection is not None and not connection.in_flight and connection.was_idle:
            # What is sent on it may be for once only.
            connection = connection if is_alive(connection, deadline) else None
        if connection is None:
            try:
                connection = open_connection(
                    node.host, node.port, self.options, deadline, buffers=self.connections.buffers
                )
            except TransportError as error:
                raise self.explain_unreachable(node, error) from error
            self.connections.shared[broker_id] = connection
        return connection

    def dials(self) -> Dials[int]:
        """Return what connects to several brokers side by side, by broker id; the caller closes it."""
        return Dials(self.options, self.connections.buffers)

    def connect(self, dials: Dials[int], broker_id: int, deadline: Deadline, idle: Connection | None = None) -> None:
        """Begin to connect to a broker of which no connection is idle, or to repeat the login of one that is.

        Args:
            dials: where it is done.
            broker_id: the broker.
            deadline: for all of it.
            idle: a connection to it that may be dead, to be used if it is not.

        Raises:
            TransportError: the broker is not a member (condition BROKER_UNKNOWN), or no broker can be reached.
        """
        node = self.find_broker(broker_id, deadline)
        old = idle or self.connections.take_old(broker_id)
        if old is not None and (old.host, old.port) != (node.host, node.port):
            old.close()
            old = None
        dials.start(broker_id, node.host, node.port, deadline, old)

    def explain_unreachable(self, node: BrokerNode, error: ConnectorError) -> ConnectorError:
        """Return the error for a broker that cannot be connected to; see `errors.explain_unreachable`."""
        return errors.explain_unreachable(self.options, node, error, self.servers.last_asked)
