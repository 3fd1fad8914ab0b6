"""Exactly-once writes under faults, short: every crash point once. `make test-faults` is the long version."""

from __future__ import annotations

import io
import json
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from faults.harness import Stop, World
from faults.points import EXACTLY_ONCE, TASKS, TASKS_PUBLISH, TASKS_PUBLISH_TWICE, TWICE
from faults.topics import watching
from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import MortalBroker
from pyspark_kafka import DefaultSource
from pyspark_kafka._connector.spark.writers import SparkMessage
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix
from pyspark_kafka.testing import EmbeddedKafka


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    def make(kafka: EmbeddedKafka, guarantee: str = "exactly_once", commit: str = "driver") -> World:
        return World(kafka, tmp_path, f"f{uuid.uuid4().hex[:8]}", seed=1, guarantee=guarantee, commit=commit)

    return make


def kill_at_all(world: World, chains: Sequence[tuple[str, ...]]) -> None:
    """Kill a process at each point of the first chain in batch 0, of the second in batch 1, and so on."""
    stops = [
        Stop(batch, point, after=Stop(batch, points[number - 1]).name if number else "")
        for batch, points in enumerate(chains)
        for number, point in enumerate(points)
    ]
    world.produce(len(chains) + 1)
    # Spark repeats a task that dies. Any other process that dies ends the query, which starts again.
    queries = sum(stop.point not in TASKS for stop in stops)
    with (
        watching(world.servers, world.sink) as seen,
        world.driver(*stops, available_now=True, master="local[2,3]", restarts=queries) as driver,
    ):
        for stop in stops:
            driver.kill_at(stop)
        assert driver.await_end() == 0, driver.log
    found = world.outcome(seen).findings()
    assert not found.anomalies(), found
    assert found.batches == len(chains) + 1


@pytest.mark.parametrize(
    "chains",
    [
        [(point,) for point in EXACTLY_ONCE],
        pytest.param(list(TWICE.values()), marks=pytest.mark.full("Kills at every point")),
    ],
    ids=["once", "again in recovery"],
)
@pytest.mark.timeout(600)
def test_a_process_killed_at_any_point_neither_loses_nor_duplicates(
    kafka: EmbeddedKafka, make_world: Callable[..., World], chains: list[tuple[str, ...]]
) -> None:
    kill_at_all(make_world(kafka), chains)


@pytest.mark.full("Kills at every point")
@pytest.mark.parametrize(
    "chains",
    [
        [("after_decision",), ("within_ends",)],
        [*((point,) for point in TASKS_PUBLISH), *TASKS_PUBLISH_TWICE.values()],
    ],
    ids=["decided", "every point"],
)
@pytest.mark.timeout(600)
def test_tasks_that_publish_neither_lose_nor_duplicate_whoever_is_killed(
    kafka: EmbeddedKafka, make_world: Callable[..., World], chains: list[tuple[str, ...]]
) -> None:
    kill_at_all(make_world(kafka, commit="tasks"), chains)


@pytest.mark.full("Kills at every point")
@pytest.mark.timeout(600)
def test_typed_values_are_written_once_and_with_one_schema_over_kills(
    kafka: EmbeddedKafka, make_world: Callable[..., World]
) -> None:
    world = make_world(kafka)
    subject = f"{world.sink}-value"
    # Of a task that has encoded, before and after the end of the transaction.
    stops = [Stop(batch, point) for batch, point in enumerate(("task_prepared", "before_end", "after_end"))]
    world.produce(len(stops) + 1)
    with SchemaRegistryServer() as registry:
        schema_id = registry.add(subject, '"string"')
        world.sink_options.update({"valueFormat": "avro", "schema.registry.url": registry.url})
        with world.driver(*stops, available_now=True, master="local[2,3]", restarts=len(stops)) as driver:
            driver.kill_at(stops[0])
            # The schema is in the checkpoint before a task runs.
            registry.add(subject, '["null", "string"]')
            registry.stop()
            for stop in stops[1:]:
                driver.kill_at(stop)
            assert driver.await_end() == 0, driver.log
    prefix = confluent_prefix(schema_id)
    outcome = world.outcome()
    texts = {
        partition: [text_of(value.removeprefix(prefix)) for value in values]
        for partition, values in outcome.visible.items()
    }
    found = replace(outcome, visible=texts).findings()
    assert not found.anomalies(), found
    assert found.batches == len(stops) + 1


def text_of(encoded: bytes) -> bytes:
    """Read a string of Avro."""
    return str(fastavro.schemaless_reader(io.BytesIO(encoded), "string", None)).encode()


@pytest.mark.long
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
    found = world.outcome().findings()
    assert not found.anomalies(), found
    assert found.batches == 5


@pytest.mark.long
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
        assert outcome.findings_of(batch).anomalies() == {"duplicated": 30, "torn": 3}
    assert not outcome.findings_of(2).anomalies()
    assert outcome.findings()["duplicated"] == 60


@pytest.mark.full("Kills at every point")
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
    found = world.outcome().findings()
    assert not found.anomalies(), found
    assert found.batches == 5


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


def forget(world: World, batch: int) -> None:
    """Make the checkpoint what it was before a micro-batch was planned."""
    for log in ("commits", "offsets"):
        (world.checkpoint / log / f"{batch}").unlink()
        (world.checkpoint / log / f".{batch}.crc").unlink()


@pytest.mark.full("Kills at every point")
@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_older_checkpoint_stops_the_query_before_it_duplicates(
    spark: SparkSession, kafka: EmbeddedKafka, make_world: Callable[..., World], tmp_path: Path
) -> None:
    world = make_world(kafka)
    newest = tmp_path / "newest"
    world.produce(3)
    run_to_end(spark, world)
    world.produce(1)
    shutil.copytree(world.checkpoint, newest)
    forget(world, 2)
    # Planned again, the batch of the newest marker is not the one that it was.
    world.source_options["maxOffsetsPerTrigger"] = "60"
    with pytest.raises(StreamingQueryException, match="COMMIT_MARKER_OF_OTHER_OFFSETS"):
        run_to_end(spark, world)
    shutil.rmtree(world.checkpoint)
    shutil.copytree(newest, world.checkpoint)
    forget(world, 2)
    forget(world, 1)
    with pytest.raises(StreamingQueryException, match="COMMIT_MARKER_OF_A_LATER_BATCH"):
        run_to_end(spark, world)
    shutil.rmtree(world.checkpoint)
    newest.rename(world.checkpoint)
    run_to_end(spark, world)
    found = world.outcome().findings()
    assert not found.anomalies(), found
    assert found.batches == 4


def test_one_of_two_attempts_of_a_task_is_written_once(kafka: EmbeddedKafka, make_world: Callable[..., World]) -> None:
    # Spark does not speculate in local mode; it hands the messages of the winners to `commit`, and nobody else's.
    world = make_world(kafka)
    sent = world.produce(1)
    ends = {world.source: {str(partition): len(pairs) for partition, pairs in sent.items()}}
    (world.checkpoint / "offsets").mkdir(parents=True)
    (world.checkpoint / "metadata").write_text('{"id":"two-attempts"}')
    (world.checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(ends)}")
    keys, values = zip(*(pair for pairs in sent.values() for pair in pairs), strict=True)
    schema = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
    # One of the attempts puts what it has into files, which stay.
    for threshold, task in (("0", 1), ("1000000", 2)):
        options = {"checkpointLocation": str(world.checkpoint), "spoolThresholdBytes": threshold}
        writer: Any = DefaultSource({**world.sink_options, **options}).streamWriter(schema, overwrite=False)
        attempt = writer._factory.createWriter(0, task, 0)
        attempt.write(pa.RecordBatch.from_pydict({"key": keys, "value": values}))
        message = attempt.commit()
        attempt.close()
    for _ in range(2):
        writer.commit([SparkMessage(message)], 0)
    found = world.outcome().findings()
    assert not found.anomalies(), found
    assert (found.expected, found.batches) == (30, 1)
