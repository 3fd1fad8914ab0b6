"""The conversations of a producer with brokers: one connection for each, and the requests in flight on it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka._client.client.waiting.deadline import Deadline


# A broker that has sent nothing for this long, with a request in flight, may have died: others get the look-up…
_SILENT_S = 2.0
# …and again this long after that.
_LOOK_AGAIN_S = 2.0


@dataclass(slots=True)
class InFlightRequest:
    """A request in flight.

    Attributes:
        batches: what it carries.
        expires_at: when its batches expire, in seconds of the clock on the wall.
        sent_at: when it was sent, by the same clock.
        timeout_s: how long its response may take, since it is the next one.
    """

    batches: dict[TopicPartition, ProducerBatch]
    expires_at: float
    sent_at: float
    timeout_s: float


@dataclass(slots=True)
class ProduceLane:
    """The conversation with one broker; times are seconds of the clock on the wall.

    Attributes:
        broker_id: the broker.
        connection: open, and of this producer only.
        requests: in flight, oldest first; brokers respond in this order.
        throttled_until: nothing is sent before (KIP-219).
        heard_at: when the last response arrived.
        used_at: when a request was sent last; there need be no response to it.
        looked_at: when leaders were last requested from other brokers.
    """

    broker_id: int
    connection: Connection
    requests: deque[InFlightRequest] = field(default_factory=deque)
    throttled_until: float = 0.0
    heard_at: float = 0.0
    used_at: float = 0.0
    looked_at: float = 0.0

    @property
    def look_at(self) -> float:
        """The time to request the leaders of unacknowledged batches elsewhere; there are requests in flight.

        A broker that throttles may not be called silent before it reads again (KIP-219).
        """
        silent_since = max(self.requests[0].sent_at, self.heard_at, self.throttled_until)
        return max(silent_since + _SILENT_S, self.looked_at + _LOOK_AGAIN_S)

    @property
    def doubt_at(self) -> float:
        """The time from which silence means a forgotten idle connection; infinite if it does not."""
        at = self.connection.doubt_at
        return math.inf if at < math.inf and self.connection.has_begun else at

    def silent_s(self, now: float) -> float:
        """Return for how many seconds no response has arrived; there are requests in flight."""
        return now - max(self.requests[0].sent_at, self.heard_at, self.throttled_until)

    @property
    def ends_at(self) -> float:
        """The time limit of its requests. Brokers respond in order: each one's time begins with the response before.

        A batch that expires is given up too, unless the broker has responded since it was sent, and does not throttle:
        over a slow link the requests before it take their time.
        """
        requests, heard_at = self.requests, self.heard_at
        oldest = requests[0]
        ends_at = max(oldest.sent_at, heard_at, self.throttled_until) + oldest.timeout_s
        throttled = self.throttled_until > heard_at
        if len(requests) == 1:
            return min(ends_at, oldest.expires_at) if throttled or heard_at <= oldest.sent_at else ends_at
        return min([ends_at, *[each.expires_at for each in requests if throttled or heard_at <= each.sent_at]])

    def acknowledges(self, now: float, timeout_s: float) -> bool:
        """Return whether the broker has responded within that time."""
        return now - self.heard_at < timeout_s


class ProduceLanes:
    """The lanes of a producer, and the connections that are being made, side by side with what goes to other brokers.

    Runs on: executor and driver; one thread. Only `wait_connected` blocks, and `open` if a broker has to be looked up.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        proves: whether an idle connection is used only after a response: requests must not be sent twice.

    Attributes:
        by_broker: the open lanes.
        connecting: how many connections are being made.
    """

    def __init__(self, client: KafkaClient, *, proves: bool = False) -> None:
        self._client = client
        self._proves = proves
        self.by_broker: dict[int, ProduceLane] = {}
        self._dials = client.dials()
        self.connecting = 0

    def is_connecting(self, broker_id: int) -> bool:
        """Return whether a connection to this broker is being opened."""
        return broker_id in self._dials

    def address(self, broker_id: int) -> str:
        """Return the address of a broker, as errors name it."""
        node = self._client.cached_broker(broker_id)
        return node.address if node is not None else f"broker {broker_id}"

    def open(self, broker_id: int, deadline: Deadline) -> ProduceLane | None:
        """Return a new lane if there is an idle connection; otherwise None, and a connection is being made.

        Raises:
            ConnectorError: the broker is not a member, or the cluster does not return its address.
        """
        if broker_id in self._dials:
            return None
        connection = self._client.connections.take_idle(broker_id)
        if connection is None or (self._proves and connection.was_idle):
            self._client.connect(self._dials, broker_id, deadline, connection)
            self.connecting = len(self._dials)
            return None
        return self._add(broker_id, connection)

    def take_connected(self) -> list[tuple[int, ConnectorError | None]]:
        """Open lanes on the connections made since the last call.

        Returns:
            Each broker that was connected to, and why there is no connection to it, if there is none.
        """
        taken: list[tuple[int, ConnectorError | None]] = []
        for broker_id, outcome in self._dials.take_outcomes():
            if isinstance(outcome, ConnectorError):
                node = self._client.cached_broker(broker_id)
                explained = outcome if node is None else self._client.explain_unreachable(node, outcome)
                taken.append((broker_id, explained))
            else:
                self._add(broker_id, outcome)
                taken.append((broker_id, None))
        self.connecting = len(self._dials)
        return taken

    def wait_connected(self, timeout_s: float) -> None:
        """Wait until a connection is made, or cannot be."""
        self._dials.wait(timeout_s)

    def remove(self, lane: ProduceLane) -> list[InFlightRequest]:
        """Close a lane with its connection; return its requests, whose outcome is unknown."""
        lane.connection.close()
        self.by_broker.pop(lane.broker_id, None)
        requests, lane.requests = list(lane.requests), deque()
        return requests

    def rest(self, lane: ProduceLane) -> None:
        """Close a lane with nothing in flight; its connection goes back to the client."""
        del self.by_broker[lane.broker_id]
        self._client.connections.give_back(lane.broker_id, lane.connection)

    def close(self) -> None:
        """Return the connections to the client, and give up unfinished connections."""
        self._dials.close()
        self.connecting = 0
        lanes, self.by_broker = list(self.by_broker.values()), {}
        for lane in lanes:
            self._client.connections.give_back(lane.broker_id, lane.connection)

    def close_connections(self) -> None:
        """Close all connections: a request may be half sent."""
        for lane in self.by_broker.values():
            lane.connection.close()

    def _add(self, broker_id: int, connection: Connection) -> ProduceLane:
        lane = self.by_broker[broker_id] = ProduceLane(broker_id, connection)
        return lane
