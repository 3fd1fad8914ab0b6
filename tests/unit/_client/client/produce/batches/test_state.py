"""The rules of sequences and retries, without I/O; last, they play against a model of a broker with random faults."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.fakes.logs import Sequences
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch, RecordCounts
from pyspark_kafka._client.client.produce.batches.sequences import SEQUENCE_LIMIT
from pyspark_kafka._client.client.produce.batches.state import ProducerState
from pyspark_kafka._client.client.produce.batches.verdicts import Verdict
from pyspark_kafka._client.client.waiting.retry import Backoff

TP = TopicPartition("orders", 3)
OTHER = TopicPartition("orders", 4)
BACKOFF = Backoff(100, 1_000, rng=lambda: 0.5)

NOT_LEADER = 6
TIMED_OUT = 7
NOT_ENOUGH_REPLICAS = 19
CORRUPT = 2
OUT_OF_ORDER = 45
DUPLICATE = 46


def make_state(*, idempotent: bool = True, max_in_flight: int = 5) -> ProducerState:
    state = ProducerState(idempotent=idempotent, max_in_flight=max_in_flight, backoff=BACKOFF)
    if idempotent:
        state.sequences.identify(77, 0)
    return state


def add(state: ProducerState, *counts: int, topic_partition: TopicPartition = TP, expires_at: float = 1e9) -> None:
    for count in counts:
        sequence = state.sequences.take_sequence(topic_partition, count)
        state.append(topic_partition, bytes(count), count, sequence, expires_at=expires_at)


def send_all(state: ProducerState, now: float = 0.0) -> list[ProducerBatch]:
    sent = []
    for topic_partition in list(state.ready):
        while (batch := state.sendable(topic_partition, now)) is not None:
            state.mark_sent(batch)
            sent.append(batch)
    return sent


def confirmed_state(**options: int) -> ProducerState:
    """A state in which the leader has acknowledged one record of the partition."""
    state = make_state(**options)  # type: ignore[arg-type]  # only max_in_flight is given
    add(state, 1)
    state.acknowledge(*send_all(state))
    return state


def test_sequences_count_records_of_each_partition_from_zero() -> None:
    sequences = make_state().sequences
    assert [sequences.take_sequence(TP, count) for count in (3, 5, 1)] == [0, 3, 8]
    assert [sequences.take_sequence(OTHER, count) for count in (2, 1)] == [0, 2]
    assert len(sequences) == 2


def test_batch_that_was_damaged_on_its_way_is_sent_again_and_is_certainly_not_in_the_log() -> None:
    state = confirmed_state()
    add(state, 10)
    (batch,) = send_all(state)
    for attempt in range(1, 5):
        assert state.judge_response(batch, CORRUPT, retriable=False) is Verdict.RETRY
        state.fail(batch, float(attempt), CORRUPT)
        assert state.counts() == RecordCounts(delivered=1, not_delivered=10)
        assert send_all(state, 10.0 * attempt) == [batch]
    assert state.judge_response(batch, CORRUPT, retriable=False) is Verdict.FATAL
    state.refuse(batch, CORRUPT)
    assert state.counts() == RecordCounts(delivered=1, not_delivered=10)


def test_damaged_batch_behind_which_another_one_was_taken_is_not_sent_again() -> None:
    """The log has later sequences of this producer: it would be out of order until its time is over."""
    state = confirmed_state()
    add(state, 1, 1)
    first, second = send_all(state)
    assert state.judge_response(first, CORRUPT, retriable=False) is Verdict.RETRY
    state.acknowledge(second)
    assert state.judge_response(first, CORRUPT, retriable=False) is Verdict.FATAL


def test_damaged_batch_without_sequences_is_sent_again_behind_others() -> None:
    state = make_state(idempotent=False)
    add(state, 1, 1)
    first, second = send_all(state)
    state.acknowledge(second)
    assert state.judge_response(first, CORRUPT, retriable=False) is Verdict.RETRY


def test_sequence_continues_with_zero_after_the_highest() -> None:
    sequences = make_state().sequences
    assert [sequences.take_sequence(TP, count) for count in (SEQUENCE_LIMIT - 2, 5, 1)] == [0, SEQUENCE_LIMIT - 2, 3]


def test_producer_without_idempotence_has_no_sequences() -> None:
    sequences = make_state(idempotent=False).sequences
    assert [sequences.take_sequence(TP, count) for count in (3, 1)] == [-1, -1]


def test_first_batch_of_a_partition_travels_alone() -> None:
    state = make_state()
    add(state, 1, 1, 1)
    (first,) = send_all(state)
    state.acknowledge(first)
    assert len(send_all(state)) == 2


def test_partition_has_at_most_five_batches_in_flight_whatever_the_option_says() -> None:
    state = confirmed_state(max_in_flight=100)
    add(state, *[1] * 8)
    assert len(send_all(state)) == 5


def test_max_in_flight_bounds_a_partition() -> None:
    state = confirmed_state(max_in_flight=2)
    add(state, 1, 1, 1)
    assert len(send_all(state)) == 2


def test_partition_sends_nothing_after_a_failure_until_all_attempts_have_ended() -> None:
    state = confirmed_state()
    add(state, 1, 1, 1, 1, 1, 1, 1)
    first, *rest = send_all(state)
    state.fail(first, 0.0, NOT_LEADER)
    for batch in rest:
        assert send_all(state, 1e6) == []
        state.fail(batch, 0.0, NOT_LEADER)
    assert send_all(state, 1e6) == [first]


def test_batches_are_sent_again_in_order_with_their_sequences() -> None:
    state = confirmed_state()
    add(state, 2, 3, 4)
    sent = send_all(state)
    stamps = [batch.base_sequence for batch in sent]
    for batch in sent:
        state.fail(batch, 0.0)
    (first,) = send_all(state, 10.0)
    state.acknowledge(first)
    again = [first, *send_all(state, 10.0)]
    assert again == sent
    assert [batch.base_sequence for batch in again] == stamps == [1, 3, 6]
    assert state.retries == 3


def test_success_of_a_later_batch_does_not_open_the_window_of_a_failed_round() -> None:
    state = confirmed_state()
    add(state, 1, 1, 1)
    first, second, third = send_all(state)
    state.fail(first, 0.0, TIMED_OUT)
    state.acknowledge(second)
    state.fail(third, 0.0, TIMED_OUT)
    assert send_all(state, 10.0) == [first]


def test_pause_before_a_retry_doubles_up_to_its_bound_and_starts_over_after_success() -> None:
    state = confirmed_state()
    add(state, 1)
    pauses = []
    for _ in range(6):
        (batch,) = send_all(state, 1e6)
        state.fail(batch, 0.0, NOT_LEADER)
        until = state.next_attempt_at(0.0)
        assert until is not None
        assert state.sendable(TP, until - 0.001) is None
        pauses.append(until)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    state.acknowledge(*send_all(state, 1e6))
    add(state, 1)
    (batch,) = send_all(state, 1e6)
    state.fail(batch, 2e6)
    assert state.next_attempt_at(2e6) == 2e6 + 0.1


@pytest.mark.parametrize("code", [0, DUPLICATE])
def test_duplicate_sequence_number_is_a_success(code: int) -> None:
    state = confirmed_state()
    add(state, 1)
    (batch,) = send_all(state)
    assert state.judge_response(batch, code, retriable=False) is Verdict.DELIVERED


def test_out_of_order_is_fatal_for_the_oldest_batch_and_retried_behind_a_failed_one() -> None:
    state = confirmed_state()
    add(state, 1, 1)
    first, second = send_all(state)
    assert state.judge_response(first, OUT_OF_ORDER, retriable=False) is Verdict.FATAL
    state.fail(first, 0.0, NOT_ENOUGH_REPLICAS)
    assert state.judge_response(second, OUT_OF_ORDER, retriable=False) is Verdict.RETRY


def test_other_codes_are_judged_by_the_table() -> None:
    state = confirmed_state()
    add(state, 1)
    (batch,) = send_all(state)
    assert state.judge_response(batch, NOT_LEADER, retriable=True) is Verdict.RETRY
    assert state.judge_response(batch, 87, retriable=False) is Verdict.FATAL


def test_counts_tell_delivered_and_not_delivered_and_unknown_apart() -> None:
    state = confirmed_state()
    add(state, 10, 20, 30, 40)
    add(state, 1000, topic_partition=OTHER)
    refused, timed_out, lost, under_way, elsewhere = send_all(state)
    state.fail(refused, 0.0, NOT_ENOUGH_REPLICAS)
    state.fail(timed_out, 0.0, TIMED_OUT)
    state.fail(lost, 0.0)
    assert under_way.in_flight
    assert elsewhere.in_flight
    assert state.counts(TP) == RecordCounts(delivered=1, not_delivered=10, unknown=90)
    assert state.counts() == RecordCounts(delivered=1, not_delivered=10, unknown=1090)
    assert str(state.counts(TP)) == "delivered 1, not delivered 10, unknown 90"


def test_unknown_stays_unknown_when_a_later_attempt_is_refused() -> None:
    state = confirmed_state()
    add(state, 10)
    (batch,) = send_all(state)
    state.fail(batch, 0.0)
    send_all(state, 10.0)
    state.refuse(batch, 29)
    assert state.counts(TP) == RecordCounts(delivered=1, not_delivered=0, unknown=10)


def test_expired_batch_is_found_only_if_it_is_not_in_flight() -> None:
    state = make_state()
    add(state, 1, expires_at=5.0)
    assert state.next_expiry() == 5.0
    assert state.first_expired(4.9) is None
    assert state.first_expired(5.0) is not None
    (batch,) = send_all(state)
    assert state.first_expired(100.0) is None
    state.fail(batch, 5.0)
    assert state.first_expired(5.0) is batch


def test_partition_sends_nothing_that_would_make_brokers_forget_the_oldest_batch() -> None:
    state = confirmed_state()
    add(state, 1, 1, 1)
    first, second, third = send_all(state)
    # Appended, but said to have timed out; the one behind them is acknowledged.
    state.fail(first, 0.0, TIMED_OUT)
    state.fail(second, 0.0, TIMED_OUT)
    state.acknowledge(third)
    add(state, 1, 1, 1, 1, 1)
    (again,) = send_all(state, 10.0)
    assert again is first
    state.acknowledge(first)
    # Brokers remember five batches: the second, the third, and three more.
    assert [batch.number - second.number for batch in send_all(state, 10.0)] == [0, 2, 3, 4]
    state.acknowledge(second)
    assert [batch.number - second.number for batch in send_all(state, 10.0)] == [5, 6]


def test_partition_with_much_to_send_goes_to_the_end_of_the_line() -> None:
    state = confirmed_state()
    add(state, 1, 1, 1)
    add(state, 1, topic_partition=OTHER)
    batch = state.sendable(TP, 0.0)
    assert batch is not None
    state.mark_sent(batch)
    assert list(state.ready) == [OTHER, TP]


def test_bytes_are_counted_until_they_are_acknowledged() -> None:
    state = confirmed_state()
    add(state, 100, 50)
    assert (state.unacknowledged, state.unacknowledged_bytes) == (2, 150)
    first, second = send_all(state)
    state.acknowledge(first)
    state.fail(second, 0.0)
    assert (state.unacknowledged, state.unacknowledged_bytes) == (1, 50)
    assert (state.delivered_records, state.delivered_bytes, state.delivered_batches) == (101, 101, 2)


@dataclass
class Wire:
    """One connection: requests not yet handled, answers not yet taken, both in order."""

    requests: deque[ProducerBatch] = field(default_factory=deque)
    answers: deque[tuple[ProducerBatch, int]] = field(default_factory=deque)


class World:
    """A producer's state, the connection in use, lost connections whose requests may still arrive, and one log."""

    def __init__(self, counts: list[int], first_sequence: int) -> None:
        self.state = make_state()
        self.appended: list[int] = []
        self.sequences = Sequences()
        self.now = 0.0
        self.wire = Wire()
        self.lost: list[Wire] = []
        if first_sequence:
            self.state.sequences.take_sequence(TP, first_sequence)
            self.state.append(TP, b"", first_sequence, 0, expires_at=1e18)
        for count in counts:
            add(self.state, count, expires_at=1e18)
        self.expected = [batch.base_sequence for batch in self._batches()]

    def _batches(self) -> list[ProducerBatch]:
        return list(self.state._partitions[TP].batches)

    def step(self, action: str) -> None:
        wire = self.wire
        if action == "send":
            self.now += 2.0
            batch = self.state.sendable(TP, self.now) if self.state.unacknowledged else None
            if batch is not None:
                self.state.mark_sent(batch)
                wire.requests.append(batch)
        elif action == "take":
            if wire.answers:
                self.take(*wire.answers.popleft())
        elif action == "lose":
            # What was sent may yet be read by the broker; what it answers is heard by nobody.
            self.lost.append(wire)
            self.wire = Wire()
            for batch in [*(batch for batch, _ in wire.answers), *wire.requests]:
                self.state.fail(batch, self.now)
        elif action == "late":
            for late in self.lost:
                if late.requests:
                    self.append(late.requests.popleft())
                    break
        elif action == "vanish":
            self.lost.clear()
        elif wire.requests:
            self.handle(action, wire.requests.popleft())

    def handle(self, action: str, batch: ProducerBatch) -> None:
        if action == "refuse":
            self.wire.answers.append((batch, NOT_ENOUGH_REPLICAS))
        elif action == "append, but say timed out":
            code = self.append(batch)
            self.wire.answers.append((batch, code or TIMED_OUT))
        else:
            self.wire.answers.append((batch, self.append(batch)))

    def append(self, batch: ProducerBatch) -> int:
        first, count = batch.base_sequence, batch.record_count
        if self.sequences.duplicate(first, count) is not None:
            return 0
        if code := self.sequences.check(first):
            return code
        self.sequences.note(first, count, len(self.appended))
        self.appended.append(first)
        return 0

    def take(self, batch: ProducerBatch, code: int) -> None:
        verdict = self.state.judge_response(batch, code, retriable=code in (NOT_ENOUGH_REPLICAS, TIMED_OUT))
        assert verdict is not Verdict.FATAL, f"code {code} for sequence {batch.base_sequence}"
        if verdict is Verdict.DELIVERED:
            self.state.acknowledge(batch)
        else:
            self.state.fail(batch, self.now, code)


ACTIONS = (
    "send",
    "send",
    "send",
    "append",
    "append",
    "take",
    "take",
    "refuse",
    "append, but say timed out",
    "lose",
    "late",
)


@given(
    counts=st.lists(st.integers(1, 5), min_size=8, max_size=14),
    first_sequence=st.sampled_from([0, 0, SEQUENCE_LIMIT - 7]),
    actions=st.lists(st.sampled_from([*ACTIONS, "vanish"]), min_size=100, max_size=150),
)
def test_log_equals_what_was_sent_once_and_in_order_whatever_is_lost_late_or_refused(
    counts: list[int], first_sequence: int, actions: list[str]
) -> None:
    world = World(counts, first_sequence)
    for action in actions:
        world.step(action)
    for _ in range(20 * (len(counts) + 2)):
        for action in ("send", "append", "take"):
            world.step(action)
    assert world.state.unacknowledged == 0
    assert world.appended == world.expected
    assert world.state.counts() == RecordCounts(delivered=first_sequence + sum(counts))


def test_partitions_that_wait_for_responses_are_not_looked_at_again_and_again() -> None:
    state = ProducerState(idempotent=True, backoff=BACKOFF)
    state.sequences.identify(1, 0)
    places = [TopicPartition("wide", number) for number in range(1_000)]
    for number in range(2):
        for place in places:
            state.append(place, b"x", 1, number, expires_at=10.0)
    first = send_all(state)
    # Each partition's second batch waits for its first one: a `send_batch` has nothing to walk over.
    assert len(first) == 1_000
    assert list(state.ready) == []
    state.acknowledge(first[7])
    assert list(state.ready) == [places[7]]
    # A failure lets it wait, and when its attempts have ended it may be sent again.
    state.fail(first[8], 0.0)
    assert list(state.ready) == [places[7], places[8]]
    assert state.next_attempt_at(0.0) == 0.1


def test_pending_batch_does_not_keep_the_batches_delivered_after_it() -> None:
    state = ProducerState(idempotent=True, backoff=BACKOFF)
    state.sequences.identify(1, 0)
    stuck = state.append(TopicPartition("wide", 0), b"stuck", 1, 0, expires_at=1.0)
    state.mark_sent(stuck)
    for number in range(10_000):
        batch = state.append(TopicPartition("wide", 1), b"bytes", 1, number, expires_at=2.0 + number)
        state.mark_sent(batch)
        state.acknowledge(batch)
        assert batch.data == b""
    assert state.next_expiry() == 1.0
    assert len(state._expiries) < 2_000
    state.fail(stuck, 0.5)
    assert state.first_expired(0.9) is None
    assert state.first_expired(1.0) is stuck


def test_parts_of_a_batch_expire_when_it_would_have() -> None:
    state = confirmed_state()
    add(state, 4, expires_at=2.0)
    add(state, 1, topic_partition=OTHER, expires_at=3.0)
    batch = state.sendable(TP, 0.0)
    assert batch is not None
    state.split(batch, [(b"x", 1), (b"xxx", 3)])
    assert state.next_expiry() == 2.0
    for part in send_all(state):
        if part.topic_partition == TP:
            state.acknowledge(part)
    assert state.next_expiry() == 3.0
