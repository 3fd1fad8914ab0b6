"""A request for any broker: sent to one, and to another as well if the first is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.cluster.bootstrap import connect_to_any
from pyspark_kafka._client.client.net.frame_stream import keeps_arriving
from pyspark_kafka._client.client.net.handshake import is_alive
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.broker_connections import Connections
    from pyspark_kafka._client.client.cluster.known_servers import KnownServers
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

# A broker of whose response nothing, or a trickle, arrives for this time is not waited for alone. One that has died
# without closing its connections looks just like it.
HEDGE_AFTER_S = 1.0


class AnyBroker:
    """Requests for any broker of a cluster.

    Runs on: driver and executor; methods block. Not thread-safe.

    Args:
        options: how to reach the cluster.
        connections: open ones; new ones are kept there.
        servers: where to look for the cluster.
    """

    def __init__(self, options: ConnectionOptions, connections: Connections, servers: KnownServers) -> None:
        self._options = options
        self._connections = connections
        self._servers = servers

    def call(
        self, request: Any, deadline: Deadline, *, max_version: int | None = None, hedge_after_s: float = HEDGE_AFTER_S
    ) -> tuple[Any, Connection]:
        """Send a request to any broker and wait for the response; another broker gets it after some silence.

        Only for requests that change nothing: two brokers may get it. Blocks at most `answer_timeout_ms` after the last
        broker was asked; while bytes of a response arrive, up to the deadline.

        Args:
            request: an instance of a class of `wire.messages`, with no version set.
            deadline: for all of it.
            max_version: an upper bound for the version.
            hedge_after_s: for how long nothing of a response may arrive until another broker gets the request, too.

        Returns:
            The decoded response, and the connection that it came on.

        Raises:
            ConnectorError: as `connect` and `Connection.call`.
        """
        idle = self._connections.any_idle()
        first = idle or self._open(deadline)
        answer_ms = self._options.answer_timeout_ms
        respond_by = deadline.within(answer_ms)
        first.send_request(request, max_version=max_version, timeout_ms=respond_by.remaining_s() * 1000)
        while True:
            before = first.arrived
            response = first.receive(respond_by, limit=deadline, turn_s=hedge_after_s)
            if response is not None:
                return response, first
            if not keeps_arriving(first.arrived - before, hedge_after_s):
                break
            respond_by = respond_by.moved_on(answer_ms, deadline)
        second: Connection | None = None
        try:
            second = self._connect_to_another(first, respond_by, was_idle=idle is not None)
            if second is not None:
                respond_by = deadline.within(answer_ms)
                second.send_request(request, max_version=max_version, timeout_ms=respond_by.remaining_s() * 1000)
        except ConnectorError:
            # There is no other broker, so the silent one has the rest of the time.
            second = None
        if second is None:
            return first.receive(respond_by, limit=deadline), first
        try:
            response, responded = _first_response([first, second], respond_by, deadline)
            if responded is second and idle is not None and not first.has_begun:
                first.give_up()
        finally:
            # The other response, if it still comes, is not needed.
            for connection in (first, second):
                if connection.in_flight:
                    connection.close()
        if responded is second:
            self._connections.keep_unnamed(second)
        return response, responded

    def connect(self, deadline: Deadline) -> Connection:
        """Return a connection to any broker on which a call can start now; an idle one, or a new one.

        Raises:
            TransportError: no broker can be reached.
            AccessError: credentials refused.
        """
        while (idle := self._connections.any_idle()) is not None:
            if not idle.was_idle or is_alive(idle, deadline):
                return idle
        return self._open(deadline)

    def _open(self, deadline: Deadline) -> Connection:
        opened = connect_to_any(self._options, deadline, self._connections.buffers, self._servers.search_order())
        if opened is None:
            raise RuntimeError("the search ends with a connection or an error")
        self._connections.keep_unnamed(opened)
        return opened

    def _connect_to_another(self, silent: Connection, deadline: Deadline, *, was_idle: bool) -> Connection | None:
        """Return a connection to another broker than a silent one; None if there is no other.

        If the silent connection was idle, the network may have forgotten it, and others that were idle for as long: a
        new one is made then, to the same broker if there is no other. Also None as soon as there is something to read
        from the silent one, if nothing of its response had arrived.

        Raises:
            TransportError: no other broker can be reached.
            AccessError: credentials refused.
        """
        idle = self._connections.any_idle()
        if idle is not None and (not was_idle or idle.heard_at > silent.heard_at):
            return idle
        own = silent.host, silent.port
        servers = [server for server in self._servers.search_order() if server != own]
        if was_idle:
            servers.append(own)
        if not servers:
            return None
        unless = None if silent.has_begun else silent
        return connect_to_any(self._options, deadline, self._connections.buffers, servers, unless=unless)


def _first_response(connections: list[Connection], deadline: Deadline, limit: Deadline) -> tuple[Any, Connection]:
    """Return the response that is complete first; the deadline moves on, up to the limit, while bytes arrive."""
    window_ms, before = deadline.timeout_ms, {connection: connection.arrived for connection in connections}
    while True:
        ready = wait_readable(connections, deadline.remaining_s())
        if not ready:
            if not limit.expired and any(
                keeps_arriving(each.arrived - before[each], window_ms / 1e3) for each in before
            ):
                deadline, before = deadline.moved_on(window_ms, limit), {each: each.arrived for each in connections}
                continue
            # Raises that there was no response in time.
            return connections[0].receive(deadline), connections[0]
        for connection in ready:
            try:
                response = connection.receive(None)
            except ConnectorError:
                connections.remove(connection)
                if not connections:
                    raise
                continue
            if response is not None:
                return response, connection
