"""The policy for failures, branch by branch, the waits between attempts, and the loops over them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import (
    CLOSED_AT_ONCE_ATTEMPTS,
    Backoff,
    ClosedAtOnce,
    RetryAction,
    attempts,
    decide,
    retrying,
)
from pyspark_kafka._client.client.wire.messages import broker_error
from pyspark_kafka.errors import ConnectorError, DeadlineError, OptionError, ProtocolError, TransportError


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (broker_error(29, "x"), RetryAction.FAIL),
        (broker_error(58, "x"), RetryAction.FAIL),
        (broker_error(6, "x"), RetryAction.REFRESH),
        (broker_error(74, "x"), RetryAction.REFRESH),
        (broker_error(41, "x"), RetryAction.REFRESH),
        (broker_error(8, "x"), RetryAction.REFRESH),
        (broker_error(7, "x"), RetryAction.RETRY),
        (broker_error(14, "x"), RetryAction.RETRY),
        (broker_error(2, "x"), RetryAction.FAIL),
        (broker_error(12345, "x"), RetryAction.FAIL),
        (unknown_topic("t"), RetryAction.FAIL),
        (DeadlineError("x", condition="X", retriable=True), RetryAction.REFRESH),
        (TransportError("x", condition="X", retriable=True), RetryAction.REFRESH),
        (TransportError("x", condition="X"), RetryAction.FAIL),
        (ProtocolError("x", condition="X"), RetryAction.FAIL),
        (OptionError("x", condition="X"), RetryAction.FAIL),
    ],
)
def test_each_failure_has_its_action_and_a_reason(error: ConnectorError, action: RetryAction) -> None:
    decision = decide(error)
    assert decision.action is action
    assert decision.reason


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(100, 1_000, rng=lambda: 0.5)
    assert [backoff.next_s() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    backoff.reset()
    assert backoff.next_s() == pytest.approx(0.1)


def test_waits_are_spread_by_a_fifth_and_never_longer_than_the_longest() -> None:
    assert Backoff(100, 1_000, rng=lambda: 0.0).next_s() == pytest.approx(0.08)
    assert Backoff(100, 1_000, rng=lambda: 0.999).next_s() == pytest.approx(0.12, rel=0.01)
    longest = Backoff(1_000, 1_000, rng=lambda: 0.999)
    assert longest.next_s() == 1.0


def test_very_many_attempts_do_not_overflow() -> None:
    backoff = Backoff(100, 1_000, rng=lambda: 0.5)
    backoff.attempts = 100_000
    assert backoff.next_s() == 1.0


def test_waits_of_a_constant_interval_are_all_alike() -> None:
    backoff = Backoff.constant(250)
    assert [backoff.next_s() for _ in range(3)] == pytest.approx([0.25, 0.25, 0.25])


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def deadline(self, timeout_ms: float) -> Deadline:
        return Deadline(timeout_ms, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)


def halves() -> Backoff:
    return Backoff(100, 1_000, rng=lambda: 0.5)


def test_attempts_are_counted_from_one_with_a_wait_between_two() -> None:
    time = Time()
    assert list(attempts(halves(), max_attempts=4, sleep=time.sleep)) == [1, 2, 3, 4]
    assert time.waits == pytest.approx([0.1, 0.2, 0.4])


def test_attempts_do_not_wait_after_a_success() -> None:
    time = Time()
    for number in attempts(halves(), deadline=time.deadline(1_000)):
        if number == 2:
            break
    assert time.waits == pytest.approx([0.1])


def test_attempts_end_with_the_one_during_which_the_deadline_expires() -> None:
    time = Time()
    made = []
    for number in attempts(halves(), deadline=time.deadline(1_000)):
        made.append(number)
        time.now += 0.3
    assert made == [1, 2, 3]
    # The last wait is cut at the deadline.
    assert time.waits == pytest.approx([0.1, 0.2])


def test_attempts_are_at_least_one() -> None:
    assert list(attempts(halves(), deadline=Time().deadline(0))) == [1]


LOST = TransportError("The connection was lost.", condition="CONNECTION_LOST", retriable=True)
SILENT = DeadlineError("No response.", condition="DEADLINE_EXCEEDED", retriable=True)


def no_server(*, retriable: bool = True) -> TransportError:
    return TransportError("No server could be used.", condition="BOOTSTRAP_FAILED", retriable=retriable)


def failing(time: Time, *failures: tuple[float, ConnectorError]) -> Callable[[Deadline], str]:
    """Return an attempt that fails with each error after its seconds, then succeeds."""
    left = list(failures)

    def attempt(_: Deadline) -> str:
        if not left:
            return "done"
        seconds, error = left.pop(0)
        time.now += seconds
        raise error

    return attempt


def test_retrying_returns_what_the_first_successful_attempt_does() -> None:
    time = Time()
    attempt = failing(time, (0.0, LOST), (0.0, SILENT))
    assert retrying("Asking", time.deadline(5_000), halves(), attempt) == "done"
    assert time.waits == pytest.approx([0.1, 0.2])


def test_retrying_raises_a_final_failure_at_once() -> None:
    time = Time()
    with pytest.raises(TransportError, match="expired certificate"):
        retrying(
            "Asking",
            time.deadline(5_000),
            halves(),
            failing(time, (0.0, TransportError("expired certificate", condition="X"))),
        )
    assert time.waits == []


def test_retrying_names_the_step_and_the_last_failure_when_time_is_over() -> None:
    time = Time()
    with pytest.raises(DeadlineError, match=r"Asking did not finish within 1000 ms.*The connection was lost"):
        retrying("Asking", time.deadline(1_000), halves(), failing(time, (0.9, LOST), (0.9, LOST)))


def test_retrying_prefers_the_failure_before_one_that_the_deadline_cut_short() -> None:
    time = Time()
    with pytest.raises(DeadlineError, match="The connection was lost"):
        retrying("Asking", time.deadline(1_000), halves(), failing(time, (0.5, LOST), (0.5, SILENT)))
    with pytest.raises(DeadlineError, match="The connection was lost"):
        retrying("Asking", time.deadline(1_000), halves(), failing(time, (0.5, LOST), (0.5, no_server())))


def test_retrying_raises_a_search_for_servers_that_had_the_time_to_fail() -> None:
    time = Time()
    with pytest.raises(TransportError, match="BOOTSTRAP_FAILED"):
        retrying("Asking", time.deadline(5_000), halves(), failing(time, (0.1, LOST), (3.0, no_server())))
    with pytest.raises(TransportError, match="BOOTSTRAP_FAILED"):
        retrying("Asking", time.deadline(5_000), halves(), failing(time, (0.1, no_server())))


def test_retrying_raises_a_missing_response_itself_when_time_is_over() -> None:
    time = Time()
    with pytest.raises(DeadlineError, match="No response"):
        retrying("Asking", time.deadline(1_000), halves(), failing(time, (2.0, SILENT)))


CLOSED = TransportError("a:1 closed the connection.", condition="BROKER_CLOSED_FIRST_READ", retriable=True)


def test_retrying_ends_when_each_connection_is_closed_at_its_first_request() -> None:
    time = Time()
    with pytest.raises(TransportError, match="BROKER_CLOSED_FIRST_READ"):
        retrying("Asking", time.deadline(60_000), halves(), failing(time, *[(0.1, CLOSED)] * 20))
    assert len(time.waits) == CLOSED_AT_ONCE_ATTEMPTS - 1


def test_retrying_with_short_waits_gives_a_broker_that_closes_connections_as_much_time() -> None:
    time = Time()
    quick = Backoff(5, 1_000, rng=lambda: 0.5)
    assert retrying("Asking", time.deadline(60_000), quick, failing(time, *[(0.01, CLOSED)] * 9)) == "done"
    quick = Backoff(5, 1_000, rng=lambda: 0.5)
    with pytest.raises(TransportError, match="BROKER_CLOSED_FIRST_READ"):
        retrying("Asking", time.deadline(60_000), quick, failing(time, *[(0.01, CLOSED)] * 30))


def test_closed_connections_are_final_after_a_number_of_them_and_some_seconds() -> None:
    closed = ClosedAtOnce()
    for now_ms in range(0, 2_900, 100):
        closed.note(True, now_ms)
        assert not closed.is_final
    closed.note(True, 3_000)
    assert closed.is_final
    closed.note(False, 3_100)
    closed.note(True, 9_000)
    assert not closed.is_final


def test_retrying_continues_if_some_connections_are_lost_in_another_way() -> None:
    time = Time()
    failures = [(0.1, CLOSED)] * 7 + [(0.1, LOST)] + [(0.1, CLOSED)] * 7
    assert retrying("Asking", time.deadline(60_000), halves(), failing(time, *failures)) == "done"
