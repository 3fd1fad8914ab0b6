"""The cluster: its brokers and releases, whether the addresses that they advertise are in reach, and their clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.cluster.errors import explain_unreachable
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.queries.brokers import guess_release, probe_clock
from pyspark_kafka._client.client.queries.listener import probe_listener
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka._ops.diagnosis.steps.login import judge_mechanism
from pyspark_kafka._ops.diagnosis.steps.tls import greet, judge_listener
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import ConnectorError, DeadlineError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.client.cluster.metadata import BrokerNode
    from pyspark_kafka._ops.diagnosis.context import Context

# The oldest release that this package is tested with.
_OLDEST = "2.1"
# Brokers beyond this number are not connected to: a task connects to the leaders of its partitions only.
_ASKED_BROKERS = 50
# Tokens and certificates are checked by the clock; the usual tolerance of token validators is longer.
MAX_SKEW_MS = 5_000


def judge_cluster(context: Context) -> Iterator[Finding]:
    """Fetch the cluster's members, and the request versions of the broker that responds."""
    client = context.client
    found = client.fetch_metadata((), context.step())
    context.metadata = found
    connection = client.any_broker.connect(context.step())
    release = guess_release(connection.versions.offered)
    facts: dict[str, Any] = {
        "cluster_id": found.cluster_id,
        "controller_id": found.controller_id,
        "release": release,
        "features": dict(connection.features),
        "api_versions": {str(key): list(versions) for key, versions in sorted(connection.versions.offered.items())},
        "brokers": [{"id": node.broker_id, "address": node.address, "rack": node.rack} for node in _members(context)],
    }
    text = (
        f"Cluster {found.cluster_id or '(without an id)'}: {counted(len(found.brokers), 'broker')}; "
        f"{connection.address} has the requests of Kafka {release}."
    )
    if release.startswith("older"):
        remedy = f"Upgrade the brokers: Kafka {_OLDEST} is the oldest release that this package works with."
        yield Finding("brokers", FindingStatus.FAILED, text, remedy, facts)
        return
    yield Finding("brokers", FindingStatus.OK, text, facts=facts)


def judge_advertised(context: Context) -> Iterator[Finding]:
    """Connect to every broker by the address that it advertises, with everything that a query does."""
    options = context.settings.connection
    members = _members(context)[:_ASKED_BROKERS]

    def ask(node: BrokerNode) -> Finding | None:
        server = (node.host, node.port)
        try:
            open_connection(*server, options, context.step()).close()
        except ConnectorError as error:
            return _unreachable(context, node, error)
        return None

    reached: list[BrokerNode] = []
    for node, result in ask_all(members, ask, context.step()).items():
        if result is None:
            reached.append(node)
        elif isinstance(result, Finding):
            yield result
        else:
            yield _unreachable(context, node, result)
    if reached:
        named = listed([f"{node.broker_id} ({node.address})" for node in reached])
        left = len(_members(context)) - len(members)
        others = f"; {left} more were not asked" if left > 0 else ""
        verb = "is" if len(reached) == 1 else "are"
        text = f"{counted(len(reached), 'broker')} {verb} in reach by the advertised address: {named}{others}."
        yield Finding("advertised", FindingStatus.OK, text, facts={"brokers": [node.address for node in reached]})
    else:
        context.blocked = "no broker is in reach by the address that it advertises"


def judge_clock(context: Context) -> Iterator[Finding]:
    """Compare the clocks of this machine and of the controller, if the brokers return the controller's."""
    told = probe_clock(context.client.any_broker.connect(context.step()), context.step())
    if told is None:
        yield Finding(
            "clock",
            FindingStatus.UNKNOWN,
            "The clock of the brokers cannot be seen: that needs Kafka 3.3 with KRaft, and the right to describe the "
            "cluster.",
        )
        return
    ahead_ms, error_ms = told
    facts = {"ahead_ms": round(ahead_ms), "error_ms": round(error_ms)}
    if abs(ahead_ms) <= MAX_SKEW_MS + error_ms:
        text = f"The clocks of this machine and of the brokers agree within {abs(ahead_ms) + error_ms:.0f} ms."
        yield Finding("clock", FindingStatus.OK, text, facts=facts)
        return
    side = "ahead of" if ahead_ms > 0 else "behind"
    yield Finding(
        "clock",
        FindingStatus.WARNING,
        f"The clock of the brokers is {abs(ahead_ms) / 1000:.1f} s {side} this machine's clock.",
        "Set both clocks by NTP: tokens and certificates are judged by the clock, and so are timestamps of records.",
        facts,
    )


def _unreachable(context: Context, node: BrokerNode, error: BaseException) -> Finding:
    """Build the finding of a broker that was found through another address, and cannot be used by its own."""
    facts: dict[str, Any] = {"broker_id": node.broker_id, "advertised": node.address}
    text, remedy = str(error), ""
    if isinstance(error, ConnectorError):
        found_at = context.usable[0] if context.usable else None
        explained = explain_unreachable(context.settings.connection, node, error, found_at)
        text, remedy = explained.message, explained.hint
        if explained is error:
            judged = _judge_address(context, node)
            if judged is not None:
                text = f"Broker {node.broker_id}, by the address that it advertises: {judged.text}"
                return Finding("advertised", FindingStatus.FAILED, text, judged.remedy, {**facts, **judged.facts})
            text = f"Broker {node.broker_id} advertises the address {node.address}: {text}"
    if isinstance(error, DeadlineError):
        remedy = (
            f"Open the way to {node.address}, or set advertised.listeners of broker {node.broker_id} to an address "
            "that the driver and all executors can reach."
        )
    return Finding("advertised", FindingStatus.FAILED, text, remedy, facts)


def _judge_address(context: Context, node: BrokerNode) -> Finding | None:
    """Judge protocol and login of the listener behind an advertised address; None if neither is at fault."""
    options, server = context.settings.connection, (node.host, node.port)
    try:
        listener = probe_listener(*server, options, context.step())
    except ConnectorError:
        return None
    refused = greet(server, options, context.step()) if options.uses_tls and listener.uses_tls else None
    judged = judge_listener(server, options, listener, refused)
    if judged.status is not FindingStatus.FAILED:
        return judge_mechanism(server, options, listener)
    return judged


def _members(context: Context) -> list[BrokerNode]:
    return [] if context.metadata is None else [node for _, node in sorted(context.metadata.brokers.items())]
