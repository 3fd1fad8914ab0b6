"""One request to each of many brokers, in flight at the same time: connecting, sending and receiving.

The callers decide what a response means, and what to do about a silent broker.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.frame_stream import keeps_arriving
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, ConnectorError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline

_K = TypeVar("_K")
_V = TypeVar("_V")
_Fanout = TypeVar("_Fanout", bound="RequestFanout")


@dataclass(frozen=True, slots=True)
class BrokerResponse:
    """A broker's response to a request, or why there is none.

    Attributes:
        broker_id: the broker that the request was for.
        address: its `host:port`, as errors name it.
        connection: the connection of the response, still open and ready for another request until the next call of
            `wait`; None if there is an error.
        response: decoded; None if there is an error.
        error: why there is no response; None if there is one.
    """

    broker_id: int
    address: str
    connection: Connection | None = None
    response: Any = None
    error: ConnectorError | None = None


@dataclass(slots=True)
class _PendingRequest:
    """A request: pending until there is a connection, then in flight."""

    request: Any
    began_at: float
    address: str
    connection: Connection | None = None
    respond_by: Deadline | None = None
    min_version: int = 0
    arrived: int = 0


class RequestFanout:
    """Requests to brokers, at most one to each broker at a time, none of which waits for another.

    Open connections are used immediately; the others are opened side by side. A response is received as it arrives:
    a broker that stops in the middle of one delays no other. Each has `answer_timeout_ms` from when it was sent, and
    again while bytes of its response arrive. A connection that was idle, and then brings nothing for a second or two,
    is replaced, and the request is sent again: only for requests that change nothing.

    Runs on: driver and executor; `wait` blocks. Use as a context manager: connections are given back at its end, and
    those with a request in flight are closed.

    Args:
        client: the cluster.
        deadline: for everything.
    """

    def __init__(self, client: KafkaClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self._dials = client.dials()
        self._pending: dict[int, _PendingRequest] = {}
        self._failed: list[BrokerResponse] = []
        self._done: list[tuple[int, Connection]] = []

    def __enter__(self: _Fanout) -> _Fanout:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for broker_id, pending in self._pending.items():
            if pending.connection is not None:
                # This closes a connection with a request in flight.
                self._client.connections.give_back(broker_id, pending.connection)
        self._pending.clear()
        self._dials.close()

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._pending

    def __len__(self) -> int:
        return len(self._pending) + len(self._failed)

    def send_to_broker(self, broker_id: int, request: Any, *, min_version: int = 0) -> None:
        """Send a request to a broker that has none, or begin to connect to it first; `wait` returns the response.

        Args:
            broker_id: the broker.
            request: an instance of a class of `wire.messages`, with no version set.
            min_version: if the broker supports neither this version nor a newer one, the error of the response is a
                ProtocolError with condition UNSUPPORTED_VERSION.
        """
        node = self._client.cached_broker(broker_id)
        if node is None:
            # Requests metadata, which return that there is no such broker, or its address.
            try:
                node = self._client.find_broker(broker_id, self._deadline)
            except ConnectorError as error:
                self._failed.append(BrokerResponse(broker_id, f"broker {broker_id}", error=error))
                return
        pending = self._pending[broker_id] = _PendingRequest(request, time.monotonic(), node.address)
        pending.min_version = min_version
        connection = self._client.connections.take_idle(broker_id)
        if connection is None:
            self._client.connect(self._dials, broker_id, self._deadline)
        else:
            self._send(broker_id, pending, connection)

    def addresses(self) -> list[str]:
        """Return the addresses of the brokers whose responses are not there yet."""
        return [pending.address for pending in self._pending.values()]

    def silent_for(self, seconds: float) -> list[int]:
        """Return the brokers that have not responded, or not even been connected to, for that time."""
        before = time.monotonic() - seconds
        return [broker_id for broker_id, pending in self._pending.items() if pending.began_at <= before]

    def give_up(self, broker_id: int) -> None:
        """Drop the request to a broker, and close the connections to it."""
        pending = self._pending.pop(broker_id)
        if pending.connection is None:
            self._dials.give_up(broker_id)
        else:
            pending.connection.close()
        self._client.connections.drop_idle(broker_id)

    def wait(self, timeout_s: float) -> list[BrokerResponse]:
        """Wait until at least one request has its response or has failed.

        Returns:
            All responses and failures since the last call; none when the time is over.
        """
        self._give_back()
        readable = self._wait(0.0 if self._failed else timeout_s)
        done, self._failed = self._failed, []
        for broker_id, pending in list(self._pending.items()):
            connection, respond_by = pending.connection, pending.respond_by
            if connection is None or respond_by is None:
                continue
            if not (connection in readable or respond_by.expired):
                if connection.doubt_at <= time.monotonic() and not connection.has_begun:
                    self._replace(broker_id, pending, connection)
                continue
            try:
                # Before the look at the clock: a response that is there counts, however late it is looked at.
                response = connection.receive(None)
                if response is None and respond_by.expired and not self._moves_on(pending, connection, respond_by):
                    # Raises, and names what is missing.
                    response = connection.receive(respond_by)
            except ConnectorError as error:
                done.append(self._fail(broker_id, error))
                continue
            if response is not None:
                del self._pending[broker_id]
                self._done.append((broker_id, connection))
                done.append(BrokerResponse(broker_id, connection.address, connection, response))
        return done

    def _replace(self, broker_id: int, pending: _PendingRequest, silent: Connection) -> None:
        """Connect again to a broker; its request is sent on the new connection."""
        silent.give_up()
        pending.connection = pending.respond_by = None
        try:
            self._client.connect(self._dials, broker_id, self._deadline)
        except ConnectorError as error:
            self._failed.append(self._fail(broker_id, error))

    def _moves_on(self, pending: _PendingRequest, connection: Connection, respond_by: Deadline) -> bool:
        """Move the end of the wait for a response of which bytes have arrived; return whether there is more time."""
        answer_ms, arrived = self._client.options.answer_timeout_ms, connection.arrived
        if self._deadline.expired or not keeps_arriving(arrived - pending.arrived, answer_ms / 1000):
            return False
        pending.arrived, pending.respond_by = arrived, respond_by.moved_on(answer_ms, self._deadline)
        return True

    def _wait(self, timeout_s: float) -> set[Connection]:
        """Wait for anything, send requests on new connections; return the connections with something to read."""
        connections = [each.connection for each in self._pending.values() if each.connection is not None]
        ends = [each.respond_by.remaining_s() for each in self._pending.values() if each.respond_by is not None]
        doubt_at = min((each.doubt_at for each in connections if not each.has_begun), default=math.inf)
        if doubt_at < math.inf:
            ends.append(doubt_at - time.monotonic())
        others = [self._dials.fileno()] if len(self._dials) else []
        readable = set(wait_readable(connections, max(0.0, min([timeout_s, *ends])), others=others))
        for broker_id, outcome in self._dials.take_outcomes():
            if isinstance(outcome, Connection):
                self._send(broker_id, self._pending[broker_id], outcome)
                continue
            node = self._client.cached_broker(broker_id)
            error = outcome if node is None else self._client.explain_unreachable(node, outcome)
            self._failed.append(self._fail(broker_id, error))
        return readable

    def _send(self, broker_id: int, pending: _PendingRequest, connection: Connection) -> None:
        if not connection.supports(pending.request, pending.min_version):
            del self._pending[broker_id]
            self._done.append((broker_id, connection))
            self._failed.append(BrokerResponse(broker_id, connection.address, error=_unsupported(connection, pending)))
            return
        pending.connection = connection
        pending.respond_by = self._deadline.within(self._client.options.answer_timeout_ms)
        try:
            connection.send_request(pending.request, timeout_ms=pending.respond_by.remaining_s() * 1000)
        except ConnectorError as error:
            self._failed.append(self._fail(broker_id, error))

    def _fail(self, broker_id: int, error: ConnectorError) -> BrokerResponse:
        pending = self._pending.pop(broker_id)
        if pending.connection is not None:
            pending.connection.close()
        # The next question, who leads instead, must not go to a broker that has just been silent.
        self._client.connections.drop_idle(broker_id)
        return BrokerResponse(broker_id, pending.address, error=error)

    def _give_back(self) -> None:
        for broker_id, connection in self._done:
            self._client.connections.give_back(broker_id, connection)
        self._done.clear()


def _unsupported(connection: Connection, pending: _PendingRequest) -> ProtocolError:
    return ProtocolError(
        f"{connection.address} does not know {pending.request.name} from version {pending.min_version} on.",
        condition="UNSUPPORTED_VERSION",
        hint="The broker is too old, or a gateway leaves this request out.",
        parameters={"broker": connection.address, "request": pending.request.name},
    )


def call_brokers(
    client: KafkaClient, requests: Mapping[int, Any], deadline: Deadline, *, min_version: int = 0
) -> dict[int, BrokerResponse]:
    """Send a request of its own to each of many brokers, side by side, and wait for all responses.

    Runs on: driver and executor; blocks until all have responded or failed, or time is over.

    Args:
        client: the cluster.
        requests: by broker id.
        deadline: for all.
        min_version: see `RequestFanout.send_to_broker`.

    Returns:
        For each request the response, or why there is none.
    """
    found: dict[int, BrokerResponse] = {}
    with RequestFanout(client, deadline) as fanout:
        for broker_id, request in requests.items():
            fanout.send_to_broker(broker_id, request, min_version=min_version)
        while len(fanout):
            for done in fanout.wait(deadline.remaining_s()):
                found[done.broker_id] = done
            if deadline.expired:
                break
        for broker_id in requests.keys() - found.keys():
            address = node.address if (node := client.cached_broker(broker_id)) is not None else f"broker {broker_id}"
            found[broker_id] = BrokerResponse(broker_id, address, error=deadline.error(f"Asking {address}"))
    return found


def call_leaders(
    client: KafkaClient,
    leaders: Iterable[PartitionMetadata],
    build: Callable[[list[PartitionMetadata]], Any],
    take: Callable[[BrokerResponse, list[PartitionMetadata]], Mapping[TopicPartition, ConnectorError]],
    deadline: Deadline,
    *,
    min_version: int = 0,
) -> dict[TopicPartition, ConnectorError]:
    """Send one request to each leader about its partitions, side by side, once; return which have failed, and why.

    Runs on: driver and executor; blocks until all have responded or failed, or time is over.

    Args:
        client: the cluster.
        leaders: the partitions to request, with their leaders.
        build: returns the request for partitions of one leader.
        take: gets a response and its partitions; returns the failed partitions, or raises for all of them.
        deadline: for all.
        min_version: see `RequestFanout.send_to_broker`.
    """
    by_broker: dict[int, list[PartitionMetadata]] = {}
    for leader in leaders:
        by_broker.setdefault(leader.leader_id, []).append(leader)
    requests = {broker_id: build(led) for broker_id, led in by_broker.items()}
    failures: dict[TopicPartition, ConnectorError] = {}
    for broker_id, done in call_brokers(client, requests, deadline, min_version=min_version).items():
        led = by_broker[broker_id]
        error = done.error
        if error is None:
            try:
                failures |= take(done, led)
                continue
            except ConnectorError as refused:
                error = refused
        failures |= dict.fromkeys([each.topic_partition for each in led], error)
    for refusal in failures.values():
        if isinstance(refusal, AccessError):
            name_user(refusal, client.options)
    return failures


def raise_first(found: Mapping[_K, _V | ConnectorError]) -> dict[_K, _V]:
    """Return what was found; raise the first error that is in the place of something."""
    values: dict[_K, _V] = {}
    for key, value in found.items():
        if isinstance(value, ConnectorError):
            raise value
        values[key] = value
    return values
