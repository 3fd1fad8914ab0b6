"""The fault tests of exactly-once writes, long: kills at all crash points, and a table of what came of them.

`python -m faults.run --kills 20 --task-kills 20 --seed 1`. Exits with 1 where anything was lost, duplicated, torn or
otherwise not as it was sent.
"""
# ruff: noqa: T201 - a program

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from archive_classes import start_drivers_quickly
from faults.checker import BatchFindings
from faults.harness import RECORDS_PER_BATCH, SOURCE_PARTITIONS, TWO_EXECUTORS, Stop, World
from faults.points import PROTOCOLS, TASKS
from faults.topics import watching
from kit.log_checker import Kind
from kit.marked_page import table
from pyspark_kafka.testing import EmbeddedKafka
from results import Run

_SHOWN: tuple[Kind, ...] = ("lost", "duplicated", "torn")
_HEADS = ("killed", "where", "runs", *_SHOWN, "other", "recovered in, median")
# A task is tried this often; every batch has one that dies once.
_TASK_FAILURES = 3


@dataclass
class Line:
    """What came of the kills at one point.

    Attributes:
        who: what is killed.
        where: the point, for people.
        batches: the micro-batches in which it was.
        seconds: from the start of the next query, or from the kill of a task, until Spark had noted the batch.
    """

    who: str
    where: str
    batches: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def spread(names: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return each name about as often as the others, in random order."""
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += rng.sample(names, len(names))
    return chosen[:count]


def kill_drivers(
    world: World, commit: str, kills: int, minutes: float, rng: random.Random, lines: dict[str, Line]
) -> int:
    """Kill drivers, one after another, on one checkpoint; each recovers what the one before has left.

    Returns:
        How many were killed; a kill while it recovers from another counts as well.
    """
    once, twice, _ = PROTOCOLS[commit]
    end = time.monotonic() + minutes * 60
    done = 0
    left = spread([*once, *twice], kills, rng)
    waiting: list[tuple[Line, int]] = []
    for name in left:
        if done >= kills or time.monotonic() > end:
            break
        where = "; then, in recovery, ".join(once[point] for point in twice.get(name, (name,)))
        line = lines.setdefault(name, Line("driver", where))
        # A batch that was not planned yet when its driver died is the next one still.
        batch = max(world.next_batch, *(interrupted + 1 for _, interrupted in waiting), 0)
        line.batches.append(batch)
        for point in twice.get(name, (name,)):
            world.produce(1)
            stop = Stop(batch, point)
            with world.driver(stop, options=_partitioning(rng)) as driver:
                driver.await_stop(stop)
                for earlier, interrupted in waiting:
                    earlier.seconds.append(driver.seconds_to(interrupted))
                driver.kill()
            waiting = []
        waiting = [(line, batch)]
        done += len(twice.get(name, (name,)))
        print(f"{done} drivers killed: batch {batch}, {name}", flush=True)
    last = world.run_to_end()
    for earlier, interrupted in waiting:
        earlier.seconds.append(last.seconds_to(interrupted))
    return done


def kill_processes(world: World, commit: str, kills: int, rng: random.Random, lines: dict[str, Line]) -> None:
    """Kill the Python processes of a driver that plan or commit; its query fails, and is started again."""
    once, twice, _ = PROTOCOLS[commit]
    first = world.next_batch
    names = [name for name in (*once, *twice) if not TASKS.keys() & set(twice.get(name, (name,)))]
    chains = [twice.get(name, (name,)) for name in spread(names, kills, rng)]
    stops: list[Stop] = []
    for batch, points in enumerate(chains, first):
        stops.append(Stop(batch, points[0]))
        stops += [Stop(batch, point, after=stops[-1].name) for point in points[1:]]
    world.produce(kills + 1)
    with world.driver(*stops, options=_partitioning(rng), available_now=True, restarts=len(stops)) as driver:
        for stop in stops:
            driver.kill_at(stop)
        if driver.await_end():
            raise AssertionError(f"the query failed\n{driver.log[-6000:]}")
        for stop in stops:
            where = f"{once[stop.point]}{', in recovery' if stop.after else ''}"
            key = f"process {stop.point}{' again' if stop.after else ''}"
            line = lines.setdefault(key, Line("driver's Python", where))
            line.batches.append(stop.batch)
            line.seconds.append(driver.seconds_from(stop))


def kill_tasks(world: World, kills: int, rng: random.Random, lines: dict[str, Line], *, executors: bool) -> None:
    """Kill Python workers in the middle of tasks, or the executors that they belong to; the query continues."""
    who, key = ("executor", "executor") if executors else ("task's Python", "task")
    master = TWO_EXECUTORS if executors else f"local[2,{_TASK_FAILURES}]"
    first = world.next_batch
    stops = [Stop(first + number, point) for number, point in enumerate(spread([*TASKS], kills, rng))]
    world.produce(kills + 1)
    with world.driver(*stops, options=_partitioning(rng), available_now=True, master=master) as driver:
        for stop in stops:
            line = lines.setdefault(f"{key} {stop.point}", Line(who, TASKS[stop.point]))
            line.batches.append(stop.batch)
            kill = driver.kill_executor_at if executors else driver.kill_at
            kill(stop)
        if driver.await_end():
            raise AssertionError(f"the query failed\n{driver.log[-6000:]}")
        for stop in stops:
            lines[f"{key} {stop.point}"].seconds.append(driver.seconds_from(stop))


def kill_brokers(
    world: World, kafka: EmbeddedKafka, commit: str, kills: int, rng: random.Random, lines: dict[str, Line]
) -> None:
    """Kill the broker while a batch is published, and start it again; the query continues, or starts again."""
    once, _, of_brokers = PROTOCOLS[commit]
    first = world.next_batch
    points = spread(of_brokers, kills, rng)
    stops = [Stop(first + number, point) for number, point in enumerate(points)]
    world.produce(kills + 1)
    with world.driver(*stops, available_now=True, restarts=kills) as driver:
        for stop in stops:
            line = lines.setdefault(f"broker {stop.point}", Line("broker", once[stop.point]))
            line.batches.append(stop.batch)
            driver.await_stop(stop)
            kafka.kill()
            driver.go(stop)
            kafka.start()
        if driver.await_end():
            raise AssertionError(f"the query failed\n{driver.log[-6000:]}")
        for stop in stops:
            lines[f"broker {stop.point}"].seconds.append(driver.seconds_from(stop))


def table_of(commit: str, lines: dict[str, Line], findings: dict[int, BatchFindings]) -> str:
    """Return the table, a line per crash point, in Markdown."""
    once, twice, _ = PROTOCOLS[commit]
    points = [*once, *(f"{point} again" for point in once), *twice]
    kinds = ["", "process ", "task ", "executor ", "broker "]
    order = [kind + point for kind in kinds for point in points]
    rows = []
    for _, line in sorted(lines.items(), key=lambda item: order.index(item[0])):
        found = [findings[batch] for batch in line.batches]
        counted = [sum(each[kind] for each in found) for kind in _SHOWN]
        others = sum(sum(each.anomalies().values()) for each in found) - sum(counted)
        recovery = f"{statistics.median(line.seconds):.1f} s" if line.seconds else ""
        rows.append([line.who, line.where, len(found), *counted, others, recovery])
    return table(_HEADS, rows)


def _partitioning(rng: random.Random) -> dict[str, str]:
    """A batch that is run again may be cut into other tasks."""
    return rng.choice([{}, {"minPartitions": "5"}, {"minPartitions": "8"}])


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description="Kill drivers, tasks, executors and brokers of an exactly-once query.")
    parser.add_argument("--commit", choices=[*PROTOCOLS], default="driver", help="who sends the records")
    parser.add_argument("--kills", type=int, default=20, help="of drivers")
    parser.add_argument("--minutes", type=float, default=600, help="after which no more drivers are killed")
    parser.add_argument("--task-kills", type=int, help="of tasks; as drivers if not given")
    parser.add_argument("--process-kills", type=int, default=40, help="of drivers' Python processes, at most")
    parser.add_argument("--executor-kills", type=int, default=4)
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    task_kills = given.kills if given.task_kills is None else given.task_kills
    start_drivers_quickly()
    record = Run(f"faults-{given.commit}")
    rng = random.Random(given.seed)
    lines: dict[str, Line] = {}
    with tempfile.TemporaryDirectory(prefix="faults-") as place, EmbeddedKafka(data_dir=f"{place}/broker") as kafka:
        world = World(kafka, Path(place), "faults", given.seed, commit=given.commit)
        world.produce(2)
        # The reader that reads along gets over a broker that is away, but need not be part of that.
        with watching(world.servers, world.sink) as seen:
            kills = kill_drivers(world, given.commit, given.kills, given.minutes, rng, lines)
            if given.process_kills:
                kill_processes(world, given.commit, min(given.process_kills, given.kills), rng, lines)
            if task_kills:
                kill_tasks(world, task_kills, rng, lines, executors=False)
            if given.executor_kills:
                kill_tasks(world, given.executor_kills, rng, lines, executors=True)
        if given.broker_kills:
            kill_brokers(world, kafka, given.commit, given.broker_kills, rng, lines)
        outcome = world.outcome(seen)
    whole = outcome.findings()
    processes = sum(len(line.batches) for name, line in lines.items() if name.startswith("process "))
    summary = (
        f"Seed {given.seed}; killed, all on one checkpoint: {kills} drivers, {processes} of their Python processes, "
        f"{task_kills} tasks, {given.executor_kills} executors, {given.broker_kills} times the broker. {whole.batches} "
        f"micro-batches of {RECORDS_PER_BATCH} records from {SOURCE_PARTITIONS} partitions: {whole.expected} "
        f"records sent, {whole.records} visible; {whole['lost']} lost, {whole['duplicated']} duplicated, "
        f"{whole['never sent']} never sent, {whole['damaged']} damaged, {whole['out of order']} out of order, "
        f"{whole['withdrawn']} seen and gone again; {whole['torn']} micro-batches torn."
    )
    findings = {batch: outcome.findings_of(batch) for line in lines.values() for batch in line.batches}
    text = f"{summary}\n\n{table_of(given.commit, lines, findings)}"
    print(f"\n{text}")
    for name, examples in whole.examples.items():
        print(f"{name}: {'; '.join(examples)}", file=sys.stderr)
    killed = kills + processes + task_kills + given.executor_kills + given.broker_kills
    kinds: tuple[Kind, ...] = ("lost", "duplicated", "never sent", "damaged", "out of order", "withdrawn", "torn")
    counts = {"kills": killed, "records sent": whole.expected, "records visible": whole.records}
    counts |= {kind: whole[kind] for kind in kinds}
    record.end(passed=not whole.anomalies(), counts=counts, text=text, seed=given.seed)
    return 1 if whole.anomalies() else 0


if __name__ == "__main__":
    sys.exit(main())
