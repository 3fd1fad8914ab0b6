"""Exactly-once writes with executors as processes of their own: they are killed, and tasks are run twice at once."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from faults.harness import TWO_EXECUTORS, TWO_HOSTS, Stop, World
from faults.topics import watching
from pyspark_kafka.testing import EmbeddedKafka

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

# Spark runs a task a second time when another one of its batch is done and it is not, after a second.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.efficiency.enabled": "false",
}


def make_world(kafka: EmbeddedKafka, place: Path, guarantee: str) -> World:
    return World(kafka, place, f"f{uuid.uuid4().hex[:8]}", seed=1, guarantee=guarantee)


@pytest.fixture
def world(kafka: EmbeddedKafka, tmp_path: Path) -> World:
    made = make_world(kafka, tmp_path, "exactly_once")
    # Whatever a task prepares goes into files, which an attempt that dies or loses leaves behind.
    made.sink_options["spoolThresholdBytes"] = "0"
    return made


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def spooled(world: World, batch: int) -> list[str]:
    """Return the spool files of a micro-batch."""
    return [each.name for each in (world.checkpoint / "spool").glob(f"pyspark-kafka-*/{batch}/*")]


def await_spooled(world: World, batch: int) -> None:
    """Wait until a task of a micro-batch has left a spool file."""
    end = time.monotonic() + 120
    while not spooled(world, batch):
        assert time.monotonic() < end
        time.sleep(0.02)


def check(world: World, seen: dict[int, list[bytes]], batches: int) -> None:
    """Check what readers saw and see, and that nothing is left in the spool."""
    found = world.outcome(seen).findings()
    assert not found.anomalies(), found
    assert found.batches == batches
    assert not [path for path in (world.checkpoint / "spool").rglob("*") if path.is_file()]


def test_an_executor_killed_in_a_task_neither_loses_nor_duplicates(world: World) -> None:
    stops = [Stop(0, "task_row"), Stop(1, "task_prepared")]
    # Two executors of one batch.
    stops += [Stop(2, "task_row"), Stop(2, "task_prepared", after="2.task_row")]
    # This attempt does not end with its executor.
    orphan = Stop(3, "task_prepared", "outlive")
    world.produce(5)
    with (
        watching(world.servers, world.sink) as seen,
        world.driver(*stops, orphan, available_now=True, master=TWO_EXECUTORS) as driver,
    ):
        killed = [driver.kill_executor_at(stop) for stop in (*stops, orphan)]
        left = driver.await_stop(orphan)
        driver.await_batch(orphan.batch)
        assert runs(left)
        driver.go(orphan)
        driver.await_gone(left)
        assert driver.await_end() == 0, driver.log
        driver.await_gone()
    assert len(set(killed)) == 5
    check(world, seen, batches=5)


def test_an_attempt_that_lost_against_another_one_and_goes_on_duplicates_nothing(world: World) -> None:
    # Each batch waits before it is committed, which removes what earlier ones have left in the spool.
    losers = [Stop(0, "task_row"), Stop(1, "task_prepared"), Stop(2, "task_row")]
    commits = [Stop(batch, "before_fence") for batch in range(1, 4)]
    world.produce(4)
    with (
        watching(world.servers, world.sink) as seen,
        world.driver(
            *losers,
            *commits,
            available_now=True,
            master=TWO_HOSTS,
            # Spark ends the process of an attempt that has lost, but not so soon.
            conf={**SPECULATION, "spark.python.task.killTimeout": "600s"},
        ) as driver,
    ):
        for loser, next_commit in zip(losers, commits, strict=True):
            pid = driver.await_stop(loser)
            driver.await_batch(loser.batch)
            # Now the batch has what another attempt has prepared.
            assert runs(pid)
            # What it has prepared already went with its batch; what it prepares now is left until the next one.
            late = loser.point == "task_row"
            assert not spooled(world, loser.batch)
            driver.go(loser)
            if late:
                await_spooled(world, loser.batch)
            driver.await_gone(pid)
            driver.await_stop(next_commit)
            assert bool(spooled(world, loser.batch)) == late
            driver.go(next_commit)
            assert driver.await_file(f"{next_commit.batch}.commit") == "done"
            assert not spooled(world, loser.batch)
        assert driver.await_end() == 0, driver.log
        driver.await_gone()
    check(world, seen, batches=4)


def test_an_attempt_that_spark_ends_because_another_one_was_faster_duplicates_nothing(world: World) -> None:
    losers = [Stop(0, "task_row"), Stop(1, "task_prepared")]
    world.produce(3)
    with (
        watching(world.servers, world.sink) as seen,
        world.driver(*losers, available_now=True, master=TWO_HOSTS, conf=SPECULATION) as driver,
    ):
        for loser in losers:
            driver.await_gone(driver.await_stop(loser))
        assert driver.await_end() == 0, driver.log
    check(world, seen, batches=3)


def test_the_check_notices_what_these_faults_duplicate_where_the_sink_writes_at_least_once(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    world = make_world(kafka, tmp_path, "at_least_once")
    slow, killed = Stop(0, "task_prepared"), Stop(1, "task_prepared")
    world.produce(3)
    with world.driver(slow, killed, available_now=True, master=TWO_HOSTS, conf=SPECULATION) as driver:
        driver.await_gone(driver.await_stop(slow))
        driver.kill_executor_at(killed)
        assert driver.await_end() == 0, driver.log
    outcome = world.outcome()
    assert not outcome.findings()["lost"]
    for batch in (slow.batch, killed.batch):
        # At least those of one task of three.
        assert outcome.findings_of(batch)["duplicated"] >= 10
