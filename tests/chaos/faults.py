"""The faults. Each begins, lasts for a while, and has healed when its function returns."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka import TopicPartition

from chaos.world import BROKER_TIME, MAIN, PATTERN_PARTITIONS, PATTERN_TOPICS
from kit.log_checker import Log
from kit.network.wire import CLEAN, Drip, Wire

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from chaos.cluster import Cluster, Node
    from chaos.continuous.faults import SlowLanes
    from chaos.ledger import Ledger
    from chaos.positions import Positions
    from chaos.world import DriverProcess, Query
    from chaos.writer import SourceWriter

_MAX_PARTITIONS = 12
_KEPT_RECORDS = 300
_READERS_GONE_WITHIN_S = 60.0


@dataclass(frozen=True)
class Strike:
    """One fault that has happened.

    Attributes:
        kind: a key of `FAULTS`.
        begin: when it began, in seconds of the epoch; of a rolling restart each broker's stop is a strike.
        end: when it had healed.
        what: for people.
    """

    kind: str
    begin: float
    end: float
    what: str


@dataclass
class Scene:
    """What faults act on.

    Attributes:
        longest: the factor of all times that a fault lasts; 1 for those of a long run.
        flows: the continuous queries.
        slow: when lanes of them were held up.
    """

    cluster: Cluster
    driver: DriverProcess
    writer: SourceWriter
    ledger: Ledger
    positions: Positions
    rng: random.Random
    longest: float = 1.0
    flows: Sequence[Query] = ()
    strikes: list[Strike] = field(default_factory=list)
    slow: list[SlowLanes] = field(default_factory=list)
    # Of the faults themselves, which are the tests' own.
    failures: list[str] = field(default_factory=list)
    # Held by who changes a topic, so that overlapping faults of one topic come one after the other.
    topics: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def strike(self, kind: str, what: str) -> Iterator[None]:
        """Note a fault that lasts as long as the block."""
        begin = time.time()
        print(f"{time.strftime('%H:%M:%S')} {kind}: {what}", flush=True)  # noqa: T201 - how a long run is followed
        try:
            yield
        finally:
            with self.lock:
                self.strikes.append(Strike(kind, begin, time.time(), what))

    def node(self) -> Node:
        """Return a broker."""
        return self.rng.choice([node for node in self.cluster.nodes.values() if node.serves])

    def seconds(self, least: float, most: float) -> float:
        """Return for how long something lasts."""
        return least + (most - least) * self.longest * self.rng.random()


def rolling_restart(scene: Scene) -> None:
    """Stop and start each broker in order, the next when the one before is in step."""
    for node in list(scene.cluster.nodes.values()):
        with scene.strike("rolling restart", f"broker {node.number}"):
            node.stop()
            node.start()
        scene.cluster.await_settled()


def kill(scene: Scene) -> None:
    """Kill a broker with SIGKILL, and start it again after a while."""
    node = scene.node()
    with scene.strike("kill -9", f"broker {node.number}"):
        node.kill()
        time.sleep(scene.seconds(0.5, 10))
        node.start()
    scene.cluster.await_settled()


def freeze(scene: Scene) -> None:
    """Stop a broker with SIGSTOP for 5 to 40 s."""
    node, seconds = scene.node(), scene.seconds(5, 40)
    with scene.strike("SIGSTOP", f"broker {node.number} for {seconds:.1f} s"):
        node.pause()
        time.sleep(seconds)
        node.resume()
    scene.cluster.await_settled()


def replace_broker(scene: Scene) -> None:
    """Add a broker, move everything of another one to it, and retire that one for good."""
    cluster = scene.cluster
    # The oldest is the one that the queries' bootstrap servers name, the first time.
    old = cluster.nodes[min(cluster.nodes)]
    with scene.strike("broker replaced", f"broker {old.number} retired"):
        (new,) = cluster.add_nodes(1)
        moved: dict[TopicPartition, list[int]] = {}
        topics = cluster.topics()
        for topic in topics:
            for each in cluster.partitions(topic):
                replicas = [new.number if broker == old.number else broker for broker in each.replica_ids]
                moved[TopicPartition(topic, each.topic_partition.partition)] = replicas
        cluster.reassign(topics, moved)
        scene.driver.set_bootstrap(new.proxy.address)
        scene.writer.move([node.direct for node in cluster.nodes.values() if node is not old])
        cluster.forget(old)
    cluster.await_settled()


def move_leaders(scene: Scene) -> None:
    """Have another replica of each partition lead."""
    cluster = scene.cluster
    with scene.strike("leaders moved", "all partitions of all topics of the queries"):
        topics = [topic for topic in cluster.topics() if not topic.startswith("__")]
        moved = {}
        for topic in topics:
            for each in cluster.partitions(topic):
                replicas = list(each.replica_ids)
                moved[TopicPartition(topic, each.topic_partition.partition)] = replicas[1:] + replicas[:1]
        cluster.reassign(topics, moved)


def add_partitions(scene: Scene) -> None:
    """Raise the number of partitions of a source topic."""
    topic = scene.rng.choice((MAIN, *PATTERN_TOPICS))
    with scene.topics[topic]:
        count = len(scene.cluster.partitions(topic)) + 1
        if count <= _MAX_PARTITIONS:
            with scene.strike("partitions added", f"{topic} has {count}"):
                scene.cluster.add_partitions(topic, count)
                scene.writer.write(topic, count, scene.writer.rate(topic))


def recreate_now(scene: Scene) -> None:
    """Delete a topic of the pattern, and create it again at once."""
    _recreate(scene, "topic recreated at once", 0.0)


def recreate_later(scene: Scene) -> None:
    """Delete a topic of the pattern, and create it again after a while."""
    _recreate(scene, "topic recreated later", scene.seconds(3, 15))


def _recreate(scene: Scene, kind: str, pause_s: float) -> None:
    topic = scene.rng.choice(PATTERN_TOPICS)
    with scene.topics[topic], scene.strike(kind, f"{topic} after {pause_s:.1f} s"):
        rate = scene.writer.pause(topic)
        scene.ledger.note_deletion(topic, time.time())
        scene.cluster.delete_topic(topic)
        time.sleep(pause_s)
        scene.cluster.create_topic(topic, PATTERN_PARTITIONS, BROKER_TIME)
        scene.ledger.incarnations[topic] += 1
        scene.writer.write(topic, PATTERN_PARTITIONS, rate)


def delete_unread(scene: Scene) -> None:
    """Delete all records of a topic of the pattern, read or not."""
    topic = scene.rng.choice(PATTERN_TOPICS)
    with scene.topics[topic], scene.strike("unread records deleted", topic):
        scene.ledger.note_deletion(topic, time.time())
        ends = scene.positions.ends(topic)
        with scene.ledger.lock:
            for partition, end in ends.items():
                scene.ledger.deleted_before[Log(topic, partition, scene.ledger.incarnations[topic])] = end
        scene.cluster.delete_records({TopicPartition(topic, key): end for key, end in ends.items()})


def delete_read(scene: Scene) -> None:
    """Delete the records of the main topic that every query has read: none is lost by that."""
    with scene.strike("read records deleted", MAIN):
        read = scene.positions.read_by_all(MAIN)
        before = {key: max(0, end - _KEPT_RECORDS) for key, end in read.items() if end > _KEPT_RECORDS}
        number = scene.positions.keep_from(before)
        # A batch read that was told of what is to go may still run.
        if before and _await_batch_reads(scene, number):
            scene.cluster.delete_records({TopicPartition(MAIN, key): offset for key, offset in before.items()})


def _await_batch_reads(scene: Scene, number: int) -> bool:
    """Wait until a batch read has begun that knows what is to go: they run one after the other."""
    end = time.monotonic() + _READERS_GONE_WITHIN_S
    while time.monotonic() < end:
        told = [each for each in scene.driver.events if each["event"] == "batch read"]
        if not told or told[-1]["readable"] >= number:
            return True
        time.sleep(0.1)
    return False


def _on_the_wire(kind: str, wire: Callable[[Scene], Wire], least: float, most: float) -> Callable[[Scene], None]:
    def fault(scene: Scene) -> None:
        node, seconds = scene.node(), scene.seconds(least, most)
        with scene.strike(kind, f"broker {node.number} for {seconds:.1f} s"):
            node.proxy.set_wire(wire(scene))
            time.sleep(seconds)
            node.proxy.set_wire(CLEAN)

    fault.__doc__ = f"Let the connections to a broker have a fault: {kind}."
    return fault


def forget_connections(scene: Scene) -> None:
    """Leave the connections to a broker open on both sides, and pass nothing on; new ones work."""
    node = scene.node()
    with scene.strike("wire: half-open", f"broker {node.number}"):
        node.proxy.forget()
        time.sleep(scene.seconds(1, 5))


FAULTS: Mapping[str, Callable[[Scene], None]] = {
    "rolling restart": rolling_restart,
    "kill -9": kill,
    "SIGSTOP": freeze,
    "broker replaced": replace_broker,
    "leaders moved": move_leaders,
    "partitions added": add_partitions,
    "topic recreated at once": recreate_now,
    "topic recreated later": recreate_later,
    "unread records deleted": delete_unread,
    "read records deleted": delete_read,
    "wire: delay": _on_the_wire("wire: delay", lambda scene: Wire(delay_s=scene.seconds(0.1, 1.0)), 3, 15),
    "wire: black hole": _on_the_wire("wire: black hole", lambda _: Wire(black_hole=True), 3, 30),
    "wire: response cut": _on_the_wire("wire: response cut", lambda _: Wire(cut=0.5), 2, 10),
    "wire: reset": _on_the_wire("wire: reset", lambda _: Wire(reset=True), 1, 8),
    "wire: half-open": forget_connections,
    "wire: byte by byte": _on_the_wire("wire: byte by byte", lambda _: Wire(drip=Drip()), 3, 12),
}
# Those that need every broker, or take one away: never two of them at once, for two of three replicas must be in step.
OF_BROKERS = (
    "rolling restart",
    "kill -9",
    "SIGSTOP",
    "broker replaced",
    "leaders moved",
)
