"""The SASL exchange of a new connection.

The mechanisms are state machines, free of I/O; this module drives them over a connection that can send a request and
wait for its response.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark_kafka._client.client.login.credential_ref import resolve_login
from pyspark_kafka._client.client.login.errors import credentials_refused, exchange_failed, handshake_refused
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.client.login.mechanisms import build_mechanism
from pyspark_kafka._client.client.wire.messages import ErrorCode, SaslAuthenticateRequest, SaslHandshakeRequest
from pyspark_kafka._client.options import HiddenBytes, Secret
from pyspark_kafka.errors import OptionError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.login.mechanism import SaslMechanism
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import Login

# SCRAM takes 2, Kerberos 3 or 4; with a broker that never ends it would last until the deadline.
_MAX_ROUNDS = 10


class _Caller(Protocol):
    """The connection, as far as the exchange needs it."""

    address: str

    def call(self, request: Any, deadline: Deadline, *, max_version: int | None = None) -> Any: ...

    def api_version(self, request_class: Any, *, max_version: int | None = None) -> int: ...


def authenticate(connection: _Caller, host: str, login: Login | None, deadline: Deadline) -> int:
    """Run SaslHandshake and SaslAuthenticate on a fresh connection.

    Runs on: driver and executor, once a connection; blocks.

    Args:
        connection: connected, versions negotiated, nothing in flight.
        host: the name from the user or the cluster; Kerberos builds the service principal from it.
        login: mechanism and credentials; None is refused: SASL is not replaced by a connection without.
        deadline: for the whole exchange.

    Returns:
        Milliseconds after which the broker wants the credentials again; 0 means never.

    Raises:
        OptionError: there is no login, or none where the options refer to.
        AccessError: mechanism or credentials were refused.
        TransportError: the server's part of the exchange was not valid.
        MissingDependencyError: GSSAPI without the `gssapi` package.

    Source: KIP-43, KIP-152, KIP-368.
    """
    if login is None:
        raise OptionError(
            f"The connection to {connection.address} is to authenticate with SASL, but there is no login.",
            condition="OPTION_MISSING",
            hint="Set kafka.sasl.mechanism and kafka.sasl.jaas.config.",
            parameters={"broker": connection.address},
        )
    login = resolve_login(login)
    where = f"SASL authentication ({login.mechanism}) at {connection.address}"
    machine = build_mechanism(login, host, deadline)
    # Version 0 would send the tokens outside of Kafka's frames; brokers speak version 1 since 1.0.
    if connection.api_version(SaslHandshakeRequest) < 1:
        raise TransportError(
            f"{where} failed: the broker speaks only the unframed SASL exchange of Kafka before 1.0.",
            condition="BROKER_TOO_OLD",
            hint="Upgrade the broker, or use a listener without SASL.",
            parameters={"broker": connection.address},
        )
    handshake = connection.call(SaslHandshakeRequest(mechanism=machine.name), deadline)
    if handshake.error_code != ErrorCode.NONE:
        offered = handshake.mechanisms or ()
        raise handshake_refused(handshake.error_code, where, login.mechanism, offered, broker=connection.address)
    return max(0, _exchange(connection, machine, login, where, deadline))


def _exchange(connection: _Caller, machine: SaslMechanism, login: Login, where: str, deadline: Deadline) -> int:
    """Take turns with the server until both are done; return the lifetime of the session in ms, 0 for no end."""
    session_lifetime_ms = 0
    for _ in range(_MAX_ROUNDS):
        deadline.check(where)
        response = connection.call(SaslAuthenticateRequest(auth_bytes=HiddenBytes(machine.auth_bytes())), deadline)
        if response.error_code != ErrorCode.NONE:
            code, said = response.error_code, _redact(response.error_message, login)
            raise credentials_refused(code, where, machine, said, broker=connection.address)
        session_lifetime_ms = response.session_lifetime_ms or 0
        try:
            machine.receive(bytes(response.auth_bytes))
        except ExchangeError as error:
            if error.is_refusal:
                code = ErrorCode.SASL_AUTHENTICATION_FAILED
                raise credentials_refused(code, where, machine, str(error), broker=connection.address) from error
            raise exchange_failed(where, str(error)) from error
        if machine.is_done():
            break
    if not machine.is_authenticated():
        raise exchange_failed(where, f"the exchange did not end within {_MAX_ROUNDS} messages")
    return session_lifetime_ms


def _redact(text: str | None, login: Login) -> str | None:
    """Return a server's text with stars where it repeats a secret of the login.

    A hostile server, or one with careless errors in its password check, could otherwise put the secret into our error.
    """
    if text and is_dataclass(login):
        for field in fields(login):
            value = getattr(login, field.name)
            if isinstance(value, Secret):
                text = value.hidden_in(text)
    return text
