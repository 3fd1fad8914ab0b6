"""A continuous query that is stopped while its lanes start: some read already, and others do not yet."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kit.continuous import SCHEMA, FilePartition, FileReader, FilesStream, FilesTable, StagedTable, committed_rows
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.connector import ContinuousPartitionReaderFactory
from pyspark_kafka.continuous.query import run as run_of_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pyspark_kafka.connector import ContinuousPartitionReader, InputPartition, ScanBuilder
    from pyspark_kafka.continuous.query.handle import ContinuousQuery


class GatedReaders(ContinuousPartitionReaderFactory):
    """Makes readers of files; that of the file `late` when there is a gate beside the directory."""

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        assert isinstance(partition, FilePartition)
        path = Path(partition.path)
        while path.name == "late" and not (path.parents[1] / "gate").exists():
            time.sleep(0.02)
        return FileReader(partition)


class GatedStream(FilesStream):
    """Files, and a gate before one of them."""

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        return GatedReaders()


@dataclass(frozen=True)
class GatedTable(FilesTable):
    """Files, and a gate before one of them."""

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        scan: Any = super().newScanBuilder(options)
        scan.toContinuousStream = lambda _: GatedStream(options["path"])
        return scan  # type: ignore[no-any-return]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    for name in ("late", "soon"):
        (tmp_path / "in" / name).write_text("0\n1\n")
    return tmp_path


def start_and_await_rows(spark: SparkSession, place: Path) -> ContinuousQuery:
    """Start a query, and return it when one of its lanes has rows and the other does not read yet."""
    seen = place / "seen"

    def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            seen.touch()

    query = (
        continuous.read(spark).format(GatedTable()).option("path", str(place / "in")).load()
        .map_in_arrow(noting, SCHEMA)
        .write_stream.format(StagedTable()).option("path", str(place / "out")).option("tasks", "1")
        .option("checkpointLocation", str(place / "checkpoint")).trigger(continuous="50 milliseconds").start()
    )  # fmt: skip
    eventually(seen.exists, 60)
    assert not query._runner.is_reading
    return query


def rows(place: Path) -> list[tuple[str, int]]:
    return sorted((row["file"], row["n"]) for row in committed_rows(place / "out"))


def test_rows_of_lanes_that_read_already_are_committed(spark: SparkSession, place: Path) -> None:
    query = start_and_await_rows(spark, place)
    stopper = threading.Thread(target=query.stop)
    stopper.start()
    eventually(lambda: query._runner.is_stopping)
    (place / "gate").touch()
    stopper.join(60)
    assert not query.isActive
    assert query.status["message"] == "Stopped"
    assert [row for row in rows(place) if row[0] == "soon"] == [("soon", 0), ("soon", 1)]
    progress = query.lastProgress
    assert progress is not None
    assert progress["numInputRows"] >= 2


def test_stop_does_not_wait_for_ever_for_a_lane_that_does_not_start(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_of_query, "_START_SECONDS", 2.5)
    query = start_and_await_rows(spark, place)
    waits: list[float] = []
    seconds = run_of_query.QueryRun._wait_seconds

    def noted(*arguments: Any) -> float:
        waits.append(seconds(*arguments))
        return waits[-1]

    monkeypatch.setattr(run_of_query.QueryRun, "_wait_seconds", noted)
    query.stop()
    # It waits, and does not spin.
    assert len(waits) < 100
    assert query.exception() is None
    assert query.status["message"] == "Stopped"
    assert rows(place) == []
    (place / "gate").touch()
