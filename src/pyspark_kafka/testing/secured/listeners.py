"""Secured listeners of an embedded broker, and the broker properties that they need.

Pure: no files, no sockets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark_kafka.errors import SetupError

HOST = "127.0.0.1"
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Key of a listener whose tokens anyone can write: Kafka's own default.
UNSECURED = "unsecured"

_MODULES = MappingProxyType(
    {
        PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
        "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
        "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
        OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
        "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    }
)
_TOKEN_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"  # noqa: S105 - a class
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_CLIENT_AUTH = ("none", "requested", "required")
# A client certificate's user is its common name, as people write it in rules of their own.
_COMMON_NAME_RULE = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"


@dataclass(frozen=True, slots=True)
class Listener:
    """One more port of an embedded broker, besides its PLAINTEXT port, for clients that encrypt or authenticate.

    Attributes:
        protocol: `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
        name: how the listener is called; empty: as its protocol. Needed when two have the same protocol.
        mechanisms: of SASL: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`.
        client_auth: whether clients show a certificate: `none`, `requested` or `required`. The common name of the
            certificate is the user.
        jwks_url: the keys that tokens of OAUTHBEARER are signed with, as https: or file: URL; empty: the keys of
            `BrokerSecurity.token`. `unsecured`: tokens are not signed, and anyone can write one.
        max_reauth_ms: `connections.max.reauth.ms`: a client authenticates again before that time; None: never.
        jaas: the JAAS configuration of a mechanism, instead of the one built here; GSSAPI needs it.
        properties: other properties of the listener, without its prefix `listener.name.<name>.`.
    """

    protocol: str
    name: str = ""
    mechanisms: tuple[str, ...] = ()
    client_auth: str = "none"
    jwks_url: str = ""
    max_reauth_ms: int | None = None
    jaas: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no broker could run.

        Raises:
            SetupError: an unknown protocol, mechanism or `client_auth`, or SASL without a mechanism.
        """
        if self.protocol not in PROTOCOLS:
            raise _invalid(f"has protocol {self.protocol!r}, which is none of {', '.join(PROTOCOLS)}")
        if self.uses_sasl != bool(self.mechanisms):
            raise _invalid(
                f"with protocol {self.protocol} needs mechanisms"
                if self.uses_sasl
                else f"with protocol {self.protocol} has no mechanisms: it does not use SASL"
            )
        for mechanism in self.mechanisms:
            if mechanism not in _MODULES:
                raise _invalid(f"has mechanism {mechanism!r}, which is none of {', '.join(_MODULES)}")
        if self.client_auth not in _CLIENT_AUTH:
            raise _invalid(f"has client_auth {self.client_auth!r}, which is none of {', '.join(_CLIENT_AUTH)}")

    @property
    def listener_name(self) -> str:
        """The name among the broker's listeners, in capitals."""
        return (self.name or self.protocol).upper()

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether clients log in with SASL."""
        return self.protocol.startswith("SASL_")

    @property
    def prefix(self) -> str:
        """The prefix of this listener's broker properties."""
        return f"listener.name.{self.listener_name.lower()}."


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The broker's certificate and key files; an empty text where no listener needs it.

    Attributes:
        keystore: PEM file with the private key and its certificates.
        truststore: PEM file of the authority that client certificates must be issued by.
        jwks_url: file: URL of the keys that tokens are signed with.
        audience: what tokens must be for.
        issuer: who tokens must come from.
    """

    keystore: str = ""
    truststore: str = ""
    jwks_url: str = ""
    audience: str = ""
    issuer: str = ""


def check_listeners(listeners: Sequence[Listener]) -> None:
    """Check that names differ from each other and from the names that every broker has.

    Raises:
        SetupError: they do not.
    """
    taken = {PLAINTEXT, "CONTROLLER"}
    for listener in listeners:
        if listener.listener_name in taken:
            raise _invalid(f"has the name {listener.listener_name}, which another one has")
        taken.add(listener.listener_name)


def build_listener_properties(
    listeners: Sequence[Listener],
    ports: Mapping[str, int],
    *,
    controller_port: int,
    users: Mapping[str, str],
    files: ServerFiles,
    token_secret: str = "",
    authorizer: bool = False,
) -> dict[str, str]:
    """Build the properties of secured listeners for a broker that is its own controller.

    Args:
        listeners: all but the PLAINTEXT one and the controller's.
        ports: port by name of the listener, `PLAINTEXT` included.
        controller_port: the controller's port.
        users: password by name, for PLAIN.
        files: where certificates and keys are.
        token_secret: `delegation.token.secret.key`; empty: no delegation tokens.
        authorizer: whether rights are checked. Clients without a name may do all, as administrators do.
    """
    properties = _addresses(listeners, ports, controller_port) if listeners else {}
    if authorizer:
        properties["authorizer.class.name"] = _AUTHORIZER
        properties["super.users"] = "User:ANONYMOUS"
    if token_secret:
        properties["delegation.token.secret.key"] = token_secret
    for listener in listeners:
        own = {**_tls_properties(listener, files), **_sasl_properties(listener, users, files), **listener.properties}
        properties.update((listener.prefix + name, value) for name, value in own.items())
    return properties


def _addresses(listeners: Sequence[Listener], ports: Mapping[str, int], controller_port: int) -> dict[str, str]:
    names = (PLAINTEXT, *(listener.listener_name for listener in listeners))
    clients = ",".join(f"{name}://{HOST}:{ports[name]}" for name in names)
    protocols = {PLAINTEXT: PLAINTEXT, "CONTROLLER": PLAINTEXT}
    protocols.update((listener.listener_name, listener.protocol) for listener in listeners)
    return {
        "listeners": f"{clients},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }


def _tls_properties(listener: Listener, files: ServerFiles) -> dict[str, str]:
    if not listener.uses_tls:
        return {}
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.keystore,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.truststore,
        "ssl.client.auth": listener.client_auth,
        "ssl.principal.mapping.rules": _COMMON_NAME_RULE,
        # A certificate may be replaced by one with other names, or by one that has expired (KIP-978).
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
    }


def _sasl_properties(listener: Listener, users: Mapping[str, str], files: ServerFiles) -> dict[str, str]:
    properties: dict[str, str] = {}
    if listener.uses_sasl:
        properties["sasl.enabled.mechanisms"] = ",".join(listener.mechanisms)
    for mechanism in listener.mechanisms:
        prefix = f"{mechanism.lower()}."
        properties[f"{prefix}sasl.jaas.config"] = listener.jaas.get(mechanism) or _jaas(mechanism, users)
        if listener.max_reauth_ms is not None:
            properties[f"{prefix}connections.max.reauth.ms"] = str(listener.max_reauth_ms)
        if mechanism == OAUTHBEARER and listener.jwks_url != UNSECURED:
            properties[f"{prefix}sasl.server.callback.handler.class"] = _TOKEN_VALIDATOR
            properties["sasl.oauthbearer.jwks.endpoint.url"] = listener.jwks_url or files.jwks_url
            if not listener.jwks_url:
                properties["sasl.oauthbearer.expected.audience"] = files.audience
                properties["sasl.oauthbearer.expected.issuer"] = files.issuer
    return properties


def jaas_line(mechanism: str, options: Mapping[str, str]) -> str:
    r"""Build the JAAS configuration of a login: one module with its options.

    Example:
        >>> jaas_line("PLAIN", {"username": "alice", "password": 'a"b'})
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a\\"b";'
    """
    written = "".join(f' {name}="{_escape(value)}"' for name, value in options.items())
    return f"{_MODULES[mechanism]} required{written};"


def _jaas(mechanism: str, users: Mapping[str, str]) -> str:
    known = {f"user_{name}": password for name, password in users.items()} if mechanism == PLAIN else {}
    return jaas_line(mechanism, known)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _invalid(what: str) -> SetupError:
    return SetupError(
        f"A listener of the embedded broker {what}.",
        condition="LISTENER_INVALID",
        hint="Correct the listeners that EmbeddedKafka is given.",
    )
