"""Continuous queries beside what gets in their way: other jobs, clients that die, functions that are slow or hang."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit.continuous import SCHEMA, FilesTable, StagedTable, committed_rows
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import REPO
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.placement.slots import TaskSlots
from pyspark_kafka.continuous.query.handle import ContinuousQuery

_MACHINE = "pyspark_kafka.continuous.run.machine"


def add_lines(place: Path, name: str, *numbers: int) -> None:
    (place / "in").mkdir(exist_ok=True)
    (place / "out").mkdir(exist_ok=True)
    with (place / "in" / name).open("a") as file:
        file.write("".join(f"{number}\n" for number in numbers))


def rows(place: Path) -> list[tuple[str, int]]:
    return sorted((row["file"], row["n"]) for row in committed_rows(place / "out"))


def start(spark: SparkSession, place: Path, function: Any, **options: str) -> ContinuousQuery:
    return (
        continuous.read(spark).format(FilesTable()).option("path", str(place / "in")).load()
        .mapBatches(function, SCHEMA)
        .writeStream.format(StagedTable()).option("path", str(place / "out")).options(**options)
        .option("checkpointLocation", str(place / "checkpoint")).trigger(continuous="50 ms").start()
    )  # fmt: skip


def start_kafka(
    spark: SparkSession, servers: str, topics: tuple[str, str], checkpoint: Path, function: Any,
    guarantee: str = "at_least_once", **options: str
) -> ContinuousQuery:  # fmt: skip
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", topics[0]).option("startingOffsets", "earliest").options(**options).load()
        .select("key", "value").mapBatches(function)
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", topics[1])
        .option("deliveryGuarantee", guarantee).option("checkpointLocation", str(checkpoint))
        .trigger(continuous="100 ms").start()
    )  # fmt: skip


@contextmanager
def other_job(spark: SparkSession, place: Path) -> Iterator[Path]:
    """Hold one slot until the file that it returns is there."""
    held, release = place / "held", place / "release"

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            held.touch()
            while not release.exists():
                time.sleep(0.05)
        yield from ()

    # Tasks that a former test has cancelled may still be about to end.
    eventually(lambda: TaskSlots(spark).count_free() == 2)
    job = threading.Thread(target=lambda: spark.range(0, 1, 1, 1).mapInArrow(hold, "id bigint").collect())
    job.start()
    try:
        eventually(held.exists)
        yield release
    finally:
        release.touch()
        job.join(PATIENCE_S)
        assert not job.is_alive()


def no_jobs(spark: SparkSession) -> bool:
    status = spark.sparkContext.statusTracker()
    stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
    return not status.getActiveJobsIds() and not any(stage.numActiveTasks for stage in stages if stage)


def test_missing_slots_are_told_and_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"{_MACHINE}._LATE_START_SECONDS", 0.5)
    caplog.set_level(logging.WARNING, "pyspark_kafka")
    for name in "ab":
        add_lines(tmp_path, name, 1, 2)
    with other_job(spark, tmp_path) as release:
        query = start(spark, tmp_path, lambda batch: batch, tasks="7")
        eventually(lambda: "Waiting for Spark to run 2 tasks" in query.status["message"])
        eventually(lambda: "waits for Spark to start its tasks (2)" in caplog.text)
        assert "has option tasks=7, and Spark has slots for 2 tasks" in caplog.text
        assert "free slots: 1" in caplog.text
        assert not query.status["isTriggerActive"]
        release.touch()
        query.processAllAvailable()
    query.stop()
    assert rows(tmp_path) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_other_jobs_run_beside_a_query_that_leaves_slots(spark: SparkSession, tmp_path: Path) -> None:
    add_lines(tmp_path, "a", 1)
    query = start(spark, tmp_path, lambda batch: batch, tasks="1")
    query.processAllAvailable()
    assert spark.range(0, 100, 1, 4).count() == 100
    add_lines(tmp_path, "a", 2)
    query.processAllAvailable()
    query.stop()
    assert rows(tmp_path) == [("a", 1), ("a", 2)]


_CLIENT = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark import cloudpickle
from kit import continuous as kit
from pyspark_kafka import continuous
from pyspark_kafka.continuous.run import machine

machine._LATE_START_SECONDS = 0.5
cloudpickle.register_pickle_by_value(kit)
url, place = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.remote(url).create()
query = (
    continuous.read(spark).format(kit.FilesTable()).option("path", str(place / "in")).load()
    .writeStream.format(kit.StagedTable()).option("path", str(place / "out"))
    .option("checkpointLocation", str(place / "checkpoint")).trigger(continuous="100 ms").start()
)
while "Waiting for Spark to run 2 tasks" not in query.status["message"]:
    query.awaitTermination(0.05)
(place / "release").touch()
query.processAllAvailable()
(place / "flows").touch()
query.awaitTermination()
"""


@pytest.mark.full("Spark Connect")
def test_client_of_connect_waits_for_slots_and_its_tasks_end_with_it(
    spark: SparkSession, connect_url: str, tmp_path: Path
) -> None:
    for name in "ab":
        add_lines(tmp_path, name, 1, 2)
    program = tmp_path / "client.py"
    program.write_text(_CLIENT)
    with other_job(spark, tmp_path), (tmp_path / "log").open("wb") as log:
        client = subprocess.Popen(
            [sys.executable, str(program), connect_url, str(tmp_path)], stdout=log, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
        )  # fmt: skip
        try:
            eventually(lambda: (tmp_path / "flows").exists() or client.poll() is not None, 120)
            assert client.poll() is None, (tmp_path / "log").read_text()[-4000:]
            assert len(rows(tmp_path)) == 4
            assert not no_jobs(spark)
        finally:
            client.send_signal(signal.SIGKILL)
            client.wait()
    eventually(lambda: no_jobs(spark))


def test_stop_does_not_wait_for_a_function_that_hangs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{_MACHINE}._STOP_SECONDS", 1.0)
    entered = tmp_path / "entered"

    def hangs(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.column("n")[0].as_py() == 2:
            entered.touch()
            threading.Event().wait()
        return batch

    add_lines(tmp_path, "a", 1)
    query = start(spark, tmp_path, hangs)
    query.processAllAvailable()
    add_lines(tmp_path, "a", 2)
    eventually(entered.exists)
    begun = time.monotonic()
    query.stop()
    assert time.monotonic() - begun < 30
    assert query.exception() is None
    assert "the last epoch was not committed" in query.status["message"]
    assert "did not end its epoch" in query.status["message"]
    # Its slot is free again.
    eventually(lambda: no_jobs(spark))
    query = start(spark, tmp_path, lambda batch: batch)
    query.processAllAvailable()
    query.stop()
    assert rows(tmp_path) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_slow_partition_does_not_hold_up_the_others(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, guarantee: str
) -> None:
    topics = make_topic(partitions=2), make_topic()
    release = tmp_path / "release"

    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        while b"slow" in batch.column("value").to_pylist() and not release.exists():
            time.sleep(0.02)
        return batch

    def found() -> set[bytes | None]:
        return {record.value for record in consume_committed(bootstrap_servers, topics[1])}

    produce(bootstrap_servers, topics[0], [Record(b"k", b"first-%d" % part, partition=part) for part in range(2)])
    query = start_kafka(spark, bootstrap_servers, topics, tmp_path / "checkpoint", slow, guarantee)
    try:
        query.processAllAvailable()
        produce(bootstrap_servers, topics[0], [Record(b"k", b"slow", partition=0)])
        for number in range(10):
            # Longer than an epoch each: more epochs pass than may be open.
            value = b"quick-%d" % number
            produce(bootstrap_servers, topics[0], [Record(b"k", value, partition=1)])
            eventually(lambda value=value: value in found())  # type: ignore[misc]
        assert b"slow" not in found()
    finally:
        release.touch()
    query.processAllAvailable()
    assert b"slow" in found()
    query.stop()
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(progress["sources"][0]["endOffset"])[topics[0]] == {"0": 2, "1": 11}


@pytest.mark.full("Large batches")
def test_slow_function_does_not_fill_the_memory(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topics = make_topic(), make_topic()
    value, count = b"v" * 100_000, 800
    peaks = tmp_path / "peaks"

    def slow(_: pa.RecordBatch) -> pa.RecordBatch | None:
        with peaks.open("a") as file:
            file.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}\n")
        time.sleep(0.1)
        return None

    produce(bootstrap_servers, topics[0], [Record(b"k", b"%06d" % number + value) for number in range(count)])
    query = start_kafka(
        spark, bootstrap_servers, topics, tmp_path / "checkpoint", slow,
        **{"kafka.fetch.max.bytes": "4000000", "kafka.max.partition.fetch.bytes": "1000000"},
    )  # fmt: skip
    query.processAllAvailable()
    query.stop()
    mib = [int(line) for line in peaks.read_text().split()]
    assert len(mib) > 20
    # 80 MB were there to be read ahead.
    assert mib[-1] - mib[0] < 30, mib


_ENDED_SESSION = """
import sys
from pyspark.sql import SparkSession
from kit import continuous as kit
from pyspark_kafka import continuous

place = sys.argv[1]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
query = (
    continuous.read(spark).format(kit.FilesTable()).option("path", place + "/in").load()
    .writeStream.format(kit.StagedTable()).option("path", place + "/out")
    .option("checkpointLocation", place + "/checkpoint").start()
)
query.processAllAvailable()
spark.stop()
try:
    query.awaitTermination(60)
except Exception as error:
    print(error.condition)
"""


@pytest.mark.full("Drivers of their own")
def test_query_ends_when_its_session_has_ended(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_ENDED_SESSION)
    add_lines(tmp_path, "a", 1)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
        capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "CONTINUOUS_SESSION_ENDED" in done.stdout
