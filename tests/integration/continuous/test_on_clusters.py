"""Continuous queries on clusters: an executor is killed, a worker is lost for good, another one comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from faults.harness import executor_of
from kit.continuous import committed_rows
from kit.pointers import REPO
from kit.programs.cluster import StandaloneCluster
from kit.waiting import eventually

pytestmark = pytest.mark.full("Kills at every point")

_PROGRAM = """
import logging, os, sys
from pathlib import Path
from pyspark import SparkConf, cloudpickle
from pyspark.sql import SparkSession
from faults.cluster import prepare
from kit import continuous as kit
from pyspark_kafka import continuous

logging.basicConfig(level=logging.INFO)
logging.getLogger("py4j").setLevel(logging.WARNING)
# The Python of executors has the package, not the kit.
cloudpickle.register_pickle_by_value(kit)
master, place = sys.argv[1], Path(sys.argv[2])
conf = SparkConf()
for name, value in {
    "spark.master": master, "spark.ui.enabled": "false", "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}.items():
    conf.set(name, value)
if master.startswith("local-cluster"):
    prepare(conf, str(place))
spark = SparkSession.builder.config(conf=conf).getOrCreate()

def noting(batches):
    for batch in batches:
        # Which process has had rows of which file.
        (place / "pids" / f"{os.getpid()}-{batch.column('file')[0]}").touch()
        yield batch

query = (
    continuous.read(spark).format(kit.FilesTable()).option("path", str(place / "in")).load()
    .mapInArrow(noting, kit.SCHEMA)
    .writeStream.format(kit.StagedTable()).option("path", str(place / "out"))
    .option("checkpointLocation", str(place / "checkpoint")).trigger(continuous="100 ms").start()
)
while not (place / "stop").exists():
    query.awaitTermination(0.1)
query.stop()
print("ENDED", query.exception(), flush=True)
spark.stop()
"""
_FILES = "abc"


class RunningQuery:
    """A program with a continuous query on a cluster; killed, if it still runs, at the end of the block."""

    def __init__(self, master: str, place: Path) -> None:
        for name in ("in", "out", "pids"):
            (place / name).mkdir()
        self._place = place
        self._lines = 0
        self.add_lines()
        program = place / "program.py"
        program.write_text(_PROGRAM)
        paths = [str(REPO / "tests"), os.environ.get("PYTHONPATH", "")]
        own = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with (place / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), master, str(place)],
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **own},
            )  # fmt: skip

    def __enter__(self) -> RunningQuery:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def log(self) -> str:
        return (self._place / "log").read_text(errors="replace")

    def add_lines(self) -> None:
        """Append some lines to each file."""
        lines = "".join(f"{number}\n" for number in range(self._lines, self._lines + 10))
        for name in _FILES:
            with (self._place / "in" / name).open("a") as file:
                file.write(lines)
        self._lines += 10

    def await_rows(self) -> None:
        """Wait until every line is committed, each once."""
        expected = [(name, number) for name in _FILES for number in range(self._lines)]
        self.until(lambda: len(committed_rows(self._place / "out")) >= len(expected))
        assert sorted((row["file"], row["n"]) for row in committed_rows(self._place / "out")) == expected

    def executors(self) -> set[int]:
        """Return the executors whose tasks have had the rows of the lines that were added last."""
        for note in (self._place / "pids").iterdir():
            note.unlink()
        self.add_lines()
        self.await_rows()
        found = set()
        for note in (self._place / "pids").iterdir():
            # A worker that has ended since, with the run that it was of, has no executor any more.
            with suppress(FileNotFoundError, ProcessLookupError):
                found.add(executor_of(int(note.name.partition("-")[0])))
        return found

    def until(self, condition: object, seconds: float = 120.0) -> None:
        """Wait until something holds; fails at once if the program has ended."""
        end = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert self._process.poll() is None, f"the program has ended\n{self.log[-6000:]}"
            assert time.monotonic() < end, f"not within {seconds:g} s\n{self.log[-6000:]}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the query, and the program."""
        (self._place / "stop").touch()
        assert self._process.wait(90) == 0, self.log[-6000:]
        assert "ENDED None" in self.log


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    place = tmp_path / "cluster"
    place.mkdir()
    with StandaloneCluster(place) as cluster:
        yield cluster


def test_killed_executor_of_a_local_cluster_costs_no_row_and_its_slot_is_used_again(tmp_path: Path) -> None:
    with RunningQuery("local-cluster[2,1,1024]", tmp_path) as query:
        query.await_rows()
        query.until(lambda: len(query.executors()) == 2)
        killed = min(query.executors())
        os.kill(killed, signal.SIGKILL)
        query.add_lines()
        query.await_rows()
        query.until(lambda: len(query.executors() - {killed}) == 2)
        query.stop()


@pytest.mark.long
def test_query_goes_on_without_a_worker_that_is_lost_and_with_one_that_comes(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    first = cluster.start_worker()
    cluster.start_worker()
    with RunningQuery(cluster.url, tmp_path) as query:
        query.until(lambda: len(query.executors()) == 2)
        cluster.kill_worker(first)
        killed_at = time.monotonic()
        # Spark would wait ten minutes for slots that do not come.
        (left,) = query.executors()
        assert time.monotonic() - killed_at < 60
        cluster.start_worker()
        query.until(lambda: len(query.executors()) == 2)
        assert left in query.executors()
        query.stop()
    eventually(lambda: query.log.count("starts again in") == 1)
