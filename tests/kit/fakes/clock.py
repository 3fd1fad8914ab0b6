"""Time that a test sets, for everything that takes a clock and a sleep."""

from __future__ import annotations

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net.connection import Connection


class Clock:
    """Seconds that pass when somebody sleeps, when a test adds them to `now`, and by `tick` at each look."""

    def __init__(self, now: float = 1_000.0, *, tick: float = 0.0) -> None:
        self.now = now
        self._tick = tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass; never none, so that a loop that only sleeps comes to an end."""
        self.now += max(seconds, 1e-4)


class ResponseClock(Clock):
    """Stands still while brokers respond, however long they take; passes when `count` of them have.

    Only requests that are in flight then are late, and no machine is too slow for the others.

    Attributes:
        responses: how many the client has, of those that it sent side by side.
    """

    def __init__(self, client: KafkaClient, count: int = 0, seconds: float = 0.0) -> None:
        super().__init__()
        self.responses = 0
        give_back = client.connections.give_back

        def noted(broker_id: int, connection: Connection) -> None:
            give_back(broker_id, connection)
            self.responses += 1
            if self.responses == count:
                self.now += seconds

        client.connections.give_back = noted  # type: ignore[method-assign]
