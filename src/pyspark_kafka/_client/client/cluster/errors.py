"""Errors about unusable brokers: no member, or not reachable from here.

Pure: no sockets, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.client.cluster.metadata import BrokerNode
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import ConnectorError


def broker_unknown(broker_id: int, members: Mapping[int, BrokerNode]) -> TransportError:
    """Build the error for a broker that is not a member of the cluster."""
    named = ", ".join(f"{known} ({node.address})" for known, node in sorted(members.items()))
    return TransportError(
        f"Broker {broker_id} is not a member of the cluster now; members are {named}.",
        condition="BROKER_UNKNOWN",
        retriable=True,
        parameters={"broker_id": broker_id},
    )


def metadata_without_brokers(address: str) -> TransportError:
    """Build the error for metadata of a broker that has not received its cluster's state yet."""
    return TransportError(
        f"{address} knows of no brokers: it has only just started, or lost its cluster.",
        condition="METADATA_WITHOUT_BROKERS",
        retriable=True,
        parameters={"broker": address},
    )


def explain_unreachable(
    options: ConnectionOptions, node: BrokerNode, error: ConnectorError, found_at: tuple[str, int] | None = None
) -> ConnectorError:
    """Return the error for a broker that cannot be connected to.

    If its address cannot be reached at all, the error is one about the advertised address; otherwise it is `error`.

    Args:
        options: how to reach the cluster.
        node: the broker, with the address that it advertises.
        error: why it cannot be connected to.
        found_at: the server that has named the broker; None if that is not known.
    """
    if error.condition not in ("CONNECTION_FAILED", "HOST_UNKNOWN") or found_at == (node.host, node.port):
        # A broker that was reached at the address that it advertises is right about it: it is away.
        return error
    servers = ",".join(f"{host}:{port}" for host, port in options.bootstrap_servers)
    worked = servers if found_at is None else f"{found_at[0]}:{found_at[1]}"
    guess = ""
    if _is_loopback(node.host) and not (found_at is not None and _is_loopback(found_at[0])):
        guess = f" {node.host} is the machine itself that connects to it: from elsewhere, no broker is there."
    elif error.condition == "HOST_UNKNOWN":
        guess = f" The name {node.host} is not known here: it may be one of a private network, such as a container's."
    return TransportError(
        f"Broker {node.broker_id} advertises the address {node.address}, which this machine cannot reach, although "
        f"{worked} was reached and has named it.{guess} {error.message}",
        condition="ADVERTISED_ADDRESS_UNREACHABLE",
        hint="If the broker runs, set its advertised.listeners to an address that the driver and all executors can "
        f"reach, as they reach {worked} (a guess).",
        retriable=True,
        parameters={"broker_id": node.broker_id, "broker": node.address, "servers": servers, "found_at": worked},
    )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
