"""The content of a key store in any format, and its read errors."""

from __future__ import annotations

import socket
from dataclasses import dataclass


class StoreError(ValueError):
    """A store cannot be read; the text is the end of a sentence that begins with the store.

    Attributes:
        password: whether another password may help.
        lacks: the part of a keystore that is not there and may be in a file of its own, `key` or `certificate`.
    """

    def __init__(self, text: str, *, password: bool = False, lacks: str = "") -> None:
        """Keep what it is about."""
        super().__init__(text)
        self.password = password
        self.lacks = lacks


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key with its certificates.

    Attributes:
        alias: its name; empty if it has none.
        key: PKCS#8 in DER, or PEM text of any key; empty if it was not decrypted because another is used.
        chain: the certificates in DER, the key's own first.
        encrypted: whether the key still needs a password.
    """

    alias: str
    key: bytes
    chain: tuple[bytes, ...]
    encrypted: bool = False

    def __repr__(self) -> str:
        return f"KeyEntry({self.alias!r}, {len(self.chain)} certificates)"


@dataclass(frozen=True, slots=True)
class StoreContent:
    """The content of a store.

    Attributes:
        kind: PEM, PKCS12 or JKS, as found.
        keys: in the order of the store.
        trusted: certificates in DER that belong to no key.
    """

    kind: str
    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]

    @property
    def authorities(self) -> tuple[bytes, ...]:
        """The trusted certificates of a store, in DER: as in Java, the first certificate of each key as well."""
        return (*self.trusted, *(entry.chain[0] for entry in self.keys if entry.chain))


def host_name() -> str:
    """Return the name of this machine, for errors."""
    return socket.gethostname()
