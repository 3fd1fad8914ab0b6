"""The security of an embedded broker's listeners: certificates, users, tokens and rights.

Runs on: driver.
"""

from __future__ import annotations

import secrets
import ssl
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.administration import CLUSTER_NAME, grant, revoke, set_broker_config, set_scram_passwords
from pyspark_kafka.testing.secured.certificates import CertificateAuthority, IssuedCertificate, write_private
from pyspark_kafka.testing.secured.listeners import (
    HOST,
    OAUTHBEARER,
    PLAINTEXT,
    SCRAM_MECHANISMS,
    UNSECURED,
    Listener,
    ServerFiles,
    build_listener_properties,
    check_listeners,
    jaas_line,
)
from pyspark_kafka.testing.secured.tokens import TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

STORES = ("PEM", "PEM-inline", "PKCS12", "JKS")

_RELOAD_TIMEOUT_S = 20.0
_POLL_S = 0.05
# Each of the broker's 3 network threads reloads its certificate; they take new connections in turn.
_CONNECTIONS_SEEN = 6
_STORE_PASSWORD_BYTES = 9


class BrokerSecurity:
    """The secured listeners of one broker, and who may do what on them.

    Certificates, keys and passwords of stores are made when the broker starts, and their files go with it.
    """

    def __init__(
        self,
        listeners: Sequence[Listener] = (),
        users: Mapping[str, str] | None = None,
        *,
        authorizer: bool = False,
        node_id: int = 1,
    ) -> None:
        """Describe the security; nothing is created yet.

        Raises:
            SetupError: two listeners have the same name.
        """
        check_listeners(listeners)
        self._listeners = {listener.listener_name: listener for listener in listeners}
        self._users = dict(users or {})
        self._authorizer = authorizer
        self._node_id = node_id
        self._ports: Mapping[str, int] = {}
        self._directory: Path | None = None
        self._files = ServerFiles()
        self._token_secret = secrets.token_urlsafe(24)
        self._authority: CertificateAuthority | None = None
        self._issuer: TokenIssuer | None = None

    def __repr__(self) -> str:
        return f"BrokerSecurity({', '.join(self._listeners) or 'no listeners'})"

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of the listeners besides PLAINTEXT."""
        return tuple(self._listeners)

    @property
    def authority(self) -> CertificateAuthority:
        """The issuer of the broker's certificates, and of the clients' certificates.

        Raises:
            SetupError: the broker has not been started, or has no listener with TLS.
        """
        if self._authority is None:
            raise _not_there("has no certificates", "Start it with a listener of SSL or SASL_SSL.")
        return self._authority

    @property
    def tokens(self) -> TokenIssuer:
        """The issuer of OAUTHBEARER tokens.

        Raises:
            SetupError: the broker has not been started, or has no listener with tokens of its own.
        """
        if self._issuer is None:
            raise _not_there("signs no tokens", "Start it with a listener of OAUTHBEARER that has no jwks_url.")
        return self._issuer

    def password(self, user: str) -> str:
        """Return a user's password.

        Raises:
            SetupError: there is no such user.
        """
        if user not in self._users:
            known = ", ".join(self._users) or "nobody"
            raise _not_there(f"has no user {user!r}: there is {known}", "Name the user in EmbeddedKafka(users=...).")
        return self._users[user]

    def address(self, listener: str = PLAINTEXT) -> str:
        """Return the address of a listener for clients: `127.0.0.1:port`.

        Raises:
            SetupError: there is no listener of that name, or the broker has not been started.
        """
        if listener not in self._ports:
            known = ", ".join(self._ports) or "none before the start"
            raise _not_there(f"has no listener {listener!r}: there is {known}", "Name one of its listeners.")
        return f"{HOST}:{self._ports[listener]}"

    def client_options(
        self, listener: str, user: str | None = None, *, mechanism: str | None = None, store: str = "PEM"
    ) -> dict[str, str]:
        """Return the options with which `spark.read` and the other clients of this package use a listener.

        Args:
            listener: its name.
            user: who logs in, or, without SASL, whose certificate is shown; None without a login.
            mechanism: one of the listener's; None: its first one.
            store: the form of certificates: `PEM` (files), `PEM-inline`, `PKCS12` or `JKS`.

        Raises:
            SetupError: there is no listener or no user of that name.
        """
        address = self.address(listener)
        if listener == PLAINTEXT:
            return {"kafka.bootstrap.servers": address}
        return _client_options(self, self._listeners[listener], address, user, mechanism, store)

    def new_store_password(self) -> str:
        """Return a random password for a store of certificates."""
        return secrets.token_urlsafe(_STORE_PASSWORD_BYTES)

    def token_file(self, user: str, **claims: Any) -> Path:
        """Write a signed token for a user, and return its path."""
        return self._write(self.tokens.token(user, **claims).encode(), f"{user}.jwt")

    def add_user(self, user: str, password: str) -> None:
        """Add a user of SCRAM to the running broker, or change the password. PLAIN does not know of it.

        Raises:
            SetupError: the broker does not run.
        """
        self._users[user] = password
        self._set_passwords({user: password})

    def grant(
        self, user: str, operation: str, resource: str, name: str = CLUSTER_NAME, *, prefixed: bool = False
    ) -> None:
        """Grant a right, and wait until the broker applies it: `grant("alice", "READ", "TOPIC", "events")`.

        Args:
            user: who gets it.
            operation: Kafka's name, such as `READ`, `WRITE`, `DESCRIBE`, `ALL`.
            resource: `TOPIC`, `GROUP`, `TRANSACTIONAL_ID`, `CLUSTER`, `DELEGATION_TOKEN` or `USER`.
            name: of the resource; not needed for the cluster. `*`: all.
            prefixed: whether the name is the beginning of names.

        Raises:
            BrokerError: the broker has no authorizer.
        """
        grant(self.address(), user, operation, resource, name, prefixed=prefixed)

    def revoke(
        self, user: str, operation: str, resource: str, name: str = CLUSTER_NAME, *, prefixed: bool = False
    ) -> bool:
        """Revoke a right that was granted with the same words; False when there was none.

        Raises:
            BrokerError: the broker has no authorizer.
        """
        return revoke(self.address(), user, operation, resource, name, prefixed=prefixed)

    def replace_certificate(self, listener: str, certificate: IssuedCertificate | None = None) -> IssuedCertificate:
        """Replace the certificate of a listener of the running broker, and wait until new connections get it.

        Open connections stay as they are.

        Args:
            listener: its name.
            certificate: of this authority or of another one; None: a new one for the same names.

        Returns:
            The certificate that the listener has now.

        Raises:
            SetupError: there is no listener of that name, or the broker keeps its certificate.
        """
        self.address(listener)
        new = certificate or self.authority.issue()
        file = self._write(new.pem, "broker.pem")
        setting = f"{self._listeners[listener].prefix}ssl.keystore.location"
        set_broker_config(self.address(), self._node_id, setting, str(file))
        end = time.monotonic() + _RELOAD_TIMEOUT_S
        seen = 0
        while time.monotonic() < end:
            seen = seen + 1 if self._shows(listener, new) else 0
            if seen == _CONNECTIONS_SEEN:
                return new
            if not seen:
                time.sleep(_POLL_S)
        raise _not_there("keeps the certificate that it had", "Read its log.")

    def prepare(self, directory: Path, ports: Mapping[str, int], controller_port: int) -> dict[str, str]:
        """Create the listeners' files, once, and return the broker's properties for them.

        Args:
            directory: for files; removed with the broker.
            ports: port by name of the listener, `PLAINTEXT` included.
            controller_port: the controller's port.

        Raises:
            MissingDependencyError: a package of the extra `testing` is not installed.
        """
        self._ports = dict(ports)
        if directory != self._directory:
            self._directory = directory
            self._make_files(directory)
        listeners = tuple(self._listeners.values())
        return build_listener_properties(
            listeners,
            ports,
            controller_port=controller_port,
            users=self._users,
            files=self._files,
            token_secret=self._token_secret if any(each.uses_sasl for each in listeners) else "",
            authorizer=self._authorizer,
        )

    def jvm_flags(self) -> tuple[str, ...]:
        """Return the flags of a JVM that lets the broker look up the keys of tokens (needed by Kafka 4)."""
        urls = {each.jwks_url for each in self._listeners.values()} - {"", UNSECURED} | {self._files.jwks_url} - {""}
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(sorted(urls))}",) if urls else ()

    def after_start(self) -> None:
        """Send the passwords of SCRAM users to the running broker."""
        self._set_passwords(self._users)

    def _make_files(self, directory: Path) -> None:
        keystore = truststore = jwks_url = ""
        self._authority = self._issuer = None
        if any(listener.uses_tls for listener in self._listeners.values()):
            self._authority = CertificateAuthority(directory)
            keystore = str(self._authority.write(self._authority.issue().pem, "broker.pem"))
            truststore = str(self._authority.file)
        if any(OAUTHBEARER in each.mechanisms and not each.jwks_url for each in self._listeners.values()):
            self._issuer = TokenIssuer()
            jwks_url = self._write(self._issuer.jwks.encode(), "keys.json").as_uri()
        self._files = ServerFiles(
            keystore,
            truststore,
            jwks_url,
            self._issuer.audience if self._issuer else "",
            self._issuer.issuer if self._issuer else "",
        )

    def _set_passwords(self, passwords: Mapping[str, str]) -> None:
        mechanisms = set(self._mechanisms()).intersection(SCRAM_MECHANISMS)
        if passwords and mechanisms:
            set_scram_passwords(self.address(), passwords, sorted(mechanisms))

    def _mechanisms(self) -> Iterator[str]:
        for listener in self._listeners.values():
            yield from listener.mechanisms

    def _shows(self, listener: str, certificate: IssuedCertificate) -> bool:
        shown = fetch_certificate(HOST, self._ports[listener])
        return shown is not None and certificate.chain_pem.decode().startswith(shown.strip())

    def _write(self, content: bytes, name: str) -> Path:
        if self._directory is None:
            raise _not_there("has not been started", "Start it first.")
        return write_private(self._directory, content, name)


def fetch_certificate(host: str, port: int) -> str | None:
    """Return the certificate (PEM) that a server shows, whoever issued it; None when there is none to be had.

    It is looked at, not trusted, and nothing is sent.
    """
    try:
        return ssl.get_server_certificate((host, port), timeout=_RELOAD_TIMEOUT_S)
    except OSError:
        return None


def _client_options(
    security: BrokerSecurity, listener: Listener, address: str, user: str | None, mechanism: str | None, store: str
) -> dict[str, str]:
    """Build the options of a client, as users write them. Files of stores and tokens are written.

    Raises:
        SetupError: the listener cannot be used like this.
    """
    options = {"kafka.bootstrap.servers": address, "kafka.security.protocol": listener.protocol}
    if listener.uses_tls:
        shown = user if listener.client_auth == "required" or not listener.uses_sasl else None
        options.update(_tls_options(security, shown, store))
    if listener.uses_sasl:
        if user is None:
            raise _invalid(f"of {listener.listener_name} need a user", "Name a user.")
        chosen = mechanism or listener.mechanisms[0]
        if chosen not in listener.mechanisms:
            known = ", ".join(listener.mechanisms)
            raise _invalid(
                f"of {listener.listener_name} have the mechanisms {known}, not {chosen}", "Name one of them."
            )
        options["kafka.sasl.mechanism"] = chosen
        options.update(_sasl_options(security, listener, user, chosen))
    return options


def _sasl_options(security: BrokerSecurity, listener: Listener, user: str, mechanism: str) -> dict[str, str]:
    if mechanism == "GSSAPI":
        return {"kafka.sasl.kerberos.service.name": "kafka"}
    if mechanism != OAUTHBEARER:
        line = jaas_line(mechanism, {"username": user, "password": security.password(user)})
        return {"kafka.sasl.jaas.config": line}
    if listener.jwks_url == UNSECURED:
        return {"kafka.sasl.jaas.config": jaas_line(mechanism, {"unsecuredLoginStringClaim_sub": user})}
    options = {"kafka.sasl.jaas.config": jaas_line(mechanism, {})}
    if not listener.jwks_url:
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = security.token_file(user).as_uri()
    return options


def _tls_options(security: BrokerSecurity, user: str | None, store: str) -> dict[str, str]:
    authority = security.authority
    if store not in STORES:
        raise _invalid(f"have stores of {', '.join(STORES)}, not {store!r}", "Name one of them.")
    options = {"kafka.ssl.truststore.type": store.partition("-")[0]}
    if store == "PEM":
        options["kafka.ssl.truststore.location"] = str(authority.file)
    elif store == "PEM-inline":
        options["kafka.ssl.truststore.certificates"] = authority.pem.decode()
    else:
        options["kafka.ssl.truststore.password"] = password = security.new_store_password()
        options["kafka.ssl.truststore.location"] = str(authority.trust_store(store, password))
    if user is None:
        return options
    certificate = authority.issue(user=user)
    options["kafka.ssl.keystore.type"] = store.partition("-")[0]
    if store == "PEM":
        options["kafka.ssl.keystore.location"] = str(authority.write(certificate.pem, f"{user}.pem"))
    elif store == "PEM-inline":
        options["kafka.ssl.keystore.certificate.chain"] = certificate.chain_pem.decode()
        options["kafka.ssl.keystore.key"] = certificate.key_pem.decode()
    else:
        options["kafka.ssl.keystore.password"] = password = security.new_store_password()
        options["kafka.ssl.keystore.location"] = str(authority.key_store(certificate, store, password))
    return options


def _invalid(what: str, hint: str) -> SetupError:
    return SetupError(f"Clients {what}.", condition="BROKER_SECURITY_MISSING", hint=hint)


def _not_there(what: str, hint: str) -> SetupError:
    return SetupError(f"The embedded broker {what}.", condition="BROKER_SECURITY_MISSING", hint=hint)
