"""A real cluster of two brokers, one of which tests may kill.

Broker 1 is an `EmbeddedKafka` as it is, the controller with it; it is in rack "a" and stays up. Broker 2 is another
that joins the first one's cluster, in rack "b".
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from kit.reading import options_for
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import HOST, parse_cluster_id

COMMITS = "commits"
_TRANSACTIONS = "__transaction_state"
# Replicas of partitions by number, the preferred leader first: one partition led by each broker.
_ONE_EACH = ((1, 2), (2, 1))
_PREFERRED = 0
_START_ATTEMPTS = 3
_DIRECT: Mapping[str, str | None] = {"PLAINTEXT": None}
# Two JVMs on a busy machine.
_SETTLED_WITHIN_S = 2 * PATIENCE_S


@dataclass(frozen=True)
class TwoBrokers:
    """The cluster.

    Transactions and commit markers have two partitions each, one led by each broker, with replicas on both.

    Attributes:
        first: broker 1, rack "a", never killed.
        second: broker 2, rack "b".
    """

    first: EmbeddedKafka
    second: EmbeddedKafka

    @property
    def bootstrap_servers(self) -> str:
        """Both addresses."""
        return f"{self.second.bootstrap_servers},{self.first.bootstrap_servers}"

    def options(self, **changes: Any) -> ConnectionOptions:
        """Return the addresses to reach it; only broker 1 can be relied on."""
        return options_for(self.bootstrap_servers, **changes)

    def number_of(self, port: int) -> int:
        """Return the broker that listens on a port."""
        return {_port_of(self.first): 1, _port_of(self.second): 2}[port]

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin: Any = KafkaAdminClient(bootstrap_servers=self.first.bootstrap_servers)
        try:
            yield admin
        finally:
            admin.close()

    def create_topic(
        self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> str:
        """Make a topic with one partition an entry, which names its brokers, the leader first; return its name."""
        assignments = {number: list(brokers) for number, brokers in enumerate(replicas)}
        with self._admin() as admin:
            admin.create_topics({name: {"assignments": assignments, "configs": dict(config or {})}})
        self._await_leaders(name, [brokers[0] for brokers in replicas])
        return name

    def partitions(self, topic: str, broker: EmbeddedKafka | None = None) -> list[PartitionMetadata]:
        """Return what a broker, or else broker 1, knows of a topic now."""
        with _ask(broker or self.first) as client:
            return list(client.fetch_metadata([topic]).topics[topic].partitions)

    def mend(self) -> None:
        """Bring broker 2 back; wait until it is in step, and leads again what it is meant to."""
        self.second.start()
        eventually(self._has_both, _SETTLED_WITHIN_S)
        for topic in (_TRANSACTIONS, COMMITS):
            self._elect(topic, [1, 2])

    def move_leader(self, topic: str, broker: int) -> None:
        """Let a broker lead the only partition of a topic, which both brokers have."""
        with self._admin() as admin:
            admin.alter_partition_reassignments({TopicPartition(topic, 0): [broker, 3 - broker]})
        self._elect(topic, [broker])

    def _elect(self, topic: str, leaders: list[int]) -> None:
        """Let the preferred replicas, which these are, lead; once they are in step."""
        eventually(lambda: all(len(found.in_sync_ids) == 2 for found in self.partitions(topic)), _SETTLED_WITHIN_S)
        with self._admin() as admin:
            admin.elect_leaders(_PREFERRED, {topic: [*range(len(leaders))]})
        self._await_leaders(topic, leaders)

    def _await_leaders(self, topic: str, leaders: list[int]) -> None:
        """Wait until both brokers say who leads."""
        for broker in (self.first, self.second):
            eventually(
                lambda broker=broker: [p.leader_id for p in self.partitions(topic, broker)] == leaders,  # type: ignore[misc]
                _SETTLED_WITHIN_S,
            )

    def _has_both(self) -> bool:
        with _ask(self.first) as client:
            return set(client.fetch_metadata(()).brokers) == {1, 2}


@contextmanager
def two_brokers(directory: Path) -> Iterator[TwoBrokers]:
    """Run the cluster; its files are put into an empty directory."""
    with ExitStack() as running:
        first, (_, controller_port) = start_on_free_ports(2, partial(_first_in, directory / "first"))
        running.enter_context(first)
        running.callback(first.kill)
        cluster_id = parse_cluster_id((directory / "first/meta.properties").read_text())
        second = join_cluster(directory / "second", 2, cluster_id, _in_rack("b") | _quorum(controller_port)).kafka
        running.enter_context(second)
        # Killed, for an orderly stop takes longer: closing sees no data directory that it may remove.
        running.callback(second.kill)
        cluster = TwoBrokers(first, second)
        eventually(cluster._has_both, _SETTLED_WITHIN_S)
        # As brokers make it themselves, but for who leads what.
        compacted = {"cleanup.policy": "compact"}
        cluster.create_topic(_TRANSACTIONS, _ONE_EACH, compacted | {"compression.type": "uncompressed"})
        cluster.create_topic(COMMITS, _ONE_EACH, compacted)
        yield cluster


@dataclass(frozen=True)
class Member:
    """A broker that has joined a cluster.

    Attributes:
        kafka: the broker; its `bootstrap_servers` are those of the listener PLAINTEXT.
        ports: of each listener by name.
    """

    kafka: EmbeddedKafka
    ports: Mapping[str, int]


def join_cluster(
    data_dir: Path,
    node_id: int,
    cluster_id: str | None,
    properties: Mapping[str, str],
    listeners: Mapping[str, str | None] = _DIRECT,
) -> Member:
    """Start a broker that is not a controller in a cluster that runs.

    Args:
        data_dir: a folder that does not exist.
        node_id: its number, which the cluster has not seen before.
        cluster_id: the cluster's.
        properties: more of its properties; the controllers must be among them.
        listeners: by name what each advertises, or None for the address on which it listens. One is PLAINTEXT.
    """
    # What formatting would write, but for the cluster's id, which it would make up.
    data_dir.mkdir()
    (data_dir / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")

    def member_on(*ports: int) -> EmbeddedKafka:
        own = {name: f"{HOST}:{port}" for name, port in zip(listeners, ports, strict=True)}
        advertised = {name: address or own[name] for name, address in listeners.items()}
        changes = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": ",".join(f"{name}://{address}" for name, address in own.items()),
            "advertised.listeners": ",".join(f"{name}://{address}" for name, address in advertised.items()),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in ("CONTROLLER", *listeners)),
            **properties,
        }
        port = int(own["PLAINTEXT"].rpartition(":")[2])
        return EmbeddedKafka(port=port, heap="256m", data_dir=data_dir, properties=changes)

    kafka, ports = start_on_free_ports(len(listeners), member_on)
    return Member(kafka, dict(zip(listeners, ports, strict=True)))


def start_on_free_ports(count: int, make: Callable[..., EmbeddedKafka]) -> tuple[EmbeddedKafka, list[int]]:
    """Start the broker that `make` returns for this number of ports; return both.

    Others are taken if something else listens on one of them before the broker does.
    """
    for _ in range(_START_ATTEMPTS - 1):
        ports = free_ports(count)
        try:
            return make(*ports).start(), ports
        except SetupError as error:
            if error.condition != "PORT_IN_USE":
                raise
    ports = free_ports(count)
    return make(*ports).start(), ports


def _first_in(data_dir: Path, port: int, controller_port: int) -> EmbeddedKafka:
    listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
    properties = _in_rack("a") | _quorum(controller_port) | {"listeners": listeners}
    return EmbeddedKafka(port=port, heap="256m", data_dir=data_dir, properties=properties)


def _quorum(controller_port: int) -> dict[str, str]:
    return {"controller.quorum.voters": f"1@{HOST}:{controller_port}"}


def _ask(broker: EmbeddedKafka) -> KafkaClient:
    return KafkaClient(ConnectionOptions(((HOST, _port_of(broker)),)))


def _in_rack(rack: str) -> dict[str, str]:
    return {
        "broker.rack": rack,
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "transaction.state.log.num.partitions": "2",
    }


def _port_of(kafka: EmbeddedKafka) -> int:
    return int(kafka.bootstrap_servers.rpartition(":")[2])


def free_ports(count: int) -> list[int]:
    """Find ports of loopback that are free now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]
