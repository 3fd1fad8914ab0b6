"""Exactly-once writes under faults, short: every crash point once. `make test-faults` is the long version."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from faults.harness import Stop, World
from faults.points import EXACTLY_ONCE, TASKS, TWICE
from faults.topics import watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from integration.conftest import MortalBroker
    from pyspark_kafka.testing import EmbeddedKafka

WorldMaker = "Callable[..., World]"


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    def make(kafka: EmbeddedKafka, guarantee: str = "exactly_once") -> World:
        return World(kafka, tmp_path, f"f{uuid.uuid4().hex[:8]}", seed=1, guarantee=guarantee)

    return make


@pytest.mark.timeout(600)
def test_a_process_killed_at_any_point_neither_loses_nor_duplicates(
    kafka: EmbeddedKafka, make_world: Callable[..., World]
) -> None:
    world = make_world(kafka)
    chains: list[tuple[str, ...]] = [(point,) for point in EXACTLY_ONCE] + list(TWICE.values())
    stops = [
        Stop(batch, point, after=Stop(batch, points[number - 1]).name if number else "")
        for batch, points in enumerate(chains)
        for number, point in enumerate(points)
    ]
    world.produce(len(chains) + 1)
    # A task that dies is tried again; whoever else dies takes the query with it, which starts again.
    queries = sum(stop.point not in TASKS for stop in stops)
    with (
        watching(world.servers, world.sink) as seen,
        world.driver(*stops, available_now=True, master="local[2,3]", restarts=queries) as driver,
    ):
        for stop in stops:
            driver.kill_at(stop)
        assert driver.await_end() == 0, driver.log
    report = world.outcome(seen).report()
    assert not report.anomalies, report
    assert report.batches == len(chains) + 1


@pytest.mark.timeout(600)
def test_a_killed_driver_and_two_drivers_at_once_neither_lose_nor_duplicate(
    kafka: EmbeddedKafka, make_world: Callable[..., World]
) -> None:
    world = make_world(kafka)
    world.produce(5)
    zombie, late = Stop(0, "before_produce", "outlive"), Stop(1, "after_end")
    with world.driver(zombie) as first:
        first.await_stop(zombie)
        first.kill()
        with world.driver(late) as second:
            second.await_stop(late)
            # It plans other tasks than those that prepared what the others have.
            world.run_to_end(minPartitions="7")
            second.go(late)
            assert second.await_file("1.commit") == "done"
            # Spark finds its commit log written by another driver.
            assert second.await_end() != 0
        first.go(zombie)
        assert "COMMIT_MARKER_OF_A_LATER_BATCH" in first.await_file("0.commit")
    report = world.outcome().report()
    assert not report.anomalies, report
    assert report.batches == 5


@pytest.mark.timeout(600)
def test_the_check_notices_a_sink_that_ignores_its_marker_and_one_that_does_not_fence(
    kafka: EmbeddedKafka, make_world: Callable[..., World]
) -> None:
    world = make_world(kafka)
    world.produce(3)
    zombie, committed = Stop(0, "before_produce", "outlive"), Stop(1, "after_end")
    with world.driver(zombie, plant="fence_skipped") as first:
        first.await_stop(zombie)
        first.kill()
        with world.driver(committed, available_now=True, restarts=1, plant="fence_skipped,marker_ignored") as second:
            second.kill_at(committed)
            assert second.await_end() == 0, second.log
        first.go(zombie)
        assert first.await_file("0.commit") == "done"
    outcome = world.outcome()
    for batch in (0, 1):
        # Two markers, neither of which counts what is there, are three findings.
        assert outcome.report_of(batch).anomalies == {"duplicated": 30, "torn": 3}
    assert not outcome.report_of(2).anomalies
    assert outcome.report().duplicated == 60


@pytest.mark.timeout(600)
def test_a_broker_that_dies_while_a_batch_is_published_neither_loses_nor_duplicates(
    mortal_broker: MortalBroker, make_world: Callable[..., World]
) -> None:
    world = make_world(mortal_broker.kafka)
    world.produce(5)
    lost, *stops = [Stop(0, "after_end", "doubt"), Stop(1, "within_produce"), Stop(2, "before_end")]
    with world.driver(lost, *stops, available_now=True, restarts=3) as driver:
        for stop in stops:
            driver.await_stop(stop)
            mortal_broker.kafka.kill()
            driver.go(stop)
            mortal_broker.kafka.start()
        assert driver.await_end() == 0, driver.log
        assert (driver.place / lost.name).exists()
    report = world.outcome().report()
    assert not report.anomalies, report
    assert report.batches == 5


def run_to_end(spark: SparkSession, world: World) -> None:
    """Run the query with the package's own source and sink."""
    rows = spark.readStream.format("pyspark_kafka").options(**world.source_options).load()
    (
        rows.select("key", "value")
        .writeStream.format("pyspark_kafka")
        .options(**world.sink_options)
        .option("kafka.transactional.id", world.run)
        .option("checkpointLocation", str(world.checkpoint))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def test_an_older_checkpoint_and_a_new_one_stop_the_query_before_it_duplicates(
    spark: SparkSession, kafka: EmbeddedKafka, make_world: Callable[..., World], tmp_path: Path
) -> None:
    world = make_world(kafka)
    newest, older = tmp_path / "newest", tmp_path / "older"
    world.produce(1)
    run_to_end(spark, world)
    shutil.copytree(world.checkpoint, older)
    world.produce(2)
    run_to_end(spark, world)
    world.checkpoint.rename(newest)
    shutil.copytree(older, world.checkpoint)
    with pytest.raises(StreamingQueryException, match="COMMIT_MARKER_OF_A_LATER_BATCH"):
        run_to_end(spark, world)
    shutil.rmtree(world.checkpoint)
    # Planned anew with another size, the batch of the newest marker is not the one that it was.
    shutil.copytree(newest, world.checkpoint)
    (world.checkpoint / "commits" / "2").unlink()
    (world.checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    (world.checkpoint / "offsets" / "2").unlink()
    (world.checkpoint / "offsets" / ".2.crc").unlink(missing_ok=True)
    world.produce(1)
    world.source_options["maxOffsetsPerTrigger"] = "60"
    with pytest.raises(StreamingQueryException, match="COMMIT_MARKER_OF_OTHER_OFFSETS"):
        run_to_end(spark, world)
    shutil.rmtree(world.checkpoint)
    with pytest.raises(StreamingQueryException, match="COMMIT_MARKER_OF_ANOTHER_QUERY"):
        run_to_end(spark, world)
    shutil.rmtree(world.checkpoint)
    newest.rename(world.checkpoint)
    world.source_options["maxOffsetsPerTrigger"] = "30"
    run_to_end(spark, world)
    report = world.outcome().report()
    assert not report.anomalies, report
    assert report.batches == 4
