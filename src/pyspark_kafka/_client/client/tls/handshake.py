"""The TLS handshake on a connected socket."""

from __future__ import annotations

import contextlib
import ssl
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.contexts import known_context, warn_of_end
from pyspark_kafka._client.client.tls.der import DerError
from pyspark_kafka._client.client.tls.errors import certificate_rejected, handshake_failed, handshake_silent
from pyspark_kafka._client.client.tls.inspection import fetch_chain

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyspark_kafka._client.client.tls.contexts import TlsContext
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import ConnectorError

# To look at the certificates of a server that was not accepted, for the text of the error.
_LOOK_MS = 2_000


def encrypt(
    sock: socket.socket,
    context: TlsContext,
    host: str,
    address: str,
    options: ConnectionOptions,
    deadline: Deadline,
    watch: Callable[[socket.socket], None] | None = None,
) -> ssl.SSLSocket:
    """Run the TLS handshake on a connected socket, which is closed if that fails.

    Args:
        sock: connected; the returned socket takes its place.
        context: of the options.
        host: the name that the server's certificate must hold.
        address: `host:port`, for errors.
        options: the security protocol, for errors.
        deadline: for the handshake.
        watch: called with the encrypted socket before it blocks.

    Raises:
        TransportError: the certificate is not accepted, or the handshake fails for another reason.
        DeadlineError: it is not done in time.
    """
    try:
        peer = sock.family, sock.getpeername()
    except OSError:  # gone already, which the handshake reports
        peer = None
    try:
        sock.settimeout(max(0.001, deadline.remaining_s()))
        # In two steps: the first one makes another object of the socket.
        sock = encrypted = context.context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        if watch is not None:
            watch(encrypted)
        encrypted.do_handshake()
    except BaseException as error:
        sock.close()
        failure: ConnectorError | None = None
        if isinstance(error, TimeoutError):
            failure = handshake_silent(address, options, deadline.timeout_ms)
        elif isinstance(error, ssl.SSLCertVerificationError):
            look = deadline.within(_LOOK_MS)
            chain = fetch_chain(host, 0, look, peer=peer, watch=watch) if peer is not None else ()
            failure = certificate_rejected(address, host, error, chain, context.trusted, _now())
        elif isinstance(error, OSError):
            failure = handshake_failed(address, options, error, context, _now())
        if failure is None:
            raise
        raise failure from error
    _warn_of_end(encrypted, address)
    return encrypted


def first_read_failed(address: str, options: ConnectionOptions, error: OSError) -> ConnectorError:
    """Build the error for a connection that TLS ended before its first response.

    With TLS 1.3 a refused client certificate shows there, after a handshake that seemed to succeed.
    """
    return handshake_failed(address, options, error, known_context(options.tls), _now())


def _warn_of_end(sock: ssl.SSLSocket, address: str) -> None:
    der = sock.getpeercert(binary_form=True)
    if der is not None:
        with contextlib.suppress(DerError):  # OpenSSL has accepted it, which is what counts
            warn_of_end(parse_certificate(der), f"The certificate of broker {address}")


def _now() -> datetime:
    return datetime.now(timezone.utc)
