"""A TLS server on a local port with the certificate that a test chooses; it notes how each handshake ended."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from kit.waiting import PATIENCE_S
from pyspark_kafka.testing.secured.certificates import CertificateAuthority, IssuedCertificate


def server_context(certificate: IssuedCertificate, folder: Path) -> ssl.SSLContext:
    """Return the context of a server with a certificate."""
    file = folder / "server.pem"
    file.write_bytes(certificate.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def asking_for_certificates(context: ssl.SSLContext, authority: CertificateAuthority) -> ssl.SSLContext:
    """Let a server insist on client certificates of an authority."""
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem.decode())
    return context


class TlsServer:
    """Accepts connections, one after the other, and hands each to a function; keeps the errors of the handshakes.

    Attributes:
        port: on 127.0.0.1.
        outcomes: how the handshakes ended, in order; None for those that succeeded.
    """

    def __init__(self, serve: ssl.SSLContext | Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self.outcomes: list[BaseException | None] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._run, name="TLS server")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        # Wakes the thread up.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.settimeout(PATIENCE_S)
            with contextlib.closing(accepted):
                self._one(accepted)

    def _one(self, accepted: socket.socket) -> None:
        if not isinstance(self._serve, ssl.SSLContext):
            with contextlib.suppress(OSError):
                self._serve(accepted)
            return
        outcome: BaseException | None = None
        encrypted = self._serve.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        with contextlib.closing(encrypted):
            try:
                encrypted.do_handshake()
                while encrypted.recv(4096):
                    pass
            except OSError as error:
                outcome = error
            self.outcomes.append(outcome)
            # What the client has sent meanwhile is read, so that the system does not reset the connection and with it
            # the alert.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(encrypted, socket.SHUT_WR)
                while socket.socket.recv(encrypted, 4096):
                    pass


@contextlib.contextmanager
def serving(serve: ssl.SSLContext | Callable[[socket.socket], None]) -> Iterator[TlsServer]:
    """Run a server for a test."""
    server = TlsServer(serve)
    server.start()
    try:
        yield server
    finally:
        server.close()
