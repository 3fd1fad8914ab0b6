"""Options of TLS and SASL, which must fit each other."""

from __future__ import annotations

import pytest

from kit.raw_options import KRB5, PLAIN, PLANTED, SASL, SCRAM, SECURED_READ, TLS, refused_read
from kit.texts import said
from pyspark_kafka._client.options import CertificateStore, KerberosLogin, ScramLogin, Secret, parse_batch_read_options


def test_sasl_takes_the_login_out_of_the_jaas_configuration() -> None:
    connection = parse_batch_read_options(SASL).connection
    assert connection.security_protocol == "SASL_SSL"
    assert connection.login == ScramLogin("ann", Secret(PLANTED), "SCRAM-SHA-512")
    assert (connection.uses_tls, connection.uses_sasl) == (True, True)


def test_tls_takes_pem_files() -> None:
    connection = parse_batch_read_options(TLS).connection
    assert connection.tls.truststore == CertificateStore("/ca.pem", "PEM")
    assert connection.tls.keystore == CertificateStore("/client.pem", "PEM")
    assert connection.tls.key_password is not None
    assert connection.tls.key_password.reveal() == PLANTED
    assert connection.tls.check_hostname is True
    assert (connection.uses_tls, connection.uses_sasl) == (True, False)


def test_an_empty_algorithm_accepts_any_host_name_and_is_noted() -> None:
    options = parse_batch_read_options({**TLS, "kafka.ssl.endpoint.identification.algorithm": ""})
    assert options.connection.tls.check_hostname is False
    assert any("are not checked for their names" in note for note in options.notes)


@pytest.mark.parametrize(
    ("changes", "condition", "text"),
    [
        (
            {"kafka.security.protocol": "TLS"},
            "OPTION_INVALID",
            "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"kafka.sasl.mechanism": "DIGEST-MD5"}, "OPTION_INVALID", "others need Java code"),
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
    error = refused_read(raw)
    assert error.condition == condition
    assert text in str(error)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", None])
def test_a_login_that_would_not_be_used_is_refused(protocol: str | None) -> None:
    raw = {**SASL, "kafka.security.protocol": protocol}
    error = refused_read({name: value for name, value in raw.items() if value is not None})
    wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
    assert "connections would not log in" in str(error)
    assert f"Set kafka.security.protocol to {wanted}" in str(error)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_certificates_that_would_not_be_used_are_refused(protocol: str) -> None:
    error = refused_read({**SASL, **TLS, "kafka.security.protocol": protocol})
    assert "connections would not be encrypted" in str(error)
    assert f"Set kafka.security.protocol to {protocol.replace('PLAINTEXT', 'SSL')}" in str(error)


def test_a_plain_password_on_an_unencrypted_connection_is_noted() -> None:
    options = parse_batch_read_options(
        {
            **SECURED_READ,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{PLAIN} required username="ann" password="{PLANTED}";',
        }
    )
    assert any("crosses the network unencrypted" in note for note in options.notes)


def test_a_key_password_without_a_key_is_refused() -> None:
    raw = {**SECURED_READ, "kafka.security.protocol": "SSL", "kafka.ssl.key.password": PLANTED}
    assert "is given without 'kafka.ssl.keystore.location'" in str(refused_read(raw))


def test_a_delegation_token_is_a_login_of_scram() -> None:
    raw = {**SASL, "kafka.sasl.jaas.config": f"{SCRAM} required username=id password={PLANTED} tokenauth=true;"}
    login = parse_batch_read_options(raw).connection.login
    assert login == ScramLogin("id", Secret(PLANTED), "SCRAM-SHA-512", delegation_token=True)


def kerberos(settings: str = "", **options: str) -> dict[str, str]:
    raw = {**SECURED_READ, "kafka.security.protocol": "SASL_PLAINTEXT", **options}
    return raw | ({"kafka.sasl.jaas.config": f"{KRB5} required {settings};"} if settings else {})


@pytest.mark.parametrize(
    ("raw", "login"),
    [
        (kerberos(**{"kafka.sasl.mechanism": "GSSAPI"}), KerberosLogin()),
        (
            kerberos("useTicketCache=true", **{"kafka.sasl.kerberos.service.name": "broker"}),
            KerberosLogin("broker"),
        ),
        (
            kerberos('useKeyTab=true keyTab="/k.tab" principal="ann@REALM" serviceName=kafka storeKey=true'),
            KerberosLogin("kafka", "ann@REALM", "/k.tab"),
        ),
        (kerberos('useTicketCache=true ticketCache="/tmp/cc"'), KerberosLogin(ticket_cache="/tmp/cc")),  # noqa: S108
    ],
)
def test_kerberos_takes_ticket_cache_or_keytab(raw: dict[str, str], login: KerberosLogin) -> None:
    assert parse_batch_read_options(raw).connection.login == login


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("useKeyTab=true", "sets useKeyTab without keyTab"),
        ("keyTab=x", "sets keyTab without principal"),
        ("serviceName=other", "sets serviceName to another name than option 'kafka.sasl.kerberos.service.name'"),
    ],
)
def test_kerberos_settings_that_do_not_fit_are_refused(settings: str, text: str) -> None:
    assert text in str(refused_read(kerberos(settings, **{"kafka.sasl.kerberos.service.name": "kafka"})))


def test_a_missing_mechanism_is_named_by_the_login_module() -> None:
    raw = {name: value for name, value in SASL.items() if name != "kafka.sasl.mechanism"}
    assert said(refused_read(raw)) == (
        "[OPTION_MISSING] Option 'kafka.sasl.mechanism' must be set with kafka.security.protocol 'SASL_SSL': Java's "
        "default is GSSAPI (Kerberos), but 'kafka.sasl.jaas.config' uses the login module of SCRAM-SHA-256 and "
        "SCRAM-SHA-512. Hint: Set it to the mechanism of the brokers' listener: SCRAM-SHA-256 or SCRAM-SHA-512."
    )


def test_an_option_of_another_mechanism_is_noted() -> None:
    options = parse_batch_read_options({**SASL, "kafka.sasl.kerberos.service.name": "kafka"})
    assert any("'kafka.sasl.kerberos.service.name' has no effect: it is for" in note for note in options.notes)


def test_settings_without_effect_are_notes_of_the_query() -> None:
    options = parse_batch_read_options(kerberos("useTicketCache=true debug=true"))
    assert any("'debug' of Krb5LoginModule" in note for note in options.notes)
