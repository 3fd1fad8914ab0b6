"""Credentials that change while a client works: passwords by reference, certificates that are replaced or expire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.secured.certificates import CertificateAuthority
from pyspark_kafka.testing.secured.listeners import Listener

LIFETIME_MS = 2_000
SESSIONS, MUTUAL = "SASL_SSL", "SSL"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    listeners = [
        Listener(SESSIONS, mechanisms=("SCRAM-SHA-512",), max_reauth_ms=LIFETIME_MS),
        Listener(MUTUAL, client_auth="required"),
    ]
    with EmbeddedKafka(listeners=listeners, users={"alice": "first"}) as running:
        yield running


def client_with(options: dict[str, str]) -> KafkaClient:
    return KafkaClient(parse_write_options(options, streaming=False).connection)


def ask_for(client: KafkaClient, seconds: float) -> None:
    """Ask again and again, over sessions that end meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.fetch_metadata(())
        time.sleep(0.05)


def test_password_by_reference_is_read_again_at_each_login(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    options = kafka.client_options(SESSIONS, "alice")
    file = tmp_path / "jaas"
    file.write_text(options["kafka.sasl.jaas.config"])
    with client_with({**options, "kafka.sasl.jaas.config": f"file:{file}"}) as client:
        client.fetch_metadata(())
        for password in ("second", "third"):
            # Between two questions of this client.
            file.write_text(file.read_text().replace(kafka.security.password("alice"), password))
            kafka.security.add_user("alice", password)
            ask_for(client, 1.5 * LIFETIME_MS / 1000)


def test_certificates_of_another_authority_are_trusted_as_soon_as_the_file_names_it(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    other = CertificateAuthority(tmp_path / "other")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(kafka.security.authority.pem)
    options = {**kafka.client_options(MUTUAL, "alice"), "kafka.ssl.truststore.location": str(trusted)}
    with ExitStack() as held:
        client = held.enter_context(client_with(options))
        client.fetch_metadata(())
        kafka.security.replace_certificate(MUTUAL, other.issue())
        held.callback(kafka.security.replace_certificate, MUTUAL)
        # The open connection stays as it is.
        client.fetch_metadata(())
        client.connections.close()
        with pytest.raises(ConnectorError, match="certificate"):
            client.fetch_metadata(())
        trusted.write_bytes(other.pem)
        client.fetch_metadata(())


@pytest.mark.full("Sessions that end in use")
def test_client_certificate_that_expires_leaves_connections_open_and_is_named_by_new_ones(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    expires = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=8)
    own = tmp_path / "own.pem"
    own.write_bytes(kafka.security.authority.issue(user="alice", not_after=expires).pem)
    options = {**kafka.client_options(MUTUAL, "alice"), "kafka.ssl.keystore.location": str(own)}
    with client_with(options) as client:
        client.fetch_metadata(())
        time.sleep(max(0.0, (expires - datetime.now(timezone.utc)).total_seconds()) + 1.1)
        client.fetch_metadata(())
        client.connections.close()
        with pytest.raises(ConnectorError) as caught:
            client.fetch_metadata(())
        assert "[TLS_CLIENT_CERTIFICATE_REFUSED]" in str(caught.value)
        assert f"expired on {expires:%Y-%m-%d %H:%M}" in str(caught.value)
        # Replaced in place, as by what renews it.
        own.write_bytes(kafka.security.authority.issue(user="alice").pem)
        client.fetch_metadata(())
