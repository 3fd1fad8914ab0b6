"""JKS: the key stores of Java, as keytool wrote them by default until Java 8. Pure: no sockets, no clock.

The format is frozen, and its protection of keys is not a cipher that a library has: keys are XORed with a stream of
SHA-1. Source: `sun.security.provider.JavaKeyStore` and `KeyProtector` of OpenJDK.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

from pyspark_kafka._client.client.tls.der import SEQUENCE, DerError, read_element, read_sequence
from pyspark_kafka._client.client.tls.stores.content import KeyEntry, StoreContent, StoreError
from pyspark_kafka._client.options import HiddenBytes

MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES = 20
_PHRASE = b"Mighty Aphrodite"


class _JksReader:
    """Fields in their order, none beyond the end."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def take_bytes(self, size: int) -> memoryview:
        if size > self.left:
            raise StoreError("is cut off or damaged")
        self._position += size
        return self._data[self._position - size : self._position]

    def number(self) -> int:
        (number,) = struct.unpack(">I", self.take_bytes(4))
        return int(number)

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take_bytes(2))
        # Java's modified UTF-8 differs in characters beyond 16 bits only: such an alias is shown with marks for them.
        return bytes(self.take_bytes(size)).decode("utf-8", "replace")


def read_jks(data: bytes, password: str | None, key_password: str | None, *, with_keys: bool) -> StoreContent:
    """Read a JKS store.

    Args:
        data: the store.
        password: of the store; without one its integrity is not checked, as in Java.
        key_password: of the keys; None takes the store's.
        with_keys: whether keys are decrypted; otherwise only certificates are returned.

    Raises:
        StoreError: the store is damaged, or a password is missing or wrong.
    """
    body = memoryview(data)[:-_DIGEST_BYTES] if len(data) >= _DIGEST_BYTES else memoryview(b"")
    reader = _JksReader(body)
    reader.take_bytes(len(MAGIC))
    version, count = reader.number(), reader.number()
    if version not in _VERSIONS:
        raise StoreError(f"has version {version} of the JKS format, which does not exist")
    if password is not None:
        _check_digest(body, data[-_DIGEST_BYTES:], password)
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    secret = key_password if key_password is not None else password
    for _ in range(count):
        kind, alias = reader.number(), reader.text()
        reader.take_bytes(8)  # when it was made
        if kind == _KEY:
            protected = bytes(reader.take_bytes(reader.number()))
            number = reader.number()
            # A certificate has its type, its size, and a byte at least: a count of more than fit is damage.
            if number > reader.left:
                raise StoreError("is cut off or damaged")
            chain = tuple(_certificate(reader, version) for _ in range(number))
            if with_keys and not keys:
                keys.append(KeyEntry(alias, _unprotect(protected, alias, secret), chain))
            else:
                keys.append(KeyEntry(alias, b"", chain))
        elif kind == _CERTIFICATE:
            trusted.append(_certificate(reader, version))
        else:
            raise StoreError("is cut off or damaged, or has an entry that JKS does not know")
    return StoreContent("JKS", tuple(keys), tuple(trusted))


def _check_digest(body: memoryview, digest: bytes, password: str) -> None:
    found = hashlib.sha1(_java_text(password) + _PHRASE, usedforsecurity=False)
    found.update(body)
    if not hmac.compare_digest(found.digest(), digest):
        raise StoreError("cannot be opened: the password is wrong, or the file is damaged", password=True)


def _certificate(reader: _JksReader, version: int) -> bytes:
    if version > 1 and reader.text() not in ("X.509", "X509"):
        raise StoreError("holds a certificate that is not X.509")
    return bytes(reader.take_bytes(reader.number()))


def _unprotect(wrapped: bytes, alias: str, password: str | None) -> bytes:
    """Return the private key, as PKCS#8 in DER."""
    if password is None:
        raise StoreError(f"needs a password for the key '{alias}'", password=True)
    try:
        # EncryptedPrivateKeyInfo: the algorithm, and the octets.
        protected = bytes(read_sequence(memoryview(wrapped))[1][1])
    except (DerError, IndexError):
        raise StoreError(f"has a key '{alias}' that is damaged") from None
    text = _java_text(password)
    if len(protected) <= 2 * _DIGEST_BYTES:
        raise StoreError(f"has a key '{alias}' that is damaged")
    block, covered, digest = protected[:_DIGEST_BYTES], protected[_DIGEST_BYTES:-_DIGEST_BYTES], protected[-20:]
    stream = bytearray()
    while len(stream) < len(covered):
        block = hashlib.sha1(text + block, usedforsecurity=False).digest()
        stream += block
    key = HiddenBytes(one ^ other for one, other in zip(covered, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(text + key, usedforsecurity=False).digest(), digest):
        raise StoreError(f"has a key '{alias}' that this password does not open", password=True)
    try:
        tag, _, end = read_element(memoryview(key))
    except DerError:
        tag, end = 0, 0
    if (tag, end) != (SEQUENCE, len(key)):
        raise StoreError(f"has a key '{alias}' that is damaged")
    return key


def _java_text(password: str) -> bytes:
    return HiddenBytes(password.encode("utf-16-be", "surrogatepass"))
