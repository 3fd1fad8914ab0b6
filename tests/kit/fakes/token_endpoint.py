"""An https server that hands out tokens for client credentials (RFC 6749, 4.4), and misbehaves when told to.

`next_answers` scripts what follows; without a script it does what a token endpoint should. All requests are kept.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from pyspark_kafka.testing.secured.certificates import CertificateAuthority, IssuedCertificate
from pyspark_kafka.testing.secured.tokens import TokenIssuer

TOKEN_PATH, KEYS_PATH = "/oauth/token", "/keys"
_SHUTDOWN_POLL_S = 0.02
_HELD_S = 60.0
# A client that connects and says nothing is not waited for any longer.
_IDLE_S = 5.0


@dataclass(frozen=True)
class TokenRequest:
    """What a client asked for.

    Attributes:
        client_id: who, of the Authorization header or of the form.
        client_secret: its secret. Both as they were sent: encoded, if the client does that.
        form: the fields of the body.
        headers: with lower-case names.
    """

    client_id: str
    client_secret: str
    form: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """An answer that a test wants.

    Attributes:
        status: of HTTP.
        body: bytes as they are; a dict becomes JSON; None: a token, as without a script.
        headers: more of them, such as Location.
        lifetime_s: of the token, when there is one.
        told_lifetime_s: `expires_in`; None: the same.
        user: the token's user; empty: the client's id.
        held: whether nothing is sent until `release`.
        cut: whether the connection is closed after this many bytes of the body.
    """

    status: int = 200
    body: bytes | dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    lifetime_s: float = 3600.0
    told_lifetime_s: float | None = None
    user: str = ""
    held: bool = False
    cut: int | None = None


class TokenEndpoint:
    """The server, on a free port of loopback; gone when the block ends."""

    def __init__(
        self,
        issuer: TokenIssuer,
        authority: CertificateAuthority,
        clients: dict[str, str],
        *,
        certificate: IssuedCertificate | None = None,
    ) -> None:
        """Describe it.

        Args:
            issuer: signs the tokens, and shows its keys.
            authority: issues the server's certificate.
            clients: secret by id.
            certificate: None: one for this address.
        """
        self._issuer = issuer
        self._authority = authority
        self._clients = clients
        self._certificate = certificate
        self._lock = threading.Lock()
        self._answers: list[Answer] = []
        self._released = threading.Event()
        self._requests: list[TokenRequest] = []
        self._paths: list[str] = []

    def __enter__(self) -> TokenEndpoint:  # noqa: PYI034 - typing.Self needs Python 3.11
        endpoint = self

        class Handler(_Handler):
            owner = endpoint

        class Server(ThreadingHTTPServer):
            # The end of the block waits for the threads of connections.
            daemon_threads = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients that hang up, or that do not like the certificate, are what tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate = self._certificate or self._authority.issue()
        context.load_cert_chain(self._authority.write(certificate.pem, "endpoint.pem"))
        # The handshake is made by the thread of the connection, not by the one that accepts.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _SHUTDOWN_POLL_S}, name="token-endpoint"
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Where tokens are to be had."""
        return f"https://127.0.0.1:{self.port}{TOKEN_PATH}"

    @property
    def trusted(self) -> Path:
        """The file of the authority to trust."""
        return self._authority.file

    @property
    def requests(self) -> list[TokenRequest]:
        """The requests for tokens, in order."""
        with self._lock:
            return list(self._requests)

    @property
    def paths(self) -> list[str]:
        """The paths of all requests, in order."""
        with self._lock:
            return list(self._paths)

    def next_answers(self, answers: Iterable[Answer]) -> None:
        """Answer the next requests for tokens like this, one each; replaces what was left."""
        with self._lock:
            self._answers = list(answers)

    def release(self) -> None:
        """Send the answers that are held."""
        self._released.set()

    def _take(self, request: TokenRequest) -> Answer:
        with self._lock:
            self._requests.append(request)
            if self._answers:
                return self._answers.pop(0)
        # Form-encoded in the header, as the RFC has it, or as they are: Java's clients do either (header.urlencode).
        encoded = unquote_plus(request.client_id), unquote_plus(request.client_secret)
        known = self._clients.items()
        if (request.client_id, request.client_secret) not in known and encoded not in known:
            return Answer(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
        if request.form.get("grant_type") != "client_credentials":
            return Answer(400, {"error": "unsupported_grant_type"})
        return Answer()

    def _token(self, answer: Answer, request: TokenRequest) -> dict[str, Any]:
        scope = request.form.get("scope")
        claims: dict[str, Any] = {"scope": scope} if scope else {}
        token = self._issuer.token(
            answer.user or unquote_plus(request.client_id), lifetime_s=answer.lifetime_s, **claims
        )
        lifetime_s = answer.lifetime_s if answer.told_lifetime_s is None else answer.told_lifetime_s
        return {"access_token": token, "token_type": "Bearer", "expires_in": int(lifetime_s), **claims}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    owner: TokenEndpoint

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._note()
        if self.path == KEYS_PATH:
            self._send(Answer(200, self.owner._issuer.jwks.encode()))
        else:
            self._send(Answer(404, b"not here"))

    def do_POST(self) -> None:
        self._note()
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        form = {name: values[0] for name, values in parse_qs(content).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        client_id, client_secret = form.get("client_id", ""), form.get("client_secret", "")
        kind, _, credentials = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            client_id, _, client_secret = base64.b64decode(credentials).decode().partition(":")
        request = TokenRequest(client_id, client_secret, form, headers)
        if self.path != TOKEN_PATH:
            self._send(Answer(404, b"not here"))
            return
        answer = self.owner._take(request)
        if answer.held:
            self.owner._released.wait(_HELD_S)
        if answer.body is None:
            answer = Answer(answer.status, self.owner._token(answer, request), answer.headers, cut=answer.cut)
        self._send(answer)

    def _note(self) -> None:
        with self.owner._lock:
            self.owner._paths.append(self.path)

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.body).encode() if isinstance(answer.body, dict) else answer.body or b""
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: answer.cut])
