"""The SASL exchange of a new connection.

The mechanisms are kafka-python's state machines, free of I/O; this module drives them over a connection that can send
a request and wait for its response. Passwords are revealed here and in `tls`, nowhere else, and never enter an error.

Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyspark_kafka.client.wire.messages import ErrorCode, SaslAuthenticateRequest, SaslHandshakeRequest, broker_error
from pyspark_kafka.errors import MissingDependencyError, OptionError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.options import ConnectionOptions

_DRIVEN_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")


class _Caller(Protocol):
    """What the exchange needs of a connection."""

    address: str

    def call(self, request: Any, deadline: Deadline, *, max_version: int | None = None) -> Any: ...

    def api_version(self, request_class: Any, *, max_version: int | None = None) -> int: ...


def authenticate(connection: _Caller, host: str, options: ConnectionOptions, deadline: Deadline) -> int:
    """Run SaslHandshake and SaslAuthenticate on a fresh connection.

    Runs on: driver and executor, once a connection; blocks.

    Args:
        connection: connected, versions negotiated, nothing in flight.
        host: the name the user or the cluster gave; Kerberos builds the service principal from it.
        options: mechanism and credentials.
        deadline: for the whole exchange.

    Returns:
        Milliseconds after which the broker wants the credentials again; 0 means never.

    Raises:
        AccessError: mechanism or credentials were refused.
        OptionError: the mechanism cannot be used with these options.
        TransportError: the server's part of the exchange was not valid.
        MissingDependencyError: GSSAPI without the `gssapi` package.

    Source: KIP-43, KIP-152, KIP-368.
    """
    mechanism = options.sasl_mechanism or ""
    where = f"SASL authentication ({mechanism}) at {connection.address}"
    machine = _build_machine(mechanism, host, options)
    # Version 0 would send the tokens outside of Kafka's frames; brokers speak version 1 since 1.0.
    if connection.api_version(SaslHandshakeRequest) < 1:
        raise TransportError(
            f"{where} failed: the broker speaks only the unframed SASL exchange of Kafka before 1.0.",
            condition="BROKER_TOO_OLD",
            hint="Upgrade the broker, or use a listener without SASL.",
            facts={"broker": connection.address},
        )
    handshake = connection.call(SaslHandshakeRequest(mechanism=mechanism), deadline)
    if handshake.error_code != ErrorCode.NONE:
        raise broker_error(
            handshake.error_code,
            f"{where} failed",
            detail=f"enabled mechanisms: {', '.join(handshake.mechanisms) or 'none'}",
            broker=connection.address,
            mechanism=mechanism,
        )
    session_lifetime_ms = 0
    while not machine.is_done():
        deadline.check(where)
        response = connection.call(SaslAuthenticateRequest(auth_bytes=machine.auth_bytes()), deadline)
        if response.error_code != ErrorCode.NONE:
            raise broker_error(
                response.error_code,
                f"{where} failed",
                detail=response.error_message,
                broker=connection.address,
                mechanism=mechanism,
            )
        session_lifetime_ms = response.session_lifetime_ms or 0
        try:
            machine.receive(bytes(response.auth_bytes))
        except Exception as error:
            # The state machines raise whatever their parsing meets: ValueError, KeyError, binascii.Error, GSS errors.
            raise _exchange_failed(where, f"the server's response is not valid ({type(error).__name__})") from error
    if not machine.is_authenticated():
        raise _exchange_failed(where, "the exchange ended without success")
    return max(0, session_lifetime_ms)


def _exchange_failed(where: str, reason: str) -> TransportError:
    return TransportError(
        f"{where} failed: {reason}.",
        condition="SASL_EXCHANGE_FAILED",
        hint="Check that user name and password fit this cluster, and that nothing between stands in for the broker.",
        facts={"reason": reason},
    )


def _build_machine(mechanism: str, host: str, options: ConnectionOptions) -> Any:
    if mechanism not in _DRIVEN_MECHANISMS:
        raise OptionError(
            f"SASL mechanism '{mechanism}' cannot be used here; usable are {', '.join(_DRIVEN_MECHANISMS)}.",
            condition="SASL_MECHANISM_UNSUPPORTED",
            hint="Set kafka.sasl.mechanism to one of them.",
            facts={"mechanism": mechanism},
        )
    password = options.sasl_password.reveal() if options.sasl_password is not None else ""
    # It brings all of kafka-python's network code, of which an unauthenticated connection needs nothing.
    from kafka.net.sasl import get_sasl_mechanism  # noqa: PLC0415

    try:
        return get_sasl_mechanism(mechanism)(
            host=host,
            # Keeps kafka-python from logging a warning on each connection; the options already say what is plain.
            security_protocol="",
            sasl_mechanism=mechanism,
            sasl_plain_username=options.sasl_username or "",
            sasl_plain_password=password,
            sasl_kerberos_service_name=options.sasl_kerberos_service_name or "kafka",
        )
    except RuntimeError as error:
        # kafka-python's way of saying that the gssapi package is not there.
        raise MissingDependencyError(
            "SASL mechanism GSSAPI (Kerberos) needs the Python package 'gssapi', which cannot be imported.",
            condition="MISSING_DEPENDENCY",
            hint="Install gssapi on the driver and on the executors.",
            facts={"package": "gssapi"},
        ) from error
    except Exception as error:
        # GSS-API's own error classes cannot be named here: the package is optional.
        raise _exchange_failed(
            f"SASL authentication ({mechanism}) for {host}", f"{type(error).__name__}: {error}"
        ) from error
