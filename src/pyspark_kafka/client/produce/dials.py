"""Connections of a producer that are being made, side by side with what goes to other brokers. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.net.connection import Connection


class ProducerDials:
    """Gets connections to brokers without waiting for them.

    Runs on: executor and driver; one thread; only `wait` blocks, and `begin` where a broker has to be looked up.

    Args:
        client: the cluster; not used by anyone else meanwhile.
    """

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._dials = client.dials()

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._dials

    def __len__(self) -> int:
        return len(self._dials)

    def begin(self, broker_id: int, deadline: Deadline) -> Connection | None:
        """Give a connection that is there; otherwise None, and begin to make one unless that is under way.

        Raises:
            ConnectorError: the broker is not a member, or the cluster cannot tell where it is.
        """
        if broker_id in self._dials:
            return None
        connection = self._client.borrow_idle(broker_id)
        if connection is None:
            node = self._client.find_broker(broker_id, deadline)
            self._dials.start(broker_id, node.host, node.port, deadline)
        return connection

    def take(self) -> list[tuple[int, Connection | ConnectorError]]:
        """Give what is finished since the last call, by broker: the connection, or why there is none."""
        if not len(self._dials):
            return []
        return [(broker_id, self._explained(broker_id, outcome)) for broker_id, outcome in self._dials.take()]

    def wait(self, timeout_s: float) -> None:
        """Wait until something is finished."""
        self._dials.wait(timeout_s)

    def close(self) -> None:
        """Give up what is under way."""
        self._dials.close()

    def _explained(self, broker_id: int, outcome: Connection | ConnectorError) -> Connection | ConnectorError:
        node = self._client.cached_broker(broker_id)
        if node is None or not isinstance(outcome, ConnectorError):
            return outcome
        return self._client.explain_unreachable(node, outcome)
