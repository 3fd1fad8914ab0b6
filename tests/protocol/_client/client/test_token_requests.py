"""Requests for tokens over https: what is sent, what is retried, and servers that refuse, lie, or never end."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus

import pytest

from kit.fakes.clock import Clock
from kit.fakes.token_endpoint import Answer, TokenEndpoint
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.login.tokens import endpoint as requests
from pyspark_kafka._client.client.login.tokens.endpoint import request_token
from pyspark_kafka._client.client.login.tokens.sources import fetch_token
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import CertificateStore, OAuthLogin, Secret, TlsOptions
from pyspark_kafka._client.options import TokenEndpoint as Source
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError
from pyspark_kafka.testing.secured.certificates import CertificateAuthority
from pyspark_kafka.testing.secured.tokens import TokenIssuer

PLANTED = "Pl4nted: secret/+ä"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def endpoint(authority: CertificateAuthority) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(TokenIssuer(), authority, {"me": PLANTED}) as running:
        yield running


def trusting(authority: CertificateAuthority) -> TlsOptions:
    return TlsOptions(truststore=CertificateStore(str(authority.file), "PEM"))


def source(endpoint: TokenEndpoint, authority: CertificateAuthority, **changes: Any) -> Source:
    made = Source(
        endpoint.url, "me", Secret(PLANTED), tls=trusting(authority), retry_backoff_ms=1, retry_backoff_max_ms=2
    )
    return replace(made, **changes)


def refused(asked: Source, deadline: Deadline | None = None) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        request_token(asked, deadline or Deadline(20_000))
    text = str(caught.value) + str(caught.value.parameters)
    assert PLANTED not in text
    assert base64.b64encode(f"me:{PLANTED}".encode()).decode() not in text
    return caught.value


def test_a_token_is_asked_for_with_id_secret_and_scope(
    endpoint: TokenEndpoint, authority: CertificateAuthority
) -> None:
    asked = source(endpoint, authority, scope="kafka read", urlencode_header=True)
    token = fetch_token(OAuthLogin(asked), Deadline(20_000))
    assert token.claims is not None
    assert token.claims.subject == "me"
    assert token.claims.scopes == ("kafka", "read")
    (request,) = endpoint.requests
    # As the header has them, which RFC 6749 wants encoded.
    assert (request.client_id, request.client_secret) == ("me", quote_plus(PLANTED))
    assert request.form == {"grant_type": "client_credentials", "scope": "kafka read"}
    assert request.headers["accept"] == "application/json"
    assert endpoint.paths == ["/oauth/token"]


def test_id_and_secret_are_sent_as_they_are_by_default(
    endpoint: TokenEndpoint, authority: CertificateAuthority
) -> None:
    endpoint.next_answers([Answer(user="ann")])
    request_token(source(endpoint, authority), Deadline(20_000))
    sent = base64.b64decode(endpoint.requests[0].headers["authorization"].removeprefix("Basic ")).decode()
    assert sent == f"me:{PLANTED}"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_failure_that_may_pass_is_retried(
    endpoint: TokenEndpoint, authority: CertificateAuthority, status: int
) -> None:
    endpoint.next_answers([Answer(status, b"<html>"), Answer(status, b""), Answer()])
    assert request_token(source(endpoint, authority, urlencode_header=True), Deadline(20_000))
    assert len(endpoint.requests) == 3


def test_a_failure_that_lasts_ends_at_the_deadline(endpoint: TokenEndpoint, authority: CertificateAuthority) -> None:
    endpoint.next_answers([Answer(503, b"")] * 1000)
    # Time passes in the pauses between attempts only, and each attempt has enough of it.
    clock = Clock()
    deadline = Deadline(60_000, clock=clock, sleep=clock.sleep)
    error = refused(source(endpoint, authority, retry_backoff_ms=10_000, retry_backoff_max_ms=10_000), deadline)
    assert isinstance(error, TransportError)
    assert error.retriable
    assert f"Getting a token from {endpoint.url} failed: it answered with HTTP status 503" in str(error)
    assert 1 < len(endpoint.requests) < 20


def test_an_attempt_that_is_cut_short_does_not_hide_the_failure_before_it(
    endpoint: TokenEndpoint, authority: CertificateAuthority
) -> None:
    endpoint.next_answers([Answer(503, b""), Answer(held=True)])
    ends: list[float] = []

    def clock() -> float:
        """Stand still until the first attempt has failed; leave a second for the next one."""
        if endpoint.requests and not ends:
            ends.append(time.monotonic() + 1)
        return 60 - (ends[0] - time.monotonic()) if ends else 0.0

    error = refused(source(endpoint, authority), Deadline(60_000, clock=clock))
    assert f"Getting a token from {endpoint.url} failed: it answered with HTTP status 503" in str(error)
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("answer", "condition", "text"),
    [
        (Answer(401, {"error": "invalid_client"}), "TOKEN_REFUSED", "client.credentials.client.id and .client.secret"),
        (Answer(400, {"error": "invalid_scope"}), "TOKEN_REFUSED", "Set kafka.sasl.oauthbearer.scope"),
        (Answer(400, {"error": "unauthorized_client"}), "TOKEN_REFUSED", "grant client_credentials"),
        (Answer(404, b"<html>"), "TOKEN_REFUSED", "probably not a token endpoint"),
        (Answer(403, {"error": [1], "error_description": PLANTED}), "TOKEN_REFUSED", "***"),
        (Answer(400, {"error": "a\x1b[2J" + "b" * 9_999}), "TOKEN_REFUSED", "a\\x1b[2Jbbb"),
        (Answer(302, b"", {"Location": "https://127.0.0.1:1/"}), "TOKEN_UNAVAILABLE", "it redirects (HTTP status 302)"),
        (Answer(200, b""), "TOKEN_INVALID", "its response is not a JSON object"),
        (Answer(200, b"[" * 100_000), "TOKEN_INVALID", "its response is not a JSON object"),
        (Answer(200, b'{"access_token":5}'), "TOKEN_INVALID", "its response has no access_token"),
        (Answer(200, {"token": "x"}), "TOKEN_INVALID", "its response has no access_token"),
        (Answer(200, b" " * 300_000), "TOKEN_INVALID", "its response has more than 262144 bytes"),
    ],
)
def test_an_answer_without_a_token_is_final(
    endpoint: TokenEndpoint, authority: CertificateAuthority, answer: Answer, condition: str, text: str
) -> None:
    endpoint.next_answers([answer])
    error = refused(source(endpoint, authority))
    assert error.condition == condition
    assert text in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 2_000
    assert not error.retriable
    # No second request, and none to where it redirects.
    assert len(endpoint.requests) == 1


def test_a_wrong_secret_is_an_access_error(endpoint: TokenEndpoint, authority: CertificateAuthority) -> None:
    error = refused(source(endpoint, authority, client_secret=Secret("another-one")))
    assert isinstance(error, AccessError)
    assert 'was refused with HTTP status 401 and "invalid_client": "unknown client or wrong secret"' in str(error)


def test_an_id_token_stands_in_for_an_access_token(endpoint: TokenEndpoint, authority: CertificateAuthority) -> None:
    endpoint.next_answers([Answer(200, {"id_token": "a.b.c"})])
    assert request_token(source(endpoint, authority), Deadline(20_000)) == "a.b.c"


def test_an_expired_token_of_the_server_says_both_times(
    endpoint: TokenEndpoint, authority: CertificateAuthority
) -> None:
    endpoint.next_answers([Answer(lifetime_s=-60)])
    with pytest.raises(AccessError, match=r"expired at .* UTC.*; the clock of this machine says"):
        fetch_token(OAuthLogin(source(endpoint, authority)), Deadline(20_000))


def test_an_unknown_authority_is_not_trusted(endpoint: TokenEndpoint, authority: CertificateAuthority) -> None:
    error = refused(source(endpoint, authority, tls=None))
    assert "its certificate was not accepted" in str(error)
    assert "ssl.truststore.location in kafka.sasl.jaas.config" in str(error)
    assert not error.retriable
    assert endpoint.requests == []


def test_a_certificate_for_another_name_is_not_trusted(authority: CertificateAuthority) -> None:
    with TokenEndpoint(
        TokenIssuer(), authority, {"me": PLANTED}, certificate=authority.issue("idp.example")
    ) as elsewhere:
        error = refused(source(elsewhere, authority))
        assert "its certificate was not accepted: IP address mismatch" in error.message
        assert "'. No token" in error.message
        assert error.hint.startswith(
            "Use a name that the certificate holds in kafka.sasl.oauthbearer.token.endpoint.url, or"
        )
        assert elsewhere.requests == []


def test_proxies_of_the_environment_are_not_used(
    endpoint: TokenEndpoint, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:1")
    assert request_token(source(endpoint, authority, urlencode_header=True), Deadline(20_000))


def test_a_server_that_is_not_there_is_named(authority: CertificateAuthority) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{held.getsockname()[1]}/token"
        error = refused(
            Source(url, "me", Secret(PLANTED), tls=trusting(authority), retry_backoff_ms=10), Deadline(1_500)
        )
    assert f"Getting a token from {url} failed: ConnectionRefusedError" in str(error)
    assert error.retriable


@contextmanager
def raw_server(authority: CertificateAuthority, pieces: list[bytes], *, endless: bytes = b"") -> Iterator[str]:
    """A TLS server that answers anything with these bytes, and then with others for ever, slowly."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.write(authority.issue().pem, "raw.pem"))
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                plain, _ = listener.accept()
                with context.wrap_socket(plain, server_side=True) as sock:
                    sock.recv(65536)
                    for piece in pieces:
                        sock.sendall(piece)
                    while endless and not ended.wait(0.01):
                        sock.sendall(endless)
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/token"
        finally:
            ended.set()
            # Wakes the thread that accepts.
            socket.create_connection(listener.getsockname()).close()
            thread.join()


@pytest.mark.parametrize(
    ("pieces", "endless"),
    [
        ([b"HTTP/1.1 200 OK\r\nX: "], b"x"),
        ([b"HTTP/1.1 200 OK\r\n"], b"A: b\r\n"),
        ([], b"HTTP/1.1 100 Continue\r\n\r\n"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"], b"x"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], b"1\r\nx\r\n"),
        ([], b""),
    ],
)
def test_a_server_that_never_ends_is_left_at_the_deadline(
    authority: CertificateAuthority, pieces: list[bytes], endless: bytes
) -> None:
    began = time.monotonic()
    with raw_server(authority, pieces, endless=endless) as url:
        error = refused(Source(url, "me", Secret(PLANTED), tls=trusting(authority)), Deadline(600))
    assert error.condition == "TOKEN_UNAVAILABLE"
    assert time.monotonic() - began < 30


def test_nothing_is_sent_if_the_deadline_ends_while_the_name_is_resolved(
    endpoint: TokenEndpoint, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, resolve, over = requests._cut, socket.getaddrinfo, threading.Event()

    def noted(*arguments: Any) -> None:
        cut(*arguments)
        over.set()

    def resolved(*arguments: Any) -> Any:
        assert over.wait(PATIENCE_S)
        return resolve(*arguments)

    monkeypatch.setattr(requests, "_cut", noted)
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    error = refused(source(endpoint, authority), Deadline(50))
    assert "failed: TimeoutError: the connection was not made in time" in str(error)
    assert endpoint.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",
    ],
)
def test_an_answer_that_is_not_http_is_a_typed_error(authority: CertificateAuthority, answer: bytes) -> None:
    with raw_server(authority, [answer]) as url:
        error = refused(Source(url, "me", Secret(PLANTED), tls=trusting(authority)), Deadline(400))
    assert error.condition in ("TOKEN_UNAVAILABLE", "TOKEN_INVALID")
    assert str(error).isprintable()
