"""Errors about brokers that cannot be asked: no member of the cluster, or not reachable from this machine.

Pure: no sockets, no clock. Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.metadata import BrokerNode
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.options import ConnectionOptions


def broker_unknown(broker_id: int, members: Mapping[int, BrokerNode]) -> TransportError:
    """Build the error for a broker that is no member of the cluster."""
    named = ", ".join(f"{known} ({node.address})" for known, node in sorted(members.items()))
    return TransportError(
        f"Broker {broker_id} is not a member of the cluster now; members are {named}.",
        condition="BROKER_UNKNOWN",
        retriable=True,
        facts={"broker_id": broker_id},
    )


def metadata_without_brokers(address: str) -> TransportError:
    """Build the error for metadata of a broker that has not heard of its cluster yet."""
    return TransportError(
        f"{address} knows of no brokers: it has only just started, or lost its cluster.",
        condition="METADATA_WITHOUT_BROKERS",
        retriable=True,
        facts={"broker": address},
    )


def explain_unreachable(options: ConnectionOptions, node: BrokerNode, error: ConnectorError) -> ConnectorError:
    """Return the error for a broker that cannot be connected to.

    If its address cannot be reached at all, the error is one about the advertised address; otherwise it is `error`.
    """
    if error.condition not in ("CONNECTION_FAILED", "HOST_UNKNOWN"):
        return error
    servers = ",".join(f"{host}:{port}" for host, port in options.bootstrap_servers)
    return TransportError(
        f"Broker {node.broker_id} advertises the address {node.address}, which this machine cannot reach, although "
        f"the cluster was found through {servers}. {error}",
        condition="ADVERTISED_ADDRESS_UNREACHABLE",
        hint="If the broker runs, its advertised.listeners names an address that is not valid from here "
        "(a guess); it must be reachable from the driver and from all executors.",
        retriable=True,
        facts={"broker_id": node.broker_id, "broker": node.address, "servers": servers},
    )
