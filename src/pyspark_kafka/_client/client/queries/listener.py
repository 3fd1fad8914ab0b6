"""A listener's protocol, independent of the options: plaintext or TLS, with or without SASL, its certificates.

Each attempt is a connection of its own, without a login. Nothing that is learned here is trusted: it only makes
the texts of a diagnosis precise.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.handshake import negotiate_versions
from pyspark_kafka._client.client.net.tcp import connect, resolve
from pyspark_kafka._client.client.tls.inspection import parse_chain, sent_chain
from pyspark_kafka._client.client.wire.messages import ErrorCode, SaslHandshakeRequest
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    import socket

    from pyspark_kafka._client.client.tls.certificates import ParsedCertificate
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

# A listener of the other kind closes the connection immediately, or never responds.
_TRY_MS = 2_500
# No mechanism has this name, so that none is begun: the refusal lists the mechanisms of the listener.
_NO_MECHANISM = "NONE-OF-THESE"
_MAX_BYTES = 1 << 20
_CERTIFICATE_REQUEST = 13
# OpenSSL's reasons for a server of a TLS that is too old.
_OTHER_TLS = ("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "NO_SHARED_CIPHER")


@dataclass(frozen=True, slots=True)
class TlsStatus:
    """A TLS handshake that was done without checking the server's certificate.

    Attributes:
        version: the version agreed on, such as `TLSv1.3`.
        cipher: the cipher agreed on.
        chain: the certificates that the server sent, its own first.
        asks_for_certificate: whether it requested one from the client; None if Python does not show it.
    """

    version: str
    cipher: str
    chain: tuple[ParsedCertificate, ...]
    asks_for_certificate: bool | None


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """A listener's protocol.

    Attributes:
        protocol: the value of `kafka.security.protocol` that it wants; None if it is not known.
        mechanisms: the SASL mechanisms that it offers; empty without SASL, or if they are not known.
        tls: its TLS; None for a plaintext listener.
        offered: the lowest and highest version of each request, by API key; empty if it returned none.
    """

    protocol: str | None = None
    mechanisms: tuple[str, ...] = ()
    tls: TlsStatus | None = None
    offered: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def uses_tls(self) -> bool:
        """Whether it is a TLS listener."""
        return self.tls is not None


def probe_listener(host: str, port: int, options: ConnectionOptions, deadline: Deadline) -> ListenerStatus:
    """Find out what a listener speaks; the kind that the options name is tried first.

    Runs on: driver and executor; blocks, about 2.5 s for each kind that the listener is not.

    Args:
        host: its name.
        port: its port.
        options: timeouts and buffers; their security protocol only says what to try first.
        deadline: for all attempts.

    Raises:
        TransportError: the name is unknown, or nothing accepts connections there.
    """
    # The caller logs in, not the probe.
    plain = replace(options, bootstrap_servers=((host, port),), security_protocol="PLAINTEXT")
    attempts = [_try_tls, _try_plaintext] if options.uses_tls else [_try_plaintext, _try_tls]
    for attempt in attempts:
        found = attempt(host, port, plain, deadline.within(_TRY_MS))
        if found is not None:
            return found
    return ListenerStatus()


def _try_plaintext(host: str, port: int, options: ConnectionOptions, deadline: Deadline) -> ListenerStatus | None:
    connection = Connection(_connect(host, port, options, deadline), host, port, options)
    return _ask(connection, deadline, None)


def _try_tls(host: str, port: int, options: ConnectionOptions, deadline: Deadline) -> ListenerStatus | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # Nothing is sent over this connection but the request for versions: only the certificate is needed.
    context.verify_mode = ssl.CERT_NONE
    asked = _watch_for_request(context)
    sock = _connect(host, port, options, deadline)
    try:
        sock.settimeout(max(0.001, deadline.remaining_s()))
        encrypted = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    except OSError:
        sock.close()
        return None
    try:
        encrypted.do_handshake()
    except OSError as error:
        encrypted.close()
        # What refuses a handshake with an alert speaks TLS: another version, or it insists on a certificate.
        is_tls = isinstance(error, ssl.SSLError) and ("ALERT" in (error.reason or "") or error.reason in _OTHER_TLS)
        return ListenerStatus("SSL", tls=TlsStatus("", "", (), bool(asked))) if is_tls or asked else None
    cipher = encrypted.cipher()
    tls = TlsStatus(
        version=encrypted.version() or "",
        cipher=cipher[0] if cipher is not None else "",
        chain=parse_chain(sent_chain(encrypted)),
        asks_for_certificate=None if asked is None else bool(asked),
    )
    # With TLS 1.3 a listener that insists on a certificate ends the connection now, and has shown what it is.
    connection = Connection(encrypted, host, port, replace(options, security_protocol="SSL"))
    return _ask(connection, deadline, tls) or ListenerStatus("SSL", tls=tls)


def _connect(host: str, port: int, options: ConnectionOptions, deadline: Deadline) -> socket.socket:
    return connect(f"{host}:{port}", resolve(host, port), options, deadline)[0]


def _ask(connection: Connection, deadline: Deadline, tls: TlsStatus | None) -> ListenerStatus | None:
    """Request versions and mechanisms; return None if the other side does not speak Kafka's protocol this way."""
    secured = "SSL" if tls is not None else "PLAINTEXT"
    try:
        # Anybody may be at the other end.
        connection.limit_responses(_MAX_BYTES)
        connection.versions = negotiate_versions(connection, deadline)
        offered = dict(connection.versions.offered)
        try:
            response = connection.call(SaslHandshakeRequest(mechanism=_NO_MECHANISM), deadline)
        except ConnectorError:
            # A gateway without SASL may close the connection at this request.
            return ListenerStatus(secured, tls=tls, offered=offered)
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return ListenerStatus(f"SASL_{secured}", tuple(response.mechanisms), tls, offered)
        return ListenerStatus(secured, tls=tls, offered=offered)
    except ConnectorError:
        return None
    finally:
        connection.close()


def _watch_for_request(context: ssl.SSLContext) -> list[int] | None:
    """Return a list that gets the server's request for a client certificate; None if Python shows debuggers nothing."""
    if not hasattr(context, "_msg_callback"):
        return None
    seen: list[int] = []

    def note(_connection: Any, direction: str, _version: Any, _content: Any, message: Any, _data: Any) -> None:
        if direction == "read" and message == _CERTIFICATE_REQUEST:
            seen.append(message)

    setattr(context, "_msg_callback", note)  # noqa: B010 - Python shows it nowhere else, and does not declare this
    return seen
