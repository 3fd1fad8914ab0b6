"""What each failure to fetch asks for, with a reason."""

from __future__ import annotations

import pytest

from pyspark_kafka.client.cluster.errors import unknown_topic
from pyspark_kafka.client.retry import Action, decide_fetch
from pyspark_kafka.client.wire.messages import broker_error
from pyspark_kafka.errors import ConnectorError, DataLossError, DeadlineError, ProtocolError, TransportError


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (broker_error(1, "offset out of range"), Action.CHECK_LOG),
        (broker_error(2, "corrupt message"), Action.FAIL),
        (broker_error(5, "leader not available"), Action.REFRESH),
        (broker_error(6, "not leader"), Action.REFRESH),
        (broker_error(9, "replica not available"), Action.REFRESH),
        (broker_error(29, "topic authorization failed"), Action.FAIL),
        (broker_error(35, "unsupported version"), Action.FAIL),
        (broker_error(56, "storage error"), Action.REFRESH),
        (broker_error(74, "fenced epoch"), Action.REFRESH),
        (broker_error(75, "unknown epoch"), Action.REFRESH),
        (broker_error(76, "unsupported compression"), Action.FAIL),
        (broker_error(78, "offset not available"), Action.REFRESH),
        (broker_error(100, "unknown topic id"), Action.REFRESH),
        (broker_error(103, "inconsistent topic id"), Action.REFRESH),
        (broker_error(-1, "unknown server error"), Action.REFRESH),
        (broker_error(12345, "code of the future"), Action.REFRESH),
        (unknown_topic("t"), Action.FAIL),
        (TransportError("x", condition="X", retriable=True), Action.REFRESH),
        (TransportError("x", condition="X"), Action.FAIL),
        (DeadlineError("x", condition="X", retriable=True), Action.REFRESH),
        (ProtocolError("x", condition="X"), Action.FAIL),
        (DataLossError("x", condition="X"), Action.FAIL),
    ],
)
def test_each_failure_of_a_leader_has_its_action_and_a_reason(error: ConnectorError, action: Action) -> None:
    decision = decide_fetch(error, from_follower=False, surprises=0)
    assert decision.action is action
    assert decision.reason


def test_leader_is_asked_when_a_follower_refuses_an_offset() -> None:
    assert decide_fetch(broker_error(1, "x"), from_follower=True, surprises=0).action is Action.ASK_LEADER


@pytest.mark.parametrize("code", [-1, 12345])
def test_unknown_code_is_final_at_the_fifth_time(code: int) -> None:
    actions = [decide_fetch(broker_error(code, "x"), from_follower=False, surprises=n).action for n in range(5)]
    assert actions == [Action.REFRESH] * 4 + [Action.FAIL]
