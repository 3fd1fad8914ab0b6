"""The policy for failures, branch by branch, and the waits between attempts."""

from __future__ import annotations

import pytest

from pyspark_kafka.client.cluster.metadata import unknown_topic
from pyspark_kafka.client.retry import Action, Backoff, decide
from pyspark_kafka.client.wire.messages import broker_error
from pyspark_kafka.errors import ConnectorError, DeadlineError, OptionError, ProtocolError, TransportError


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (broker_error(29, "x"), Action.FAIL),
        (broker_error(58, "x"), Action.FAIL),
        (broker_error(6, "x"), Action.REFRESH),
        (broker_error(74, "x"), Action.REFRESH),
        (broker_error(41, "x"), Action.REFRESH),
        (broker_error(8, "x"), Action.REFRESH),
        (broker_error(7, "x"), Action.RETRY),
        (broker_error(14, "x"), Action.RETRY),
        (broker_error(2, "x"), Action.FAIL),
        (broker_error(12345, "x"), Action.FAIL),
        (unknown_topic("t"), Action.FAIL),
        (DeadlineError("x", condition="X", retriable=True), Action.REFRESH),
        (TransportError("x", condition="X", retriable=True), Action.REFRESH),
        (TransportError("x", condition="X"), Action.FAIL),
        (ProtocolError("x", condition="X"), Action.FAIL),
        (OptionError("x", condition="X"), Action.FAIL),
    ],
)
def test_each_failure_has_its_action_and_a_reason(error: ConnectorError, action: Action) -> None:
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
