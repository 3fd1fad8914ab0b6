"""Kafka to Kafka exactly once: what becomes visible over stops, kills and restarts, and what the group says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume_all, produce
from kit.pointers import REPO
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import ConnectorError


def even(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the even numbers."""
    for batch in batches:
        numbers = pc.cast(pc.cast(batch.column("value"), pa.string()), pa.int64())
        kept = pc.equal(pc.bit_wise_and(numbers, 1), 0)
        yield pa.RecordBatch.from_arrays([batch.column("value").filter(kept)], ["value"])


def start(
    spark: SparkSession,
    servers: str,
    source: str,
    target: str,
    checkpoint: Path,
    *,
    function: Any = even,
    epochs: str = "100 milliseconds",
    **options: str,
) -> ContinuousQuery:
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .mapInArrow(function, "value binary")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("deliveryGuarantee", "exactly_once").options(**options)
        .option("checkpointLocation", str(checkpoint)).trigger(continuous=epochs).start()
    )  # fmt: skip


def numbers(*given: int) -> list[Record]:
    return [Record(None, b"%d" % number) for number in given]


def values(given: Iterable[int]) -> list[bytes]:
    return [b"%d" % number for number in given]


def positions(servers: str, group: str) -> dict[tuple[str, int], int]:
    """Return what Kafka's own tools see of a group."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        found: Any = admin.list_group_offsets([group])
        return {(tp.topic, tp.partition): each.offset for tp, each in found[group].items()}
    finally:
        admin.close()


def await_positions(servers: str, group: str, total: int) -> None:
    """Wait until the group has read `total` records: its log has its own markers of the ends of transactions."""
    eventually(lambda: sum(positions(servers, group).values()) == total)


def test_records_are_visible_once_and_the_group_shows_where_the_query_is(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbers(*range(50)))
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    query.processAllAvailable()
    await_committed(bootstrap_servers, target, values(range(0, 50, 2)))
    group = f"pyspark-kafka-{query.id}"
    await_positions(bootstrap_servers, group, 50)
    # Rows that are filtered out move the group as well.
    produce(bootstrap_servers, source, numbers(51, 53))
    await_positions(bootstrap_servers, group, 52)
    query.stop()
    assert query.exception() is None
    produce(bootstrap_servers, source, numbers(*range(60, 70)))
    # Another number of lanes.
    again = start(spark, bootstrap_servers, source, target, tmp_path, tasks="1")
    again.processAllAvailable()
    again.stop()
    await_committed(bootstrap_servers, target, values([*range(0, 50, 2), *range(60, 70, 2)]))
    await_positions(bootstrap_servers, group, 62)


def test_worker_that_is_killed_within_an_epoch_loses_and_doubles_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["value"])
            # It comes for the next rows when these were sent.
            (pids / str(os.getpid())).touch()

    query = start(
        spark, bootstrap_servers, source, target, tmp_path / "checkpoint", function=noting, epochs="2 seconds"
    )
    sent = 0
    for _ in range(2):
        produce(bootstrap_servers, source, numbers(*range(sent, sent + 20)))
        sent += 20
        query.processAllAvailable()
        for name in list(pids.iterdir()):
            name.unlink()
        produce(bootstrap_servers, source, numbers(*range(sent, sent + 20)))
        sent += 20
        eventually(lambda: any(pids.iterdir()))
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    await_committed(bootstrap_servers, target, values(range(sent)))


_KILLED = """
import os, signal, sys
from pyspark.sql import SparkSession
from pyspark_kafka import continuous
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles

servers, source, target, checkpoint = sys.argv[1:]
prepare = EpochFiles.prepare

def die(self, epoch, *rest):
    # Every lane has committed its transaction; the checkpoint does not know it yet.
    if epoch >= 1:
        os.kill(os.getpid(), signal.SIGKILL)
    prepare(self, epoch, *rest)

EpochFiles.prepare = die
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
(
    continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
    .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    .option("deliveryGuarantee", "exactly_once").option("checkpointLocation", checkpoint)
    .trigger(continuous="100 milliseconds").start().awaitTermination()
)
"""


def test_driver_that_is_killed_between_brokers_and_checkpoint_loses_and_doubles_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, checkpoint = make_topic(partitions=2), make_topic(), tmp_path / "checkpoint"
    program = tmp_path / "killed.py"
    program.write_text(_KILLED)
    produce(bootstrap_servers, source, numbers(*range(20)))
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, str(program), bootstrap_servers, source, target, str(checkpoint)],
            env={**os.environ, "PYTHONPATH": str(REPO / "src")},
            stdout=subprocess.DEVNULL,
            stderr=log,
        ) as killed,
    ):
        try:
            eventually((checkpoint / "commits" / "0").exists, 120)
            produce(bootstrap_servers, source, numbers(*range(20, 40)))
            assert killed.wait(120) == -signal.SIGKILL, (tmp_path / "log").read_text()[-4000:]
        finally:
            killed.kill()
    produce(bootstrap_servers, source, numbers(*range(40, 60)))
    query = start(spark, bootstrap_servers, source, target, checkpoint, function=whole)
    query.processAllAvailable()
    query.stop()
    await_committed(bootstrap_servers, target, values(range(60)))
    await_positions(bootstrap_servers, f"pyspark-kafka-{query.id}", 60)


def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["value"])


def test_query_that_ends_by_a_failure_leaves_no_transaction_open(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """Committed readers of the target would see nothing of any producer until the transaction times out."""
    source, target = make_topic(), make_topic()

    def deadly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if b"9" in batch.column("value").to_pylist():
                # It comes for the next rows when the former ones were sent.
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch.select(["value"])

    query = start(
        spark, bootstrap_servers, source, target, tmp_path, function=deadly, epochs="100 seconds",
        **{"maxFailures": "0", "kafka.transaction.timeout.ms": "600000"},
    )  # fmt: skip
    produce(bootstrap_servers, source, numbers(1, 2))
    eventually(lambda: len(consume_all(bootstrap_servers, target)) == 2)
    produce(bootstrap_servers, source, numbers(9))
    # The worker's connection and Spark's job both report its end: either may arrive first.
    with pytest.raises(ConnectorError, match=r"task 0 is lost|its Spark job ended"):
        query.awaitTermination(120)
    produce(bootstrap_servers, target, numbers(77))
    await_committed(bootstrap_servers, target, values([77]))


def test_second_driver_fences_the_first(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, numbers(*range(10)))
    first = start(spark, bootstrap_servers, source, target, tmp_path, function=whole, tasks="1")
    first.processAllAvailable()
    second = start(spark, bootstrap_servers, source, target, tmp_path, function=whole, tasks="1")
    eventually(lambda: second.status["message"] == "Processing new data")
    produce(bootstrap_servers, source, numbers(*range(10, 20)))
    eventually(lambda: not first.isActive)
    error = first.exception()
    assert isinstance(error, ConnectorError)
    # The second: an epoch of which the first was about to note the commit was committed by its successor.
    assert error.condition in ("SINK_TAKEN_OVER", "CHECKPOINT_CHANGED")
    second.processAllAvailable()
    assert second.isActive
    second.stop()
    await_committed(bootstrap_servers, target, values(range(20)))
