"""Time budgets with a clock and a sleep of the test's own."""

from __future__ import annotations

import threading

import pytest

from kit.fakes.clock import Clock
from kit.texts import said
from pyspark_kafka._base.interrupt import interrupted_by
from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import Backoff, attempts, retrying
from pyspark_kafka.errors import DeadlineError, TransportError


class FakeTime:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_remaining_time_counts_down_to_zero_and_not_below() -> None:
    time = FakeTime()
    deadline = Deadline(500, clock=time.clock)
    time.now += 0.2
    assert deadline.remaining_s() == pytest.approx(0.3)
    assert not deadline.expired
    time.now += 1
    assert deadline.remaining_s() == 0.0
    assert deadline.expired


def test_check_names_step_budget_elapsed_and_cause() -> None:
    time = FakeTime()
    deadline = Deadline(500, clock=time.clock)
    deadline.check("Reading")
    time.now += 0.75
    with pytest.raises(DeadlineError) as caught:
        deadline.check("Reading", ValueError("the cause"))
    assert said(caught.value) == (
        "[DEADLINE_EXCEEDED] Reading did not finish within 500 ms (750 ms elapsed). Last failure: the cause"
        " Hint: Check that the brokers can be reached and are not overloaded."
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(caught.value, TimeoutError)


def test_the_hint_of_the_last_failure_is_the_hint() -> None:
    cause = TransportError("No broker answered.", condition="TLS_FAILED", hint="Check the certificate.")
    error = Deadline(500, clock=FakeTime().clock).error("Reading", cause)
    assert said(error) == (
        "[DEADLINE_EXCEEDED] Reading did not finish within 500 ms (0 ms elapsed). Last failure: "
        "[TLS_FAILED] No broker answered. Hint: Check the certificate."
    )


def test_a_deadline_within_another_never_ends_later() -> None:
    time = FakeTime()
    outer = Deadline(500, clock=time.clock)
    assert outer.within(10_000).remaining_s() == pytest.approx(0.5)
    assert outer.within(100).remaining_s() == pytest.approx(0.1)


def test_a_pause_ends_with_the_deadline() -> None:
    time = FakeTime()
    deadline = Deadline(500, clock=time.clock, sleep=time.sleep)
    deadline.pause(0.2)
    deadline.pause(9)
    deadline.pause(9)
    assert time.slept == pytest.approx([0.2, 0.3])


def test_pause_that_is_interrupted_leaves_no_time() -> None:
    asked = threading.Event()
    asked.set()
    deadline = Deadline(3_600_000)
    with interrupted_by(asked):
        deadline.pause(3_600)
    assert deadline.expired


def test_step_that_is_interrupted_between_attempts_ends_with_its_last_failure() -> None:
    asked = threading.Event()
    tried: list[Deadline] = []

    def attempt(deadline: Deadline) -> None:
        tried.append(deadline)
        # From another thread, while the step waits for its next attempt.
        asked.set()
        raise TransportError("No broker answered.", condition="CONNECTION_LOST", retriable=True)

    with interrupted_by(asked), pytest.raises(DeadlineError, match="No broker answered"):
        retrying("Reading", Deadline(3_600_000), Backoff.constant(3_600_000), attempt)
    assert len(tried) == 1


def test_attempts_without_a_deadline_do_not_wait_if_they_are_interrupted() -> None:
    asked = threading.Event()
    asked.set()
    with interrupted_by(asked):
        assert list(attempts(Backoff.constant(3_600_000), max_attempts=3)) == [1, 2, 3]


def test_work_of_other_threads_is_interrupted_with_this_one() -> None:
    asked = threading.Event()
    asked.set()
    deadline = Deadline(3_600_000)
    with interrupted_by(asked):
        side_by_side(deadline.pause, [3_600], 1, "pause")
    assert deadline.expired


def test_deadline_moves_on_up_to_its_limit() -> None:
    clock = Clock()
    limit, deadline = Deadline(10_000, clock=clock), Deadline(2_000, clock=clock)
    clock.now += 1.5
    moved = deadline.moved_on(2_000, limit)
    assert moved.remaining_s() == pytest.approx(2.0)
    assert moved.timeout_ms == pytest.approx(3_500)
    clock.now += 7.5
    assert moved.moved_on(2_000, limit).remaining_s() == pytest.approx(1.0)
