"""Continuous queries that read what is there and end: to which offset, how soon, and after what went wrong."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from kit.continuous import FilesTable, StagedTable
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume, consume_committed, produce
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import continuous
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import CapabilityError, OptionError


def records(numbers: range) -> list[Record]:
    return [Record(None, b"%d" % number) for number in numbers]


def numbers_in(servers: str, topic: str, count: int) -> list[int]:
    return sorted(int(record.value or b"") for record in consume(servers, topic, count))


def start(
    spark: SparkSession,
    servers: str,
    source: str,
    target: str,
    checkpoint: Path,
    *,
    reader: Mapping[str, str] | None = None,
    writer: Mapping[str, str] | None = None,
) -> Any:
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest").options(**(reader or {})).load()
        .select("value")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("checkpointLocation", str(checkpoint)).option("tasks", "2")
        .options(**(writer or {})).trigger(availableNow=True).start()
    )  # fmt: skip


def assert_ends(query: ContinuousQuery) -> None:
    assert query.awaitTermination(120), query.status
    assert not query.isActive
    assert query.exception() is None
    assert query.status["message"] == "Stopped"


def test_query_reads_what_is_there_and_ends_while_a_producer_goes_on(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic()
    produce(bootstrap_servers, source, records(range(100)))
    made, goes_on = 100, threading.Event()

    def resume() -> None:
        nonlocal made
        while not goes_on.wait(0.01):
            produce(bootstrap_servers, source, records(range(made, made + 10)))
            made += 10

    producer = threading.Thread(target=resume)
    producer.start()
    try:
        first = start(spark, bootstrap_servers, source, target, tmp_path)
        assert_ends(first)
        read = sum(json.loads(first.lastProgress.sources[0].endOffset)[source].values())
        assert read >= 100
        eventually(lambda: made > read)
    finally:
        goes_on.set()
        producer.join()
    # The next one continues there, and has every record once.
    assert_ends(start(spark, bootstrap_servers, source, target, tmp_path))
    assert numbers_in(bootstrap_servers, target, made) == list(range(made))


def test_query_with_nothing_to_read_ends_without_a_job(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    empty = start(spark, bootstrap_servers, source, target, tmp_path)
    assert_ends(empty)
    assert empty.lastProgress is None
    produce(bootstrap_servers, source, records(range(5)))
    assert_ends(start(spark, bootstrap_servers, source, target, tmp_path))
    tracker = spark.sparkContext.statusTracker()
    jobs = tracker.getJobIdsForGroup(None)
    began = time.monotonic()
    again = start(spark, bootstrap_servers, source, target, tmp_path)
    assert_ends(again)
    # It waits for nothing: neither for tasks nor for a look-up that comes to no end.
    assert time.monotonic() - began < 25
    assert tracker.getJobIdsForGroup(None) == jobs
    assert again.lastProgress is None
    assert numbers_in(bootstrap_servers, target, 5) == list(range(5))


def test_query_ends_behind_aborted_records_at_the_end_of_a_log(
    spark: SparkSession, bootstrap_servers: str, client: KafkaClient, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, records(range(3)))
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers, transactional_id=f"{source}-tx", transaction_timeout_ms=600_000
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(source, b"9").get(timeout=PATIENCE_S)
        producer.abort_transaction()
        # The broker writes the marker after the producer has its answer.
        partition = TopicPartition(source, 0)
        eventually(lambda: list_offsets(client, {partition: Latest()}, IsolationLevel.READ_COMMITTED)[partition] == 5)
        query = start(
            spark, bootstrap_servers, source, target, tmp_path, reader={"kafka.isolation.level": "read_committed"}
        )
        assert_ends(query)
        # Three records, the aborted one, and the marker that says so.
        assert json.loads(query.lastProgress.sources[0].endOffset) == {source: {"0": 5}}
        producer.begin_transaction()
        producer.send(source, b"3").get(timeout=PATIENCE_S)
        # The end is that of what can be read: an open transaction does not keep the query.
        again = start(
            spark, bootstrap_servers, source, target, tmp_path, reader={"kafka.isolation.level": "read_committed"}
        )
        assert_ends(again)
        assert again.lastProgress is None
        producer.abort_transaction()
    finally:
        producer.close()
    assert numbers_in(bootstrap_servers, target, 3) == [0, 1, 2]


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_restored_older_checkpoint_loses_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, guarantee: str
) -> None:
    source, target, checkpoint, copy = make_topic(partitions=2), make_topic(), tmp_path / "of query", tmp_path / "copy"

    def run(numbers: range) -> None:
        produce(bootstrap_servers, source, records(numbers))
        writer = {"deliveryGuarantee": guarantee}
        assert_ends(start(spark, bootstrap_servers, source, target, checkpoint, writer=writer))

    run(range(5))
    shutil.copytree(checkpoint, copy)
    run(range(5, 8))
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    run(range(8, 9))
    # Positions in Kafka are ahead of an older checkpoint; without them its rows are written again.
    again = [] if guarantee == "exactly_once" else [5, 6, 7]
    await_committed(bootstrap_servers, target, [b"%d" % number for number in [*range(9), *again]])
    run(range(9, 10))
    await_committed(bootstrap_servers, target, [b"%d" % number for number in [*range(10), *again]])


_KILLED = """
import os, signal, sys, time
from pyspark.sql import SparkSession
from pyspark_kafka import continuous
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.query import writer

servers, source, target, checkpoint = sys.argv[1:]
writer._AVAILABLE_NOW_INTERVAL_MS = 100
commit = EpochFiles.write_commit

def commit_and_die(self, *arguments):
    commit(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)

EpochFiles.write_commit = commit_and_die

def slow(batches):
    for batch in batches:
        for at in range(batch.num_rows):
            yield batch.slice(at, 1)
            # The driver, however late it is, ends an epoch before the last record.
            time.sleep(0.1)

spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
(continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
 .option("subscribe", source).option("startingOffsets", "earliest").option("kafka.max.partition.fetch.bytes", "200")
 .load().select("value").mapInArrow(slow, "value binary")
 .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
 .option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination())
"""


@pytest.mark.full("Kills at every point")
def test_query_that_is_killed_continues_at_its_last_epoch(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    for number in range(0, 200, 10):
        # Record batches of 10: a reader of one at a time does not have all of them in its first epoch.
        produce(bootstrap_servers, source, records(range(number, number + 10)))
    program = tmp_path / "killed.py"
    program.write_text(_KILLED)
    checkpoint = tmp_path / "checkpoint"
    killed = subprocess.run(
        [sys.executable, str(program), bootstrap_servers, source, target, str(checkpoint)],
        capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-4000:]
    query = start(spark, bootstrap_servers, source, target, checkpoint)
    assert_ends(query)
    begun = json.loads(query.recentProgress[0].sources[0].startOffset)[source]["0"]
    assert 0 < begun < 200
    found = sorted({int(record.value or b"") for record in consume_committed(bootstrap_servers, target)})
    assert found == list(range(200))


def test_trigger_takes_one_of_both_and_a_source_that_can_end(spark: SparkSession, tmp_path: Path) -> None:
    frame = continuous.read(spark).format(FilesTable()).option("path", str(tmp_path)).load()
    writer = frame.writeStream.format(StagedTable()).option("path", str(tmp_path / "out"))
    wrong: Any
    for wrong in ({}, {"continuous": "1 second", "availableNow": True}, {"availableNow": False}):
        with pytest.raises(OptionError, match=r"trigger\(\) takes continuous or availableNow=True"):
            writer.trigger(**wrong)
    with pytest.raises(CapabilityError, match=r"FilesStream cannot be read with trigger\(availableNow=True\)"):
        writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
