"""Brokers of one cluster, each behind a proxy, with a controller of its own that no fault touches.

Clients know the proxies only: brokers advertise them. Brokers talk to each other directly, on a second listener, which
the tests themselves use as well: what they write and check is not subject to bad wires.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    InvalidPartitionsError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from kit.brokers.two_brokers import Member, free_ports, join_cluster
from kit.network.proxy import Proxies, Proxy
from kit.waiting import eventually
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import HOST, BrokerAddress, parse_cluster_id

REPLICAS = 3
MIN_IN_SYNC = 2
SETTLED_WITHIN_S = 300.0
_CONTROLLER_ID = 100
_PREFERRED = 0
_ADMIN_TIMEOUT_MS = 10_000
_T = TypeVar("_T")


class _Controller(EmbeddedKafka):
    """A controller that is not a broker: no client can ask it for metadata, so its log tells when it runs."""

    def _serves(self, address: BrokerAddress, cluster_id: str | None) -> bool:  # noqa: ARG002 - as its parent
        return "Kafka Server started" in self.log


@dataclass
class Node:
    """A broker and its proxy.

    Attributes:
        number: its id in the cluster.
        member: the broker.
        proxy: how clients reach it.
        serves: whether it is meant to answer now.
    """

    number: int
    member: Member
    proxy: Proxy
    serves: bool = True

    @property
    def direct(self) -> str:
        """Its address without a proxy."""
        return self.member.kafka.bootstrap_servers

    def start(self) -> None:
        """Start it again; clients reach it when it serves them."""
        self.member.kafka.start()
        self.proxy.up(self.member.ports["CLIENTS"])
        self.serves = True

    def stop(self) -> None:
        """Stop it in order: it hands over what it leads before it closes its connections."""
        self.serves = False
        self.member.kafka.stop()
        self.proxy.down()

    def pause(self) -> None:
        """Freeze it: connections stay open, and nothing is answered."""
        self.serves = False
        self.member.kafka.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.member.kafka.resume()
        self.serves = True

    def kill(self) -> None:
        """Kill it."""
        self.serves = False
        self.member.kafka.kill()
        self.proxy.down()


class Cluster:
    """The cluster. Made by `running_cluster`."""

    def __init__(self, directory: Path, proxies: Proxies, controller: EmbeddedKafka, quorum: Mapping[str, str]) -> None:
        self._directory = directory
        self._proxies = proxies
        self._id = parse_cluster_id((directory / "controller/meta.properties").read_text())
        self._controller = controller
        self._quorum = quorum
        self._numbers = 0
        self.nodes: dict[int, Node] = {}

    @property
    def direct(self) -> list[str]:
        """Addresses without proxies of the brokers that are meant to answer now."""
        return [node.direct for node in list(self.nodes.values()) if node.serves]

    @property
    def bootstrap_servers(self) -> str:
        """The proxy of the oldest broker that is still a member: what clients are given."""
        return self.nodes[min(self.nodes)].proxy.address

    def add_nodes(self, count: int) -> list[Node]:
        """Start more brokers side by side, each with a new id, and wait until the cluster has them."""
        first = self._numbers + 1
        self._numbers += count
        proxies = {number: self._proxies.add() for number in range(first, first + count)}
        made: dict[int, Node] = {}
        failures: list[BaseException] = []

        def start(number: int, proxy: Proxy) -> None:
            try:
                member = join_cluster(
                    self._directory / f"broker-{number}",
                    number,
                    self._id,
                    self._properties,
                    {"PLAINTEXT": None, "CLIENTS": proxy.address},
                )
                made[number] = Node(number, member, proxy)
                proxy.up(member.ports["CLIENTS"])
            except BaseException as error:  # noqa: BLE001 - given to the thread that waits
                failures.append(error)

        threads = [threading.Thread(target=start, args=each) for each in proxies.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.nodes.update(sorted(made.items()))
        if failures:
            raise failures[0]
        eventually(lambda: self.known_brokers() >= set(self.nodes), SETTLED_WITHIN_S)
        return [made[number] for number in proxies]

    @property
    def _properties(self) -> dict[str, str]:
        return {
            **self._quorum,
            "default.replication.factor": str(REPLICAS),
            "min.insync.replicas": str(MIN_IN_SYNC),
            "offsets.topic.replication.factor": str(REPLICAS),
            "transaction.state.log.replication.factor": str(REPLICAS),
            "transaction.state.log.min.isr": str(MIN_IN_SYNC),
            "transaction.state.log.num.partitions": "3",
            # A follower that stands still is out of step soon, so that writes wait for it no longer.
            "replica.lag.time.max.ms": "5000",
            "controlled.shutdown.enable": "true",
        }

    def close(self) -> None:
        """Kill every broker, paused ones included."""
        for node in self.nodes.values():
            node.kill()
            node.member.kafka.close()

    def administer(self, action: Callable[[Any], _T], done: type[KafkaError] | None = None) -> _T | None:
        """Do something with an administrator's client; again while brokers fail, for they may do so just now.

        Args:
            action: gets the client.
            done: the error that says that a former attempt has succeeded after all.
        """
        end = time.monotonic() + SETTLED_WITHIN_S
        while True:
            admin: Any = None
            try:
                admin = KafkaAdminClient(
                    bootstrap_servers=self.direct, client_id="chaos", request_timeout_ms=_ADMIN_TIMEOUT_MS
                )
                return action(admin)
            except KafkaError as error:
                if done is not None and isinstance(error, done):
                    return None
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
            finally:
                if admin is not None:
                    admin.close()

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Make a topic with replicas on three brokers, leaders in turn; wait until it can be written to."""
        wanted = {name: {"assignments": dict(enumerate(self.spread(partitions))), "configs": dict(config or {})}}
        self.administer(lambda admin: admin.create_topics(wanted), TopicAlreadyExistsError)
        eventually(lambda: self.has_leaders(name), SETTLED_WITHIN_S)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.administer(lambda admin: admin.delete_topics([name]), UnknownTopicOrPartitionError)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records of partitions before an offset."""
        self.administer(lambda admin: admin.delete_records(dict(before)))

    def add_partitions(self, topic: str, count: int) -> None:
        """Raise a topic to this many partitions."""
        now = len(self.partitions(topic))
        wanted = {topic: {"count": count, "assignments": self.spread(count - now, now)}}
        self.administer(lambda admin: admin.create_partitions(wanted), InvalidPartitionsError)
        eventually(lambda: len(self.partitions(topic)) == count and self.has_leaders(topic), SETTLED_WITHIN_S)

    def spread(self, partitions: int, first: int = 0) -> list[list[int]]:
        """Return replicas for partitions from number `first` on, leaders in turn."""
        numbers = sorted(self.nodes)[-REPLICAS:]
        rotations = [numbers[at:] + numbers[:at] for at in range(len(numbers))]
        return [rotations[at % len(rotations)] for at in range(first, first + partitions)]

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return what is known of a topic's partitions now; empty if there is none of that name."""
        with self._ask() as client:
            found = client.fetch_metadata([topic]).topics.get(topic)
        return [] if found is None else list(found.partitions)

    def topics(self) -> list[str]:
        """Return the names of all topics, internal ones included."""
        return sorted(self.administer(lambda admin: admin.list_topics()) or ())

    def known_brokers(self) -> set[int]:
        """Return the brokers that the cluster counts as its own."""
        with self._ask() as client:
            return set(client.fetch_metadata(()).brokers)

    def has_leaders(self, topic: str) -> bool:
        """Whether every partition has a leader."""
        found = self.partitions(topic)
        return bool(found) and all(each.has_leader for each in found)

    def is_settled(self, topic: str) -> bool:
        """Whether every partition has a leader and all replicas in step."""
        found = self.partitions(topic)
        return bool(found) and all(
            each.leader_id is not None and each.leader_id > 0 and len(each.in_sync_ids) == REPLICAS for each in found
        )

    def await_settled(self, topics: Sequence[str] | None = None) -> None:
        """Wait until every replica of topics, by default of all, is in step."""
        for topic in self.topics() if topics is None else topics:
            eventually(lambda topic=topic: self.is_settled(topic), SETTLED_WITHIN_S)  # type: ignore[misc]

    def reassign(self, topics: Sequence[str], replicas: Mapping[TopicPartition, list[int]]) -> None:
        """Put partitions on other brokers, the first of each list leading, and wait until that is done."""
        leaders: dict[str, list[int]] = {}
        for each in replicas:
            leaders.setdefault(each.topic, []).append(each.partition)
        self.administer(lambda admin: admin.alter_partition_reassignments(dict(replicas)))
        eventually(lambda: not self.administer(lambda admin: admin.list_partition_reassignments()), SETTLED_WITHIN_S)
        self.await_settled(topics)
        self.administer(lambda admin: admin.elect_leaders(_PREFERRED, leaders, raise_errors=False))

    def _ask(self) -> KafkaClient:
        servers = [text.rpartition(":") for text in self.direct]
        return KafkaClient(ConnectionOptions(tuple((host, int(port)) for host, _, port in servers)))

    def forget(self, node: Node) -> None:
        """Take a broker that leads and follows nothing any more out of the cluster for good."""
        node.stop()
        del self.nodes[node.number]
        node.member.kafka.close()
        shutil.rmtree(self._directory / f"broker-{node.number}")


@contextmanager
def running_cluster(directory: Path, seed: int = 1, brokers: int = 3) -> Iterator[Cluster]:
    """Run a cluster; its files are put into an empty directory."""
    with ExitStack() as running:
        proxies = running.enter_context(Proxies(seed))
        (port,) = free_ports(1)
        quorum = {"controller.quorum.voters": f"{_CONTROLLER_ID}@{HOST}:{port}"}
        controller = _Controller(
            heap="256m",
            data_dir=directory / "controller",
            properties={
                **quorum,
                "process.roles": "controller",
                "node.id": str(_CONTROLLER_ID),
                "listeners": f"CONTROLLER://{HOST}:{port}",
                "advertised.listeners": f"CONTROLLER://{HOST}:{port}",
            },
        )
        running.callback(controller.close)
        controller.start()
        running.callback(controller.kill)
        cluster = Cluster(directory, proxies, controller, quorum)
        running.callback(cluster.close)
        cluster.add_nodes(brokers)
        yield cluster
