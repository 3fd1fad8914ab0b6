"""PKCS#12: the key stores of OpenSSL, and of Java since version 9; read with the package `cryptography`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import DerError, max_iterations
from pyspark_kafka._client.client.tls.stores.content import KeyEntry, StoreContent, StoreError, host_name
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from cryptography import x509

# Java's bound of what the derivation of a key may cost (MAX_ITERATION_COUNT of its PKCS12KeyStore).
MAX_ITERATIONS = 5_000_000
# The object identifier of pkcs8ShroudedKeyBag, which is not encrypted itself.
_KEY_BAG = bytes.fromhex("060b2a864886f70d010c0a0102")


def read_pkcs12(data: bytes, password: str | None, limit: int = MAX_ITERATIONS) -> StoreContent:
    """Read a PKCS#12 store, with or without a password.

    Args:
        data: the store.
        password: of the store and its key.
        limit: iterations that deriving a key may take.

    Returns:
        Its first key, with the certificates that continue its chain, and all other certificates as trusted ones.

    Raises:
        StoreError: the store is damaged, or the password is missing or wrong.
        MissingDependencyError: the package `cryptography` is not there.
    """
    if max_iterations(data) > limit:
        raise StoreError(f"asks for more than {limit} iterations to derive a key")
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy, and optional
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            f"A PKCS12 store needs the Python package 'cryptography', which {sys.executable} on host {host_name()} "
            f"cannot import: {error}.",
            condition="MISSING_DEPENDENCY",
            hint=f"Run {install_command('stores')} on the driver and on every executor, or convert the store: "
            "openssl pkcs12 -in store.p12 -out store.pem.",
            parameters={"package": "cryptography"},
        ) from error
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        text = "needs a password, or is damaged" if password is None else "cannot be opened: the password is wrong"
        raise StoreError(f"{text} ({error})", password=True) from error
    except Exception as error:
        # cryptography.exceptions.UnsupportedAlgorithm, or what its parser meets in damaged bytes.
        raise StoreError(f"cannot be read: {error or type(error).__name__}") from error
    others = [_der(each.certificate) for each in found.additional_certs]
    if found.key is None:
        own = [] if found.cert is None else [_der(found.cert.certificate)]
        return StoreContent("PKCS12", (), tuple(own + others))
    key = found.key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    if found.cert is None:
        return StoreContent("PKCS12", (KeyEntry("", key, ()),), tuple(others))
    name = (found.cert.friendly_name or b"").decode("utf-8", "replace")
    chain, rest = _chain(_der(found.cert.certificate), others)
    keys = [KeyEntry(name, key, chain)] + [KeyEntry("", b"", ())] * (data.count(_KEY_BAG) - 1)
    return StoreContent("PKCS12", tuple(keys), tuple(rest))


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return certificate.public_bytes(Encoding.DER)


def _chain(leaf: bytes, others: list[bytes]) -> tuple[tuple[bytes, ...], list[bytes]]:
    """Return the chain of a certificate, each one signed by the next, and the certificates that are not in it."""
    chain, rest = [leaf], list(others)
    try:
        subjects = {each: parse_certificate(each).subject for each in others}
        while rest:
            last = parse_certificate(chain[-1])
            following = next((each for each in rest if subjects[each] == last.issuer), None)
            if following is None or last.is_self_signed:
                break
            rest.remove(following)
            chain.append(following)
    except DerError as error:
        raise StoreError(f"holds a certificate that cannot be read: {error}") from error
    return tuple(chain), rest
