"""The encryption of connections, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.secret import Secret


@dataclass(frozen=True, slots=True)
class CertificateStore:
    """Certificates, and the private key of the client among them: in a file, or as texts of options (KIP-651).

    Attributes:
        location: a file on every machine that runs the driver or an executor; None with texts.
        kind: PEM, PKCS12 or JKS; None finds out by the content.
        password: of a PKCS12 or JKS store.
        certificates: PEM text, instead of a file.
        key: the private key that belongs to the first of `certificates`, PEM text.
    """

    location: str | None = None
    kind: str | None = None
    password: Secret | None = None
    certificates: Secret | None = None
    key: Secret | None = None


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The encryption of connections. Hashable.

    Attributes:
        truststore: the certificates to trust; None trusts the system's.
        keystore: the client's certificate chain and private key; None without client authentication.
        key_password: of the private key; None if it is not encrypted, or has the store's password.
        check_hostname: whether a broker's certificate must be for its host name.
        versions: the versions of TLS that may be agreed on, without gaps.
        ciphers: the suites of TLS 1.2, as OpenSSL writes them; None takes OpenSSL's defaults.
    """

    truststore: CertificateStore | None = None
    keystore: CertificateStore | None = None
    key_password: Secret | None = None
    check_hostname: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: str | None = None
