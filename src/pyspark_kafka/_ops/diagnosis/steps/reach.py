"""Names and TCP: whether this machine finds the servers, and whether they accept connections."""

from __future__ import annotations

import ipaddress
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.connection import address_of
from pyspark_kafka._client.client.net.tcp import Address, connect, resolve
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka.errors import ConnectorError, DeadlineError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka._ops.diagnosis.context import Context, Server

_SERVERS = "kafka.bootstrap.servers"


def judge_names(context: Context) -> Iterator[Finding]:
    """Look up the name of each bootstrap server."""
    servers = list(dict.fromkeys(context.settings.connection.bootstrap_servers))
    found = ask_all(servers, lambda server: resolve(*server), context.step())
    failures: list[Finding] = []
    for server, result in found.items():
        address = address_of(*server)
        if isinstance(result, list):
            context.named.append(server)
            yield _named(server, result)
            continue
        reason = unreachable_reason(result)
        failures.append(
            Finding(
                "names",
                FindingStatus.FAILED,
                f"The name of {address} cannot be resolved: {reason}.",
                f"Correct '{server[0]}' in {_SERVERS}, or make this machine resolve it (DNS, /etc/hosts).",
                {"server": address, "option": _SERVERS},
            )
        )
    if not context.named:
        context.blocked = "no name of a bootstrap server can be resolved"
    yield from _softened(failures, others_work=bool(context.named))


def judge_tcp(context: Context) -> Iterator[Finding]:
    """Connect to each bootstrap server, without sending anything."""
    options = context.settings.connection
    found = ask_all(context.named, lambda server: connect_once(server, options, context.step()), context.step())
    failures: list[Finding] = []
    for server, result in found.items():
        address = address_of(*server)
        if isinstance(result, float):
            context.accepting.append(server)
            text = f"{address} accepts connections ({result:.1f} ms)."
            yield Finding("tcp", FindingStatus.OK, text, facts={"server": address, "connect_ms": round(result, 1)})
        else:
            failures.append(
                Finding(
                    "tcp",
                    FindingStatus.FAILED,
                    f"{address} accepts no connection: {unreachable_reason(result)}.",
                    unreachable_remedy(server, result),
                    {"server": address, "option": _SERVERS},
                )
            )
    if not context.accepting:
        context.blocked = "no bootstrap server accepts connections"
    yield from _softened(failures, others_work=bool(context.accepting))


def connect_once(server: Server, options: ConnectionOptions, deadline: Deadline) -> float:
    """Open and close a TCP connection; return how many milliseconds that took.

    Raises:
        TransportError: the name is unknown, or no address of it accepts.
        DeadlineError: no response in time.
    """
    addresses = resolve(*server)
    began = time.monotonic()
    sock, _ = connect(address_of(*server), addresses, options, deadline)
    took = (time.monotonic() - began) * 1000
    sock.close()
    return took


def unreachable_reason(error: object) -> str:
    """Return the reason why a server cannot be reached, without its name."""
    if isinstance(error, DeadlineError) or not isinstance(error, ConnectorError):
        return "no response in time"
    return error.parameters.get("reason", error.message.rstrip("."))


def unreachable_remedy(server: Server, error: object) -> str:
    """Return the remedy for a server that accepts no connection."""
    host, port = server
    if "refused" in unreachable_reason(error):
        return (
            f"Correct the port of '{host}:{port}' in {_SERVERS}, or start the broker: the machine is there, and "
            "nothing listens on that port."
        )
    return (
        f"Correct '{host}:{port}' in {_SERVERS}, or open the way to it: a firewall, a security group or a missing "
        "route drops the packets silently."
    )


def _named(server: Server, addresses: list[Address]) -> Finding:
    texts = list(dict.fromkeys(map(str, addresses)))
    facts = {"server": address_of(*server), "addresses": texts}
    with suppress(ValueError):
        ipaddress.ip_address(server[0])
        return Finding("names", FindingStatus.OK, f"{server[0]} is an address; no name is looked up.", facts=facts)
    return Finding("names", FindingStatus.OK, f"{server[0]} is {listed(texts)}.", facts=facts)


def _softened(failures: list[Finding], *, others_work: bool) -> list[Finding]:
    """Return failures as warnings if a query would not notice them: one server that works is enough."""
    if not others_work:
        return failures
    return [
        Finding(each.step, FindingStatus.WARNING, f"{each.text} Others work.", each.remedy, each.facts)
        for each in failures
    ]
