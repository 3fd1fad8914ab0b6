"""TLS: the context that the options ask for, and the handshake on a connected socket.

Certificates are replaced in place by what renews them, and processes live longer than certificates: a context is built
again when one of its files has changed. Layer: client.
"""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka.client.net.errors import handshake_failed
from pyspark_kafka.errors import ConnectorError, OptionError, TransportError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.options import ConnectionOptions

_LOG = logging.getLogger(__name__)

_KEPT_CONTEXTS = 16
_Stamp = tuple[int, int, int] | None


class TlsContexts:
    """TLS contexts by options, each built again when one of its files has changed.

    Runs on: driver and executor. Safe to use from threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[ConnectionOptions, tuple[tuple[_Stamp, ...], ssl.SSLContext]] = {}

    def get(self, options: ConnectionOptions) -> ssl.SSLContext:
        """Return the context of the options, with the files as they are now.

        If files that were good before cannot be loaded now, as in the middle of their replacement, the former context
        is returned, with a warning.

        Raises:
            OptionError: a certificate or key file cannot be read or does not fit.
        """
        files = (options.ssl_ca_location, options.ssl_certificate_location, options.ssl_key_location)
        with self._lock:
            stamps = tuple(_stamp(path) for path in files)
            known = self._contexts.get(options)
            if known is not None and known[0] == stamps:
                return known[1]
            try:
                context = _build_context(options)
            except OptionError as error:
                if known is None:
                    raise
                _LOG.warning("%s Those loaded before are still used.", error)
                return known[1]
            if known is None and len(self._contexts) >= _KEPT_CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[options] = (stamps, context)
            return context


_CONTEXTS = TlsContexts()


def tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """Return the TLS context of the options, from this process's contexts; see `TlsContexts.get`."""
    return _CONTEXTS.get(options)


def encrypt(
    sock: socket.socket,
    context: ssl.SSLContext,
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
        sock.settimeout(max(0.001, deadline.remaining_s()))
        # In two steps: the first one makes another object of the socket.
        sock = encrypted = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        if watch is not None:
            watch(encrypted)
        encrypted.do_handshake()
    except BaseException as error:
        sock.close()
        failure = _handshake_error(error, address, options, deadline)
        if failure is None:
            raise
        raise failure from error
    return encrypted


def _handshake_error(
    error: BaseException, address: str, options: ConnectionOptions, deadline: Deadline
) -> ConnectorError | None:
    """Build the error for a handshake that failed; None for what is no failure of the network."""
    if isinstance(error, TimeoutError):
        return deadline.error(f"The TLS handshake with {address}", error)
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or str(error)
        return TransportError(
            f"The certificate of {address} was not accepted: {reason}.",
            condition="TLS_CERTIFICATE_REJECTED",
            hint="Name the authority's certificate with kafka.ssl.truststore.location (PEM), and reach the broker "
            "by a name that its certificate holds.",
            facts={"broker": address, "reason": reason},
        )
    return handshake_failed(address, options.security_protocol, error) if isinstance(error, OSError) else None


def _stamp(path: str | None) -> _Stamp:
    """Return what changes with a file; None if there is no such file."""
    if path is None:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _build_context(options: ConnectionOptions) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = options.ssl_check_hostname
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    step, option, path = "", "", ""
    try:
        if options.ssl_ca_location is not None:
            step, option, path = "trusted certificates", "kafka.ssl.truststore.location", options.ssl_ca_location
            # Only these: a user who names an authority does not want to trust all others of the machine as well.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.check_hostname = options.ssl_check_hostname
            context.load_verify_locations(cafile=path)
        if options.ssl_certificate_location is not None:
            step, option, path = "client certificate", "kafka.ssl.keystore.location", options.ssl_certificate_location
            password = options.ssl_key_password.reveal() if options.ssl_key_password is not None else ""
            # An empty password, not None: OpenSSL would ask on the terminal for the password of an encrypted key.
            context.load_cert_chain(path, options.ssl_key_location, password=password)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"The {step} of option '{option}' cannot be loaded from '{path}': {error}.",
            condition="TLS_FILES_INVALID",
            hint="Name PEM files that exist on the driver and on every executor; check kafka.ssl.key.password.",
            facts={"option": option, "path": path},
        ) from error
    return context
