"""The certificates that a server shows, trusted or not.

For the texts of errors and for `pyspark-kafka check`. Its connections carry nothing: no request, no credentials, no
certificate of the client.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.tls.certificates import ParsedCertificate, parse_certificate
from pyspark_kafka._client.client.tls.der import DerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.waiting.deadline import Deadline


def fetch_chain(
    host: str,
    port: int,
    deadline: Deadline,
    *,
    peer: tuple[int, Any] | None = None,
    watch: Callable[[socket.socket], None] | None = None,
) -> tuple[ParsedCertificate, ...]:
    """Return the content of a server's certificates, on a connection of its own that is closed immediately.

    Nothing is verified: the result does not prove the identity of the server.

    Runs on: driver and executor; blocks until the deadline at most.

    Args:
        host: the requested server name.
        port: the server's port.
        deadline: for all of it.
        peer: family and address to connect to, instead of resolving the name.
        watch: called with the socket before it blocks.

    Returns:
        The server's own certificate first, then in the order sent. Empty if it shows none that can be read, and if
        it cannot be reached or does not speak TLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.ExitStack() as held, contextlib.suppress(OSError, ValueError):
        timeout_s = max(0.001, deadline.remaining_s())
        if peer is None:
            sock = held.enter_context(socket.create_connection((host, port), timeout_s))
        else:
            sock = held.enter_context(socket.socket(peer[0], socket.SOCK_STREAM))
            sock.settimeout(timeout_s)
            if watch is not None:
                watch(sock)
            sock.connect(peer[1])
        sock.settimeout(max(0.001, deadline.remaining_s()))
        encrypted = held.enter_context(context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False))
        if watch is not None:
            watch(encrypted)
        # A server that wants a certificate of the client may fail the handshake after it has shown its own.
        with contextlib.suppress(ssl.SSLError):
            encrypted.do_handshake()
        return parse_chain(sent_chain(encrypted))
    return ()


def sent_chain(sock: ssl.SSLSocket) -> list[bytes]:
    """Return the certificates that the other side sent, in DER, its own first; empty before it has sent any."""
    # Public from Python 3.13 on; the versions before have it below the surface.
    chain = getattr(getattr(sock, "_sslobj", None), "get_unverified_chain", None)
    if chain is not None:
        # 2: DER.
        return [each.public_bytes(2) for each in chain() or ()]
    own = sock.getpeercert(binary_form=True)
    return [] if own is None else [own]


def parse_chain(chain: list[bytes]) -> tuple[ParsedCertificate, ...]:
    """Return what certificates say, up to the first that cannot be read."""
    parsed: list[ParsedCertificate] = []
    for each in chain:
        try:
            parsed.append(parse_certificate(each))
        except DerError:
            break
    return tuple(parsed)
