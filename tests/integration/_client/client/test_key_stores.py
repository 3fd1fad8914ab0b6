"""Key stores of every form against a real broker that wants client certificates, and certificates that it refuses."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ConnectionOptions, parse_batch_read_options
from pyspark_kafka.errors import TransportError
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.secured.certificates import CertificateAuthority, IssuedCertificate

MUTUAL = "MTLS"
PASSWORD = "correct-horse"  # noqa: S105 - of a key that lives for a test


def connection(options: dict[str, str]) -> ConnectionOptions:
    return parse_batch_read_options({**options, "subscribe": "t"}).connection


def reaches(options: dict[str, str]) -> bool:
    with KafkaClient(connection(options)) as client:
        return bool(client.fetch_metadata(()).brokers)


def with_texts(options: dict[str, str], certificate: IssuedCertificate, key: bytes) -> dict[str, str]:
    """Replace the client's store by texts, pasted into one line."""
    others = {name: value for name, value in options.items() if "keystore" not in name}
    return {
        **others,
        "kafka.ssl.keystore.key": key.decode().replace("\n", "\\n"),
        "kafka.ssl.keystore.certificate.chain": certificate.chain_pem.decode().replace("\n", "\\n"),
    }


@pytest.mark.parametrize("store", ["PEM", "PEM-inline", "PKCS12", "JKS"])
@pytest.mark.parametrize("typed", [True, False])
def test_each_form_of_a_store_logs_in_with_or_without_its_type(
    secured_kafka: EmbeddedKafka, store: str, typed: bool
) -> None:
    options = secured_kafka.client_options(MUTUAL, "alice", store=store)
    assert reaches({name: value for name, value in options.items() if typed or not name.endswith("store.type")})


def test_encrypted_key_as_a_text_logs_in_with_its_password(secured_kafka: EmbeddedKafka) -> None:
    certificate = secured_kafka.security.authority.issue(user="alice")
    options = with_texts(
        secured_kafka.client_options(MUTUAL, "alice"), certificate, certificate.encrypted_key_pem(PASSWORD)
    )
    assert reaches({**options, "kafka.ssl.key.password": PASSWORD})


@pytest.mark.parametrize(
    "options",
    [
        {"kafka.ssl.enabled.protocols": "TLSv1.2"},
        {"kafka.ssl.protocol": "TLSv1.2"},
        {"kafka.ssl.enabled.protocols": "TLSv1.3"},
        {"kafka.ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
        {"kafka.ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"},
    ],
)
def test_versions_and_suites_of_javas_names_are_agreed_on(
    secured_kafka: EmbeddedKafka, options: dict[str, str]
) -> None:
    assert reaches({**secured_kafka.client_options(MUTUAL, "alice"), **options})


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("fault", ["none", "stranger", "expired"])
def test_client_certificate_that_the_broker_refuses_is_told(
    secured_kafka: EmbeddedKafka, fault: str, version: str, tmp_path: Path
) -> None:
    options = {**secured_kafka.client_options(MUTUAL, "alice"), "kafka.ssl.enabled.protocols": version}
    now = datetime.now(timezone.utc)
    if fault == "none":
        options = {name: value for name, value in options.items() if "keystore" not in name}
    else:
        authority = CertificateAuthority(tmp_path) if fault == "stranger" else secured_kafka.security.authority
        ends = now - timedelta(days=1) if fault == "expired" else now + timedelta(days=30)
        certificate = authority.issue(user="alice", not_before=now - timedelta(days=9), not_after=ends)
        options = with_texts(options, certificate, certificate.key_pem)
    with KafkaClient(connection(options)) as client, pytest.raises(TransportError) as caught:
        client.fetch_metadata(())
    text = str(caught.value)
    assert "TLS_CLIENT_CERTIFICATE_REFUSED" in text
    if fault == "none":
        assert "asks for a client certificate, and none is given" in text
    else:
        assert "refused the client certificate 'CN=alice" in text
        assert "'kafka.ssl.keystore.key'" in text
    if fault == "expired":
        assert "expired on" in text
