"""Options of TLS: the stores in their forms, versions, ciphers, and what does not fit together."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka._client.options import (
    BatchReadOptions,
    CertificateStore,
    Secret,
    TlsOptions,
    parse_batch_read_options,
)
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4nted-S3cret"
TLS = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t", "kafka.security.protocol": "SSL"}


def parsed(**options: str) -> BatchReadOptions:
    return parse_batch_read_options({**TLS, **{f"kafka.ssl.{name}": value for name, value in options.items()}})


def tls(options: dict[str, str]) -> TlsOptions:
    return parsed(**options).connection.tls


def refused(options: dict[str, Any]) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parsed(**options)
    assert PLANTED not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_store_has_the_type_that_is_given(kind: str) -> None:
    assert tls({"truststore.location": "/t", "truststore.type": kind.lower()}).truststore == CertificateStore(
        "/t", kind
    )


def test_store_without_a_type_is_left_to_its_content() -> None:
    stores = {"truststore.location": "/t", "keystore.location": "/k"}
    found = tls({**stores, "truststore.password": "a", "keystore.password": "b", "key.password": "c"})
    assert found == TlsOptions(
        truststore=CertificateStore("/t", password=Secret("a")),
        keystore=CertificateStore("/k", password=Secret("b")),
        key_password=Secret("c"),
    )


def test_stores_may_be_texts() -> None:
    texts = {"truststore.certificates": "CA", "keystore.key": "KEY", "keystore.certificate.chain": "CHAIN"}
    expected = TlsOptions(
        truststore=CertificateStore(certificates=Secret("CA")),
        keystore=CertificateStore(certificates=Secret("CHAIN"), key=Secret("KEY")),
    )
    assert tls(texts) == expected
    assert tls({**texts, "truststore.type": "PEM"}).truststore == CertificateStore(
        kind="PEM", certificates=Secret("CA")
    )


@pytest.mark.parametrize(
    ("options", "condition", "text"),
    [
        ({"truststore.type": "BCFKS"}, "OPTION_INVALID", "must be PEM, PKCS12 or JKS; got 'BCFKS'. Convert the store"),
        ({"truststore.location": "/t", "truststore.certificates": PLANTED}, "OPTION_CONFLICT", "are both given"),
        ({"keystore.key": PLANTED}, "OPTION_MISSING", "'kafka.ssl.keystore.certificate.chain' must be set with"),
        ({"keystore.certificate.chain": PLANTED}, "OPTION_MISSING", "'kafka.ssl.keystore.key' must be set with"),
        (
            {"truststore.certificates": PLANTED, "truststore.type": "JKS"},
            "OPTION_CONFLICT",
            "'kafka.ssl.truststore.certificates' is PEM text, but 'kafka.ssl.truststore.type' is JKS",
        ),
        (
            {"keystore.location": "/k", "keystore.type": "PEM", "keystore.password": PLANTED},
            "OPTION_CONFLICT",
            "Remove 'kafka.ssl.keystore.password'; set kafka.ssl.key.password if the key is encrypted",
        ),
        ({"truststore.password": PLANTED}, "OPTION_CONFLICT", "is given without 'kafka.ssl.truststore.location'"),
        ({"key.password": PLANTED}, "OPTION_CONFLICT", "is given without 'kafka.ssl.keystore.location'"),
        ({"enabled.protocols": "TLSv1.1,TLSv1.2"}, "OPTION_INVALID", "got 'TLSv1.1', which is broken (RFC 7568"),
        ({"enabled.protocols": " , "}, "OPTION_INVALID", "must list TLSv1.2, TLSv1.3, or both"),
        ({"protocol": "SSLv3"}, "OPTION_INVALID", "got 'SSLv3', which is broken"),
        ({"protocol": "DTLS"}, "OPTION_INVALID", "must be TLSv1.2 or TLSv1.3; got 'DTLS'"),
        ({"protocol": "TLSv1.2", "enabled.protocols": "TLSv1.3"}, "OPTION_CONFLICT", "allows at most TLSv1.2"),
        ({"cipher.suites": "TLS_RSA_WITH_NULL_SHA256"}, "OPTION_INVALID", "has a suite that does not protect"),
        ({"cipher.suites": "TLS_DH_anon_WITH_AES_128_CBC_SHA"}, "OPTION_INVALID", "has a suite that does not protect"),
        ({"cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"}, "OPTION_INVALID", "has a suite that is unknown here"),
        ({"cipher.suites": "TLS_RSA_WITH_AES_256_CBC_SHA384"}, "OPTION_INVALID", "has a suite that is unknown here"),
        ({"cipher.suites": ","}, "OPTION_INVALID", "must list a cipher suite"),
        (
            {"cipher.suites": "TLS_AES_256_GCM_SHA384", "enabled.protocols": "TLSv1.2"},
            "OPTION_CONFLICT",
            "has no suite for TLSv1.2",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], condition: str, text: str) -> None:
    error = refused(options)
    assert error.condition == condition
    assert text in str(error)


@pytest.mark.parametrize("name", ["truststore.certificates", "keystore.key", "keystore.certificate.chain"])
def test_text_that_would_not_be_used_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="connections would not be encrypted"):
        parse_batch_read_options({**TLS, "kafka.security.protocol": "PLAINTEXT", f"kafka.ssl.{name}": PLANTED})


@pytest.mark.parametrize(
    ("options", "versions"),
    [
        ({}, ("TLSv1.2", "TLSv1.3")),
        ({"enabled.protocols": "TLSv1.3, tlsv1.2"}, ("TLSv1.2", "TLSv1.3")),
        ({"enabled.protocols": "TLSv1.3"}, ("TLSv1.3",)),
        ({"enabled.protocols": "TLS"}, ("TLSv1.2", "TLSv1.3")),
        ({"protocol": "TLSv1.2"}, ("TLSv1.2",)),
        ({"protocol": "TLSv1.3", "enabled.protocols": "TLSv1.2"}, ("TLSv1.2",)),
        ({"protocol": "TLS"}, ("TLSv1.2", "TLSv1.3")),
        ({"cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, ("TLSv1.2",)),
        ({"cipher.suites": "TLS_AES_128_GCM_SHA256"}, ("TLSv1.3",)),
    ],
)
def test_versions_are_those_that_all_options_allow(options: dict[str, str], versions: tuple[str, ...]) -> None:
    assert tls(options).versions == versions


def test_cipher_suites_have_the_names_of_openssl() -> None:
    suites = "SSL_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA, "
    suites += "tls_ecdhe_ecdsa_with_chacha20_poly1305_sha256"
    assert tls({"cipher.suites": suites}).ciphers == (
        "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA:ECDHE-ECDSA-CHACHA20-POLY1305"
    )


def test_some_suites_of_tls_13_are_noted_to_stand_for_all() -> None:
    some = parsed(**{"cipher.suites": "TLS_AES_128_GCM_SHA256"})
    assert any("OpenSSL offers all of its three" in note for note in some.notes)
    all_three = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"
    assert not any("OpenSSL offers" in note for note in parsed(**{"cipher.suites": all_three}).notes)


def test_private_key_that_stands_in_an_option_is_noted_and_a_reference_is_not() -> None:
    chain = {"keystore.certificate.chain": "-----BEGIN CERTIFICATE-----"}
    (note,) = parsed(**chain, **{"keystore.key": f"-----BEGIN PRIVATE KEY-----{PLANTED}"}).notes
    assert note.startswith("Option 'kafka.ssl.keystore.key' holds a private key, which Spark shows")
    assert PLANTED not in note
    assert parsed(**chain, **{"keystore.key": "file:/mnt/user/user.key"}).notes == ()


@pytest.mark.parametrize("blank", [" ", "\n", "none"])
def test_only_an_empty_text_ends_the_name_check(blank: str) -> None:
    name = "kafka.ssl.endpoint.identification.algorithm"
    given = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t", "kafka.security.protocol": "SSL"}
    assert not parse_batch_read_options({**given, name: ""}).connection.tls.check_hostname
    with pytest.raises(OptionError, match="must be https, or empty to accept any host name"):
        parse_batch_read_options({**given, name: blank})
