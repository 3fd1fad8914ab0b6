"""The open connections of one client: one to each broker, others that are lent, one to a server not known as a broker.

No connection is made here: `kafka_client.py`, `any_broker.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.buffers import FrameBuffers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._client.client.cluster.metadata import BrokerNode
    from pyspark_kafka._client.client.net.connection import Connection

_IDLE_KEPT_PER_BROKER = 2


class Connections:
    """Open connections by broker id, for use again; those found dead are closed and forgotten.

    - Shared: the client's own connection to a broker, for its own requests.
    - Idle: lent and given back; the next borrower gets it.
    - Unnamed: made to a server's address, before it was known which broker that is.

    Runs on: driver and executor. Not thread-safe.

    Attributes:
        buffers: receive buffers of all of them: they bound how many raw responses are held at a time, whatever the
            number of brokers.
        shared: the client's own connections, by broker id.
    """

    def __init__(self) -> None:
        self.buffers = FrameBuffers()
        self.shared: dict[int, Connection] = {}
        self._unnamed: Connection | None = None
        self._idle: dict[int, list[Connection]] = {}

    def all(self) -> list[Connection]:
        """Return all connections that are not lent."""
        unnamed = [] if self._unnamed is None else [self._unnamed]
        return [*unnamed, *self.shared.values(), *(each for idle in self._idle.values() for each in idle)]

    def close(self) -> None:
        """Close all connections that are not lent."""
        for connection in self.all():
            connection.close()
        self._unnamed = None
        self.shared.clear()
        self._idle.clear()
        self.buffers.clear()

    def close_unfinished(self) -> None:
        """Close the connections that have requests in flight, so that the next user finds none."""
        if self._unnamed is not None and self._unnamed.in_flight:
            self._unnamed.close()
        for broker_id, connection in list(self.shared.items()):
            if connection.in_flight or connection.closed:
                connection.close()
                del self.shared[broker_id]

    def drop(self, broker_id: int) -> None:
        """Close all connections to a broker that are not lent."""
        shared = self.shared.pop(broker_id, None)
        if shared is not None:
            shared.close()
        for connection in self._idle.pop(broker_id, []):
            connection.close()

    def drop_idle(self, broker_id: int) -> None:
        """Close the connections to a broker after silence on another one, so that none is chosen next."""
        if not ((known := self.shared.get(broker_id)) and known.in_flight):
            self.drop(broker_id)

    def usable_shared(self, broker_id: int) -> Connection | None:
        """Return the client's own connection to a broker; None if there is none that works: a dead one is closed."""
        connection = self.shared.get(broker_id)
        if connection is None:
            return None
        if (connection.in_flight and not connection.closed) or connection.idle_and_alive or connection.renewable:
            return connection
        connection.close()
        return None

    def take_idle(self, broker_id: int) -> Connection | None:
        """Lend a connection to a broker that is ready for a conversation; None if there is none."""
        idle = self._idle.get(broker_id, [])
        for connection in reversed(list(idle)):
            if connection.idle_and_alive:
                idle.remove(connection)
                return connection
            if not connection.renewable:
                idle.remove(connection)
                connection.close()
        return None

    def take_old(self, broker_id: int) -> Connection | None:
        """Lend a connection to a broker whose login is to be repeated first; None if there is none."""
        idle = self._idle.get(broker_id, [])
        return next((idle.pop(index) for index in reversed(range(len(idle))) if idle[index].renewable), None)

    def give_back(self, broker_id: int, connection: Connection) -> None:
        """Take back a lent connection; one with requests in flight is closed, with its responses unread."""
        idle = self._idle.setdefault(broker_id, [])
        if connection.closed or connection.in_flight or len(idle) >= _IDLE_KEPT_PER_BROKER:
            connection.close()
        else:
            connection.rest()
            idle.append(connection)

    def any_idle(self) -> Connection | None:
        """Return a connection to any broker that is ready for a call; None if there is none."""
        if self._unnamed is not None:
            if self._unnamed.idle_and_alive:
                return self._unnamed
            if not self._unnamed.in_flight:
                self._unnamed.close()
                self._unnamed = None
        for connection in self.shared.values():
            if connection.idle_and_alive:
                return connection
        for broker_id, idle in self._idle.items():
            connected = self.shared.get(broker_id)
            if connected is not None and connected.in_flight:
                # A silent broker gets no request over another connection.
                continue
            for connection in list(idle):
                if connection.idle_and_alive:
                    # It stays among the lent connections: it is idle again when the call is over.
                    return connection
                if not connection.in_flight and not connection.renewable:
                    connection.close()
                    idle.remove(connection)
        return None

    def keep_unnamed(self, connection: Connection) -> None:
        """Keep a connection to a server, unless it is kept already; it replaces the unnamed one before."""
        if connection in self.all():
            return
        if self._unnamed is not None:
            self._unnamed.close()
        self._unnamed = connection

    def assign_unnamed(self, nodes: Iterable[BrokerNode]) -> None:
        """Make the unnamed connection the shared one of its broker, if it was opened to the advertised address."""
        connection = self._unnamed
        if connection is None:
            return
        for node in nodes:
            if (node.host, node.port) == (connection.host, connection.port):
                known = self.shared.get(node.broker_id)
                if known is None or (known.closed and not known.in_flight):
                    self.shared[node.broker_id] = connection
                    self._unnamed = None
                return
