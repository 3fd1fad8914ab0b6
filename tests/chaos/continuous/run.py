"""Kills a continuous query again and again, and prints what came of it.

`python -m chaos.continuous.run --kills 200 --guarantee at_least_once --seed 1`; with `--counts` the query keeps running
counts by key, and every one of them is compared; with `--windows` it counts and adds up in windows, and every window is
compared. Two brokers, a server of Spark Connect with executors of its own, and the query as a client of that server, or
with a Spark of its own. Between the kills of its processes a broker is killed, partitions are added, and topics that it
reads are created and deleted. Exits with 1 where anything was lost, miscounted, or written again that must not be.
"""
# ruff: noqa: T201 - a program

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient
from pyspark import SparkConf
from pyspark.sql import SparkSession

from archive_classes import start_drivers_quickly
from chaos.continuous.kills import AT_LEAST_ONCE, EXACTLY_ONCE, PROGRAM, WITH_STATE, do, plan, rows_of
from chaos.continuous.striking import COUNTING, IN_WINDOWS
from chaos.continuous.world import STEP_S, Killed, KillWorld
from chaos.ledger import Ledger
from chaos.writer import SourceWriter
from faults.cluster import prepare
from kit.brokers.two_brokers import TwoBrokers, two_brokers
from kit.log_checker import Kind
from kit.marked_page import table
from kit.waiting import eventually
from pyspark_kafka.testing import ensure_java_for_spark
from results import Run

GUARANTEES = ("at_least_once", "exactly_once")
RATE = 200.0
_SOURCE, _TARGET, _PARTITIONS = "in-main", "out", 3
_ONE_OF_EACH = ((1, 2), (2, 1))
# The broker that is killed leads half of them, and keeps the positions of the query.
_TOPICS: dict[str, tuple[tuple[int, int], ...]] = {
    _SOURCE: (*_ONE_OF_EACH, (2, 1)),
    _TARGET: _ONE_OF_EACH,
    "__consumer_offsets": ((2, 1),),
}
_PREFERRED = 0
_MASTER = "local-cluster[2,2,1024]"
# What is counted in each run, and in those whose query keeps state.
_COUNTED: tuple[Kind, ...] = ("lost", "duplicated", "read twice", "out of order", "never sent", "damaged", "gaps")
_COUNTED_WITH: dict[str, tuple[Kind, ...]] = {COUNTING: ("miscounted",), IN_WINDOWS: ("wrong totals", "misdirected")}
_HEADS = ("killed", "where", "times", "two more epochs committed after, median", "longest")


@contextmanager
def connect_server(place: Path, master: str) -> Iterator[str]:
    """Run a server of Spark Connect in a JVM of this process; return its address."""
    ensure_java_for_spark()
    conf = SparkConf().setMaster(master)
    conf.setAll(
        [
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.local.dir", f"{place}/local"),
            ("spark.sql.warehouse.dir", f"{place}/warehouse"),
            ("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin"),
            ("spark.connect.grpc.binding.address", "127.0.0.1"),
            ("spark.connect.grpc.binding.port", "0"),
        ]
    )
    if not master.startswith("local["):
        prepare(conf, str(place))
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        jvm: Any = spark._jvm
        service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
        yield f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"
    finally:
        spark.stop()


class Cluster:
    """The brokers and topics around the query, and what is done to them between its kills.

    Args:
        brokers: of the run.
        writer: of the source topics.
        world: the query.
    """

    def __init__(self, brokers: TwoBrokers, writer: SourceWriter, world: KillWorld) -> None:
        self._brokers, self._writer, self._world = brokers, writer, world
        self._partitions = _PARTITIONS
        self._topics: list[str] = []
        self.deleted: list[str] = []
        self.kills: list[Killed] = []

    @property
    def added(self) -> int:
        """How many partitions were added."""
        return self._partitions - _PARTITIONS

    @property
    def topics(self) -> list[str]:
        """The source topics that are there."""
        return [_SOURCE, *self._topics]

    def kill_broker(self) -> None:
        """Kill a broker that leads half of the partitions, and start it again when records flow without it."""
        self._brokers.second.kill()
        moment = time.time()
        self.kills.append(Killed("broker", "leader of half of the partitions", self._world.await_flow(moment)))
        self._brokers.mend()
        eventually(self._is_in_step, STEP_S)
        with self._admin() as admin:
            for topic, replicas in _TOPICS.items():
                admin.elect_leaders(_PREFERRED, {topic: [*range(len(replicas))]})

    def _is_in_step(self) -> bool:
        return all(len(found.in_sync_ids) == 2 for topic in _TOPICS for found in self._brokers.partitions(topic))

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin: Any = KafkaAdminClient(bootstrap_servers=self._brokers.first.bootstrap_servers)
        try:
            yield admin
        finally:
            admin.close()

    def add_partition(self) -> None:
        """Add a partition to the source."""
        self._partitions += 1
        with self._admin() as admin:
            admin.create_partitions({_SOURCE: self._partitions})
        self._writer.write(_SOURCE, self._partitions, RATE)

    def add_topic(self) -> None:
        """Create another source topic."""
        topic = f"in-more-{len(self._topics) + len(self.deleted)}"
        self._brokers.create_topic(topic, _ONE_OF_EACH)
        self._topics.append(topic)
        self._writer.write(topic, len(_ONE_OF_EACH), RATE / 4)

    def delete_topic(self) -> None:
        """Delete a source topic while it is written and read."""
        topic = self._topics.pop(0)
        self.deleted.append(topic)
        self._writer.pause(topic)
        self._brokers.first.delete_topic(topic)


def run(place: Path, given: argparse.Namespace) -> tuple[str, dict[str, int], bool]:
    """Run; return the text of the result, what was counted, and whether all is well."""
    rng = random.Random(given.seed)
    exactly_once = given.guarantee == "exactly_once"
    (place / "spark").mkdir()
    (place / "brokers").mkdir()
    with (
        two_brokers(place / "brokers") as brokers,
        connect_server(place / "spark", given.master) as server,
    ):
        for topic, replicas in _TOPICS.items():
            brokers.create_topic(topic, replicas, {"cleanup.policy": "compact"} if topic.startswith("__") else None)
        servers = brokers.bootstrap_servers
        with (
            SourceWriter(servers.split(","), Ledger()) as writer,
            KillWorld(
                place / "query", servers, server, "in-.*", _TARGET, exactly_once, given.seed, keeps=given.keeps
            ) as world,
        ):
            writer.write(_SOURCE, _PARTITIONS, RATE)
            world.start()
            world.until(lambda: world.last_commit() >= 1, "no epoch was committed")
            cluster = Cluster(brokers, writer, world)
            begun = time.monotonic()
            _strike(world, cluster, given, rng)
            minutes = (time.monotonic() - begun) / 60
            writer.stop()
            world.finish()
            found = world.findings(cluster.topics, frozenset(cluster.deleted))
            failures = world.failures()
    anomalies = found.anomalies(exactly_once=exactly_once)
    ended = world.ended()
    killed = [*world.killed, *cluster.kills]
    if given.keeps == IN_WINDOWS:
        compared = (
            f"{found.windows} windows compared, and {found.late} late rows: {found['lost']} rows lost, "
            f"{found['duplicated']} windows or late rows duplicated, {found['wrong totals']} windows with a wrong "
            f"count or sum; {found['misdirected']} late rows were on time, {found['never sent']} never sent"
        )
    else:
        compared = (
            f"{found['lost']} lost, {found['duplicated']} duplicated, of which {found['read twice']} were read twice; "
            f"{found['never sent']} never sent, {found['damaged']} damaged, {found['out of order']} out of order "
            "within an attempt"
        )
    summary = (
        f"`{given.guarantee}`, seed {given.seed}: {len(killed)} kills in {minutes:.0f} minutes, of one query on one "
        f"checkpoint; {cluster.added} partitions added, {len(cluster.deleted)} topics deleted. {found.expected} "
        f"records in, {found.records} out, deleted topics included, by {found.runs} runs: {compared}; {found['gaps']} "
        f"gaps in the epochs. Queries ended: {len(ended)}."
    )
    if given.keeps == COUNTING:
        summary += f" Running counts by key: {found.counted} compared, {found['miscounted']} wrong."
    for kind, examples in found.examples.items():
        print(f"{kind}: {'; '.join(examples)}", file=sys.stderr)
    for error in ended:
        print(f"ended: {error}", file=sys.stderr)
    print(*failures, sep="\n", file=sys.stderr)
    counts: dict[str, int] = {
        "minutes": round(minutes),
        "kills": len(killed),
        "records in": found.expected,
        "records out": found.records,
        "queries ended": len(ended),
    }
    counts |= {kind: found[kind] for kind in (*_COUNTED, *_COUNTED_WITH.get(given.keeps, ()), *anomalies)}
    return f"{summary}\n\n{table(_HEADS, rows_of(killed))}", counts, not anomalies and not ended


def _strike(world: KillWorld, cluster: Cluster, given: argparse.Namespace, rng: random.Random) -> None:
    """Kill, and do the rest evenly between the kills."""
    kinds = AT_LEAST_ONCE
    if world.exactly_once:
        kinds = WITH_STATE if world.keeps else EXACTLY_ONCE
    kills = list(plan(kinds, given.kills, rng, given.executor_kills, given.frozen))
    between: dict[int, list[Any]] = {}
    others = [cluster.kill_broker] * given.broker_kills + [cluster.add_partition] * 2
    for number, other in enumerate(rng.sample(others, len(others))):
        between.setdefault(len(kills) * (number + 1) // (len(others) + 1), []).append(other)
    for number in range(3):
        between.setdefault(len(kills) * (3 * number + 1) // 10, []).append(cluster.add_topic)
        between.setdefault(len(kills) * (3 * number + 3) // 10, []).append(cluster.delete_topic)
    programs = [number for number, kill in enumerate(kills) if kill.who == PROGRAM]
    own_spark = set(rng.sample(programs, min(given.own_spark, len(programs))))
    end = time.monotonic() + given.minutes * 60
    for number, kill in enumerate(kills):
        if time.monotonic() > end:
            return
        for other in between.get(number, ()):
            other()
            print(f"{time.strftime('%H:%M:%S')} {other.__name__}", flush=True)
        if number in own_spark:
            # Ends the one that runs, with a kill that is not counted.
            world.start(own_spark=True)
            world.await_flow(time.time())
        do(world, kill)
        print(f"{time.strftime('%H:%M:%S')} {len(world.killed)}: {kill.who} {kill.point}", flush=True)


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description="Kill a continuous query at every point of an epoch.")
    parser.add_argument("--guarantee", choices=GUARANTEES, default=GUARANTEES[0])
    keeps = parser.add_mutually_exclusive_group()
    for kept, text in ((COUNTING, "let the query count by key"), (IN_WINDOWS, "let the query aggregate in windows")):
        keeps.add_argument(f"--{kept}", dest="keeps", action="store_const", const=kept, default="", help=text)
    parser.add_argument("--kills", type=int, default=200, help="of the query's processes")
    parser.add_argument("--minutes", type=float, default=120, help="after which nothing more is killed")
    parser.add_argument("--executor-kills", type=int, default=6, help="of them, of executors")
    parser.add_argument("--frozen", type=int, default=2, help="of them, of workers that stand still for 20 s and more")
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--own-spark", type=int, default=5, help="programs that have a Spark of their own")
    parser.add_argument("--master", default=_MASTER, help="of the server of Spark Connect")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.keeps == IN_WINDOWS and given.guarantee != "exactly_once":
        # A row that is read again may come in another batch, and be late there.
        parser.error("--windows needs --guarantee exactly_once: at least once, a window may be written again otherwise")
    start_drivers_quickly()
    guarantee = given.guarantee.replace("_", "-")
    record = Run(f"kills-{guarantee}{f'-{given.keeps}' if given.keeps else ''}")
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        text, counts, is_well = run(Path(place), given)
    print(f"\n{text}")
    record.end(passed=is_well, counts=counts, text=text, seed=given.seed)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
