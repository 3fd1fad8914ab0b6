"""An embedded broker's certificate authority: it issues the certificates of the broker and its clients.

Runs on: driver. Needs the package `trustme`, and with it `cryptography`.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.testing.secured.java_stores import convert_to_jks
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_NUMBERS = itertools.count(1)
SERVER_NAMES = ("localhost", "127.0.0.1")


def import_extra(name: str, what: str) -> Any:
    """Import a package of the extra `testing`.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.split(".", 1)[0]
        raise MissingDependencyError(
            f"{what} needs the Python package '{package}', which cannot be imported: {error}.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install the extra: {install_command('testing')}.",
            parameters={"package": package},
        ) from error


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A private key and its certificate, with the forms that clients and brokers read.

    Attributes:
        key_pem: the private key as PKCS #8, not encrypted.
        chain_pem: the certificate, and those up to the authority's own, which is not included.
        authority_pem: the authority's certificate.
    """

    key_pem: bytes
    chain_pem: bytes
    authority_pem: bytes

    @property
    def pem(self) -> bytes:
        """Key and certificates in one text: a key store of type PEM."""
        return self.key_pem + self.chain_pem

    def encrypted_key_pem(self, password: str) -> bytes:
        """Return the private key, encrypted (PKCS #8, PBES2)."""
        serialization = import_extra("cryptography.hazmat.primitives.serialization", "A private key with a password")
        encoded: bytes = self._key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        return encoded

    def pkcs12(self, password: str, alias: str = "client") -> bytes:
        """Return key and certificates as a PKCS #12 store."""
        pkcs12 = import_extra("cryptography.hazmat.primitives.serialization.pkcs12", "A PKCS #12 store")
        serialization = import_extra("cryptography.hazmat.primitives.serialization", "A PKCS #12 store")
        x509 = import_extra("cryptography.x509", "A PKCS #12 store")
        certificate, *others = x509.load_pem_x509_certificates(self.chain_pem)
        store: bytes = pkcs12.serialize_key_and_certificates(
            alias.encode(), self._key(), certificate, others, serialization.BestAvailableEncryption(password.encode())
        )
        return store

    def _key(self) -> Any:
        serialization = import_extra("cryptography.hazmat.primitives.serialization", "Reading a private key")
        return serialization.load_pem_private_key(self.key_pem, None)


class CertificateAuthority:
    """Issues certificates, and keeps requested files of them in one directory."""

    def __init__(self, directory: Path) -> None:
        """Create an authority with its own key; about 0.1 s.

        Args:
            directory: where files are written; created when missing.

        Raises:
            MissingDependencyError: `trustme` is not installed.
        """
        self._trustme = import_extra("trustme", "A broker with certificates")
        # RSA: the smallest Java runtimes have no elliptic curves.
        self._rsa = self._trustme.KeyType.RSA
        self._authority = self._trustme.CA(organization_name="pyspark-kafka", key_type=self._rsa)
        self._directory = directory
        self._file: Path | None = None

    @property
    def pem(self) -> bytes:
        """The authority's certificate."""
        encoded: bytes = self._authority.cert_pem.bytes()
        return encoded

    @property
    def file(self) -> Path:
        """A PEM file of the authority's certificate: what clients trust."""
        if self._file is None:
            self._file = self.write(self.pem, "authority.pem")
        return self._file

    def issue(
        self,
        *names: str,
        user: str = "",
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> IssuedCertificate:
        """Issue a certificate.

        Args:
            names: host names and addresses that it is for; none: `localhost` and 127.0.0.1, or with a user the user.
            user: the common name: who a client is.
            not_before: when it begins to be valid; None: long ago.
            not_after: when it expires, aware of its time zone; None: in years.
        """
        serialization = import_extra("cryptography.hazmat.primitives.serialization", "A certificate")
        leaf = self._authority.issue_cert(
            *(names or ((user,) if user else SERVER_NAMES)),
            common_name=user or "broker",
            organization_name="pyspark-kafka",
            not_before=not_before,
            not_after=not_after,
            key_type=self._rsa,
        )
        # Kafka reads keys in PKCS #8 only.
        key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return IssuedCertificate(key, b"".join(each.bytes() for each in leaf.cert_chain_pems), self.pem)

    def trust_store(self, kind: str, password: str) -> Path:
        """Write a store of type `PKCS12` or `JKS` with the authority's certificate, and return its path."""
        pkcs12 = import_extra("cryptography.hazmat.primitives.serialization.pkcs12", "A PKCS #12 store")
        serialization = import_extra("cryptography.hazmat.primitives.serialization", "A PKCS #12 store")
        x509 = import_extra("cryptography.x509", "A PKCS #12 store")
        trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(self.pem), b"authority")
        encryption = serialization.BestAvailableEncryption(password.encode())
        return self._store(pkcs12.serialize_java_truststore([trusted], encryption), "truststore", kind, password)

    def key_store(self, certificate: IssuedCertificate, kind: str, password: str) -> Path:
        """Write a store of type `PKCS12` or `JKS` with a key and its certificate, and return its path."""
        return self._store(certificate.pkcs12(password), "keystore", kind, password)

    def write(self, content: bytes, name: str) -> Path:
        """Write a file that only its owner may read, under a name never used before, and return its path."""
        return write_private(self._directory, content, name)

    def _store(self, pkcs12: bytes, name: str, kind: str, password: str) -> Path:
        file = self.write(pkcs12, f"{name}.p12")
        if kind == "PKCS12":
            return file
        target = file.with_suffix(".jks")
        convert_to_jks(file, target, password)
        return target


def write_private(directory: Path, content: bytes, name: str) -> Path:
    """Write a file that only its owner may read, under a name never used before, and return its path."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = directory / f"{next(_NUMBERS)}-{name}"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(content)
    return file
