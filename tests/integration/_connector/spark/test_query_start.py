"""Where a new query started outlives a killed driver: nothing is lost between two runs, at whatever moment it died."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce

PROGRAM = Path(__file__).parents[3] / "kit/programs/held_query.py"


def numbered(first: int, last: int) -> list[Record]:
    return [Record(b"k", b"v%03d" % i, partition=0) for i in range(first, last)]


def names(first: int, last: int) -> list[str]:
    return [f"v{i:03}" for i in range(first, last)]


@dataclass
class Held:
    """One query of a program that was killed.

    Attributes:
        topic: what it read: 10 records were there when it started.
        place: where it wrote, and its checkpoint.
        holds: the steps of its start at which it stood still; the last is where it was killed.
        told: whether the source was told of its checkpoint.
    """

    topic: str
    place: Path
    holds: tuple[str, ...]
    told: bool

    @property
    def options(self) -> dict[str, str]:
        """Options of the source: at first, and afterwards."""
        return {"checkpointLocation": str(self.place / "checkpoint")} if self.told else {}

    def await_step(self, step: str, program: subprocess.Popen[bytes], log: Path) -> None:
        """Wait until it stands still at a step."""
        end = time.monotonic() + 400
        while not (self.place / step).exists():
            assert program.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the Python processes that stand still."""
        for step in self.holds:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((self.place / step).read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def killed(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, bool], Held]:
    """Queries whose driver was killed, by the step it was killed at and whether the source was told of its checkpoint.

    Four more records come in while those that are to go on from `latest` stand there.
    """
    place = tmp_path_factory.mktemp("killed")
    log = place / "log"
    queries = {}
    for holds, told in itertools.product((("latest",), ("latest", "read")), (False, True)):
        own = place / f"{holds[-1]}-{told}"
        own.mkdir()
        held = queries[holds[-1], told] = Held(make_topic(), own, holds, told)
        produce(bootstrap_servers, held.topic, numbered(0, 10))
    specs = [
        {"topic": each.topic, "place": str(each.place), "holds": each.holds, "options": each.options}
        for each in queries.values()
    ]
    with log.open("wb") as out:
        program = subprocess.Popen(
            [sys.executable, str(PROGRAM), bootstrap_servers, json.dumps(specs)],
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        for held in queries.values():
            held.await_step("latest", program, log)
            if "read" in held.holds:
                produce(bootstrap_servers, held.topic, numbered(10, 14))
                (held.place / "go").touch()
                held.await_step("read", program, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        for held in queries.values():
            held.kill()
    return queries


def run_to_end(spark: SparkSession, servers: str, held: Held) -> list[str]:
    """Continue from the checkpoint with the package's own source, and return all values that the query has written."""
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    rows: DataFrame = reader.options(subscribe=held.topic, **held.options).load()
    place = held.place
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


@pytest.mark.full("Kills at every point")
@pytest.mark.parametrize("told", [False, True], ids=["carried", "checkpointLocation"])
def test_a_first_batch_that_was_planned_and_not_committed_is_read_whole_by_the_next_run(
    spark: SparkSession, bootstrap_servers: str, killed: dict[tuple[str, bool], Held], told: bool
) -> None:
    held = killed["read", told]
    topic, checkpoint = held.topic, held.place / "checkpoint"
    logged = (checkpoint / "offsets/0").read_text().splitlines()[2].replace(" ", "")
    assert logged == (f'{{"{topic}":{{"0":14}}}}' if told else f'{{"{topic}":{{"00":10,"0":14}}}}')
    assert not list((checkpoint / "commits").glob("0"))
    produce(bootstrap_servers, topic, numbered(14, 19))
    assert run_to_end(spark, bootstrap_servers, held) == names(10, 19)
    # The end of the second batch is as plain as those of Spark's connector.
    logged = (checkpoint / "offsets/1").read_text().splitlines()[2].replace(" ", "")
    assert logged == f'{{"{topic}":{{"0":19}}}}'


@pytest.mark.full("Kills at every point")
def test_query_killed_before_any_batch_continues_where_it_started_if_its_checkpoint_is_set(
    spark: SparkSession, bootstrap_servers: str, killed: dict[tuple[str, bool], Held]
) -> None:
    held = killed["latest", True]
    assert not list((held.place / "checkpoint/offsets").glob("0"))
    produce(bootstrap_servers, held.topic, numbered(10, 14))
    assert run_to_end(spark, bootstrap_servers, held) == names(10, 14)


@pytest.mark.full("Kills at every point")
def test_a_query_killed_before_any_batch_starts_as_a_new_one_if_it_was_not_told(
    spark: SparkSession, bootstrap_servers: str, killed: dict[tuple[str, bool], Held]
) -> None:
    held = killed["latest", False]
    produce(bootstrap_servers, held.topic, numbered(10, 14))
    assert run_to_end(spark, bootstrap_servers, held) == []
    produce(bootstrap_servers, held.topic, numbered(14, 16))
    assert run_to_end(spark, bootstrap_servers, held) == names(14, 16)
