"""What each failure to fetch asks for, with a reason."""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.waiting.retry import RetryAction, decide_fetch
from pyspark_kafka._client.client.wire.messages import broker_error
from pyspark_kafka.errors import ConnectorError, DataLossError, DeadlineError, ProtocolError, TransportError


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (broker_error(1, "offset out of range"), RetryAction.CHECK_LOG),
        (broker_error(2, "corrupt message"), RetryAction.FAIL),
        (broker_error(5, "leader not available"), RetryAction.REFRESH),
        (broker_error(6, "not leader"), RetryAction.REFRESH),
        (broker_error(9, "replica not available"), RetryAction.REFRESH),
        (broker_error(29, "topic authorization failed"), RetryAction.FAIL),
        (broker_error(35, "unsupported version"), RetryAction.FAIL),
        (broker_error(56, "storage error"), RetryAction.REFRESH),
        (broker_error(74, "fenced epoch"), RetryAction.REFRESH),
        (broker_error(75, "unknown epoch"), RetryAction.REFRESH),
        (broker_error(76, "unsupported compression"), RetryAction.FAIL),
        (broker_error(78, "offset not available"), RetryAction.REFRESH),
        (broker_error(100, "unknown topic id"), RetryAction.REFRESH),
        (broker_error(103, "inconsistent topic id"), RetryAction.REFRESH),
        (broker_error(-1, "unknown server error"), RetryAction.REFRESH),
        (broker_error(12345, "code of the future"), RetryAction.REFRESH),
        (unknown_topic("t"), RetryAction.FAIL),
        (TransportError("x", condition="X", retriable=True), RetryAction.REFRESH),
        (TransportError("x", condition="X"), RetryAction.FAIL),
        (DeadlineError("x", condition="X", retriable=True), RetryAction.REFRESH),
        (ProtocolError("x", condition="X"), RetryAction.FAIL),
        (DataLossError("x", condition="X"), RetryAction.FAIL),
    ],
)
def test_each_failure_of_a_leader_has_its_action_and_a_reason(error: ConnectorError, action: RetryAction) -> None:
    decision = decide_fetch(error, from_follower=False, surprises=0)
    assert decision.action is action
    assert decision.reason


def test_leader_is_asked_when_a_follower_refuses_an_offset() -> None:
    assert decide_fetch(broker_error(1, "x"), from_follower=True, surprises=0).action is RetryAction.ASK_LEADER


@pytest.mark.parametrize("code", [-1, 12345])
def test_unknown_code_is_final_at_the_fifth_time(code: int) -> None:
    actions = [decide_fetch(broker_error(code, "x"), from_follower=False, surprises=n).action for n in range(5)]
    assert actions == [RetryAction.REFRESH] * 4 + [RetryAction.FAIL]
