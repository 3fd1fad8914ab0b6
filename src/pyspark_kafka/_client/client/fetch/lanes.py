"""Connections of a fetcher: one for each broker, with at most one request in flight."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.frame_stream import keeps_arriving
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline


@dataclass(slots=True, eq=False)
class FetchLane:
    """The way to one broker.

    Attributes:
        in_flight: whether a request is in flight.
        deadline: of its response, since the caller waits for it; None while it does not.
        heard_at: when the last response came on this connection.
        looked_at: when bytes of the response last arrived fast enough; None before the first look.
        arrived: how many bytes of it had arrived then.
    """

    broker_id: int
    connection: Connection | None = None
    in_flight: bool = False
    deadline: Deadline | None = None
    heard_at: float = -math.inf
    looked_at: float | None = None
    arrived: int = 0

    def keeps_arriving(self, arrived: int, began_at: float, now: float) -> bool:
        """Return whether enough bytes of a response have arrived since this was true last; then its time starts again.

        A trickle is not enough, so that a response ends at some time.

        Args:
            arrived: how many bytes of it are there.
            began_at: when they were first waited for.
            now: the time of the look.
        """
        if self.looked_at is None:
            self.looked_at = began_at
        if not keeps_arriving(arrived - self.arrived, now - self.looked_at):
            return False
        self.looked_at, self.arrived, self.deadline = now, arrived, None
        return True

    def is_forgotten(self, held_s: float) -> bool:
        """Return whether the connection was idle and stays silent beyond `held_s`, the maximum wait of a request."""
        connection = self.connection
        if connection is None or connection.doubt_at + held_s > time.monotonic() or connection.has_begun:
            return False
        return not connection.readable(0.0)

    def give_back(self, client: KafkaClient) -> None:
        """Return the connection to the client for other uses; it is closed if a response is still in flight."""
        connection, self.connection, self.heard_at = self.connection, None, -math.inf
        if connection is not None:
            client.connections.give_back(self.broker_id, connection)

    def drop(self) -> None:
        """Close the connection; what was in flight is unknown."""
        self.in_flight = False
        connection, self.connection, self.heard_at = self.connection, None, -math.inf
        if connection is not None:
            connection.close()


class FetchLanes:
    """The lanes of a fetcher by broker; missing connections are opened side by side.

    Runs on: executor. Not thread-safe; does not pickle. `close` returns all connections.

    Args:
        client: of the cluster.

    Attributes:
        connecting: how many connections are being opened.
    """

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._lanes: dict[int, FetchLane] = {}
        # Lanes with a request in flight, the oldest request first; behind them, lanes that had a turn.
        self._in_flight: list[FetchLane] = []
        self._dials = client.dials()
        self.connecting = 0

    def __iter__(self) -> Iterator[FetchLane]:
        return iter(self._lanes.values())

    def close(self) -> None:
        """Return the connections; responses in flight are given up."""
        self._in_flight.clear()
        for lane in self._lanes.values():
            lane.in_flight = False
            lane.give_back(self._client)
        self._dials.close()
        self.connecting = 0

    def begin(self) -> None:
        """Record a new call: the time of in-flight responses starts again at the next wait."""
        for lane in self._in_flight:
            lane.deadline = lane.looked_at = None

    def begin_again(self) -> list[int]:
        """Record a call after an unfinished wait; return the brokers whose responses have arrived since.

        Only their time starts again: the time of the others continues.
        """
        waiting = [lane for lane in self._in_flight if lane.connection is not None]
        readable = wait_readable([lane.connection for lane in waiting if lane.connection is not None], 0.0)
        responded = [lane for lane in waiting if lane.connection in readable]
        for lane in responded:
            lane.deadline = lane.looked_at = None
        return [lane.broker_id for lane in responded]

    def of(self, broker_id: int) -> FetchLane:
        """Return the lane to a broker."""
        lane = self._lanes.get(broker_id)
        if lane is None:
            lane = self._lanes[broker_id] = FetchLane(broker_id)
        return lane

    def open_connection(self, lane: FetchLane, deadline: Deadline) -> Connection | None:
        """Return a connection for a request; None if one has to be opened, which begins here.

        Raises:
            ConnectorError: the broker is not a member, and the cluster does not return its address.
        """
        lane.give_back(self._client)
        lane.connection = self._client.connections.take_idle(lane.broker_id)
        if lane.connection is None:
            self._client.connect(self._dials, lane.broker_id, deadline)
            self.connecting = len(self._dials)
        return lane.connection

    def take_connected(self) -> list[tuple[int, ConnectorError | None]]:
        """Take over opened connections; return the unreachable brokers, each with the reason."""
        finished: list[tuple[int, ConnectorError | None]] = []
        for broker_id, outcome in self._dials.take_outcomes():
            if isinstance(outcome, ConnectorError):
                node = self._client.cached_broker(broker_id)
                finished.append(
                    (broker_id, outcome if node is None else self._client.explain_unreachable(node, outcome))
                )
            else:
                lane = self.of(broker_id)
                lane.give_back(self._client)
                lane.connection = outcome
                finished.append((broker_id, None))
        self.connecting = len(self._dials)
        return finished

    def sent(self, lane: FetchLane) -> None:
        """Record that a request is in flight."""
        lane.in_flight, lane.deadline, lane.looked_at, lane.arrived = True, None, None, 0
        self._in_flight.append(lane)

    def received(self, lane: FetchLane) -> None:
        """Record that the response was received."""
        lane.in_flight = False
        self._in_flight.remove(lane)

    def end_turn(self, lane: FetchLane) -> None:
        """Move a lane to the end of the queue, so that other lanes' responses are received before its next one."""
        self._in_flight.remove(lane)
        self._in_flight.append(lane)

    def drop(self, lane: FetchLane) -> None:
        """Close the connections to a failed broker; the new leader must not be requested from it."""
        if lane.in_flight:
            self._in_flight.remove(lane)
        lane.drop()
        self._client.connections.drop_idle(lane.broker_id)

    def leave(self, broker_id: int) -> None:
        """Give up what is in flight to a broker, and a connection that is being opened."""
        self._dials.give_up(broker_id)
        self.connecting = len(self._dials)
        self.drop(self.of(broker_id))

    def give_back_idle(self) -> None:
        """Return connections without a request in flight to the client, for look-ups."""
        for lane in self._lanes.values():
            if not lane.in_flight:
                lane.give_back(self._client)

    def wait(self, progress: Deadline, response_ms: float, wake_in_s: float, held_s: float) -> FetchLane | None:
        """Wait until a lane has a response to receive, or has waited for too long, which receiving reports.

        Args:
            progress: of the whole wait.
            response_ms: the longest wait for one response.
            wake_in_s: when there is something else to do; infinite if there is not.
            held_s: how long brokers may hold a request.

        Returns:
            The lane that can be received from: of several, the oldest request, but one after the other had a turn. Also
            one whose connection may be forgotten. None when it is time for something else.
        """
        in_flight = self._in_flight
        dialing = self.connecting
        if not in_flight and not dialing:
            if wake_in_s < math.inf:
                progress.pause(max(0.0, wake_in_s))
            return None
        timeout_s = min(wake_in_s, progress.remaining_s())
        connections: list[Connection] = []
        doubt_at = math.inf
        for lane in in_flight:
            if lane.deadline is None:
                lane.deadline = progress.within(response_ms)
            timeout_s = min(timeout_s, lane.deadline.remaining_s())
            if lane.connection is not None:
                connections.append(lane.connection)
                if lane.connection.doubt_at + held_s < doubt_at and not lane.connection.has_begun:
                    doubt_at = lane.connection.doubt_at + held_s
        if doubt_at < math.inf:
            timeout_s = min(timeout_s, doubt_at - time.monotonic())
        others = [self._dials.fileno()] if dialing else []
        readable = wait_readable(connections, max(0.0, timeout_s), others=others)
        for lane in in_flight:
            if lane.connection in readable or (lane.deadline is not None and lane.deadline.expired):
                return lane
        if doubt_at < math.inf:
            return next((lane for lane in in_flight if lane.is_forgotten(held_s)), None)
        return None
