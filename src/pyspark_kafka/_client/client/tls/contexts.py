"""The TLS context that the options require.

Certificates are replaced by what renews them, and processes live longer than certificates: a context is built again
when the content of one of its stores has changed. Trust that was taken back ends after `GRACE_S`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import ssl
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.tls.certificates import ParsedCertificate, parse_certificate, shown_time
from pyspark_kafka._client.client.tls.stores.certificate_store import (
    KEY_PASSWORD,
    KEYSTORE,
    TRUSTSTORE,
    fetch_store,
    parse_store,
    store_error,
)
from pyspark_kafka._client.client.tls.stores.pem import build_pem
from pyspark_kafka._client.options import HiddenBytes
from pyspark_kafka.errors import ConnectorError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.tls.stores.content import KeyEntry
    from pyspark_kafka._client.options import CertificateStore, TlsOptions

_LOG = logging.getLogger(__name__)

_KEPT_CONTEXTS = 16
# How long before the end of a certificate a warning is logged.
WARN_BEFORE = timedelta(days=7)
# For how long a truststore may be in the middle of its replacement.
GRACE_S = 60.0
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsContext:
    """A context for connections, and what errors about them say.

    Attributes:
        context: with the certificates loaded.
        own: what the client's certificate says; None without one.
        own_option: the option that the client's certificate is of.
        trusted: the subjects of the certificates that are trusted; None if the system's are.
    """

    context: ssl.SSLContext
    own: ParsedCertificate | None = None
    own_option: str = ""
    trusted: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Kept:
    fingerprint: bytes
    context: TlsContext
    # Of the truststore alone.
    trust: bytes
    # The content that could not be loaded; it is not tried again, nor said again, until it changes.
    refused: bytes = b""
    # Since when the truststore is another one that could not be loaded; None if it is not.
    withdrawn_at: float | None = None


class TlsContexts:
    """TLS contexts by options, each built again when one of its stores has changed.

    The stores are read for each connection, which costs less than a hundredth of its handshake: the time of a file does
    not distinguish two writes within its clock's tick, and links that are swapped have times of their own.

    Runs on: driver and executor. Safe to use from threads.

    Args:
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._contexts: dict[TlsOptions, _Kept] = {}
        self.replace_lock()

    def replace_lock(self) -> None:
        """Begin with a free lock, in a forked child: a thread of the parent may hold the one of before."""
        self._lock = threading.Lock()

    def known(self, options: TlsOptions) -> TlsContext | None:
        """Return the context that was built last for the options; None before the first one. Reads no file."""
        with self._lock:
            found = self._contexts.get(options)
        return None if found is None else found.context

    def get(self, options: TlsOptions) -> TlsContext:
        """Return the context of the options, with the stores as they are now.

        If formerly good stores cannot be loaded now, as in the middle of their replacement, the previous context
        is returned, with a warning: for as long as only the client's own certificate is concerned, and for `GRACE_S` if
        the truststore is not the loaded one. It may have been emptied because an authority is not to be trusted any
        more.

        Raises:
            OptionError: a store cannot be read or does not fit.
            MissingDependencyError: a PKCS#12 store without the package `cryptography`.
        """
        try:
            # Not under the lock: a secret may be a function that calls another machine.
            stores = _fetch(options)
            fingerprint = _fingerprint(stores, options)
        except ConnectorError as error:
            trust = _trust_now(options)
            with self._lock:
                return self._former(options, b"", trust, error)
        trust = _digest(stores[TRUSTSTORE])
        with self._lock:
            known = self._contexts.get(options)
            if known is not None and fingerprint == known.fingerprint:
                known.refused, known.withdrawn_at = b"", None
                return known.context
            if known is not None and fingerprint == known.refused and not self._is_over(known, trust):
                return known.context
            try:
                context = _build_context(options, stores)
            except ConnectorError as error:
                return self._former(options, fingerprint, trust, error)
            if known is None and len(self._contexts) >= _KEPT_CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[options] = _Kept(fingerprint, context, trust)
        if context.own is not None:
            warn_of_end(context.own, f"The client certificate of option '{context.own_option}'")
        return context

    def _former(self, options: TlsOptions, refused: bytes, trust: bytes | None, error: ConnectorError) -> TlsContext:
        """Return the context of before, with a warning if the failure is another one than the last; else raise it."""
        known = self._contexts.get(options)
        if known is None or self._is_over(known, trust):
            raise error
        if not refused or refused != known.refused:
            until = "" if known.withdrawn_at is None else f", for {GRACE_S:.0f} s at most"
            _LOG.warning("%s Those loaded before are still used%s.", error, until)
        known.refused = refused
        return known.context

    def _is_over(self, known: _Kept, trust: bytes | None) -> bool:
        """Return whether a context must be dropped, because the truststore has changed for longer than `GRACE_S`."""
        if trust == known.trust:
            known.withdrawn_at = None
            return False
        now = self._clock()
        if known.withdrawn_at is None:
            known.withdrawn_at = now
        return now - known.withdrawn_at >= GRACE_S


_CONTEXTS = TlsContexts()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_CONTEXTS.replace_lock)


def tls_context(options: TlsOptions) -> TlsContext:
    """Return the TLS context of the options, from this process's contexts; see `TlsContexts.get`."""
    return _CONTEXTS.get(options)


def known_context(options: TlsOptions) -> TlsContext | None:
    """Return the context of the options that connections were opened with; see `TlsContexts.known`."""
    return _CONTEXTS.known(options)


_WARNED: set[bytes] = set()
_MAX_WARNED = 1000


def warn_of_end(certificate: ParsedCertificate, subject: str) -> None:
    """Log a warning if a certificate has ended, or ends within `WARN_BEFORE`; once for each certificate.

    Args:
        certificate: the parsed certificate.
        subject: what it is, as the subject of a sentence.
    """
    now = datetime.now(timezone.utc)
    if certificate.not_after - now > WARN_BEFORE or len(_WARNED) >= _MAX_WARNED:
        return
    known = hashlib.sha256(certificate.der).digest()
    if known in _WARNED:
        return
    _WARNED.add(known)
    verb = "expired" if now > certificate.not_after else "expires"
    consequence = (
        "New connections will be refused."
        if now > certificate.not_after
        else "From then on new connections will be refused."
    )
    _LOG.warning(
        "%s (%s) %s on %s. %s Renew it; a store that is replaced is loaded for the next connection.",
        subject,
        certificate.subject,
        verb,
        shown_time(certificate.not_after),
        consequence,
    )


def _fetch(options: TlsOptions) -> dict[str, bytes]:
    stores = {TRUSTSTORE: _trust(options)}
    if options.keystore is not None:
        stores[KEYSTORE] = fetch_store(options.keystore, KEYSTORE)
    return stores


def _trust(options: TlsOptions) -> bytes:
    """Return the truststore; without one, what changes when the certificates of the system are replaced."""
    if options.truststore is not None:
        return fetch_store(options.truststore, TRUSTSTORE)
    paths = ssl.get_default_verify_paths()
    states = []
    for path in filter(None, (paths.cafile, paths.capath)):
        with contextlib.suppress(OSError):
            found = os.stat(path)  # noqa: PTH116 - follows links, once
            states.append(f"{path} {found.st_ino} {found.st_size} {found.st_mtime_ns}")
    return "\n".join(states).encode()


def _trust_now(options: TlsOptions) -> bytes | None:
    """Return what changes with the truststore; None if it cannot be read."""
    try:
        return _digest(_trust(options))
    except ConnectorError:
        return None


def _digest(store: bytes) -> bytes:
    return hashlib.sha256(store).digest()


def _fingerprint(stores: dict[str, bytes], options: TlsOptions) -> bytes:
    """Return a digest that changes with the stores and the passwords, and does not reveal them."""
    digest = hashlib.sha256()
    secrets = [options.key_password, *(store.password for store in (options.truststore, options.keystore) if store)]
    for part in (*stores.values(), *(b"" if each is None else each.fingerprint() for each in secrets)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def build_bare_context(options: TlsOptions) -> ssl.SSLContext:
    """Return a context with versions and ciphers of the options, that verifies, and has no certificates yet.

    Raises:
        OptionError: OpenSSL of this machine has none of the ciphers.
    """
    # Not create_default_context: what that is strict about changes with the version of Python.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(_VERSIONS[version] for version in options.versions)
    context.maximum_version = max(_VERSIONS[version] for version in options.versions)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.check_hostname = options.check_hostname
    # As in Java, a trusted certificate need not be self-signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if options.ciphers is not None:
        try:
            context.set_ciphers(options.ciphers)
        except ssl.SSLError as error:
            raise OptionError(
                f"{ssl.OPENSSL_VERSION} of this machine has none of the ciphers of option 'kafka.ssl.cipher.suites' "
                f"({options.ciphers}).",
                condition="TLS_CIPHERS_MISSING",
                hint="Remove kafka.ssl.cipher.suites, or add a suite with ECDHE and GCM.",
                parameters={"ciphers": options.ciphers},
            ) from error
    return context


def _build_context(options: TlsOptions, stores: dict[str, bytes]) -> TlsContext:
    context = build_bare_context(options)
    trusted: tuple[str, ...] | None = None
    own: ParsedCertificate | None = None
    option = ""
    if options.truststore is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        # Only these: a user who names an authority does not want to trust all others of the machine as well.
        authorities = parse_store(stores[TRUSTSTORE], options.truststore, TRUSTSTORE, None).authorities
        try:
            context.load_verify_locations(cadata=b"".join(authorities))
        except ssl.SSLError as error:
            raise store_error(
                TRUSTSTORE, options.truststore, f"has a certificate that OpenSSL refuses: {error}"
            ) from error
        trusted = tuple(dict.fromkeys(parse_certificate(each).subject for each in authorities))
    if options.keystore is not None:
        content = parse_store(stores[KEYSTORE], options.keystore, KEYSTORE, options.key_password)
        entry = content.keys[0]
        own = parse_certificate(entry.chain[0])
        option = f"{KEYSTORE}.{'key' if options.keystore.location is None else 'location'}"
        if len(content.keys) > 1:
            _LOG.warning(
                "The store of option '%s' has %d private keys. The first one is used%s, with the certificate of %s.",
                option,
                len(content.keys),
                f", '{entry.alias}'" if entry.alias else "",
                own.subject,
            )
        password = "" if options.key_password is None or not entry.encrypted else options.key_password.reveal()
        _load_key(context, options.keystore, entry, own, password)
    return TlsContext(context, own, option, trusted)


def _load_key(
    context: ssl.SSLContext, store: CertificateStore, entry: KeyEntry, own: ParsedCertificate, password: str
) -> None:
    key = HiddenBytes(entry.key if entry.key.startswith(b"-----") else build_pem("PRIVATE KEY", entry.key))
    chain = b"".join(build_pem("CERTIFICATE", each) for each in entry.chain)
    try:
        with _as_file(chain) as chain_file, _as_file(key) as key_file:
            # An empty password, not None: OpenSSL would ask on the terminal for the password of an encrypted key.
            context.load_cert_chain(chain_file, key_file, password=password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        if "MISMATCH" in reason:
            text = f"has a private key that does not belong to its first certificate ({own.subject})"
            hint = "Put the key's own certificate first, then the certificates that signed it."
        elif entry.encrypted:
            text = f"has an encrypted private key that this password does not open ({reason})"
            hint = f"Set {KEY_PASSWORD} to the password of the private key; convert keys of old ciphers: openssl pkey."
        else:
            text, hint = f"has a certificate or private key that OpenSSL refuses: {reason}", ""
        raise store_error(KEYSTORE, store, text, hint) from error


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Return a path from which content can be read once.

    Python's `ssl` takes keys from files only. Memory with a descriptor, or a pipe where the system has no such thing,
    is on no disk and in no folder, and ends with the process.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            yield f"/proc/self/fd/{descriptor}"
    else:
        with _as_pipe(content) as path:
            yield path


@contextlib.contextmanager
def _as_pipe(content: bytes) -> Iterator[str]:
    reader, writer = os.pipe()
    # A pipe holds some KiB, so that another thread writes what is more.
    thread = threading.Thread(target=_feed, args=(writer, content), name="feed TLS key", daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)  # ends the thread if not all was read
        thread.join()


def _feed(writer: int, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(writer, "wb", buffering=0) as file:
        file.write(content)
