"""TLS against servers that are misconfigured or hostile: what is refused, in which time, and what the error says."""

from __future__ import annotations

import logging
import math
import re
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kit.fakes.tls_server import asking_for_certificates, server_context, serving
from pyspark_kafka._client.client.net.frame_stream import FrameStream
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka._client.client.net.tcp import connect, resolve
from pyspark_kafka._client.client.tls.contexts import tls_context
from pyspark_kafka._client.client.tls.handshake import encrypt
from pyspark_kafka._client.client.tls.inspection import fetch_chain
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import CertificateStore, ConnectionOptions, Secret, TlsOptions
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError
from pyspark_kafka.testing.secured.certificates import CertificateAuthority

NOW = datetime.now(timezone.utc)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("stranger"))


def trusting(authority: CertificateAuthority, **changes: Any) -> TlsOptions:
    return TlsOptions(truststore=CertificateStore(certificates=Secret(authority.pem.decode())), **changes)


def failure(port: int, tls: TlsOptions, timeout_ms: float = 10_000, host: str = "127.0.0.1") -> ConnectorError:
    options = ConnectionOptions(((host, port),), security_protocol="SSL", tls=tls, connect_timeout_ms=int(timeout_ms))
    with pytest.raises(ConnectorError) as caught:
        open_connection(host, port, options, Deadline(timeout_ms))
    return caught.value


def test_expired_certificate_of_a_broker_is_refused_with_the_date(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    ended = NOW - 2 * DAY
    expired = authority.issue(not_before=NOW - 9 * DAY, not_after=ended)
    with serving(server_context(expired, tmp_path)) as server:
        error = failure(server.port, trusting(authority))
    assert error.condition == "TLS_CERTIFICATE_REJECTED"
    assert "certificate has expired. 'CN=broker,OU=Testing cert" in str(error)
    assert f"expired on {ended:%Y-%m-%d %H:%M} UTC" in str(error)
    assert "The clock of this machine says" in str(error)
    assert "Renew that certificate, or correct the clock of this machine." in str(error)
    assert not error.retriable


def test_certificate_that_is_not_valid_yet_is_refused_with_the_date(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    begins = NOW + 2 * DAY
    with serving(server_context(authority.issue(not_before=begins, not_after=begins + DAY), tmp_path)) as server:
        error = failure(server.port, trusting(authority))
    assert error.condition == "TLS_CERTIFICATE_REJECTED"
    assert f"is not valid before {begins:%Y-%m-%d %H:%M} UTC" in str(error)


def test_certificate_for_other_names_is_refused_with_the_names(authority: CertificateAuthority, tmp_path: Path) -> None:
    certificate = authority.issue("kafka-1.example", "10.1.2.3")
    with serving(server_context(certificate, tmp_path)) as server:
        by_address = failure(server.port, trusting(authority))
        by_name = failure(server.port, trusting(authority), host="localhost")
    names = "the name that this client used, but for 'kafka-1.example', '10.1.2.3'"
    assert f"it is not for '127.0.0.1', {names}" in str(by_address)
    assert f"it is not for 'localhost', {names}" in str(by_name)
    assert "advertised.listeners" in str(by_name)
    assert by_name.condition == "TLS_CERTIFICATE_REJECTED"


@pytest.mark.parametrize("given", [True, False])
def test_certificate_of_an_unknown_authority_is_refused_with_its_issuer(
    authority: CertificateAuthority, stranger: CertificateAuthority, given: bool, tmp_path: Path
) -> None:
    with serving(server_context(stranger.issue(), tmp_path)) as server:
        error = failure(server.port, trusting(authority) if given else TlsOptions())
    assert error.condition == "TLS_CERTIFICATE_REJECTED"
    assert "it is signed by 'OU=Testing CA" in str(error)
    if given:
        assert "The truststore has 'OU=Testing CA" in str(error)
        assert "Hint: Add the certificate of that authority" in str(error)
    else:
        assert "Trusted are the authorities of the system, because no truststore is given" in str(error)
        assert "Hint: Set kafka.ssl.truststore.location" in str(error)


def test_look_at_a_refused_server_sends_no_certificate(
    authority: CertificateAuthority, stranger: CertificateAuthority, tmp_path: Path
) -> None:
    context = asking_for_certificates(server_context(stranger.issue(), tmp_path), authority)
    with serving(context) as server:
        tls = trusting(authority, keystore=store_of(authority.issue(user="alice")))
        assert "it is signed by" in str(failure(server.port, tls))
    # Of the two connections none got as far as a certificate of the client.
    assert [isinstance(outcome, ssl.SSLError) for outcome in server.outcomes] == [True, True]
    assert "CERTIFICATE" in str(server.outcomes[1]).upper()


def store_of(certificate: Any) -> CertificateStore:
    return CertificateStore(
        certificates=Secret(certificate.chain_pem.decode()), key=Secret(certificate.key_pem.decode())
    )


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("own", "texts"),
    [
        (None, ["asks for a client certificate, and none is given", "Hint: Set kafka.ssl.keystore.location"]),
        ("stranger", ["refused the client certificate 'CN=alice", "the broker does not trust its issuer"]),
        ("expired", ["refused the client certificate 'CN=alice", "expired on", "Hint: Renew the certificate of kafka"]),
    ],
)
def test_client_certificate_that_is_refused_says_which_and_why(
    authority: CertificateAuthority,
    stranger: CertificateAuthority,
    own: str | None,
    texts: list[str],
    version: ssl.TLSVersion,
    tmp_path: Path,
) -> None:
    context = asking_for_certificates(server_context(authority.issue(), tmp_path), authority)
    context.minimum_version = context.maximum_version = version
    issued = {
        "stranger": stranger.issue(user="alice"),
        "expired": authority.issue(user="alice", not_before=NOW - 9 * DAY, not_after=NOW - DAY),
    }
    with serving(context) as server:
        keystore = None if own is None else store_of(issued[own])
        error = failure(server.port, trusting(authority, keystore=keystore))
    if (own, version) == (None, ssl.TLSVersion.TLSv1_2):
        # OpenSSL's servers send the alert of every failure there.
        assert "the broker asks for a client certificate" in str(error)
        return
    assert error.condition == "TLS_CLIENT_CERTIFICATE_REFUSED"
    assert not error.retriable
    for text in texts:
        assert text in str(error)


def old_tls(context: ssl.SSLContext) -> None:
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1


def anonymous(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("aNULL:@SECLEVEL=0")


def weak(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("NULL:@SECLEVEL=0")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (old_tls, "offers no version of TLS that is allowed here (TLSv1.2 or TLSv1.3)"),
        (anonymous, "share no cipher suite"),
        (weak, "share no cipher suite"),
    ],
)
def test_server_with_less_security_than_allowed_is_refused(
    authority: CertificateAuthority, change: Callable[[ssl.SSLContext], None], text: str, tmp_path: Path
) -> None:
    context = server_context(authority.issue(), tmp_path)
    change(context)
    with serving(context) as server:
        error = failure(server.port, trusting(authority, check_hostname=False))
    assert error.condition == "TLS_HANDSHAKE_FAILED"
    assert text in str(error)
    assert not error.retriable


def test_version_that_the_options_leave_out_is_not_agreed_on(authority: CertificateAuthority, tmp_path: Path) -> None:
    context = server_context(authority.issue(), tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with serving(context) as server:
        error = failure(server.port, trusting(authority, versions=("TLSv1.3",)))
    assert "allowed here (TLSv1.3)" in str(error)
    assert "kafka.ssl.enabled.protocols" in str(error)


def test_trusted_certificate_need_not_be_an_authority(stranger: CertificateAuthority, tmp_path: Path) -> None:
    certificate = stranger.issue()
    with serving(server_context(certificate, tmp_path)) as server:
        tls = TlsOptions(truststore=CertificateStore(certificates=Secret(certificate.chain_pem.decode())))
        # It gets as far as the first request, which this server does not answer.
        assert isinstance(failure(server.port, tls, 1_000), DeadlineError)


def answer(content: bytes) -> Callable[[socket.socket], None]:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(4096)
        accepted.sendall(content)
        while accepted.recv(4096):
            pass

    return serve


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "sent bytes that are not TLS"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", "sent bytes that are not TLS"),
        (b"\x16\x03\x03\xff\xff" + bytes(70_000), "TLS handshake with"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "share no cipher suite"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "TLS handshake with"),
    ],
)
def test_server_that_sends_something_else_than_tls_is_told(content: bytes, text: str) -> None:
    with serving(answer(content)) as server:
        error = failure(server.port, TlsOptions(), 5_000)
    assert isinstance(error, TransportError)
    assert error.condition == "TLS_HANDSHAKE_FAILED"
    assert text in str(error)


def test_handshake_ends_in_its_time_if_bytes_come_one_by_one() -> None:
    def drip(accepted: socket.socket) -> None:
        accepted.recv(4096)
        accepted.sendall(b"\x16\x03\x03\x3f\xff")
        # Until the client closes; the wait for that is the pace.
        while not select.select([accepted], [], [], 0.05)[0]:
            accepted.sendall(b"\x02")

    with serving(drip) as server:
        began = time.monotonic()
        error = failure(server.port, TlsOptions(), 1_000)
        assert time.monotonic() - began < 30
    assert isinstance(error, DeadlineError)
    assert "TLS handshake" in str(error)


def test_chain_without_an_end_is_cut_off(authority: CertificateAuthority, tmp_path: Path) -> None:
    certificate = authority.issue()
    many = replace(certificate, chain_pem=certificate.chain_pem * 300)
    with serving(server_context(many, tmp_path)) as server:
        error = failure(server.port, trusting(authority), 5_000)
    assert "sent more certificates than a client takes" in str(error)


def test_chain_of_a_server_is_shown_whether_it_is_trusted_or_not(
    stranger: CertificateAuthority, tmp_path: Path
) -> None:
    certificate = stranger.issue("kafka-1.example", not_before=NOW - DAY, not_after=NOW + DAY)
    chained = replace(certificate, chain_pem=certificate.chain_pem + stranger.pem)
    with serving(server_context(chained, tmp_path)) as server:
        own, issuer = fetch_chain("127.0.0.1", server.port, Deadline(5_000))
    assert own.names == ("kafka-1.example",)
    assert own.subject.startswith("CN=broker")
    assert own.issuer == issuer.subject
    assert (own.is_authority, issuer.is_authority, issuer.is_self_signed) == (False, True, True)
    assert abs(own.not_after - (NOW + DAY)) < timedelta(seconds=1)
    with serving(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        assert fetch_chain("127.0.0.1", server.port, Deadline(2_000)) == ()


def test_certificate_of_a_broker_that_ends_soon_is_warned_of_once(
    authority: CertificateAuthority, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    ends = NOW + 3 * DAY
    context = server_context(authority.issue(not_before=NOW - DAY, not_after=ends), tmp_path)

    def close_at_the_first_request(accepted: socket.socket) -> None:
        with context.wrap_socket(accepted, server_side=True) as encrypted:
            encrypted.recv(4096)

    with caplog.at_level(logging.WARNING), serving(close_at_the_first_request) as server:
        for _ in range(2):
            failure(server.port, trusting(authority))
    (warning,) = [record.getMessage() for record in caplog.records if "expires on" in record.getMessage()]
    assert f"The certificate of broker 127.0.0.1:{server.port} (CN=broker" in warning
    assert f"expires on {ends:%Y-%m-%d %H:%M} UTC" in warning


class Stub:
    """What `wait_readable` needs of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def open_socket(self) -> socket.socket:
        return self._sock


def test_second_frame_of_one_tls_record_is_noticed_though_no_byte_is_left_in_the_socket(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    frames = b"\x00\x00\x00\x05first" + b"\x00\x00\x00\x06second"
    large = bytes(range(256)) * 4096

    def serve(accepted: socket.socket) -> None:
        with server_context(authority.issue(), tmp_path).wrap_socket(accepted, server_side=True) as encrypted:
            encrypted.sendall(frames)
            encrypted.recv(1)
            encrypted.sendall(len(large).to_bytes(4, "big") + large)
            encrypted.recv(1)

    tls = trusting(authority)
    with serving(serve) as server:
        options = ConnectionOptions((("127.0.0.1", server.port),), security_protocol="SSL", tls=tls)
        plain, _ = connect("b:1", resolve("127.0.0.1", server.port), options, Deadline(5_000))
        sock = encrypt(plain, tls_context(tls), "127.0.0.1", "b:1", options, Deadline(5_000))
        stream, stub = FrameStream(sock, "b:1"), Stub(sock)
        received = stream.receive(lambda size: memoryview(bytearray(size)), Deadline(5_000), 5.0)
        assert bytes(received) == b"first"
        assert select.select([sock], [], [], 0) == ([], [], [])
        assert wait_readable([stub], 0.0) == [stub]
        # Without waiting, as a fetcher of many connections receives.
        assert bytes(stream.receive(lambda size: memoryview(bytearray(size)), None, math.inf)) == b"second"
        with pytest.raises(ssl.SSLWantReadError):
            stream.receive(lambda size: memoryview(bytearray(size)), None, math.inf)
        sock.settimeout(5.0)
        sock.sendall(b"!")
        received = stream.receive(lambda size: memoryview(bytearray(size)), Deadline(5_000), 5.0)
        assert bytes(received) == large
        stream.close()


def test_server_that_is_silent_in_the_handshake_is_guessed_to_have_no_tls() -> None:
    def silent(accepted: socket.socket) -> None:
        while accepted.recv(4096):
            pass

    with serving(silent) as server:
        error = failure(server.port, TlsOptions(), 1_500)
    assert isinstance(error, DeadlineError)
    assert error.condition == "BROKER_SILENT"
    assert error.retriable
    # What is left of the 300 ms after connecting.
    assert re.search(r"did not complete the TLS handshake within \d+ ms", str(error))
    assert "not a TLS listener" in str(error)
    assert "kafka.security.protocol (now 'SSL')" in str(error)
