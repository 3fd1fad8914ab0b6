"""Puts batches into requests and sends them, to the leaders of their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.produce import errors as produce_errors
from pyspark_kafka.client.produce.delivery.lanes import InFlightRequest
from pyspark_kafka.client.produce.request import ProduceFrame
from pyspark_kafka.client.retry import RetryAction, decide
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka.client.produce.delivery.failures import Failures
    from pyspark_kafka.client.produce.delivery.lanes import ProduceLane, ProduceLanes
    from pyspark_kafka.client.produce.delivery.parts import DeliveryParts
    from pyspark_kafka.model import TopicPartition

# While another request is in flight, fewer bytes than this wait for company: small batches share a request.
_WORTH_A_REQUEST_BYTES = 256 * 1024
# How often pending batches are looked through in bulk, while a request's worth of them is queued.
_BULK_LOOKS = 8


class Dispatcher:
    """Sends what may be sent: one request for each leader that has room.

    Runs on: executor and driver; one thread. Blocks on the look-up of leaders, and while a socket takes a request.

    Args:
        parts: what the objects of a delivery share.
        lanes: the connections.
        failures: what follows if something fails.
    """

    def __init__(self, parts: DeliveryParts, lanes: ProduceLanes, failures: Failures) -> None:
        self._parts, self._state, self._clock = parts, parts.state, parts.clock
        self._lanes, self._failures = lanes, failures
        most = parts.options.max_request_size // 2
        self._worth_a_request = most if parts.bulk else min(_WORTH_A_REQUEST_BYTES, most)
        # Queued since pending batches were last looked through.
        self._unseen_bytes = 0

    def note_queued(self, size: int) -> None:
        """Note that a batch is pending."""
        self._unseen_bytes += size

    @property
    def fills_a_request(self) -> bool:
        """Whether what was queued since the last look fills a request."""
        return self._unseen_bytes >= self._worth_a_request

    @property
    def is_due(self) -> bool:
        """Whether it is time to look through pending batches after another one.

        In bulk, to do so for each small batch would take longer than sending it.
        """
        return not self._parts.bulk or self._unseen_bytes * _BULK_LOOKS >= self._worth_a_request

    def take_connected(self) -> bool:
        """Take over connections that have been made, and put off what was to go to brokers without one.

        Returns:
            Whether something was to be taken.
        """
        taken = self._lanes.take_connected()
        for broker_id, error in taken:
            if error is None:
                continue
            pending = [tp for tp in self._state.ready_partitions() if self._parts.leaders.get(tp) == broker_id]
            if pending:
                self._failures.put_off_unconnected(broker_id, pending, error)
        return bool(taken)

    def dispatch(self, now: float, *, everything: bool) -> bool:
        """Send what can be sent; `everything` also sends requests that are small.

        Returns:
            Whether something was sent, or found out.
        """
        self._unseen_bytes = 0
        if not everything and len(self._lanes) and not any(self._has_room(lane, now) for lane in self._lanes):
            return False  # a look through what is pending would find nothing to do
        sent = False
        while True:
            by_broker: dict[int, list[ProducerBatch]] = {}
            leaderless: list[TopicPartition] = []
            for topic_partition in self._state.ready_partitions():
                batch = self._state.sendable(topic_partition, now)
                if batch is None:
                    continue
                leader_id = self._parts.leaders.get(topic_partition)
                if leader_id is None:
                    leaderless.append(topic_partition)
                else:
                    by_broker.setdefault(leader_id, []).append(batch)
            progress = False
            for broker_id, batches in by_broker.items():
                progress |= self._dispatch_to(broker_id, batches, now, everything=everything)
            if leaderless:
                # Only after the others were served: a look-up blocks.
                progress |= self._find_leaders(leaderless)
            if not progress:
                return sent
            sent = True

    def _has_room(self, lane: ProduceLane, now: float) -> bool:
        return len(lane.requests) < self._parts.options.max_in_flight and now >= lane.throttled_until

    def _dispatch_to(self, broker_id: int, batches: list[ProducerBatch], now: float, *, everything: bool) -> bool:
        lane = self._lanes.get(broker_id)
        if lane is not None and not self._has_room(lane, now):
            return False
        if lane is not None and lane.connection.session_is_old:
            if lane.requests:
                return False  # they are responded to first, then the login is repeated
            self._lanes.rest(lane)
            lane = None
        taken: list[ProducerBatch] = []
        size = 0
        for batch in batches:
            if taken and size + batch.size > self._parts.options.max_request_size:
                break
            taken.append(batch)
            size += batch.size
        idle = (lane is None or not lane.requests) and not self._parts.bulk
        if not (everything or idle) and size < self._worth_a_request:
            return False
        if lane is None:
            lane = self._open_lane(broker_id, batches)
            if lane is None:
                return False
        self._send_request(lane, taken)
        return True

    def _open_lane(self, broker_id: int, batches: list[ProducerBatch]) -> ProduceLane | None:
        """Return a lane to a broker; None while a connection is being made, which holds up nothing for others."""
        limit_ms = (min(batch.expires_at for batch in batches) - self._clock.now()) * 1000
        try:
            return self._lanes.open(broker_id, self._parts.client.deadline().within(max(1.0, limit_ms)))
        except ConnectorError as error:
            self._failures.put_off_unconnected(broker_id, [batch.topic_partition for batch in batches], error)
            return None

    def _send_request(self, lane: ProduceLane, batches: list[ProducerBatch]) -> None:
        frame = ProduceFrame(
            self._parts.options.acks,
            self._parts.options.request_timeout_ms,
            ((batch.topic_partition, batch.data) for batch in batches),
            self._parts.mode.transactional_id,
        )
        now = self._clock.wall()
        expires_at = self._clock.on_the_wall(min(batch.expires_at for batch in batches))
        ends_at = min(now + self._parts.options.request_timeout_ms / 1000, expires_at)
        lane.requests.append(InFlightRequest({batch.topic_partition: batch for batch in batches}, ends_at, now))
        for batch in batches:
            self._state.mark_sent(batch)
        try:
            timeout_ms = max(1.0, (ends_at - now) * 1000)
            lane.connection.send(frame, max_version=self._parts.mode.max_produce_version, timeout_ms=timeout_ms)
        except ConnectorError as error:
            self._failures.lose(lane, error)
            if decide(error).action is RetryAction.FAIL:
                topic_partition = batches[0].topic_partition
                raise produce_errors.unreachable(self._state, topic_partition, "sending a request", error) from error
            return
        if not frame.has_response:
            lane.requests.pop()
            for batch in batches:
                self._state.acknowledge(batch)

    def _find_leaders(self, topic_partitions: list[TopicPartition]) -> bool:
        """Ask the cluster who leads; return whether one of the leaders is known now."""
        soonest = min(self._state.pending_batch(topic_partition).expires_at for topic_partition in topic_partitions)
        deadline = self._parts.client.deadline().within(max(1.0, (soonest - self._clock.now()) * 1000))
        try:
            missing = self._parts.leaders.look_up(topic_partitions, deadline)
        except ConnectorError as error:
            self._failures.put_off(topic_partitions, "looking up its leader", error, None)
            return False
        for topic_partition, reason in missing.items():
            self._failures.note(topic_partition, reason, None)
            waited_ms = self._parts.leaders.unknown_for_ms(topic_partition, reason, self._clock.now())
            if waited_ms >= self._parts.unknown_topic_ms:
                known = self._parts.leaders.known_count(topic_partition.topic)
                raise produce_errors.no_such_partition(self._state, topic_partition, waited_ms, known) from reason
            if reason.condition != "UNKNOWN_TOPIC" and decide(reason).action is RetryAction.FAIL:
                self._failures.put_off([topic_partition], "looking up its leader", reason, None)
        if missing:
            self._failures.postpone(missing)
        else:
            self._failures.note_leaders_found()
        return len(missing) < len(topic_partitions)
