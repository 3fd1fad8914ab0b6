"""Connections of a fetcher: one a broker, each with at most one request on its way. Layer: client."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.net.connection import wait_readable
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.fetch.cursor import PartitionRead
    from pyspark_kafka.client.fetch.request import FetchPosition
    from pyspark_kafka.client.net.connection import Connection


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way: what it asks for, in its order, and by both names that an answer may use."""

    reads: tuple[PartitionRead, ...]
    by_name: dict[tuple[str | UUID, int], PartitionRead]
    at: float

    @classmethod
    def of(cls, reads: Sequence[PartitionRead], positions: Sequence[FetchPosition], at: float) -> Asked:
        """Build it of what was sent."""
        by_name: dict[tuple[str | UUID, int], PartitionRead] = {}
        for read, position in zip(reads, positions, strict=True):
            partition = read.topic_partition.partition
            by_name[read.topic_partition.topic, partition] = read
            if position.topic_id is not None:
                by_name[position.topic_id, partition] = read
        return cls(tuple(reads), by_name, at)


@dataclass(slots=True)
class Lane:
    """What goes to one broker.

    Attributes:
        not_before: the broker wants to hear nothing of us until then.
        deadline: of the answer, since the caller came for it.
    """

    broker_id: int
    connection: Connection | None = None
    asked: Asked | None = None
    not_before: float = 0.0
    deadline: Deadline | None = None

    def give_back(self, client: KafkaClient) -> None:
        """Let others use the connection; if it still owes an answer, it is closed."""
        connection, self.connection = self.connection, None
        if connection is not None:
            client.give_back(self.broker_id, connection)

    def drop(self) -> None:
        """Close the connection; what was on its way is unknown."""
        self.asked = None
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class Lanes:
    """The lanes of a fetcher by broker; connections that they lack are made side by side.

    Runs on: executor. Not thread-safe; does not pickle. `close` gives all connections back.

    Args:
        client: of the cluster.
        clock: monotonic seconds; tests give their own.
    """

    def __init__(self, client: KafkaClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._lanes: dict[int, Lane] = {}
        self._dials = client.dials()
        self._dialled_at: dict[int, float] = {}

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def close(self) -> None:
        """Give the connections back; answers on their way are given up."""
        for lane in self._lanes.values():
            lane.asked = None
            lane.give_back(self._client)
        self._dials.close()
        self._dialled_at.clear()

    def of(self, broker_id: int) -> Lane:
        """Give the lane to a broker."""
        return self._lanes.setdefault(broker_id, Lane(broker_id))

    def ready_at(self, broker_id: int) -> float:
        """Give when something can be sent to a broker: now or before, later, or after what it is waited for."""
        lane = self._lanes.get(broker_id)
        if broker_id in self._dials or (lane is not None and lane.asked is not None):
            return math.inf
        return -math.inf if lane is None else lane.not_before

    def connection(self, lane: Lane, deadline: Deadline) -> Connection | None:
        """Give a connection on which a request can be sent; None while one is being made, which this begins.

        Raises:
            ConnectorError: the broker is not a member, and the cluster cannot tell where it is.
        """
        if lane.connection is not None and lane.connection.idle_and_alive:
            return lane.connection
        if lane.broker_id in self._dials:
            return None
        lane.give_back(self._client)
        lane.connection = self._client.borrow_idle(lane.broker_id)
        if lane.connection is None:
            node = self._client.find_broker(lane.broker_id, deadline)
            self._dials.start(lane.broker_id, node.host, node.port, deadline)
            self._dialled_at[lane.broker_id] = self._clock()
        return lane.connection

    def take_connected(self) -> list[tuple[int, ConnectorError]]:
        """Take over connections that have been made; give the brokers to which none could be."""
        failed: list[tuple[int, ConnectorError]] = []
        if not len(self._dials):
            return failed
        for broker_id, outcome in self._dials.take():
            del self._dialled_at[broker_id]
            if isinstance(outcome, ConnectorError):
                node = self._client.cached_broker(broker_id)
                error = outcome if node is None else self._client.explain_unreachable(node, outcome)
                failed.append((broker_id, error))
            else:
                lane = self.of(broker_id)
                lane.give_back(self._client)
                lane.connection = outcome
        return failed

    def silent(self, connecting_s: float, answering_s: float) -> list[Lane]:
        """Give the lanes whose broker has been connected to, or waited for, longer than that."""
        before, answering_ms = self._clock() - connecting_s, answering_s * 1000
        found: list[Lane] = []
        for lane in self._lanes.values():
            connecting = self._dialled_at.get(lane.broker_id, math.inf) <= before
            waited_for = lane.deadline if lane.asked is not None else None
            if connecting or (waited_for is not None and waited_for.elapsed_ms() >= answering_ms):
                found.append(lane)
        return found

    def leave(self, lane: Lane) -> None:
        """Give up what is under way to a broker, and close its connections."""
        self._dials.give_up(lane.broker_id)
        self._dialled_at.pop(lane.broker_id, None)
        lane.drop()
        # Who leads instead must not be asked of a broker that has just been silent.
        self._client.drop_idle_connections(lane.broker_id)

    def wait(self, progress: Deadline, answer_ms: float, wake_in_s: float) -> Lane | None:
        """Wait until a lane has an answer to receive, or has waited for too long, which receiving tells.

        Args:
            progress: of the whole wait.
            answer_ms: the longest wait for one answer.
            wake_in_s: when there is something else to do; infinite if there is not.

        Returns:
            The lane that was asked first of those that can be received from; None when it is time for something else.
        """
        flying = sorted(
            (lane for lane in self._lanes.values() if lane.asked is not None),
            key=lambda lane: 0.0 if lane.asked is None else lane.asked.at,
        )
        for lane in flying:
            lane.deadline = lane.deadline or progress.within(answer_ms)
        if not flying and not len(self._dials):
            if wake_in_s < math.inf:
                progress.pause(max(0.0, wake_in_s))
            return None
        ends = [lane.deadline.remaining_s() for lane in flying if lane.deadline is not None]
        timeout_s = min([wake_in_s, progress.remaining_s(), *ends])
        connections = [lane.connection for lane in flying if lane.connection is not None]
        others = [self._dials.fileno()] if len(self._dials) else []
        readable = set(wait_readable(connections, max(0.0, timeout_s), others=others))
        for lane in flying:
            if lane.connection in readable or (lane.deadline is not None and lane.deadline.expired):
                return lane
        return None
