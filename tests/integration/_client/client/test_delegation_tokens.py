"""Delegation tokens on a real broker: obtained, used, renewed, expired, refused (KIP-48)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from kit.brokers.sessions import SessionsBroker, sessions_broker
from kit.waiting import eventually
from pyspark_kafka import delegation_tokens
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka.delegation_tokens import DelegationToken
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError
from pyspark_kafka.testing.jars import DEFAULT_VERSION

EXPIRY_S = 4.0


@pytest.fixture(scope="module", params=[DEFAULT_VERSION, "3.9.2"])
def broker(request: pytest.FixtureRequest) -> Iterator[SessionsBroker]:
    often = {"delegation.token.expiry.check.interval.ms": "500"}
    expiry = {"delegation.token.expiry.time.ms": str(int(EXPIRY_S * 1000))}
    with sessions_broker(0, often | expiry, version=request.param) as running:
        yield running


def use(options: dict[str, str]) -> None:
    """Connect with these options, and ask the broker something."""
    with KafkaClient(parse_write_options(options, streaming=False).connection) as client:
        assert client.fetch_metadata(()).brokers


def shown(broker: SessionsBroker, token: DelegationToken) -> list[DelegationToken]:
    found = delegation_tokens.describe(broker.options("SCRAM-SHA-256"), ["User:alice"])
    return [each for each in found if each.token_id == token.token_id]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_token_logs_its_owner_in_as_soon_as_it_is_obtained(broker: SessionsBroker, mechanism: str) -> None:
    options = broker.options("PLAIN")
    token = delegation_tokens.obtain(options, renewers=["User:bob"])
    assert token.owner == "User:alice"
    assert token.issued_at < token.expires_at < token.ends_at
    assert abs(token.clock_ahead) < timedelta(minutes=1)
    (found,) = shown(broker, token)
    assert found.renewers == token.renewers == ("User:bob",)
    assert found.key.reveal() == token.key.reveal()
    use(delegation_tokens.query_options(options, token, mechanism=mechanism))


def test_token_is_renewed_up_to_the_end_of_its_lifetime(broker: SessionsBroker) -> None:
    options = broker.options("SCRAM-SHA-512")
    token = delegation_tokens.obtain(options, lifetime=timedelta(seconds=30))
    assert token.ends_at - token.issued_at == timedelta(seconds=30)
    renewed = delegation_tokens.renew(options, token)
    assert renewed.expires_at > token.expires_at
    eventually(lambda: shown(broker, token)[0].expires_at == renewed.expires_at)
    assert delegation_tokens.renew(options, token, timedelta(hours=1)).expires_at <= token.ends_at


def test_expired_token_is_refused_with_what_to_check(broker: SessionsBroker) -> None:
    options = broker.options("SCRAM-SHA-512")
    token = delegation_tokens.obtain(options)
    with_token = delegation_tokens.query_options(options, token)
    use(with_token)
    delegation_tokens.expire(options, token)
    eventually(lambda: not shown(broker, token))
    with pytest.raises(AccessError) as caught:
        use(with_token)
    text = str(caught.value)
    assert "The same login was accepted" in text
    assert "delegation token" in text
    assert token.key.reveal() not in text
    with pytest.raises(ConnectorError) as gone:
        delegation_tokens.renew(options, token)
    assert f"Renewing delegation token {token.token_id}" in str(gone.value)
    assert token.key.reveal() not in str(gone.value)


def test_connection_with_a_token_obtains_no_other(broker: SessionsBroker) -> None:
    options = broker.options("PLAIN")
    token = delegation_tokens.obtain(options)
    with pytest.raises(AccessError) as caught:
        delegation_tokens.obtain(delegation_tokens.query_options(options, token))
    text = str(caught.value)
    assert text.startswith("[DELEGATION_TOKEN_REQUEST_NOT_ALLOWED] Creating a delegation token at ")
    assert "Ask for tokens with a user name and a password" in text


def test_connection_without_a_login_obtains_none(broker: SessionsBroker) -> None:
    with pytest.raises(BrokerError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
        delegation_tokens.obtain({"kafka.bootstrap.servers": broker.kafka.bootstrap_servers})


@pytest.mark.full("Sessions that end in use")
def test_client_with_a_kept_token_works_for_longer_than_the_token_was_valid_at_first(broker: SessionsBroker) -> None:
    """The session of a login with a token ends with the token: each renewal of the token lets the next last longer."""
    options = broker.options("PLAIN")
    with delegation_tokens.keep(options) as keeper:
        first = keeper.token
        connection = parse_write_options(delegation_tokens.query_options(options, first), streaming=False).connection
        end = time.monotonic() + 2.5 * EXPIRY_S
        with KafkaClient(connection) as client:
            while time.monotonic() < end:
                client.fetch_metadata(())
                time.sleep(0.05)
        assert keeper.token.expires_at - first.expires_at > timedelta(seconds=EXPIRY_S)
    assert broker.ended_connections() == []
