"""What errors of TLS say about the alerts and results that a test cannot make every server show."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone

import pytest

from kit.texts import said
from pyspark_kafka._client.client.tls.errors import certificate_rejected, handshake_failed
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, Secret

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
OPTIONS = ConnectionOptions((("b", 9093),), security_protocol="SSL")


def failed(reason: str, options: ConnectionOptions = OPTIONS) -> str:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower().replace('_', ' ')} (_ssl.c:1006)")
    return str(handshake_failed("b:9093", options, error, None, NOW))


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        # By OpenSSL 3.0 and, with another prefix, by later ones.
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "asks for a client certificate, and none is given"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "asks for a client certificate, and none is given"),
        ("SSL/TLS_ALERT_BAD_CERTIFICATE", "asks for a client certificate, and none is given"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "offers no version of TLS that is allowed here (TLSv1.2 or TLSv1.3)"),
        ("UNSUPPORTED_PROTOCOL", "offers no version of TLS that is allowed here"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "share no cipher suite, or the broker asks for a client certificate"),
        ("WRONG_VERSION_NUMBER", "sent bytes that are not TLS"),
        ("EXCESSIVE_MESSAGE_SIZE", "sent more certificates than a client takes"),
        ("INTERNAL_ERROR", "often means that the listener is not a TLS listener"),
    ],
)
def test_reason_of_openssl_is_said_in_words(reason: str, text: str) -> None:
    assert text in failed(reason)
    assert "b:9093" in failed(reason)


def test_plaintext_listener_is_told_with_the_protocol_that_fits_the_login() -> None:
    text = failed("WRONG_VERSION_NUMBER")
    assert (
        "Hint: Name the port of the listener with TLS in kafka.bootstrap.servers. Without TLS all records can" in text
    )
    assert said(text).endswith("this listener is meant, set kafka.security.protocol to PLAINTEXT (now 'SSL').")
    sasl = ConnectionOptions((("b", 9093),), security_protocol="SASL_SSL", login=PlainLogin("alice", Secret("Pl4nted")))
    text = failed("WRONG_VERSION_NUMBER", sasl)
    assert "Without TLS the password and all records can be read and changed on the way; only if whoever runs" in text
    assert said(text).endswith("set kafka.security.protocol to SASL_PLAINTEXT (now 'SASL_SSL').")


def test_wrong_name_is_not_answered_with_the_end_of_the_name_check() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = 62, "Hostname mismatch"
    assert "identification" not in str(certificate_rejected("b:9093", "b", error, (), None, NOW))


def test_rejected_certificate_is_told_without_its_chain_too() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    for code, reason in ((20, "unable to get local issuer certificate"), (10, "certificate has expired"), (99, "odd")):
        error.verify_code, error.verify_message = code, reason
        text = str(certificate_rejected("b:9093", "b", error, (), None, NOW))
        assert f"[TLS_CERTIFICATE_REJECTED] The certificate of b:9093 was not accepted: {reason}" in text
    error.verify_code, error.verify_message = 62, "Hostname mismatch"
    text = str(certificate_rejected("b:9093", "b", error, (), None, NOW))
    assert "it is not for 'b', the name that this client used." in text
