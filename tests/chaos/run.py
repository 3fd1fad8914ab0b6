"""Runs a cluster in motion and prints what came of it: `python -m chaos.run --minutes 60 --seed 1`.

Exits with 1 where anything was lost, read twice, duplicated under exactly once, or a query ended.
"""
# ruff: noqa: T201 - a program

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from kafka.errors import KafkaError

from archive_classes import start_drivers_quickly
from chaos.cluster import running_cluster
from chaos.continuous.faults import ALONE, FAILING, FAULTS_OF_FLOWS, USUAL_POISON
from chaos.continuous.visible import VisibleTimes
from chaos.faults import FAULTS, OF_BROKERS, Scene
from chaos.ledger import Ledger
from chaos.outcome import collect
from chaos.positions import Positions
from chaos.report import Outcome
from chaos.world import (
    BATCH_OUT,
    MAIN,
    MAIN_PARTITIONS,
    PATTERN_PARTITIONS,
    PATTERN_TOPICS,
    DriverProcess,
    DriverSpec,
    Query,
    compared_queries,
    continuous_queries,
    create_topics,
    usual_queries,
)
from chaos.writer import SourceWriter
from pyspark_kafka.errors import ConnectorError
from results import Run

# Longer than any partition stands still: a frozen broker holds its partitions up until others have taken over.
_WATERMARK_S = 120
# Enough for the first micro-batches; while Spark starts its Python processes nothing else should keep the machine busy.
_RATE_AT_START = 5.0
MAIN_RATE, PATTERN_RATE = 150.0, 30.0
_CALM_S = (2.0, 5.0)
# For those who are in the middle of something when the time is over.
_JOIN_S = 300.0
# For micro-batches and batch jobs; each task of a continuous query has one of its own for good.
_SLOTS, _ATTEMPTS = 2, 4
_COMPARED_RESTARTS = 3

Step = tuple[str, ...]


def steps(
    minutes: float, rng: random.Random, clock: Callable[[], float] = time.monotonic, *, continuous: bool = False
) -> Iterator[Step]:
    """Return faults until the time is over: each alone, then overlapping ones, and again."""
    end = clock() + minutes * 60
    kinds = [*FAULTS, *FAULTS_OF_FLOWS] if continuous else [*FAULTS]
    others = [kind for kind in kinds if kind not in (*OF_BROKERS, *ALONE)]

    def overlapping() -> Step:
        while True:
            found = rng.sample(others, 2)
            if sum(kind in FAILING for kind in found) < 2:
                return tuple(found)

    while True:
        alone: list[Step] = [(kind,) for kind in rng.sample(kinds, len(kinds))]
        pairs: list[Step] = [(kind, *overlapping()) for kind in rng.sample(OF_BROKERS, len(OF_BROKERS))]
        pairs += [overlapping() for _ in range(len(others) // 3)]
        for step in [*alone, *rng.sample(pairs, len(pairs))]:
            if clock() > end:
                return
            yield step


def repeated(minutes: float, only: Sequence[str], clock: Callable[[], float] = time.monotonic) -> Iterator[Step]:
    """Return some faults in turn, each alone, until the time is over."""
    end = clock() + minutes * 60
    for kind in itertools.cycle(only):
        if clock() > end:
            return
        yield (kind,)


def strike(scene: Scene, todo: Iterable[Step], calm_s: tuple[float, float] = _CALM_S) -> None:
    """Let faults happen, those of one step at once; wait after each step until the cluster has settled."""
    for step in todo:
        failures: list[BaseException] = []

        def run(kind: str, failures: list[BaseException] = failures) -> None:
            try:
                {**FAULTS, **FAULTS_OF_FLOWS}[kind](scene)
            except BaseException as error:  # noqa: BLE001 - given to the thread that waits
                print(f"{time.strftime('%H:%M:%S')} {kind}: {error!r}", flush=True)
                failures.append(error)

        threads = [threading.Thread(target=run, args=(kind,), name=kind) for kind in step]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_JOIN_S)
        if failures:
            raise failures[0]
        if any(thread.is_alive() for thread in threads):
            raise AssertionError(f"{step} did not end within {_JOIN_S:g} s")
        time.sleep(scene.rng.uniform(*calm_s))


def run(
    place: Path,
    queries: Sequence[Query],
    todo: Callable[[random.Random], Iterable[Step]],
    seed: int,
    *,
    batch_jobs: bool = True,
    jars: tuple[str, ...] = (),
    longest: float = 1.0,
    calm_s: tuple[float, float] = _CALM_S,
) -> Outcome:
    """Run cluster, queries and faults, and check.

    Args:
        place: an empty folder.
        queries: that run all the time.
        todo: returns the steps, once everything runs.
        seed: of the faults and of the wires.
        batch_jobs: whether batch reads and writes run beside them.
        jars: for Spark's driver.
        longest: the factor of all times that a fault lasts.
        calm_s: how long it is calm between steps, from and to.
    """
    rng = random.Random(seed)
    batch_topics = {"read": MAIN, "write": BATCH_OUT} if batch_jobs else {}
    ledger = Ledger()
    flows = [query for query in queries if query.tasks]
    slots = sum(query.tasks for query in flows) + _SLOTS
    (place / "cluster").mkdir()
    with running_cluster(place / "cluster", seed) as cluster:
        create_topics(cluster, queries)
        spec = DriverSpec(
            place=str(place / "driver"),
            queries={query.name: asdict(query) for query in queries},
            batch_topics=batch_topics,
            master=f"local[{slots},{_ATTEMPTS}]",
            jars=jars,
        )
        with (
            DriverProcess(spec, cluster.bootstrap_servers) as driver,
            SourceWriter(cluster.direct, ledger, seed) as writer,
            VisibleTimes(cluster, [out for query in flows if query.exactly_once for out in query.outs]) as visible,
        ):
            if flows:
                writer.poison = USUAL_POISON
            topics = {MAIN: (MAIN_PARTITIONS, MAIN_RATE)}
            topics.update(dict.fromkeys(PATTERN_TOPICS, (PATTERN_PARTITIONS, PATTERN_RATE)))
            for topic, (partitions, _) in topics.items():
                writer.write(topic, partitions, _RATE_AT_START)
            positions = Positions(cluster, driver, queries)
            positions.start()
            try:
                driver.await_running()
                for topic, (partitions, rate) in topics.items():
                    writer.write(topic, partitions, rate)
                begin = time.time()
                print(f"{time.strftime('%H:%M:%S')} all queries run", flush=True)
                scene = Scene(cluster, driver, writer, ledger, positions, rng, longest, flows)
                try:
                    strike(scene, todo(rng), calm_s)
                    cluster.await_settled()
                except (AssertionError, KafkaError, ConnectorError) as error:
                    # What the queries have done until then is worth a look all the same.
                    scene.failures.append(repr(error))
                end = time.time()
                writer.stop()
                driver.finish()
            finally:
                positions.stop()
        return collect(cluster, scene, queries, driver, (begin, end), seed, visible)


def compare(place: Path, jars: tuple[str, ...], seed: int) -> str:
    """Restart the brokers in turn under two queries that do the same, ours and one of Spark's connector."""
    todo = [("rolling restart",)] * _COMPARED_RESTARTS
    outcome = run(place, compared_queries(place), lambda _: todo, seed, batch_jobs=False, jars=jars)
    gaps = {name: sorted(outcome.gaps(name)) for name in outcome.findings}
    shown = {name: f"p50 {statistics.median(found):.1f} s, max {found[-1]:.1f} s" for name, found in gaps.items()}
    return (
        f"{_COMPARED_RESTARTS} rolling restarts of all brokers under two queries that do the same in one session, "
        "longest time without a record though there was one to read, of each broker's restart: "
        f"pyspark-kafka {shown['ours']}; Spark's connector {shown['theirs']}.\n\n"
        f"{outcome.table_of_queries()}"
    )


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Make a folder for a run, and keep the driver's log and events if that is asked for."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        place = Path(name)
        try:
            yield place
        finally:
            if kept is not None:
                kept.mkdir(parents=True, exist_ok=True)
                for each in ("log", "events.jsonl"):
                    if (place / "driver" / each).exists():
                        shutil.copy(place / "driver" / each, kept)


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description="Queries on a cluster of three brokers that is in motion.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", choices=("all", "micro-batch", "continuous"), default="all")
    parser.add_argument("--faults", type=lambda text: text.split(","), help="only these, in turn, with commas between")
    parser.add_argument("--longest", type=float, default=1.0, help="the factor of all times that a fault lasts")
    parser.add_argument("--jvm-jars", type=Path, help="a folder with the jars of Spark's connector, to compare with it")
    parser.add_argument("--keep", type=Path, help="a folder for the driver's log and events")
    given = parser.parse_args()
    start_drivers_quickly()
    record = Run("chaos")
    if given.jvm_jars is not None:
        jars = tuple(sorted(str(path) for path in given.jvm_jars.resolve().glob("*.jar")))
        with _folder(given.keep and given.keep / "compared") as place:
            print(f"\n{compare(place, jars, given.seed)}\n", flush=True)
    with _folder(given.keep) as place:
        queries = [
            *(usual_queries(place, _WATERMARK_S) if given.queries != "continuous" else ()),
            *(continuous_queries(place) if given.queries != "micro-batch" else ()),
        ]
        outcome = run(
            place,
            queries,
            lambda rng: (
                repeated(given.minutes, given.faults)
                if given.faults
                else steps(given.minutes, rng, continuous=given.queries != "micro-batch")
            ),
            given.seed,
            batch_jobs=given.queries != "continuous",
            longest=given.longest,
        )
    print(f"\n{outcome.text()}")
    print(outcome.details(), file=sys.stderr)
    # A part of the queries or faults is for people who change them.
    if given.queries == "all" and not given.faults:
        record.end(passed=not outcome.anomalies, counts=outcome.counts, text=outcome.text(), seed=given.seed)
    return 1 if outcome.anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
