"""Connections of a fetcher: one a broker, each with at most one request on its way. Layer: client."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.connection import wait_readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.connection import Connection
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.fetch_request import FetchPosition
    from pyspark_kafka.client.fetch_state import PartitionRead


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

    def connect(self, client: KafkaClient, deadline: Deadline) -> Connection:
        """Give a connection on which a request can be sent; a dead one is replaced.

        Raises:
            ConnectorError: as `KafkaClient.borrow`.
        """
        if self.connection is not None and self.connection.idle_and_alive:
            return self.connection
        self.give_back(client)
        self.connection = client.borrow(self.broker_id, deadline)
        return self.connection

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


def wait_for_answer(lanes: Iterable[Lane], progress: Deadline, answer_ms: float, wake_in_s: float) -> Lane | None:
    """Wait until a lane has an answer to receive, or has waited for too long, which receiving tells.

    Args:
        lanes: those with a request on its way; one at least.
        progress: of the whole wait.
        answer_ms: the longest wait for one answer.
        wake_in_s: when there is something else to do; infinite if there is not.

    Returns:
        The lane that was asked first of those that can be received from; None when it is time for something else.
    """
    flying = sorted(lanes, key=lambda lane: 0.0 if lane.asked is None else lane.asked.at)
    for lane in flying:
        lane.deadline = lane.deadline or progress.within(answer_ms)
    if len(flying) == 1 and wake_in_s == math.inf:
        return flying[0]
    timeout_s = min([wake_in_s, *(lane.deadline.remaining_s() for lane in flying if lane.deadline is not None)])
    connections = [lane.connection for lane in flying if lane.connection is not None]
    readable = wait_readable(connections, max(0.0, timeout_s))
    for lane in flying:
        if lane.connection in readable or (lane.deadline is not None and lane.deadline.expired):
            return lane
    return None
