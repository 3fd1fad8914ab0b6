"""Takes responses, and leaves brokers that send none."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, THROTTLE_SECONDS
from pyspark_kafka._client.client.produce import errors as produce_errors
from pyspark_kafka._client.client.produce.batches.verdicts import Verdict
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.completeness import response_incomplete
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error, error_kind
from pyspark_kafka.errors import ConnectorError, listed

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka._client.client.produce.delivery.failures import Failures
    from pyspark_kafka._client.client.produce.delivery.lanes import InFlightRequest, ProduceLane, ProduceLanes
    from pyspark_kafka._client.client.produce.delivery.parts import DeliveryParts
    from pyspark_kafka._client.client.produce.response import ProducePartitionResponse, ProduceResponse

_NAME = itemgetter(0)


class Receiver:
    """Passes responses, and their absence, to the state machine.

    Runs on: executor and driver; one thread. Blocks on the look-up of leaders if a broker is silent.

    Args:
        parts: what the objects of a delivery share.
        lanes: the connections.
        failures: what follows if something fails.

    Attributes:
        last_offsets: where the batch of a partition that was acknowledged last begins in its log; -1 if unknown.
        first_offsets: where the first one of the task begins.
    """

    def __init__(self, parts: DeliveryParts, lanes: ProduceLanes, failures: Failures) -> None:
        self._parts, self._state, self._clock = parts, parts.state, parts.clock
        self._lanes, self._failures = lanes, failures
        self.last_offsets: dict[TopicPartition, int] = {}
        self.first_offsets: dict[TopicPartition, int] = {}

    def take_arrived(self, *, leaves: bool = True) -> bool:
        """Take every arrived response; close connections after too long a silence.

        Args:
            leaves: whether silent brokers are left if others lead by now; see `_leave`.

        Returns:
            Whether something has happened.
        """
        heard = False
        silent: list[ProduceLane] = []
        for lane in list(self._lanes.by_broker.values()):
            while lane.requests:
                try:
                    response = lane.connection.receive(None)
                except ConnectorError as error:
                    self._failures.lose(lane, error)
                else:
                    if response is None:
                        break
                    lane.heard_at = self._clock.wall()
                    self._take_response(lane, lane.requests.popleft(), response)
                heard = True
            if not lane.requests:
                continue
            now = self._clock.wall()
            if lane.ends_at <= now:
                began = now - lane.silent_s(now)
                timeout = Deadline(self._parts.options.request_timeout_ms, clock=self._clock.wall, began=began)
                self._failures.lose(
                    lane, timeout.error(f"Waiting for {lane.connection.address} to acknowledge a write")
                )
                heard = True
            elif lane.doubt_at <= now and self._parts.mode.idempotent:
                # Under the same sequences: what the broker has after all is not stored twice.
                self._failures.lose(lane, lane.connection.give_up())
                heard = True
            elif leaves and lane.look_at <= now:
                silent.append(lane)
        return (bool(silent) and self._leave(silent)) or heard

    def _leave(self, silent: list[ProduceLane]) -> bool:
        """Request the leaders of silent brokers' partitions from the cluster; leave a broker that has lost a partition.

        A broker that hangs, or is gone without closing its connections, reports nothing. Its batches are sent to the
        new leader under the same sequences, so that no batch that it did store is stored twice.

        Returns:
            Whether a broker was left.
        """
        now = self._clock.wall()
        for lane in silent:
            lane.looked_at = now
        sent = {lane.broker_id: [tp for request in lane.requests for tp in request.batches] for lane in silent}
        deadline = self._parts.client.deadline().within(self._parts.client.options.answer_timeout_ms)
        try:
            self._parts.leaders.look_up({tp for partitions in sent.values() for tp in partitions}, deadline)
        except ConnectorError as error:
            # The silent ones may respond yet, and are given up when their time is over.
            self._parts.waiting.failed(error)
            return False
        leaders = self._parts.leaders.known
        left = False
        for lane in silent:
            moved = [tp for tp in sent[lane.broker_id] if leaders.get(tp) not in (None, lane.broker_id)]
            if moved:
                reason = produce_errors.left_silent(lane.connection.address, moved[0], lane.silent_s(now))
                self._failures.lose(lane, reason)
                self._parts.client.connections.drop_idle(lane.broker_id)
                left = True
        return left

    def _take_response(self, lane: ProduceLane, request: InFlightRequest, response: ProduceResponse) -> None:
        now, address = lane.heard_at, lane.connection.address
        delivered = False
        fatal: tuple[ProducerBatch, ProducePartitionResponse] | None = None
        partitions = response.partitions
        problem = ""
        if len(partitions) > 1 and len(set(map(_NAME, partitions))) < len(set(partitions)):
            # docs/internals/fetch-rules.md, R14
            partitions, problem = [], "names a partition twice"
        for part in partitions:
            batch = request.batches.pop(part.topic_partition, None)
            if batch is None:
                continue  # not part of the request, or the same entry twice: docs/internals/fetch-rules.md, R14
            verdict = Verdict.DELIVERED
            if part.code != ErrorCode.NONE:
                verdict = self._take_failure(batch, part, address, now)
            if verdict is Verdict.DELIVERED:
                self._state.acknowledge(batch)
                self._failures.last.pop(batch.topic_partition, None)
                self.last_offsets[batch.topic_partition] = part.base_offset
                self.first_offsets.setdefault(batch.topic_partition, part.base_offset)
                delivered = True
            elif verdict is Verdict.FATAL:
                fatal = fatal or (batch, part)
        if delivered:
            self._parts.waiting.progress()
        if request.batches:
            problem = problem or f"lacks {listed(list(request.batches))}"
            self._failures.fail(request, response_incomplete("Produce", address, problem), address)
        if response.throttle_time_ms > 0:
            # The broker does not read from this connection meanwhile (KIP-219): neither send, nor call it silent.
            pause_s = response.throttle_time_ms / 1000
            lane.throttled_until = now + pause_s
            COUNTERS.add_count(THROTTLE_SECONDS, pause_s)
            # Bounded: whatever a broker says, a batch is given up at some time.
            pause_s = min(pause_s, self._parts.options.delivery_timeout_ms / 1000)
            for other in lane.requests:
                other.expires_at += pause_s
        if fatal is not None:
            raise produce_errors.refused(
                self._state,
                *fatal,
                address,
                max_request_size=self._parts.options.max_request_size,
                transactional_id=self._parts.mode.transactional_id,
            )

    def _take_failure(self, batch: ProducerBatch, part: ProducePartitionResponse, address: str, now: float) -> Verdict:
        """Pass a batch's error code to the state machine; return FATAL if the producer has failed with it."""
        topic_partition, code = batch.topic_partition, part.code
        kind = error_kind(code)
        verdict = self._state.judge_response(batch, code, retriable=kind.retriable)
        if verdict is Verdict.DELIVERED:
            # The broker has it from an earlier attempt.
            return verdict
        if self._parts.limits.splittable(batch, code):
            self._state.fail(batch, now, code)
            self._parts.limits.refused(batch)
            self._state.split(batch, self._parts.limits.cut(batch))
            return Verdict.RETRY
        if verdict is Verdict.FATAL:
            self._state.refuse(batch, code)
        else:
            self._state.fail(batch, now, code)
            cause = broker_error(
                code, f"{address} did not take a record batch for {topic_partition}", detail=part.message
            )
            self._failures.note(topic_partition, cause, address)
            if kind.refreshes_metadata:
                self._parts.leaders.forget(topic_partition)
        return verdict
