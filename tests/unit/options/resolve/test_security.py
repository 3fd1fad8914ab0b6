"""Options of TLS and SASL, which must fit each other."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka.errors import OptionError
from pyspark_kafka.options import Secret, parse_batch_read_options

PLANTED = "Pl4nted-S3cret"

READ = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t"}

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

SASL = {
    **READ,
    "kafka.security.protocol": "sasl_ssl",
    "kafka.sasl.mechanism": "scram-sha-512",
    "kafka.sasl.jaas.config": f'{SCRAM} required username="ann" password="{PLANTED}";',
}

TLS = {
    **READ,
    "kafka.security.protocol": "SSL",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.ssl.truststore.type": "pem",
    "kafka.ssl.keystore.location": "/client.pem",
    "kafka.ssl.keystore.type": "PEM",
    "kafka.ssl.key.password": PLANTED,
}


def refused(raw: dict[str, Any]) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse_batch_read_options(raw)
    return caught.value


def test_sasl_takes_the_login_out_of_the_jaas_configuration() -> None:
    connection = parse_batch_read_options(SASL).connection
    assert connection.security_protocol == "SASL_SSL"
    assert connection.sasl_mechanism == "SCRAM-SHA-512"
    assert connection.sasl_username == "ann"
    assert connection.sasl_password == Secret(PLANTED)
    assert (connection.uses_tls, connection.uses_sasl) == (True, True)


def test_tls_takes_pem_files() -> None:
    connection = parse_batch_read_options(TLS).connection
    assert connection.ssl_ca_location == "/ca.pem"
    assert connection.ssl_certificate_location == connection.ssl_key_location == "/client.pem"
    assert connection.ssl_key_password is not None
    assert connection.ssl_key_password.reveal() == PLANTED
    assert connection.ssl_check_hostname is True
    assert (connection.uses_tls, connection.uses_sasl) == (True, False)


def test_an_empty_algorithm_accepts_any_host_name_and_is_noted() -> None:
    options = parse_batch_read_options({**TLS, "kafka.ssl.endpoint.identification.algorithm": ""})
    assert options.connection.ssl_check_hostname is False
    assert any("are not checked for their names" in note for note in options.notes)


@pytest.mark.parametrize(
    ("changes", "condition", "text"),
    [
        (
            {"kafka.security.protocol": "TLS"},
            "OPTION_INVALID",
            "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"kafka.sasl.mechanism": "GSSAPI"}, "OPTION_INVALID", "others are not supported yet"),
        (
            {"kafka.sasl.mechanism": "PLAIN"},
            "OPTION_CONFLICT",
            "uses the login module of SCRAM-SHA-256 and SCRAM-SHA-512",
        ),
        (
            {"kafka.sasl.mechanism": None},
            "OPTION_MISSING",
            "'kafka.sasl.mechanism' must be set with kafka.security.proto",
        ),
        (
            {"kafka.sasl.jaas.config": None},
            "OPTION_MISSING",
            "'kafka.sasl.jaas.config' must be set with kafka.security.",
        ),
    ],
)
def test_sasl_options_that_do_not_fit(changes: dict[str, str | None], condition: str, text: str) -> None:
    raw = {name: value for name, value in {**SASL, **changes}.items() if value is not None}
    error = refused(raw)
    assert error.condition == condition
    assert text in str(error)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", None])
def test_a_login_that_would_not_be_used_is_refused(protocol: str | None) -> None:
    raw = {**SASL, "kafka.security.protocol": protocol}
    error = refused({name: value for name, value in raw.items() if value is not None})
    wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
    assert "connections would not log in" in str(error)
    assert f"Set kafka.security.protocol to {wanted}" in str(error)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_certificates_that_would_not_be_used_are_refused(protocol: str) -> None:
    error = refused({**SASL, **TLS, "kafka.security.protocol": protocol})
    assert "connections would not be encrypted" in str(error)
    assert f"Set kafka.security.protocol to {protocol.replace('PLAINTEXT', 'SSL')}" in str(error)


def test_a_plain_password_on_an_unencrypted_connection_is_noted() -> None:
    options = parse_batch_read_options(
        {
            **READ,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{PLAIN} required username="ann" password="{PLANTED}";',
        }
    )
    assert any("crosses the network unencrypted" in note for note in options.notes)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_java_key_stores_are_refused_with_how_to_convert_them(store: str) -> None:
    explicit = refused({**TLS, f"kafka.ssl.{store}.type": "JKS"})
    assert "must be PEM; got 'JKS'" in str(explicit)
    assert "keytool" in str(explicit)
    implicit = refused({name: value for name, value in TLS.items() if name != f"kafka.ssl.{store}.type"})
    assert implicit.condition == "OPTION_MISSING"
    assert f"'kafka.ssl.{store}.type' must be set to PEM" in str(implicit)


def test_a_key_password_without_a_key_is_refused() -> None:
    raw = {**READ, "kafka.security.protocol": "SSL", "kafka.ssl.key.password": PLANTED}
    assert "is given without 'kafka.ssl.keystore.location'" in str(refused(raw))


def test_delegation_tokens_are_refused() -> None:
    error = refused({**SASL, "kafka.sasl.jaas.config": f"{SCRAM} required username=u password=p tokenauth=true;"})
    assert error.condition == "OPTION_NOT_SUPPORTED"
