"""How connections are encrypted and how they authenticate, as values. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_kafka.options.values.tokens import MskIamLogin, OAuthLogin

if TYPE_CHECKING:
    from pyspark_kafka.options.values.secret import Secret


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
    """How connections are encrypted. Hashable.

    Attributes:
        truststore: the certificates to trust; None trusts the system's.
        keystore: the client's certificate chain and private key; None without client authentication.
        key_password: of the private key; None if it is not encrypted, or has the store's password.
        check_hostname: whether a broker's certificate must be for its host name.
        versions: the versions of TLS that may be agreed on, without gaps.
        ciphers: those of TLS 1.2, as OpenSSL writes them; None takes OpenSSL's defaults.
    """

    truststore: CertificateStore | None = None
    keystore: CertificateStore | None = None
    key_password: Secret | None = None
    check_hostname: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: str | None = None


@dataclass(frozen=True, slots=True)
class PlainLogin:
    """User name and password, sent as they are (SASL PLAIN)."""

    username: str
    password: Secret
    mechanism: ClassVar[str] = "PLAIN"


@dataclass(frozen=True, slots=True)
class ScramLogin:
    """User name and password, of which only a proof is sent (SASL SCRAM).

    Attributes:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        delegation_token: whether name and password are the id and the key of a delegation token (KIP-48).
    """

    username: str
    password: Secret
    mechanism: str
    delegation_token: bool = False


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """A ticket of Kerberos (SASL GSSAPI).

    Attributes:
        service_name: the first part of the brokers' principals.
        principal: whose ticket; None takes the default of the ticket cache or of the keytab.
        keytab: a file on every machine, to get tickets with; None takes one that is there.
        ticket_cache: where tickets are; None is the default of the machine.
    """

    service_name: str = "kafka"
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None
    mechanism: ClassVar[str] = "GSSAPI"


@dataclass(frozen=True, slots=True)
class ReferredLogin:
    """A JAAS configuration that is elsewhere, `file:/mnt/user/sasl.jaas.config`, and is read for each connection.

    Attributes:
        config: the reference.
        mechanism: the SASL mechanism, which the configuration must fit.
        beside: the other options of the mechanism that are given: name and value of each.
    """

    config: Secret
    mechanism: str
    beside: tuple[tuple[str, Any], ...] = ()


Login = PlainLogin | ScramLogin | OAuthLogin | MskIamLogin | KerberosLogin | ReferredLogin

_JAVA = "org.apache.kafka.common.security"
# Java's login module of each mechanism, as `kafka.sasl.jaas.config` names it.
LOGIN_MODULES = {
    "PLAIN": f"{_JAVA}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_JAVA}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_JAVA}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_JAVA}.oauthbearer.OAuthBearerLoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
