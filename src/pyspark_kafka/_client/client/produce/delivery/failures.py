"""Failures of attempts, and their consequences for partitions: a pause, a new look-up of the leader, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce import errors as produce_errors
from pyspark_kafka._client.client.waiting.outage import may_be_outage
from pyspark_kafka._client.client.waiting.retry import RetryAction, decide
from pyspark_kafka.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.produce.delivery.lanes import InFlightRequest, ProduceLane, ProduceLanes
    from pyspark_kafka._client.client.produce.delivery.parts import DeliveryParts
    from pyspark_kafka.errors import ConnectorError


class Failures:
    """The last failure of each partition, until one of its batches is acknowledged. Nothing here blocks.

    Args:
        parts: what the objects of a delivery share.
        lanes: closed when their connections fail.

    Attributes:
        last: why, and at which broker, the last attempt of a partition failed.
    """

    def __init__(self, parts: DeliveryParts, lanes: ProduceLanes) -> None:
        self._parts, self._state, self._clock = parts, parts.state, parts.clock
        self._lanes = lanes
        # The pauses between look-ups of leaders, and between connections to a broker.
        self._backoff = parts.client.backoff()
        self.last: dict[TopicPartition, tuple[ConnectorError, str | None]] = {}

    def first_failed(self) -> TopicPartition | None:
        """Return a partition whose last attempt failed, if there is one."""
        return next(iter(self.last), None)

    def note(self, topic_partition: TopicPartition, error: ConnectorError, broker: str | None) -> None:
        """Record the reason of a failed attempt."""
        self.last[topic_partition] = (error, broker)
        self._parts.waiting.failed(error)

    def note_leaders_found(self) -> None:
        """Begin with short pauses again."""
        self._backoff.reset()

    def lose(self, lane: ProduceLane, error: ConnectorError) -> None:
        """Close a lane; the batches in flight on it are sent again, on another connection."""
        for request in self._lanes.remove(lane):
            self.fail(request, error, lane.connection.address)

    def fail(self, request: InFlightRequest, error: ConnectorError, broker: str) -> None:
        """Schedule a request's batches to be sent again, because there was no response."""
        now = self._clock.wall()
        for topic_partition, batch in request.batches.items():
            self._state.fail(batch, now)
            self.note(topic_partition, error, broker)
            self._parts.leaders.forget(topic_partition)

    def put_off(
        self, topic_partitions: list[TopicPartition], step: str, error: ConnectorError, broker: str | None
    ) -> None:
        """Try again later what failed before anything was sent.

        Raises:
            DeliveryError: a later attempt would fail as well.
            AccessError: the brokers refused the user.
        """
        first = topic_partitions[0]
        if isinstance(error, AccessError):
            raise produce_errors.refused_access(self._state, first, step, error) from error
        passes = self._parts.outage_timeout_ms > 0 and may_be_outage(error)
        if decide(error).action is RetryAction.FAIL and not passes:
            raise produce_errors.unreachable(self._state, first, step, error) from error
        for topic_partition in topic_partitions:
            self.note(topic_partition, error, broker)
            self._parts.leaders.forget(topic_partition)
        self.postpone(topic_partitions)

    def put_off_unconnected(
        self, broker_id: int, topic_partitions: list[TopicPartition], error: ConnectorError
    ) -> None:
        """Try again later to connect to the leader of partitions; see `put_off`."""
        address = self._lanes.address(broker_id)
        self.put_off(topic_partitions, f"connecting to {address}", error, address)

    def postpone(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Send nothing of partitions before the next pause is over."""
        until = self._clock.wall() + self._backoff.next_s()
        for topic_partition in topic_partitions:
            self._state.postpone(topic_partition, until)
