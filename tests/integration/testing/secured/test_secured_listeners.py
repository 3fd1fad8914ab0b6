"""Secured listeners of an embedded broker, as OpenSSL, kafka-python and the client of this package see them."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kit.administration import create_topic
from kit.fixtures.secured_broker import MECHANISMS, USERS
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ConnectionOptions, parse_batch_read_options
from pyspark_kafka.errors import AccessError, SetupError
from pyspark_kafka.testing import EmbeddedKafka, Listener
from pyspark_kafka.testing.secured.broker_security import fetch_certificate


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def other_client(kafka: EmbeddedKafka, listener: str, **settings: Any) -> list[str]:
    """Return the topics that kafka-python sees."""
    admin: Any = KafkaAdminClient(bootstrap_servers=kafka.address(listener), **settings)
    try:
        return list(admin.list_topics())
    finally:
        admin.close()


def connection(options: dict[str, str]) -> ConnectionOptions:
    return parse_batch_read_options({**options, "subscribe": "t"}).connection


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_another_client_logs_in_with_each_mechanism(
    secured_kafka: EmbeddedKafka, listener: str, mechanism: str
) -> None:
    settings: dict[str, Any] = {"security_protocol": listener, "sasl_mechanism": mechanism}
    if listener == "SASL_SSL":
        settings["ssl_cafile"] = str(secured_kafka.security.authority.file)
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = _Token(secured_kafka.security.tokens.token("alice"))
    else:
        settings |= {"sasl_plain_username": "alice", "sasl_plain_password": USERS["alice"]}
    assert isinstance(other_client(secured_kafka, listener, **settings), list)


@pytest.mark.full("Waits for limits of time")
def test_token_that_has_expired_is_refused(secured_kafka: EmbeddedKafka) -> None:
    old = _Token(secured_kafka.security.tokens.token("alice", lifetime_s=-60, age_s=120))
    with pytest.raises(KafkaError):
        other_client(
            secured_kafka,
            "SASL_PLAINTEXT",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=old,
        )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_client_options_log_in_with_each_mechanism(secured_kafka: EmbeddedKafka, mechanism: str) -> None:
    options = secured_kafka.client_options("SASL_SSL", "alice", mechanism=mechanism)
    with KafkaClient(connection(options)) as client:
        assert client.fetch_metadata(()).controller_id == 1


def test_common_name_of_a_client_certificate_is_the_user(secured_kafka: EmbeddedKafka) -> None:
    with KafkaClient(connection(secured_kafka.client_options("MTLS", "alice"))) as client:
        create_topic(client, "made-by-alice")
    with (
        KafkaClient(connection(secured_kafka.client_options("MTLS", "bob"))) as client,
        pytest.raises(AccessError, match="TOPIC_AUTHORIZATION_FAILED"),
    ):
        create_topic(client, "made-by-bob")


def test_rights_hold_from_the_moment_they_are_granted(secured_kafka: EmbeddedKafka) -> None:
    with KafkaClient(connection(secured_kafka.client_options("SASL_PLAINTEXT", "bob"))) as client:
        for round_ in range(3):
            with pytest.raises(AccessError):
                create_topic(client, f"bob-{round_}")
            secured_kafka.security.grant("bob", "CREATE", "TOPIC", "bob-", prefixed=True)
            secured_kafka.security.grant("bob", "DESCRIBE", "TOPIC", "bob-", prefixed=True)
            create_topic(client, f"bob-{round_}")
            assert secured_kafka.security.revoke("bob", "CREATE", "TOPIC", "bob-", prefixed=True)
            assert secured_kafka.security.revoke("bob", "DESCRIBE", "TOPIC", "bob-", prefixed=True)
            assert not secured_kafka.security.revoke("bob", "DESCRIBE", "TOPIC", "bob-", prefixed=True)


def test_names_that_the_broker_does_not_have_are_told(secured_kafka: EmbeddedKafka) -> None:
    with pytest.raises(SetupError, match=r"BROKER_SECURITY_MISSING\].*no listener 'NONE': there is PLAINTEXT, SSL"):
        secured_kafka.client_options("NONE")
    with pytest.raises(SetupError, match=r"no user 'eve': there is alice, bob"):
        secured_kafka.client_options("SASL_SSL", "eve")
    with pytest.raises(SetupError, match=r"have the mechanisms SCRAM-SHA-512, .*, not GSSAPI"):
        secured_kafka.client_options("SASL_SSL", "alice", mechanism="GSSAPI")


@pytest.fixture(scope="module", params=["4.3.0", pytest.param("3.9.2", marks=pytest.mark.full("Older brokers"))])
def own_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that tests stop and change, of each version, with its data on disk."""
    data: Path = tmp_path_factory.mktemp("secured") / "data"
    listeners = [Listener("SSL"), Listener("SASL_SSL", mechanisms=MECHANISMS)]
    with EmbeddedKafka(request.param, listeners=listeners, users=USERS, heap="256m", data_dir=data) as kafka:
        yield kafka


def test_certificate_is_replaced_while_the_broker_runs(own_broker: EmbeddedKafka) -> None:
    security = own_broker.security
    host, port = own_broker.address("SSL").split(":")
    before = fetch_certificate(host, int(port))
    new = security.replace_certificate("SSL")
    after = fetch_certificate(host, int(port))
    assert after is not None
    assert after != before
    assert after.strip() in new.chain_pem.decode()
    past = dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)
    for odd in (
        security.authority.issue("elsewhere.example"),
        security.authority.issue(not_before=past, not_after=past + dt.timedelta(days=1)),
    ):
        security.replace_certificate("SSL", odd)
        with (
            pytest.raises(ssl.SSLCertVerificationError),
            own_context(security).wrap_socket(_dial(host, int(port)), server_hostname=host),
        ):
            pass
    security.replace_certificate("SSL")
    with own_context(security).wrap_socket(_dial(host, int(port)), server_hostname=host) as secured:
        assert secured.version() == "TLSv1.3"


def test_users_passwords_and_addresses_survive_a_restart(own_broker: EmbeddedKafka) -> None:
    own_broker.security.add_user("carol", "first")
    options = own_broker.client_options("SASL_SSL", "carol", mechanism="SCRAM-SHA-256")
    own_broker.restart()
    with KafkaClient(connection(options)) as client:
        assert client.fetch_metadata(()).controller_id == 1


def own_context(security: Any) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(security.authority.file))


def _dial(host: str, port: int) -> Any:
    return socket.create_connection((host, port), timeout=120)
