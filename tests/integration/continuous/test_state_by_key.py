"""State by key in continuous queries: counts are exact after kills of workers and of the driver, and over new plans."""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from kit.continuous import FilesStream, FilesTable, StagedTable, committed_rows
from kit.continuous_state import COUNTS, running_count
from kit.programs.dying_driver import run_until_killed
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.connector import ContinuousStream
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import CapabilityError, ConnectorError, OptionError, SchemaError, StateError


class Numbers:
    """Files with numbers, and what their counts by key must be."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._lines: Counter[str] = Counter()
        for each in ("in", "out"):
            (place / each).mkdir(exist_ok=True)

    def add(self, name: str, count: int) -> None:
        begin = self._lines[name]
        with (self.place / "in" / name).open("a") as file:
            file.write("".join(f"{number}\n" for number in range(begin, begin + count)))
        self._lines[name] += count

    def expected(self) -> list[tuple[str, int, int]]:
        return sorted((name, number, number // 5 + 1) for name, lines in self._lines.items() for number in range(lines))

    def found(self) -> list[tuple[str, int, int]]:
        return sorted((row["file"], row["n"], row["count"]) for row in committed_rows(self.place / "out"))


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path)


def start(spark: SparkSession, numbers: Numbers, function: Any = running_count, **options: str) -> ContinuousQuery:
    place = numbers.place
    options.setdefault("checkpointLocation", str(place / "checkpoint"))
    return (
        continuous.read(spark).format(FilesTable()).option("path", str(place / "in")).load()
        .where(pc.field("n") >= 0)
        .mapWithState(function, COUNTS, "count bigint")
        .writeStream.format(StagedTable()).option("path", str(place / "out")).options(**options)
        .trigger(continuous="100 milliseconds").start()
    )  # fmt: skip


def test_counts_are_exact_over_kills_new_files_and_other_numbers_of_tasks(
    spark: SparkSession, numbers: Numbers, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(rows: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        (pids / str(os.getpid())).touch()
        return running_count(rows, state)

    for name in "abc":
        numbers.add(name, 12)
    query = start(spark, numbers, noting, tasks="2")
    query.processAllAvailable()
    for noted in list(pids.iterdir()):
        noted.unlink()
    numbers.add("a", 13)
    eventually(lambda: any(pids.iterdir()))
    os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
    numbers.add("b", 7)
    query.processAllAvailable()
    # A new file moves files between lanes and tasks.
    numbers.add("aa", 11)
    eventually(lambda: numbers.found() == numbers.expected())
    query.stop()
    assert query.exception() is None
    for name in ("a", "aa", "c"):
        numbers.add(name, 9)
    again = start(spark, numbers, tasks="1")
    again.processAllAvailable()
    again.stop()
    assert again.exception() is None
    assert numbers.found() == numbers.expected()


@pytest.mark.full("Checkpoints on stores")
def test_counts_are_exact_over_restarts_from_a_checkpoint_on_s3(spark: SparkSession, numbers: Numbers) -> None:
    pytest.importorskip("obstore", reason="the extra object-stores")
    pytest.importorskip("moto", reason="a local S3 server")
    from kit.fakes.object_store import ObjectStore  # noqa: PLC0415 - needs moto

    with ObjectStore(f"checkpoints-{uuid.uuid4().hex}") as store:
        for lines in (12, 13):
            for name in "abc":
                numbers.add(name, lines)
            query = start(spark, numbers, checkpointLocation=store.uri("query"))
            query.processAllAvailable()
            query.stop()
            assert query.exception() is None
            assert numbers.found() == numbers.expected()


_KILLED = """
from kit.continuous_state import COUNTS, running_count
from kit.programs.dying_driver import copy_until_killed

copy_until_killed(
    lambda rows: rows.mapWithState(running_count, COUNTS, "count bigint"),
    "".join(f"{n}\\n" for n in range(12, 24)),
)
"""


@pytest.mark.parametrize(
    "point",
    [
        "files prepare before",
        pytest.param("sink commit before", marks=pytest.mark.long),
        pytest.param("sink commit after", marks=pytest.mark.full("Kills at every point")),
        pytest.param("files write_commit after", marks=pytest.mark.long),
    ],
)
def test_counts_are_exact_after_a_driver_is_killed_within_a_commit(
    spark: SparkSession, numbers: Numbers, tmp_path: Path, point: str
) -> None:
    numbers.add("a", 12)
    run_until_killed(_KILLED, tmp_path, point)
    numbers._lines["a"] = 24
    numbers.add("a", 3)
    query = start(spark, numbers)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert numbers.found() == numbers.expected()


def test_checkpoint_without_this_state_is_refused(spark: SparkSession, numbers: Numbers) -> None:
    numbers.add("a", 12)
    query = start(spark, numbers)
    query.processAllAvailable()
    query.stop()
    for columns, condition in (("count int", "STATE_SCHEMA_CHANGED"), ("count bigint", None)):
        query = (
            continuous.read(spark).format(FilesTable()).option("path", str(numbers.place / "in")).load()
            .mapWithState(running_count, COUNTS, columns)
            .writeStream.format(StagedTable()).option("path", str(numbers.place / "out"))
            .option("checkpointLocation", str(numbers.place / "checkpoint")).start()
        )  # fmt: skip
        if condition is None:
            query.processAllAvailable()
            query.stop()
            continue
        with pytest.raises(StateError) as caught:
            query.awaitTermination(120)
        assert caught.value.condition == condition
    newest = max((numbers.place / "checkpoint" / "continuous" / "versions").iterdir(), key=lambda path: int(path.name))
    newest.unlink()
    query = start(spark, numbers)
    with pytest.raises(StateError) as caught:
        query.awaitTermination(120)
    assert caught.value.condition == "STATE_EPOCH_MISSING"
    assert numbers.found() == numbers.expected()


def test_error_of_the_function_reaches_the_handle(spark: SparkSession, numbers: Numbers) -> None:
    def wrong(rows: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        state.update(rows.column("file"), total=rows.column("n"))
        return rows

    numbers.add("a", 1)
    query = start(spark, numbers, wrong)
    with pytest.raises(ConnectorError, match=r"STATE_USE_INVALID.*it got the columns total, and the state has count"):
        query.awaitTermination(120)


def test_start_refuses_what_cannot_keep_state(
    spark: SparkSession, numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = continuous.read(spark).format(FilesTable()).option("path", str(numbers.place / "in")).load()
    with pytest.raises(CapabilityError) as caught:
        frame.mapInArrow(lambda batches: batches, "n bigint").mapWithState(running_count, COUNTS, "count bigint")
    assert caught.value.condition == "STATE_AFTER_MAP_IN_ARROW"
    with pytest.raises(SchemaError):
        frame.mapWithState(running_count, COUNTS, "counts array<bigint>")
    with pytest.raises(OptionError):
        frame.mapWithState(running_count, COUNTS, "count bigint", ttl="soon")
    monkeypatch.setattr(FilesStream, "keyGroups", ContinuousStream.keyGroups)
    with pytest.raises(CapabilityError) as caught:
        start(spark, numbers)
    assert caught.value.condition == "CAPABILITY_NOT_IMPLEMENTED"
