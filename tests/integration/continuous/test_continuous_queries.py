"""Continuous queries on Spark: rows, restarts, kills, errors, and what a user gets wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from kit.continuous import SCHEMA, FilesTable, StagedTable, StagedWrite, committed_rows
from kit.pointers import REPO
from kit.programs.dying_driver import run_until_killed
from kit.programs.run import run_logging_program
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import continuous
from pyspark_kafka.connector import StreamingWrite
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import CapabilityError, CheckpointError, ConnectorError, OptionError


class Place:
    """Directories of one query, and its input."""

    def __init__(self, place: Path) -> None:
        self.input, self.output, self.checkpoint = place / "in", place / "out", place / "checkpoint"
        for each in (self.input, self.output):
            each.mkdir(exist_ok=True)
        self._next: dict[str, int] = {}

    def add(self, name: str, count: int) -> None:
        begin = self._next.get(name, 0)
        with (self.input / name).open("a") as file:
            file.write("".join(f"{number}\n" for number in range(begin, begin + count)))
        self._next[name] = begin + count

    def expected(self) -> list[tuple[str, int]]:
        return [(name, number * 2) for name, count in sorted(self._next.items()) for number in range(count)]

    def found(self) -> list[tuple[str, int]]:
        return sorted((row["file"], row["n"]) for row in committed_rows(self.output))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def doubling() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.set_column(1, batch.schema.field(1), pc.multiply(batch.column("n"), 2))

    return double


def run_program(text: str, *arguments: str, place: Path) -> str:
    """Run a program that imports the kit, as its tasks do."""
    return run_logging_program(text, *arguments, place=place, environment={"PYTHONPATH": str(REPO / "tests")})[0]


def start(spark: SparkSession, place: Place, function: Any = None, **options: str) -> ContinuousQuery:
    return (
        continuous.read(spark).format(FilesTable()).option("path", str(place.input)).load()
        .mapInArrow(function or doubling(), SCHEMA)
        .writeStream.format(StagedTable()).option("path", str(place.output)).options(**options)
        .option("checkpointLocation", str(place.checkpoint)).queryName("doubles")
        .trigger(continuous="100 milliseconds").start()
    )  # fmt: skip


def test_rows_arrive_once_over_new_files_and_restarts(spark: SparkSession, place: Place) -> None:
    for name in "abc":
        place.add(name, 10)
    query = start(spark, place)
    query.processAllAvailable()
    assert place.found() == place.expected()
    place.add("a", 5)
    place.add("d", 3)
    eventually(lambda: place.found() == place.expected())
    assert query.isActive
    assert query.status["message"]
    assert query.name == "doubles"
    first_id, first_run = query.id, query.runId
    query.stop()
    assert query.exception() is None
    assert query.awaitTermination(1) is True
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(progress.sources[0].endOffset) == {"a": 15, "b": 10, "c": 10, "d": 3}
    assert sum(each["numInputRows"] for each in query.recentProgress) == 38
    assert [each["batchId"] for each in query.recentProgress] == list(range(progress["batchId"] + 1))
    place.add("b", 7)
    again = start(spark, place, tasks="1")
    again.processAllAvailable()
    again.stop()
    assert place.found() == place.expected()
    assert again.id == first_id
    assert again.runId != first_run


def test_query_goes_on_when_all_jobs_of_its_session_are_cancelled(spark: SparkSession, place: Place) -> None:
    """As by Ctrl-C, or by the interruption of a notebook's cell."""
    place.add("a", 10)
    query = start(spark, place, tasks="1")
    query.processAllAvailable()
    spark.sparkContext.cancelAllJobs()
    place.add("a", 10)
    query.processAllAvailable()
    assert query.isActive
    query.stop()
    assert place.found() == place.expected()


def test_killed_worker_costs_no_row_and_doubles_none(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (pids / str(os.getpid())).touch()
        yield from doubling()(batches)

    place.add("a", 10)
    place.add("b", 10)
    query = start(spark, place, noting)
    query.processAllAvailable()
    for _ in range(2):
        for name in list(pids.iterdir()):
            name.unlink()
        place.add("a", 5)
        eventually(lambda: any(pids.iterdir()))
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
        place.add("b", 5)
        query.processAllAvailable()
        assert place.found() == place.expected()
    query.stop()
    assert query.exception() is None


_KILLED = """
from kit.programs.dying_driver import copy_until_killed

copy_until_killed(lambda rows: rows, "10\\n11\\n")
"""


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("files prepare before", marks=pytest.mark.long),
        "sink commit before",
        pytest.param("files write_commit before", marks=pytest.mark.full("Kills at every point")),
        pytest.param("files write_commit after", marks=pytest.mark.long),
    ],
)
def test_driver_that_is_killed_within_a_commit_loses_and_doubles_nothing(
    spark: SparkSession, place: Place, tmp_path: Path, point: str
) -> None:
    place.add("a", 10)
    run_until_killed(_KILLED, tmp_path, point)
    query = start(spark, place, lambda batches: batches)
    query.processAllAvailable()
    query.stop()
    assert place.found() == [("a", number) for number in range(12)]


def test_error_of_a_function_reaches_the_handle_with_its_place(spark: SparkSession, place: Place) -> None:
    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            raise ValueError(f"no such number: {batch.column('n')[0]}")
        yield from ()

    place.add("a", 3)
    query = start(spark, place, broken)
    with pytest.raises(ConnectorError) as raised:
        query.awaitTermination(120)
    text = str(raised.value)
    assert "ValueError: no such number: 0" in text
    assert "in broken" in text
    assert '["a", 3]' in text
    assert query.exception() is raised.value
    assert place.found() == []
    with pytest.raises(ConnectorError):
        query.processAllAvailable()


def test_second_query_on_a_checkpoint_takes_it_over(spark: SparkSession, place: Place) -> None:
    place.add("a", 3)
    first = start(spark, place, tasks="1")
    first.processAllAvailable()
    second = start(spark, place, tasks="1")
    # It ends without a new row.
    eventually(lambda: not first.isActive)
    assert isinstance(first.exception(), CheckpointError)
    assert f"was taken over by another start of the query, whose runId is {second.runId}" in str(first.exception())
    place.add("a", 3)
    second.processAllAvailable()
    second.stop()
    assert second.exception() is None
    assert place.found() == place.expected()


def test_second_stop_does_not_wait_for_the_epoch(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    waits = tmp_path / "waits"

    def waiting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            waits.touch()
            time.sleep(600)
            yield batch

    place.add("a", 3)
    query = start(spark, place, waiting)
    eventually(waits.exists)
    stopper = threading.Thread(target=query.stop)
    stopper.start()
    eventually(lambda: query._runner.is_stopping)
    began = time.monotonic()
    query.stop()
    # Alone the first call gives up after 30 s.
    assert time.monotonic() - began < 20
    stopper.join(PATIENCE_S)
    assert not query.isActive
    assert query.exception() is None
    assert "the last epoch was not committed: " in query.status["message"]
    assert place.found() == []
    again = start(spark, place)
    again.processAllAvailable()
    again.stop()
    assert place.found() == place.expected()


_INTERRUPTED = """
import os, sys, time
from pyspark.sql import SparkSession
from kit import continuous as kit
from pyspark_kafka import continuous

place = sys.argv[1]

def waiting(batches):
    for batch in batches:
        open(place + "/waits", "w").close()
        time.sleep(600)
        yield batch

spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
query = (
    continuous.read(spark).format(kit.FilesTable()).option("path", place + "/in").load()
    .mapInArrow(waiting, kit.SCHEMA)
    .writeStream.format(kit.StagedTable()).option("path", place + "/out")
    .option("checkpointLocation", place + "/checkpoint").trigger(continuous="50 ms").start()
)
query.stopOnSignals()
while not os.path.exists(place + "/waits"):
    query.awaitTermination(0.05)
open(place + "/ready", "w").close()
query.awaitTermination()
"""


@pytest.mark.long
def test_second_signal_does_not_wait_for_the_epoch(place: Place, tmp_path: Path) -> None:
    place.add("a", 3)
    program = tmp_path / "interrupted.py"
    program.write_text(_INTERRUPTED)
    running = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        eventually((tmp_path / "ready").exists, 120)
        running.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            # The first signal waits for the epoch.
            running.wait(3)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        running.wait(PATIENCE_S)
        assert time.monotonic() - began < 20
    finally:
        running.kill()
        running.wait()


class MicroBatchesOnly(StagedTable):
    def newWriteBuilder(self, info: Any) -> Any:
        builder = super().newWriteBuilder(info)
        write: Any = type("OldWrite", (StagedWrite,), {"deserializeMessage": StreamingWrite.deserializeMessage})
        builder.toStreaming = lambda: write(info.options["path"])  # type: ignore[attr-defined]
        return builder


def test_mistakes_are_refused_before_anything_is_read(spark: SparkSession, place: Place) -> None:
    reader = continuous.read(spark).option("path", str(place.input))
    with pytest.raises(OptionError, match="without a format"):
        reader.load()
    with pytest.raises(OptionError, match="knows no format 'kafka'"):
        reader.format("kafka")
    with pytest.raises(TypeError, match="not an ABCMeta"):
        reader.format(FilesTable)  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match="'staged' cannot be read in a continuous query"):
        reader.format(StagedTable()).load()
    frame = reader.format(FilesTable()).load()
    with pytest.raises(ConnectorError, match="There is no column 'value'; the columns are file, n"):
        frame.select("value")
    writer = frame.writeStream.format(StagedTable()).option("path", str(place.output))
    with pytest.raises(OptionError, match="without checkpointLocation"):
        writer.start()
    for wrong in ("0 seconds", "soon", "1 fortnight", ""):
        with pytest.raises(OptionError, match="not a length of an epoch"):
            writer.trigger(continuous=wrong)
    with pytest.raises(OptionError, match="Option tasks is 'many'"):
        writer.option("checkpointLocation", str(place.checkpoint)).option("tasks", "many").start()
    with pytest.raises(CapabilityError, match="'files' cannot be written"):
        frame.writeStream.format(FilesTable()).option("checkpointLocation", str(place.checkpoint)).start()
    with pytest.raises(CapabilityError, match="no method deserializeMessage"):
        writer.format(MicroBatchesOnly()).start()
    assert not (place.checkpoint / "offsets").exists()


_CONNECT = """
import sys
from pyspark.sql import SparkSession
from pyspark import cloudpickle
from kit import continuous as kit
from pyspark_kafka import continuous

# The workers of the server do not find it.
cloudpickle.register_pickle_by_value(kit)
url, place = sys.argv[1:]
spark = SparkSession.builder.remote(url).create()
query = (
    continuous.read(spark).format(kit.FilesTable()).option("path", place + "/in").load()
    .select("file", "n")
    .writeStream.format(kit.StagedTable()).option("path", place + "/out")
    .option("checkpointLocation", place + "/checkpoint").trigger(continuous="100 ms").start()
)
query.processAllAvailable()
print(query.lastProgress["batchId"] >= 0, query.isActive)
query.stop()
print(query.exception())
spark.stop()
"""


def test_query_runs_on_spark_connect(connect_url: str, place: Place, tmp_path: Path) -> None:
    place.add("a", 10)
    place.add("b", 10)
    said = run_program(_CONNECT, connect_url, str(tmp_path), place=tmp_path)
    assert said.split() == ["True", "True", "None"]
    assert place.found() == [(name, number) for name in "ab" for number in range(10)]
