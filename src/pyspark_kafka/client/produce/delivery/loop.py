"""One step after the other until batches are delivered: take responses, give up what is late, send, wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.produce import errors as produce_errors
from pyspark_kafka.client.produce.delivery.dispatcher import Dispatcher
from pyspark_kafka.client.produce.delivery.failures import Failures
from pyspark_kafka.client.produce.delivery.lanes import ProduceLanes
from pyspark_kafka.client.produce.delivery.receiver import Receiver

if TYPE_CHECKING:
    from pyspark_kafka.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka.client.produce.delivery.lanes import ProduceLane
    from pyspark_kafka.client.produce.delivery.parts import DeliveryParts
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.model import TopicPartition

    Bytes = bytes | bytearray | memoryview

# With several brokers to listen to, one of them is listened to for this long at a time.
_LISTEN_SLICE_S = 0.002


class DeliveryLoop:
    """Delivers the batches of one task.

    Runs on: executor and driver; one thread; `step` blocks if it is to wait, and on look-ups of leaders.

    Args:
        parts: what its objects share.

    Attributes:
        lanes: the connections.
    """

    def __init__(self, parts: DeliveryParts) -> None:
        self._parts, self._state, self._clock = parts, parts.state, parts.clock
        self.lanes = ProduceLanes(parts.client)
        self._failures = Failures(parts, self.lanes)
        self._dispatcher = Dispatcher(parts, self.lanes, self._failures)
        self._receiver = Receiver(parts, self.lanes, self._failures)

    def add(self, topic_partition: TopicPartition, data: Bytes, record_count: int) -> None:
        """Queue a stamped batch; it is cut if its topic is known to take no batch as large."""
        expires_at = self._clock.now() + self._parts.options.delivery_timeout_ms / 1000
        batch = self._state.append(topic_partition, data, record_count, expires_at=expires_at)
        self._dispatcher.note_queued(batch.size)
        if not self._parts.limits.fits(batch):
            self._state.split(batch, self._parts.limits.cut(batch))

    @property
    def fills_a_request(self) -> bool:
        """Whether the batches that were queued since the last step fill a request."""
        return self._dispatcher.fills_a_request

    def step(self, *, everything: bool, wait: bool) -> None:
        """Take responses, give up what is late, send what can be sent.

        Args:
            everything: whether small requests are sent also while others are in flight.
            wait: whether to wait until something has happened.

        Raises:
            DeliveryError: a batch is late or was refused.
            AccessError: the brokers refused the user.
        """
        heard = self._dispatcher.take_connected()
        heard |= self._receiver.take_arrived()
        heard |= self._receiver.leave_silent()
        now = self._clock.wall()
        late = self._state.first_expired(self._clock.now())
        if late is not None:
            cause, broker = self._failures.last(late.topic_partition) or self._why_unconnected(late)
            timeout_ms = self._parts.options.delivery_timeout_ms
            raise produce_errors.expired(self._state, late, timeout_ms, broker, cause) from cause
        sent = (everything or heard or self._dispatcher.is_due) and self._dispatcher.dispatch(
            now, everything=everything
        )
        if wait and not heard and not sent:
            self._wait(now)

    def settle(self, seconds: float) -> bool:
        """Wait for the responses to what is in flight, and send nothing more.

        Returns:
            Whether it is known of every batch whether a broker has appended it.

        Raises:
            DeliveryError: a batch was refused.
        """
        ends_at = self._clock.wall() + seconds
        while (listening := [lane for lane in self.lanes if lane.requests]) and self._clock.wall() < ends_at:
            for request in [request for lane in listening for request in lane.requests]:
                request.ends_at = min(request.ends_at, ends_at)
            if not self._receiver.take_arrived():
                self._listen(listening, max(0.0, ends_at - self._clock.wall()))
        return not self._state.counts().unknown

    def last_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return where the batch of a partition that was acknowledged last begins in its log; None if unknown."""
        offset = self._receiver.last_offsets.get(topic_partition, -1)
        return offset if offset >= 0 else None

    def describe(self) -> str:
        """Return what is waited for, as a clause."""
        counts = self._state.counts()
        failed = self._failures.first_failed()
        named = "" if failed is None else f", {failed} among them"
        return f"delivery of {counts.not_delivered + counts.unknown} records{named}"

    def _wait(self, now: float) -> None:
        """Block until a response arrives, a connection is made, or the next deadline expires.

        Deadlines are those of requests, throttles, pauses and deliveries, and of silence.

        Args:
            now: by which it was decided that nothing can be sent. A pause that has ended since is over at once; by a
                later look at the clock it would be no reason to wake.
        """
        listening = [lane for lane in self.lanes if lane.requests]
        until = [min(lane.ends_at, lane.look_at) for lane in listening]
        until += [lane.throttled_until for lane in self.lanes if lane.throttled_until > now]
        pause = self._state.next_attempt_at(now)
        if pause is not None:
            until.append(pause)
        expiry = self._state.next_expiry()
        if expiry is not None and self._clock.on_the_wall(expiry) > now:
            # One that has expired is in flight, and is given up with its request.
            until.append(self._clock.on_the_wall(expiry))
        timeout_s = max(0.0, min(until, default=now) - self._clock.wall())
        if not listening and self.lanes.connecting:
            self.lanes.wait_connected(timeout_s)
        elif not listening:
            self._clock.sleep(timeout_s)
        else:
            self._listen(listening, timeout_s)

    def _listen(self, listening: list[ProduceLane], timeout_s: float) -> None:
        """Block until a response arrives, if all is waited for at one broker, or for a moment."""
        if len(listening) == 1 and not self.lanes.connecting:
            listening[0].connection.readable(timeout_s)
        else:
            oldest = min(listening, key=lambda lane: lane.ends_at)
            oldest.connection.readable(min(timeout_s, _LISTEN_SLICE_S))

    def _why_unconnected(self, late: ProducerBatch) -> tuple[ConnectorError | None, str | None]:
        """Return why a batch that has never failed is late: the connection to its leader is still being made."""
        leader_id = self._parts.leaders.get(late.topic_partition)
        if leader_id is None or not self.lanes.is_connecting(leader_id):
            return None, None
        address = self.lanes.address(leader_id)
        return Deadline(self._parts.options.delivery_timeout_ms).error(f"Connecting to {address}"), address
