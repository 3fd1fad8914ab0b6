from __future__ import annotations

import pytest

from kit.fakes.clock import Clock
from kit.texts import said
from pyspark_kafka._client.client.net.login_session import AcceptedLogins, LoginSession
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError


def session(lifetime_ms: int, at: float = 0.5) -> LoginSession:
    found = LoginSession.of(lifetime_ms, 100.0, rng=lambda: at)
    assert found is not None
    return found


def test_session_without_a_lifetime_never_ends() -> None:
    assert LoginSession.of(0, 100.0) is None


@pytest.mark.parametrize(
    ("lifetime_ms", "at", "age_s"),
    [
        (3_600_000, 0.0, 2_700.0),
        (3_600_000, 1.0, 3_060.0),
        # Five seconds are left, of a short lifetime the half.
        (20_000, 1.0, 15.0),
        (10_000, 0.0, 5.0),
        (4_000, 1.0, 2.0),
        # Old enough for a second login on the connection.
        (2_000, 1.0, 1.1),
        # Too short for that: a new connection is made in time.
        (1_000, 0.0, 0.75),
        (100, 0.0, 0.075),
    ],
)
def test_login_is_repeated_before_the_session_ends(lifetime_ms: int, at: float, age_s: float) -> None:
    found = session(lifetime_ms, at)
    assert found.renew_at == pytest.approx(100.0 + age_s)
    assert not found.is_old(found.renew_at - 0.001)
    assert found.is_old(found.renew_at)
    assert found.ends_at == pytest.approx(100.0 + lifetime_ms / 1000)
    assert not found.has_ended(found.renew_at)
    assert found.has_ended(found.ends_at)


def test_connections_of_many_tasks_log_in_again_at_different_times() -> None:
    found = [LoginSession.of(3_600_000, 100.0) for _ in range(20)]
    assert len({each.renew_at for each in found if each is not None}) > 1


def test_second_login_is_tried_only_after_the_pause_that_brokers_want() -> None:
    found = session(2_000)
    assert not found.may_renew(101.0)
    assert found.may_renew(101.2)


def refused() -> AccessError:
    return AccessError("PLAIN failed.", code=58, condition="SASL_AUTHENTICATION_FAILED", hint="Check it.")


def test_refusal_of_a_login_that_was_good_before_says_so() -> None:
    clock = Clock()
    accepted = AcceptedLogins(clock)
    accepted.note("alice")
    clock.sleep(61)
    explained = accepted.explain("alice", refused())
    assert type(explained) is AccessError
    assert said(explained) == (
        "[SASL_AUTHENTICATION_FAILED] The same login was accepted 61 s ago and is refused now, so its password, token "
        "or user has changed or expired: PLAIN failed. Hint: Check it."
    )


def test_error_of_a_login_stays_as_it_is_if_it_says_nothing_of_a_change() -> None:
    accepted = AcceptedLogins()
    accepted.note("alice")
    first: ConnectorError = refused()
    assert accepted.explain("bob", first) is first
    lost = TransportError("gone", condition="CONNECTION_LOST")
    assert accepted.explain("alice", lost) is lost
    other = broker_error(ErrorCode.ILLEGAL_SASL_STATE, "PLAIN failed")
    assert accepted.explain("alice", other) is other


def test_accepted_logins_are_a_bounded_number_of_the_newest() -> None:
    accepted = AcceptedLogins()
    for number in range(100):
        accepted.note(number)
    error = refused()
    assert accepted.explain(99, error) is not error
    assert accepted.explain(36, error) is not error
    assert accepted.explain(35, error) is error
