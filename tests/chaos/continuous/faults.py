"""Faults of continuous queries: of their workers, functions, lanes, records and checkpoints."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kafka import TopicPartition

from chaos.cluster import Node
from chaos.continuous.flowing import RAISE, SLOW, WORKERS
from chaos.continuous.flows import AFTER, BEFORE, FAILS
from chaos.continuous.striking import started_at
from chaos.faults import Scene
from chaos.world import MAIN, Query
from kit.network.wire import CLEAN, Wire

# Of the records that are written during the fault, and of all others.
_POISON, USUAL_POISON = 0.7, 0.005
_RAISED_WITHIN_S = 20.0
_HEARD_S = 5.0
# Longer than four failures in a row, which end a query after 6.2 s if they are not those of its checkpoint.
_CHECKPOINT_FAILS_S = 25.0


@dataclass(frozen=True)
class SlowLanes:
    """Lanes that were held up, while all others were not to wait for them.

    Attributes:
        begin: when it began, in seconds of the epoch.
        end: when it was over.
        query: whose other lanes must not wait.
        partitions: of the main topic, that the slow ones read.
        outs: output partitions that the lanes write to: a transaction that is open there holds up every reader.
    """

    begin: float
    end: float
    query: str
    partitions: frozenset[int]
    outs: frozenset[int]


def _of_main(scene: Scene) -> list[Query]:
    return [query for query in scene.flows if MAIN in query.reads]


def _slow_lane(query: Query, partition: int, span: tuple[float, float], partitions: int) -> SlowLanes:
    """Return what is slow if one partition is: all that its lane reads, and what that writes."""
    lane = frozenset(range(partition % query.tasks, partitions, query.tasks))
    outs = frozenset(each % query.apart for each in lane) if query.apart else frozenset[int]()
    return SlowLanes(*span, query.name, lane, outs)


def _signal_worker(scene: Scene, query: Query, number: signal.Signals) -> int | None:
    """Send a signal to a worker of the newest run of a query; return its id, or None if there is none."""
    notes = sorted(Path(query.place, WORKERS).iterdir(), key=lambda each: each.stat().st_mtime)[-query.tasks :]
    scene.rng.shuffle(notes)
    for note in notes:
        pid = int(note.name)
        with suppress(OSError):
            if started_at(pid) == note.read_text():
                os.kill(pid, number)
                return pid
    return None


def freeze_worker(scene: Scene) -> None:
    """Stop a worker with SIGSTOP, for less or for more than the time after which a silent task is lost."""
    query, seconds = scene.rng.choice(scene.flows), scene.seconds(1, 40)
    with scene.strike("worker frozen", f"{query.name} for {seconds:.1f} s"):
        pid = _signal_worker(scene, query, signal.SIGSTOP)
        time.sleep(seconds)
        if pid is not None:
            # Spark may have killed it meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def kill_worker(scene: Scene) -> None:
    """Kill a worker with SIGKILL."""
    query = scene.rng.choice(scene.flows)
    with scene.strike("worker killed", query.name):
        _signal_worker(scene, query, signal.SIGKILL)
        time.sleep(scene.seconds(1, 3))


def raise_in_function(scene: Scene) -> None:
    """Let the function of a query raise, once or twice."""
    query, times = scene.rng.choice(scene.flows), scene.rng.choice((1, 2))
    with scene.strike("function raises", f"{query.name}, {times} times"):
        armed = [Path(query.place, f"{RAISE}{number}") for number in range(times)]
        for each in armed:
            each.touch()
            end = time.monotonic() + _RAISED_WITHIN_S
            while each.exists() and time.monotonic() < end:
                time.sleep(0.05)
            each.unlink(missing_ok=True)


def slow_lane(scene: Scene) -> None:
    """Let the functions of the lanes of one partition not return for a while."""
    partitions = len(scene.cluster.partitions(MAIN))
    partition = scene.rng.randrange(partitions)
    flows, seconds = _of_main(scene), scene.seconds(20, 30)
    armed = [Path(query.place, SLOW) for query in flows]
    with scene.strike("lane slow", f"{MAIN}-{partition} for {seconds:.1f} s"):
        _end_half_open(scene)
        begin = time.time()
        for each in armed:
            each.write_text(f"{MAIN}-{partition}")
        time.sleep(seconds)
        end = time.time()
        for each in armed:
            each.unlink()
        scene.slow += [_slow_lane(query, partition, (begin, end), partitions) for query in flows]


def slow_partition(scene: Scene) -> None:
    """Hold back what passes the proxy of a broker that leads one partition only, of an input or of an output."""
    flows, cluster = _of_main(scene), scene.cluster
    partitions = len(cluster.partitions(MAIN))
    apart = [query for query in flows if query.apart]
    query = scene.rng.choice([None, *apart])
    topic = MAIN if query is None else query.out
    slow = scene.rng.randrange(len(cluster.partitions(topic)))
    seconds, delay = scene.seconds(20, 30), scene.seconds(2, 8)
    with scene.strike("partition slow", f"{topic}-{slow} by {delay:.1f} s for {seconds:.1f} s"):
        _end_half_open(scene)
        node = _leave_only(scene, topic, slow)
        # Until lanes have heard of it, they ask the broker that is to be slow for others' partitions and coordinators.
        time.sleep(_HEARD_S)
        begin = time.time()
        node.proxy.set_wire(Wire(delay_s=delay))
        time.sleep(seconds)
        node.proxy.set_wire(CLEAN)
        end = time.time()
        # A lane writes to the output partition of its number.
        scene.slow += [
            _slow_lane(each, slow, (begin, end), partitions) for each in (flows if query is None else [query])
        ]


def _end_half_open(scene: Scene) -> None:
    """Reset half-open connections: a healthy lane that uses one of them for the first time now would wait, too."""
    for node in scene.cluster.nodes.values():
        node.proxy.reset_forgotten()


def _leave_only(scene: Scene, topic: str, partition: int) -> Node:
    """Have the leader of a partition lead nothing else, internal topics included; return it."""
    cluster = scene.cluster
    (leader,) = (each.leader_id for each in cluster.partitions(topic) if each.topic_partition.partition == partition)
    moved: dict[TopicPartition, list[int]] = {}
    topics = cluster.topics()
    for name in topics:
        for each in cluster.partitions(name):
            where = each.topic_partition.partition
            others = [broker for broker in each.replica_ids if broker != leader]
            is_it = (name, where) == (topic, partition)
            if leader in each.replica_ids:
                moved[TopicPartition(name, where)] = [leader, *others] if is_it else [*others, leader]
    cluster.reassign(topics, moved)
    return cluster.nodes[leader]


def poison(scene: Scene) -> None:
    """Write mostly records that cannot be read."""
    seconds = scene.seconds(1, 8)
    with scene.strike("poison records", f"for {seconds:.1f} s"):
        scene.writer.poison = _POISON
        time.sleep(seconds)
        scene.writer.poison = USUAL_POISON


def fail_checkpoint(scene: Scene) -> None:
    """Let the files of a checkpoint raise I/O errors, before or after what was asked is done."""
    query, mode = scene.rng.choice(scene.flows), scene.rng.choice((BEFORE, AFTER))
    seconds = min(scene.seconds(0.5, 15), _CHECKPOINT_FAILS_S)
    with scene.strike("checkpoint fails", f"{query.name}, {mode} each call, for {seconds:.1f} s"):
        armed = Path(query.checkpoint + FAILS)
        beside = Path(query.checkpoint + ".armed")
        beside.write_text(mode)
        beside.replace(armed)
        time.sleep(seconds)
        armed.unlink()


FAULTS_OF_FLOWS: Mapping[str, Callable[[Scene], None]] = {
    "worker frozen": freeze_worker,
    "worker killed": kill_worker,
    "function raises": raise_in_function,
    "lane slow": slow_lane,
    "partition slow": slow_partition,
    "poison records": poison,
    "checkpoint fails": fail_checkpoint,
}
# Failures in a row end a query: at most one of these at once.
FAILING = ("worker frozen", "worker killed", "function raises", "checkpoint fails")
# Nothing else happens meanwhile: other lanes are to be quick.
ALONE = ("lane slow", "partition slow")
