"""Errors of connections, with a guess at the cause: listeners, TLS and SASL that do not match. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import DeadlineError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import ConnectorError


def lost(address: str, when: str, cause: OSError | ConnectorError | None) -> TransportError:
    """Build the error for a connection that ended in the middle of normal work."""
    reason = "closed by the broker" if cause is None else str(cause)
    return TransportError(
        f"The connection to {address} was lost {when}: {reason}.",
        condition="CONNECTION_LOST",
        retriable=True,
        parameters={"broker": address, "reason": reason},
    )


def forgotten(address: str, idle_s: float) -> TransportError:
    """Build the error for an idle connection that then brought no response."""
    return TransportError(
        f"The connection to {address} was idle for {idle_s:.0f} s, and then no response came. It was replaced: a "
        "firewall or load balancer may have forgotten it.",
        condition="CONNECTION_FORGOTTEN",
        hint="Set kafka.connections.max.idle.ms below the idle time of the network.",
        retriable=True,
        parameters={"broker": address, "idle_ms": int(idle_s * 1000)},
    )


def silent(address: str, request: str, deadline: Deadline, security_protocol: str) -> DeadlineError:
    """Build the error for a server that sends no response to the first request.

    A TLS listener takes the request for the beginning of a TLS record and waits for the rest, so a wrong security
    protocol also looks like silence.
    """
    return DeadlineError(
        f"{address} accepted the connection, but did not respond to the first request within "
        f"{deadline.timeout_ms:.0f} ms. It may be overloaded, or not a plaintext listener of a Kafka broker.",
        condition="BROKER_SILENT",
        hint=f"Check the address and kafka.security.protocol (now '{security_protocol}').",
        retriable=True,
        parameters={"broker": address, "request": request},
    )


def closed_by_broker(
    address: str, request: str, responses: int, options: ConnectionOptions, cause: OSError | None
) -> TransportError:
    """Build the error for a connection that the broker closed instead of responding.

    Args:
        address: the broker's.
        request: the name of the request without a response.
        responses: how many responses came before; with 0 or 1 the step of the setup that failed is known.
        options: what the user chose.
        cause: the socket's error, if there was one.
    """
    protocol = options.security_protocol
    if responses == 0 and not options.uses_tls:
        condition = "BROKER_CLOSED_FIRST_READ"
        text = (
            f"{address} closed the connection before its first response. This often means a plaintext client on a TLS "
            "listener, or a broker that is starting or stopping."
        )
        hint = f"Check kafka.security.protocol (now '{protocol}')."
    elif responses == 0:
        condition = "BROKER_CLOSED_FIRST_READ"
        text = (
            f"{address} closed the connection after the TLS handshake, before its first response. This often means "
            "that it asks for a client certificate, or refused this client's, or that it is starting or stopping."
        )
        hint = "Check kafka.ssl.keystore.location, and the log of the broker."
    elif responses == 1 and not options.uses_sasl:
        condition = "BROKER_CLOSED_FIRST_READ"
        text = (
            f"{address} closed the connection at the first request after version negotiation ({request}). This often "
            "means a client without SASL on a listener that requires SASL, or a broker that is stopping."
        )
        with_login = "SASL_SSL" if options.uses_tls else "SASL_PLAINTEXT"
        hint = (
            f"Set kafka.security.protocol to {with_login} (now '{protocol}'), kafka.sasl.mechanism and "
            "kafka.sasl.jaas.config, if the listener requires a login."
        )
    elif request.startswith("Sasl"):
        condition = "BROKER_CLOSED_DURING_SASL"
        text = (
            f"{address} closed the connection during SASL authentication ({request}). This often means wrong "
            "credentials, or a mechanism that the listener does not offer."
        )
        hint = "Check kafka.sasl.mechanism, user name and password."
    else:
        return lost(address, f"while the response to {request} was pending", cause)
    return TransportError(
        text,
        condition=condition,
        hint=hint,
        # Only a guess: a broker that is going down looks the same.
        retriable=True,
        parameters={"broker": address, "request": request},
    )


def session_ended(address: str, request: str) -> TransportError:
    """Build the error for a request that the broker read after the session of the login had ended (KIP-368)."""
    return TransportError(
        f"The connection to {address} was lost while the response to {request} was pending: the session of its login "
        "had ended before the broker read the request.",
        condition="SESSION_ENDED",
        retriable=True,
        parameters={"broker": address, "request": request},
    )


def session_not_renewed(address: str, error: ConnectorError) -> TransportError:
    """Build the error for a login that was not accepted again on the same connection; on a new one it may be."""
    return TransportError(
        f"The session of the login at {address} could not be renewed on the same connection, which was closed: "
        f"{error.message}",
        condition="SESSION_NOT_RENEWED",
        retriable=True,
        parameters={"broker": address},
    )
