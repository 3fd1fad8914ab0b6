"""One step after the other until batches are delivered: take responses, give up what is late, send, wait.

One request goes to each leader that has room.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.idleness import IDLE_S
from pyspark_kafka._client.client.produce import errors as produce_errors
from pyspark_kafka._client.client.produce.delivery.failures import Failures
from pyspark_kafka._client.client.produce.delivery.lanes import InFlightRequest, ProduceLanes
from pyspark_kafka._client.client.produce.delivery.receiver import Receiver
from pyspark_kafka._client.client.produce.request import ProduceFrame
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import RetryAction, decide
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka._client.client.produce.delivery.lanes import ProduceLane
    from pyspark_kafka._client.client.produce.delivery.parts import DeliveryParts

    Bytes = bytes | bytearray | memoryview

# With several brokers to listen to, one of them is listened to for this long at a time.
_LISTEN_SLICE_S = 0.002
# While another request is in flight, fewer bytes than this wait for company: small batches share a request.
_WORTH_A_REQUEST_BYTES = 256 * 1024
# How often pending batches are looked through in bulk, while a request's worth of them is queued.
_BULK_LOOKS = 8


class DeliveryLoop:
    """Delivers the batches of one task.

    Runs on: executor and driver; one thread; `step` blocks if it is to wait, on look-ups of leaders, and while a socket
    takes a request.

    Args:
        parts: what its objects share.

    Attributes:
        lanes: the connections.
        unseen_bytes: queued since pending batches were last looked through.
    """

    def __init__(self, parts: DeliveryParts) -> None:
        self._parts, self._state, self._clock = parts, parts.state, parts.clock
        self.lanes = ProduceLanes(parts.client, proves=not parts.mode.idempotent)
        self._failures = Failures(parts, self.lanes)
        most = parts.options.max_request_size // 2
        self._worth_a_request = most if parts.bulk else min(_WORTH_A_REQUEST_BYTES, most)
        # The same for all transactions of an owner.
        self._transactional_id, self._max_version = parts.mode.transactional_id, parts.mode.max_produce_version
        self.unseen_bytes = 0
        self._receiver = Receiver(parts, self.lanes, self._failures)

    @property
    def fills_a_request(self) -> bool:
        """Whether the batches that were queued since the last step fill a request."""
        return self.unseen_bytes >= self._worth_a_request

    def step(self, *, everything: bool, wait: bool) -> None:
        """Take responses, give up what is late, send what can be sent.

        Args:
            everything: whether small requests are sent also while others are in flight.
            wait: whether to wait until something has happened.

        Raises:
            DeliveryError: a batch is late or was refused.
            AccessError: the brokers refused the user.
        """
        heard = self._take_connected() if self.lanes.connecting else False
        heard |= self._receiver.take_arrived()
        now = self._clock.wall()
        expiry = self._state.next_expiry()
        late = None
        if expiry is not None and expiry <= now - self._clock.outside_s:
            late = self._state.first_expired(now - self._clock.outside_s, lambda tp: self._waits_in_line(tp, now))
        if late is not None:
            cause, broker = self._failures.last.get(late.topic_partition) or self._why_late(late, now)
            timeout_ms = self._parts.options.delivery_timeout_ms
            raise produce_errors.expired(self._state, late, timeout_ms, broker, cause) from cause
        # In bulk, to look through pending batches for each small one would take longer than sending it.
        is_due = not self._parts.bulk or self.unseen_bytes * _BULK_LOOKS >= self._worth_a_request
        sent = (everything or heard or is_due) and self._dispatch(now, everything=everything)
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
        lanes = self.lanes.by_broker
        while (listening := [lane for lane in lanes.values() if lane.requests]) and self._clock.wall() < ends_at:
            for request in [request for lane in listening for request in lane.requests]:
                request.expires_at = min(request.expires_at, ends_at)
            if not self._receiver.take_arrived(leaves=False):
                self._listen(listening, max(0.0, ends_at - self._clock.wall()))
        return not self._state.counts().unknown

    def last_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return where the batch of a partition that was acknowledged last begins in its log; None if unknown."""
        offset = self._receiver.last_offsets.get(topic_partition, -1)
        return offset if offset >= 0 else None

    def first_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return where the first batch of a partition that was acknowledged begins in its log; None if unknown."""
        offset = self._receiver.first_offsets.get(topic_partition, -1)
        return offset if offset >= 0 else None

    def describe(self) -> str:
        """Return what is waited for, as a clause."""
        counts = self._state.counts()
        failed = self._failures.first_failed()
        named = "" if failed is None else f", {failed} among them"
        return f"delivery of {counts.not_delivered + counts.unknown} records{named}"

    def why_slow(self) -> str:
        """Return which broker throttles the client, as a clause; empty if none does."""
        now = self._clock.wall()
        throttling = [lane for lane in list(self.lanes.by_broker.values()) if lane.throttled_until > now]
        if not throttling:
            return ""
        lane = max(throttling, key=lambda lane: lane.throttled_until)
        return produce_errors.throttled(lane.connection.address, lane.throttled_until - now).message.rstrip(".")

    def _take_connected(self) -> bool:
        """Take over connections that have been made, and put off what was to go to brokers without one.

        Returns:
            Whether something was to be taken.
        """
        taken = self.lanes.take_connected()
        for broker_id, error in taken:
            if error is None:
                continue
            pending = [tp for tp in self._state.ready if self._parts.leaders.known.get(tp) == broker_id]
            if pending:
                self._failures.put_off_unconnected(broker_id, pending, error)
        return bool(taken)

    def _dispatch(self, now: float, *, everything: bool) -> bool:
        """Send ready batches; `everything` also sends small requests.

        Returns:
            Whether something was sent, or found out.
        """
        self.unseen_bytes = 0
        leaders = self._parts.leaders.known
        lanes = self.lanes.by_broker.values()
        if not everything and lanes and not any(self._has_room(lane, now) for lane in lanes):
            return False  # a look through what is pending would find nothing to do
        sent = False
        while ready := self._state.ready:
            by_broker: dict[int, list[ProducerBatch]] = {}
            leaderless: list[TopicPartition] = []
            for topic_partition in ready:
                batch = self._state.sendable(topic_partition, now)
                if batch is None:
                    continue
                leader_id = leaders.get(topic_partition)
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
                break
            sent = True
        return sent

    def _waits_in_line(self, topic_partition: TopicPartition, now: float) -> bool:
        """Return whether batches of a partition wait for batches before them, which are acknowledged.

        Its leader does that; any broker, if the leader was not looked up yet.
        """
        if topic_partition in self._failures.last:
            return False
        leader_id, lanes = self._parts.leaders.known.get(topic_partition), self.lanes.by_broker
        waited_for = list(lanes.values()) if leader_id is None else [lanes[leader_id]] if leader_id in lanes else []
        timeout_s = self._parts.options.request_timeout_ms / 1000
        return any(lane.acknowledges(now, timeout_s) for lane in waited_for)

    def _has_room(self, lane: ProduceLane, now: float) -> bool:
        return len(lane.requests) < self._parts.options.max_in_flight and now >= lane.throttled_until

    def _dispatch_to(self, broker_id: int, batches: list[ProducerBatch], now: float, *, everything: bool) -> bool:
        lane = self.lanes.by_broker.get(broker_id)
        if lane is not None and not self._has_room(lane, now):
            return False
        if lane is not None and lane.connection.session is not None and lane.connection.session_is_old:
            if lane.requests:
                return False  # they are responded to first, then the login is repeated
            self.lanes.rest(lane)
            lane = None
        if lane is not None and not lane.requests and 0.0 < lane.used_at < now - IDLE_S:
            # It is used again if it is not dead.
            self.lanes.rest(lane)
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
            return self.lanes.open(broker_id, self._parts.client.deadline().within(max(1.0, limit_ms)))
        except ConnectorError as error:
            self._failures.put_off_unconnected(broker_id, [batch.topic_partition for batch in batches], error)
            return None

    def _send_request(self, lane: ProduceLane, batches: list[ProducerBatch]) -> None:
        now = self._clock.wall()
        timeout_s = self._parts.options.request_timeout_ms / 1000
        expires_at = math.inf
        sent: dict[TopicPartition, ProducerBatch] = {}
        entries: list[tuple[TopicPartition, Bytes]] = []
        for batch in batches:
            sent[batch.topic_partition] = batch
            entries.append((batch.topic_partition, batch.data))
            expires_at = min(expires_at, batch.expires_at + self._clock.outside_s)
            self._state.mark_sent(batch)
        frame = ProduceFrame(
            self._parts.options.acks, self._parts.options.request_timeout_ms, entries, self._transactional_id
        )
        soonest = now + min(timeout_s, self._parts.options.delivery_timeout_ms / 1000)
        if expires_at < soonest and lane.acknowledges(now, timeout_s):
            # It has waited for the requests before it, which the broker acknowledges one by one.
            expires_at = soonest
        lane.requests.append(InFlightRequest(sent, expires_at, now, timeout_s))
        lane.used_at = now
        try:
            timeout_ms = max(1.0, min(timeout_s, expires_at - now) * 1000)
            lane.connection.send_request(frame, max_version=self._max_version, timeout_ms=timeout_ms)
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
        """Request leaders from the cluster; return whether one of the leaders is known now."""
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

    def _wait(self, now: float) -> None:
        """Block until a response arrives, a connection is made, or the next deadline expires.

        Deadlines end requests, throttles, pauses, deliveries and silences.

        Args:
            now: the time of the decision that nothing can be sent. A pause that has ended since is over; by a
                later look at the clock it would be no reason to wake.
        """
        listening = [lane for lane in self.lanes.by_broker.values() if lane.requests]
        until = [min(lane.ends_at, lane.look_at, lane.doubt_at) for lane in listening]
        until += [lane.throttled_until for lane in self.lanes.by_broker.values() if lane.throttled_until > now]
        pause = self._state.next_attempt_at(now)
        if pause is not None:
            until.append(pause)
        expiry = self._state.next_expiry()
        if expiry is not None and expiry + self._clock.outside_s > now:
            # One that has expired is in flight, and is given up with its request.
            until.append(expiry + self._clock.outside_s)
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

    def _why_late(self, late: ProducerBatch, now: float) -> tuple[ConnectorError | None, str | None]:
        """Return why a batch that has never failed is late, and its leader's address.

        The leader throttles the client, or the connection to it is still being made.
        """
        leader_id = self._parts.leaders.known.get(late.topic_partition, -1)
        address, lane = self.lanes.address(leader_id), self.lanes.by_broker.get(leader_id)
        if lane is not None and lane.throttled_until > now:
            return produce_errors.throttled(address, lane.throttled_until - now), address
        if not self.lanes.is_connecting(leader_id):
            return None, None
        return Deadline(self._parts.options.delivery_timeout_ms).error(f"Connecting to {address}"), address
