from __future__ import annotations

import logging
import pickle
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import delegation_tokens
from pyspark_kafka._base.interrupt import pause
from pyspark_kafka._client.client.login.delegation_token import DelegationToken, hmac_of, key_of
from pyspark_kafka._client.options import ScramLogin, Secret, parse_login, parse_write_options
from pyspark_kafka.delegation_tokens import TokenKeeper, query_options
from pyspark_kafka.errors import OptionError, TransportError

KEY = key_of(b"a key of some bytes")
OWN = {
    "kafka.bootstrap.servers": "kafka-1:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": "…",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.keystore.location": "/client.pem",
    "kafka.ssl.key.password": "…",
    "subscribe": "orders",
}


def token(
    *, lasts_s: float = 3600.0, ends_s: float = 7200.0, name: str = "t-1", clock_ahead: timedelta = timedelta(0)
) -> DelegationToken:
    now = datetime.now(timezone.utc)
    expires, ends = now + timedelta(seconds=lasts_s), now + timedelta(seconds=ends_s)
    return DelegationToken(name, KEY, "User:alice", now, expires, ends, clock_ahead=clock_ahead)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tokens be renewed after a thousandth of their time."""
    monkeypatch.setattr(delegation_tokens, "_RENEWED_AT", 0.001)
    monkeypatch.setattr(delegation_tokens, "_AGAIN_AT", 0.001)


def test_key_is_in_the_pickle_of_a_token_and_in_no_text() -> None:
    made = token()
    assert hmac_of(made) == b"a key of some bytes"
    assert KEY.reveal() not in f"{made} {made!r} {made.jaas_config}"
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    assert again == made
    assert again.key.reveal() == KEY.reveal()


def test_query_gets_the_token_in_place_of_the_credentials_of_its_owner() -> None:
    found = query_options(OWN, token())
    jaas = found.pop("kafka.sasl.jaas.config")
    assert found == {
        "kafka.bootstrap.servers": "kafka-1:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
        "subscribe": "orders",
    }
    login = parse_login(jaas, "SCRAM-SHA-512")
    assert login == ScramLogin("t-1", Secret(KEY.reveal()), "SCRAM-SHA-512", delegation_token=True)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [("SSL", "SASL_SSL"), ("sasl_plaintext", "SASL_PLAINTEXT"), ("PLAINTEXT", "SASL_PLAINTEXT")],
)
def test_query_logs_in_over_what_its_owner_was_encrypted_with(protocol: str, expected: str) -> None:
    found = query_options({**OWN, "kafka.security.protocol": protocol}, token())
    assert found["kafka.security.protocol"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.security.protocol", "SASL_SSL "),
        ("kafka.security.protocol", "sasl_ssl\n"),
        ("Kafka.Security.Protocol", "SASL_SSL"),
        ("KAFKA.SECURITY.PROTOCOL", "SSL"),
        (" kafka.security.protocol", "SSL"),
    ],
)
def test_query_is_encrypted_as_its_owner_was_in_any_spelling_of_the_option(name: str, value: str) -> None:
    found = query_options({"kafka.bootstrap.servers": "kafka-1:9093", name: value}, token())
    assert [each for each in found if each.strip().lower() == "kafka.security.protocol"] == ["kafka.security.protocol"]
    resolved = parse_write_options(found, streaming=False)
    assert resolved.connection.security_protocol == "SASL_SSL"


@pytest.mark.parametrize("name", [" kafka.sasl.jaas.config", "KAFKA.SSL.KEY.PASSWORD", "Kafka.Ssl.Keystore.Key "])
def test_query_gets_no_credentials_of_the_owner_in_any_spelling_of_the_option(name: str) -> None:
    assert name not in query_options({**OWN, name: "hunter2"}, token())


@pytest.mark.parametrize("value", ["SASL-SSL", "", "TLS"])
def test_unknown_security_protocol_is_refused_instead_of_read_as_plaintext(value: str) -> None:
    with pytest.raises(OptionError, match=r"'kafka\.security\.protocol' must be one of PLAINTEXT, SSL"):
        query_options({**OWN, "kafka.security.protocol": value}, token())


def test_two_different_security_protocols_are_refused() -> None:
    with pytest.raises(OptionError, match=r"'kafka\.security\.protocol' is given twice"):
        query_options({**OWN, "KAFKA.security.protocol": "PLAINTEXT"}, token())


def test_options_with_a_token_are_valid_options_of_a_query() -> None:
    options = {name: value for name, value in OWN.items() if not name.startswith(("kafka.ssl", "subscribe"))}
    resolved = parse_write_options(query_options(options, token(), mechanism="SCRAM-SHA-256"), streaming=False)
    assert resolved.connection.login is not None
    assert resolved.connection.login.mechanism == "SCRAM-SHA-256"


def test_two_tokens_are_two_logins_whose_clients_are_not_shared() -> None:
    options = {name: value for name, value in OWN.items() if not name.startswith(("kafka.ssl", "subscribe"))}
    one, same, other = (
        parse_write_options(query_options(options, token(name=name)), streaming=False).connection
        for name in ("t-1", "t-1", "t-2")
    )
    assert one == same
    assert one != other


def test_mechanism_other_than_scram_is_refused() -> None:
    with pytest.raises(OptionError, match="Delegation tokens work only with SCRAM, not with 'PLAIN'"):
        query_options(OWN, token(), mechanism="PLAIN")


def refuse(_: object = None) -> DelegationToken:
    raise AssertionError("not wanted here")


class Renewals:
    """Renews for `by_s` seconds as often as it is asked."""

    def __init__(self, by_s: float) -> None:
        self.count = 0
        self._by = timedelta(seconds=by_s)

    def __call__(self, old: DelegationToken) -> DelegationToken:
        self.count += 1
        return replace(old, expires_at=min(old.ends_at, old.expires_at + self._by))


@pytest.mark.usefixtures("early")
def test_token_is_renewed_before_it_expires_again_and_again() -> None:
    renewals = Renewals(1.0)
    first = token(lasts_s=60.0)
    with TokenKeeper(first, renewals, refuse) as keeper:
        eventually(lambda: renewals.count >= 3)
        assert keeper.token.expires_at > first.expires_at
    assert not keeper._loop.is_alive()


@pytest.mark.usefixtures("early")
def test_time_that_is_left_is_told_by_the_clock_of_the_brokers() -> None:
    """The brokers are 10 hours ahead: by the clock of this machine, the token would have a lot of time."""
    renewals = Renewals(3600.0)
    ahead = timedelta(hours=10)
    first = token(lasts_s=36_060.0, ends_s=90_000.0, clock_ahead=ahead)
    with TokenKeeper(first, renewals, refuse):
        eventually(lambda: renewals.count == 1)


def test_token_at_the_end_of_its_lifetime_is_said_to_end(caplog: pytest.LogCaptureFixture) -> None:
    first = token(lasts_s=0.1, ends_s=0.1)
    with caplog.at_level(logging.WARNING), TokenKeeper(first, refuse, refuse):
        eventually(lambda: "cannot be renewed any more: queries that use it end then." in caplog.text)
    assert KEY.reveal() not in caplog.text


def test_token_at_the_end_of_its_lifetime_is_replaced_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token.jaas"
    first, second = token(lasts_s=0.2, ends_s=0.2), token(name="t-2")
    with TokenKeeper(first, refuse, lambda: second, file) as keeper:
        assert 'username="t-1"' in file.read_text() or keeper.token is second
        eventually(lambda: keeper.token is second)
        assert 'username="t-2"' in file.read_text()
        assert 'tokenauth="true"' in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("early")
def test_renewal_with_an_unforeseen_error_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    failing = [RuntimeError("a defect")]
    renewals = Renewals(60.0)

    def renew(old: DelegationToken) -> DelegationToken:
        if failing:
            raise failing.pop()
        return renewals(old)

    with caplog.at_level(logging.WARNING), TokenKeeper(token(lasts_s=0.5), renew, refuse):
        eventually(lambda: renewals.count >= 1)
    assert "could not be renewed, which is tried again: a defect" in caplog.text


@pytest.mark.usefixtures("early")
def test_failed_renewal_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    failing: list[Callable[[], None]] = [_fail]
    renewals = Renewals(60.0)

    def renew(old: DelegationToken) -> DelegationToken:
        if failing:
            failing.pop()()
        return renewals(old)

    with caplog.at_level(logging.WARNING), TokenKeeper(token(lasts_s=0.5), renew, refuse):
        eventually(lambda: renewals.count >= 1)
    assert "could not be renewed, which is tried again: [CONNECTION_FAILED] gone" in caplog.text


@pytest.mark.usefixtures("early")
def test_pause_of_a_renewal_ends_without_a_warning_when_the_keeper_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    begun = threading.Event()
    interrupted: list[bool] = []

    def renew(_: DelegationToken) -> DelegationToken:
        begun.set()
        interrupted.append(pause(5.0))
        raise TransportError("gone", condition="CONNECTION_FAILED", retriable=True)

    with caplog.at_level(logging.WARNING), TokenKeeper(token(lasts_s=0.5), renew, refuse) as keeper:
        assert begun.wait(PATIENCE_S)
    keeper._loop.join(PATIENCE_S)
    assert interrupted == [True]
    assert caplog.messages == []


@pytest.mark.usefixtures("early")
def test_stop_does_not_wait_for_a_renewal_at_silent_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answered = threading.Event(), threading.Event()

    def renew(old: DelegationToken) -> DelegationToken:
        begun.set()
        answered.wait(5)
        return old

    monkeypatch.setattr(delegation_tokens, "_STOP_S", 0.01)
    keeper = TokenKeeper(token(lasts_s=0.5), renew, refuse)
    assert begun.wait(PATIENCE_S)
    keeper.stop()
    assert keeper._loop.is_alive()
    answered.set()
    keeper._loop.join(PATIENCE_S)
    assert not keeper._loop.is_alive()


def _fail() -> None:
    raise TransportError("gone", condition="CONNECTION_FAILED", retriable=True)
