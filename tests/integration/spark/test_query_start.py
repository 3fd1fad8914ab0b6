"""Where a new query started outlives a killed driver: nothing is lost between two runs, at whatever moment it died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import Record, produce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from conftest import TopicMaker

PROGRAM = Path(__file__).parents[2] / "held_query.py"


def numbered(first: int, last: int) -> list[Record]:
    return [Record(b"k", b"v%03d" % i, partition=0) for i in range(first, last)]


def names(first: int, last: int) -> list[str]:
    return [f"v{i:03}" for i in range(first, last)]


class HeldQuery:
    """A query in a process of its own that stands still at steps of its start."""

    def __init__(self, servers: str, topic: str, place: Path, *, holds: str, options: tuple[str, ...] = ()) -> None:
        self.place = place
        self._log = (place / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), servers, topic, str(place), holds, *options],
            stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def await_step(self, step: str, seconds: float = 90) -> None:
        """Wait until it stands still at a step."""
        end = time.monotonic() + seconds
        while not (self.place / step).exists():
            assert self._process.poll() is None, (self.place / "log").read_text()
            assert time.monotonic() < end, (self.place / "log").read_text()
            time.sleep(0.02)

    def go(self) -> None:
        """Let it on from the step `latest`."""
        (self.place / "go").touch()

    def kill(self) -> None:
        """Kill the driver with its JVM, and the Python processes that stand still."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for step in ("latest", "read"):
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((self.place / step).read_text()), signal.SIGKILL)
        self._log.close()


@contextmanager
def held(servers: str, topic: str, place: Path, *, holds: str, options: tuple[str, ...] = ()) -> Iterator[HeldQuery]:
    query = HeldQuery(servers, topic, place, holds=holds, options=options)
    try:
        yield query
    finally:
        query.kill()


def run_to_end(spark: SparkSession, servers: str, topic: str, place: Path, **options: str) -> list[str]:
    """Go on from the checkpoint with the package's own source, and give all values that the query has written."""
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    rows: DataFrame = reader.options(subscribe=topic, **options).load()
    (
        rows.selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .option("path", f"{place}/out")
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    written = spark.read.schema("topic string, partition int, offset long, value string").parquet(f"{place}/out")
    return sorted(row.value for row in written.collect())


@pytest.mark.parametrize("with_checkpoint", [False, True], ids=["carried", "checkpointLocation"])
def test_a_first_batch_that_was_planned_and_not_committed_is_read_whole_by_the_next_run(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, with_checkpoint: bool
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 10))
    options = {"checkpointLocation": str(tmp_path / "checkpoint")} if with_checkpoint else {}
    given = tuple(f"{name}={value}" for name, value in options.items())
    with held(bootstrap_servers, topic, tmp_path, holds="latest,read", options=given) as query:
        query.await_step("latest")
        produce(bootstrap_servers, topic, numbered(10, 14))
        query.go()
        query.await_step("read")
        query.kill()
    logged = (tmp_path / "checkpoint/offsets/0").read_text().splitlines()[2].replace(" ", "")
    assert logged == (f'{{"{topic}":{{"0":14}}}}' if with_checkpoint else f'{{"{topic}":{{"00":10,"0":14}}}}')
    assert not list((tmp_path / "checkpoint/commits").glob("0"))
    produce(bootstrap_servers, topic, numbered(14, 19))
    assert run_to_end(spark, bootstrap_servers, topic, tmp_path, **options) == names(10, 19)
    # The end of the second batch is as plain as those of Spark's connector.
    logged = (tmp_path / "checkpoint/offsets/1").read_text().splitlines()[2].replace(" ", "")
    assert logged == f'{{"{topic}":{{"0":19}}}}'


def test_a_query_killed_before_any_batch_goes_on_where_it_started_if_it_was_told_its_checkpoint(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 10))
    location = str(tmp_path / "checkpoint")
    with held(bootstrap_servers, topic, tmp_path, holds="latest", options=(f"checkpointLocation={location}",)) as query:
        query.await_step("latest")
        query.kill()
    assert not list((tmp_path / "checkpoint/offsets").glob("0"))
    produce(bootstrap_servers, topic, numbered(10, 14))
    found = run_to_end(spark, bootstrap_servers, topic, tmp_path, checkpointLocation=location)
    assert found == names(10, 14)


def test_a_query_killed_before_any_batch_starts_as_a_new_one_if_it_was_not_told(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 10))
    with held(bootstrap_servers, topic, tmp_path, holds="latest") as query:
        query.await_step("latest")
        query.kill()
    produce(bootstrap_servers, topic, numbered(10, 14))
    assert run_to_end(spark, bootstrap_servers, topic, tmp_path) == []
    produce(bootstrap_servers, topic, numbered(14, 16))
    assert run_to_end(spark, bootstrap_servers, topic, tmp_path) == names(14, 16)
