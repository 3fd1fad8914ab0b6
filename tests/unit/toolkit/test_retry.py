"""Calls that are tried again."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka.errors import RetryError, TransportError
from pyspark_kafka.toolkit import RetryPolicy, is_transient, retry


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Flaky:
    """A call that fails a number of times."""

    def __init__(self, failures: int, error: type[Exception] = ConnectionError) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error(f"no {self.calls}")
        return "done"


def test_a_call_that_succeeds_is_made_once() -> None:
    call, time = Flaky(0), Time()
    assert retry(call, what="asking", sleep=time.sleep, clock=time.clock) == "done"
    assert (call.calls, time.slept) == (1, [])


def test_pauses_double_up_to_their_bound() -> None:
    call, time = Flaky(5), Time()
    policy = RetryPolicy(attempts=6, initial_delay_ms=100, max_delay_ms=500, jitter=0)
    assert retry(call, what="asking", policy=policy, sleep=time.sleep, clock=time.clock) == "done"
    assert time.slept == pytest.approx([0.1, 0.2, 0.4, 0.5, 0.5])


def test_jitter_moves_pauses_by_its_share_at_most() -> None:
    seen = set()
    for _ in range(30):
        time = Time()
        policy = RetryPolicy(initial_delay_ms=1000, jitter=0.2)
        retry(Flaky(1), what="asking", policy=policy, sleep=time.sleep, clock=time.clock)
        assert 0.8 <= time.slept[0] <= 1.2
        seen.add(time.slept[0])
    assert len(seen) > 20


def test_error_that_is_not_retriable_is_raised_as_it_is() -> None:
    call = Flaky(1, KeyError)
    with pytest.raises(KeyError, match="no 1"):
        retry(call, what="asking")
    assert call.calls == 1


def test_final_error_names_every_attempt_and_keeps_the_last_failure() -> None:
    time = Time()
    policy = RetryPolicy(attempts=3, initial_delay_ms=100, jitter=0)
    with pytest.raises(RetryError) as raised:
        retry(Flaky(9), what="reading page 7", policy=policy, sleep=time.sleep, clock=time.clock)
    assert str(raised.value).startswith(
        "[RETRIES_EXHAUSTED] Gave up reading page 7 after 3 attempts in 300 ms. "
        "attempt 1 after 0 ms: ConnectionError: no 1; attempt 2 after 100 ms: ConnectionError: no 2; "
        "attempt 3 after 300 ms: ConnectionError: no 3. Hint: "
    )
    assert str(raised.value.__cause__) == "no 3"
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 - our own bytes


def test_no_attempt_starts_after_the_deadline() -> None:
    call, time = Flaky(99), Time()
    policy = RetryPolicy(attempts=99, initial_delay_ms=400, max_delay_ms=400, jitter=0, deadline_ms=1_000)
    with pytest.raises(RetryError, match="after 3 attempts in 800 ms"):
        retry(call, what="asking", policy=policy, sleep=time.sleep, clock=time.clock)
    assert time.now <= 1.0


def test_story_of_many_attempts_is_bounded() -> None:
    time = Time()
    policy = RetryPolicy(attempts=1_000, initial_delay_ms=0, jitter=0)
    with pytest.raises(RetryError) as raised:
        retry(Flaky(2_000), what="asking", policy=policy, sleep=time.sleep, clock=time.clock)
    assert "(990 more attempts)" in str(raised.value)
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (TransportError("away", condition="X", retriable=True), True),
        (TransportError("refused", condition="X"), False),
        (ValueError(), False),
    ],
)
def test_transient_errors_are_those_that_often_pass(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"deadline_ms": -1}, {"jitter": 1.5}])
def test_policy_refuses_what_makes_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryPolicy(**wrong)  # type: ignore[arg-type]


class BusyError(ConnectionError):
    """A refusal that says when to come back."""

    pause_ms: float | None = 2_000


def pause_of(error: BaseException) -> float | None:
    return error.pause_ms if isinstance(error, BusyError) else None


def test_asked_pause_is_kept_and_that_of_the_policy_is_added() -> None:
    call, time = Flaky(2, BusyError), Time()
    policy = RetryPolicy(initial_delay_ms=100, jitter=0, asked_pause_ms=pause_of)
    assert retry(call, what="asking", policy=policy, sleep=time.sleep, clock=time.clock) == "done"
    assert time.slept == pytest.approx([2.1, 2.2])


def test_failure_that_asks_for_no_pause_has_that_of_the_policy() -> None:
    call, time = Flaky(1, ConnectionError), Time()
    policy = RetryPolicy(initial_delay_ms=100, jitter=0, asked_pause_ms=pause_of)
    retry(call, what="asking", policy=policy, sleep=time.sleep, clock=time.clock)
    assert time.slept == pytest.approx([0.1])


def test_asked_pause_beyond_the_deadline_ends_the_attempts_at_once() -> None:
    call, time = Flaky(1, BusyError), Time()
    policy = RetryPolicy(initial_delay_ms=0, deadline_ms=1_999, asked_pause_ms=pause_of)
    with pytest.raises(RetryError, match="after 1 attempts"):
        retry(call, what="asking", policy=policy, sleep=time.sleep, clock=time.clock)
    assert (call.calls, time.slept) == (1, [])


def test_policy_with_a_pause_of_its_own_pickles() -> None:
    policy = RetryPolicy(asked_pause_ms=float)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(RetryPolicy())) == RetryPolicy()  # noqa: S301
