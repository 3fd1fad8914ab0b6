"""TLS and SASL against a real broker with a listener of each kind, and what the classic confusions look like."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.admin import AlterUserScramCredentialsRequest

from kit.brokers.two_brokers import start_on_free_ports
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest
from pyspark_kafka._client.options import (
    CertificateStore,
    ConnectionOptions,
    Login,
    PlainLogin,
    ScramLogin,
    Secret,
    TlsOptions,
)
from pyspark_kafka.errors import AccessError, ConnectorError, OptionError
from pyspark_kafka.testing import EmbeddedKafka

PASSWORD = "correct-horse"  # noqa: S105 - of a broker that lives for this test
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# A TLS listener that wants a certificate of the client, too.
MUTUAL = "MUTUAL"
SCRAM = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


# A real broker, though not the shared one that the fixtures' marker is derived from.
def login(mechanism: str, password: str = PASSWORD) -> Login:
    secret = Secret(password)
    return PlainLogin("alice", secret) if mechanism == "PLAIN" else ScramLogin("alice", secret, mechanism)


@dataclass(frozen=True)
class SecureBroker:
    ports: dict[str, int]
    authority: str
    client_store: str

    def tls(self, **changes: Any) -> TlsOptions:
        return TlsOptions(truststore=CertificateStore(self.authority), **changes)

    def options(self, protocol: str, *, port_of: str | None = None, **changes: Any) -> ConnectionOptions:
        options = ConnectionOptions(
            (("127.0.0.1", self.ports[port_of or protocol]),),
            security_protocol=protocol,
            tls=self.tls() if protocol.endswith("SSL") else TlsOptions(),
            api_timeout_ms=15_000,
        )
        if protocol.startswith("SASL"):
            options = replace(options, login=login("PLAIN"))
        return replace(options, **changes)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    place = tmp_path_factory.mktemp("tls")
    certificate, key, store = place / "cert.pem", place / "key.pem", place / "store.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    store.write_text(key.read_text() + certificate.read_text())
    by_listener: dict[str, int] = {}
    properties = {
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in LISTENERS)
        + f",{MUTUAL}:SSL,CONTROLLER:PLAINTEXT",
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
    }
    plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        properties[f"{prefix}.plain.sasl.jaas.config"] = plain
        for mechanism in SCRAM:
            properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = scram

    def make(controller: int, *ports: int) -> EmbeddedKafka:
        by_listener.update(zip([*LISTENERS, MUTUAL], ports, strict=True))
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in by_listener.items())
        where = {
            "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": addresses,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        }
        return EmbeddedKafka(port=by_listener["PLAINTEXT"], properties=properties | where)

    kafka, _ = start_on_free_ports(len(LISTENERS) + 2, make)
    with kafka:
        secure = SecureBroker(by_listener, str(certificate), str(store))
        add_scram_user(secure)
        yield secure


def add_scram_user(broker: SecureBroker) -> None:
    salt = b"salt-of-test"
    with KafkaClient(broker.options("PLAINTEXT")) as client:
        for name, number in SCRAM.items():
            algorithm = name.removeprefix("SCRAM-").replace("SHA-", "sha")
            credential = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name="alice",
                mechanism=number,
                iterations=4096,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(algorithm, PASSWORD.encode(), salt, 4096),
            )
            response = client.call(AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential]))
            assert [entry.error_code for entry in response.results] == [0]


def cluster_id(options: ConnectionOptions) -> str | None:
    """Bootstrap, then ask over the advertised address of the same listener."""
    with KafkaClient(options) as client:
        broker_id = next(iter(client.fetch_metadata(()).brokers))
        node = client.find_broker(broker_id, client.deadline())
        connection = open_connection(node.host, node.port, options, client.deadline())
        answer = connection.call(MetadataRequest(topics=[], allow_auto_topic_creation=False), client.deadline())
        connection.close()
        return str(answer.cluster_id)


def failure(options: ConnectionOptions) -> ConnectorError:
    host, port = options.bootstrap_servers[0]
    with pytest.raises(ConnectorError) as caught:
        open_connection(host, port, options, Deadline(10_000)).call(
            MetadataRequest(topics=[], allow_auto_topic_creation=False), Deadline(10_000)
        )
    assert PASSWORD not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("protocol", LISTENERS)
def test_each_security_protocol_reaches_the_cluster(broker: SecureBroker, protocol: str) -> None:
    assert cluster_id(broker.options(protocol)) == cluster_id(broker.options("PLAINTEXT"))


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_scram_authenticates(broker: SecureBroker, protocol: str, mechanism: str) -> None:
    assert cluster_id(broker.options(protocol, login=login(mechanism)))


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_a_wrong_password_is_an_access_error(broker: SecureBroker, mechanism: str) -> None:
    error = failure(broker.options("SASL_PLAINTEXT", login=login(mechanism, "wrong-one")))
    assert isinstance(error, AccessError)
    assert error.condition == "SASL_AUTHENTICATION_FAILED"
    assert "wrong-one" not in str(error)


def test_wrong_credentials_end_a_step_at_once_and_not_at_its_deadline(broker: SecureBroker) -> None:
    options = broker.options("SASL_PLAINTEXT", login=login("PLAIN", "wrong-one"), api_timeout_ms=120_000)
    with KafkaClient(options) as client, pytest.raises(AccessError):
        client.fetch_metadata(())


def test_a_certificate_of_an_unknown_authority_is_rejected(broker: SecureBroker) -> None:
    error = failure(broker.options("SSL", tls=TlsOptions()))
    assert error.condition == "TLS_CERTIFICATE_REJECTED"
    assert "'CN=test' is self-signed, and is not trusted. Trusted are the authorities of the system" in str(error)
    assert "kafka.ssl.truststore.location" in str(error)


def test_a_certificate_for_another_name_is_rejected_unless_the_check_is_off(broker: SecureBroker) -> None:
    elsewhere = (("localhost", broker.ports["SSL"]),)
    error = failure(broker.options("SSL", bootstrap_servers=elsewhere))
    assert error.condition == "TLS_CERTIFICATE_REJECTED"
    assert "it is not for 'localhost', the name that this client used, but for '127.0.0.1'" in str(error)
    assert cluster_id(broker.options("SSL", bootstrap_servers=elsewhere, tls=broker.tls(check_hostname=False)))


def test_a_client_certificate_is_shown_where_it_is_wanted(broker: SecureBroker) -> None:
    options = broker.options("SSL", port_of=MUTUAL, tls=broker.tls(keystore=CertificateStore(broker.client_store)))
    assert cluster_id(options) == cluster_id(broker.options("PLAINTEXT"))


def test_a_missing_client_certificate_is_told(broker: SecureBroker) -> None:
    error = failure(broker.options("SSL", port_of=MUTUAL))
    assert error.condition == "TLS_CLIENT_CERTIFICATE_REFUSED"
    assert "asks for a client certificate, and none is given" in str(error)
    assert "kafka.ssl.keystore.location" in str(error)


def test_a_plaintext_client_on_a_tls_listener_is_told_so(broker: SecureBroker) -> None:
    error = failure(broker.options("PLAINTEXT", port_of="SSL"))
    assert "TLS listener" in str(error)
    assert "kafka.security.protocol" in str(error)


def test_a_tls_client_on_a_plaintext_listener_is_told_so(broker: SecureBroker) -> None:
    error = failure(broker.options("SSL", port_of="PLAINTEXT"))
    assert error.condition == "TLS_HANDSHAKE_FAILED"
    assert "not a TLS listener" in str(error)


def test_a_client_without_sasl_on_a_sasl_listener_is_told_so(broker: SecureBroker) -> None:
    error = failure(broker.options("PLAINTEXT", port_of="SASL_PLAINTEXT"))
    assert "a client without SASL on a listener that requires SASL" in str(error)


def test_a_sasl_client_on_a_listener_without_it_is_told_so(broker: SecureBroker) -> None:
    error = failure(broker.options("SASL_PLAINTEXT", port_of="PLAINTEXT"))
    assert "probably a listener without SASL" in str(error)


def test_a_certificate_file_that_is_none_is_an_option_error(broker: SecureBroker, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("not a certificate")
    assert isinstance(
        failure(broker.options("SSL", tls=TlsOptions(truststore=CertificateStore(str(broken))))), OptionError
    )


def test_a_current_broker_is_spoken_to_in_a_version_with_topic_ids(broker: SecureBroker) -> None:
    connection = open_connection("127.0.0.1", broker.ports["PLAINTEXT"], broker.options("PLAINTEXT"), Deadline(10_000))
    assert connection.api_version(FetchRequest) >= 13
    assert connection.idle_and_alive
    connection.close()
    assert connection.closed
