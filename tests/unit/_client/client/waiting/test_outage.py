"""Which failures a streaming query waits out, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._base.interrupt import interrupted_by, pause
from pyspark_kafka._client.client.waiting.outage import OutageRetry, may_be_outage
from pyspark_kafka._client.client.waiting.stalls import Contact
from pyspark_kafka._client.client.wire.messages import ErrorCode, broker_error
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError, OptionError, ProtocolError, TransportError

LOST = TransportError("The connection to a:1 was lost.", condition="CONNECTION_LOST", retriable=True)
NONE_LEFT = TransportError(
    "No server of option 'kafka.bootstrap.servers' could be used. Nothing was read or written.",
    condition="BOOTSTRAP_FAILED",
    hint="Check 'kafka.bootstrap.servers'.",
    retriable=True,
)


def _outage_retry(clock: Clock, timeout_ms: float = 60_000, *, reached: bool = True) -> OutageRetry:
    contact = Contact()
    contact.answered("kafka-2:9092")
    return OutageRetry(timeout_ms, contact, reached=lambda: reached, clock=clock, sleep=clock.sleep)


def _fails(clock: Clock, times: int, error: ConnectorError, *, seconds: float = 20.0) -> Callable[[], str]:
    """Fail `times` times, each after some seconds."""
    left = [error] * times

    def attempt() -> str:
        if left:
            clock.now += seconds
            raise left.pop()
        return "done"

    return attempt


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (LOST, True),
        (NONE_LEFT, True),
        (DeadlineError("late", condition="DEADLINE_EXCEEDED", retriable=True), True),
        (DeadlineError("held", condition="COMMIT_TOPIC_HELD"), False),
        (broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "no leader"), True),
        (broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic"), True),
        (broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION, "bad name"), False),
        (broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no right"), False),
        (AccessError("refused", code=58, condition="SASL_AUTHENTICATION_FAILED", retriable=True), False),
        (TransportError("certificate", condition="TLS_CERTIFICATE_REJECTED"), False),
        (TransportError("closed", condition="BOOTSTRAP_FAILED", parameters={"closed_at_once": "a:1"}), True),
        (OptionError("bad", condition="OPTION_INVALID", retriable=True), False),
        (ProtocolError("bad", condition="RESPONSE_INVALID", retriable=True), False),
    ],
)
def test_failure_may_be_one_of_an_outage_if_it_may_pass(error: ConnectorError, passes: bool) -> None:
    assert may_be_outage(error) is passes


def test_outage_is_waited_out() -> None:
    clock = Clock(0.0)
    assert _outage_retry(clock).call("listing partitions", _fails(clock, 2, LOST)) == "done"
    assert 40 < clock.now < 45


def test_step_is_paused_when_it_fails_at_once() -> None:
    clock = Clock(0.0)
    tries = 0

    def attempt() -> None:
        nonlocal tries
        tries += 1
        raise LOST

    with pytest.raises(DeadlineError):
        _outage_retry(clock).call("listing partitions", attempt)
    assert 59.9 < clock.now < 61
    assert tries < 60


def test_outage_ends_a_step_after_the_timeout_with_a_text_about_it() -> None:
    clock = Clock(0.0)
    outage_retry = _outage_retry(clock)
    for _ in range(3):
        outage_retry.call("listing partitions", lambda: "done")
    with pytest.raises(DeadlineError) as caught:
        outage_retry.call("listing partitions", _fails(clock, 100, NONE_LEFT))
    assert 60 <= clock.now <= 81
    text = str(caught.value)
    assert caught.value.condition == "OUTAGE_TOO_LONG"
    assert "longer than option 'outageTimeout' allows: listing partitions." in text
    assert "Until then the cluster was reachable: kafka-2:9092 answered last, at " in text
    assert "3 such steps of this run succeeded before." in text
    assert "Last failure: [BOOTSTRAP_FAILED] No server of option 'kafka.bootstrap.servers' could be used." in text
    assert "Check 'kafka.bootstrap.servers'" not in text
    assert "Nothing was read or written" not in text
    assert caught.value.__cause__ is NONE_LEFT


def test_each_outage_has_its_own_time() -> None:
    clock = Clock(0.0)
    outage_retry = _outage_retry(clock)
    for _ in range(5):
        assert outage_retry.call("listing partitions", _fails(clock, 2, LOST)) == "done"
    assert clock.now > 200


def test_outage_is_waited_out_after_the_first_success() -> None:
    clock = Clock(0.0)
    outage_retry = _outage_retry(clock, reached=False)
    with pytest.raises(TransportError) as caught:
        outage_retry.call("listing partitions", _fails(clock, 1, NONE_LEFT))
    assert caught.value is NONE_LEFT
    assert clock.now == 20
    outage_retry.call("listing partitions", lambda: "done")
    assert outage_retry.call("listing partitions", _fails(clock, 1, NONE_LEFT)) == "done"


def test_failure_is_raised_at_once_when_the_timeout_is_zero() -> None:
    clock = Clock(0.0)
    with pytest.raises(TransportError):
        _outage_retry(clock, 0).call("listing partitions", _fails(clock, 1, LOST))


def test_final_failure_ends_a_step_in_an_outage_too() -> None:
    clock = Clock(0.0)
    refused = broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no right")
    errors = [LOST, refused]

    def attempt() -> None:
        raise errors.pop(0)

    with pytest.raises(AccessError) as caught:
        _outage_retry(clock).call("listing partitions", attempt)
    assert caught.value is refused


def test_wait_that_is_interrupted_ends_with_the_last_failure() -> None:
    stopped, tries = threading.Event(), list[int]()
    contact = Contact()
    contact.answered("kafka-2:9092")
    outage_retry = OutageRetry(600_000, contact, reached=lambda: True)

    def attempt() -> None:
        tries.append(1)
        if len(tries) == 2:
            stopped.set()
        raise LOST

    with interrupted_by(stopped), pytest.raises(TransportError, match="was lost"):
        outage_retry.call("listing partitions", attempt)
    assert len(tries) == 2


def test_innermost_event_ends_a_wait() -> None:
    outer, inner = threading.Event(), threading.Event()
    outer.set()
    with interrupted_by(outer):
        with interrupted_by(inner):
            assert not pause(0.01)
        assert pause(600)
    assert not pause(0.01)
