"""The authentication of connections, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_kafka._client.options.values.tokens import MskIamLogin, OAuthLogin

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.secret import Secret


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
