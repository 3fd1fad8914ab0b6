"""A continuous query that is stopped while its lanes start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.continuous import FilePartition, FileReader, FilesStream, FilesTable, StagedTable, committed_rows
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    InputPartition,
    ScanBuilder,
)


class GatedReaders(ContinuousPartitionReaderFactory):
    """Makes readers of files; that of the file `late` when there is a gate beside the directory."""

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        assert isinstance(partition, FilePartition)
        path = Path(partition.path)
        if path.name == "late":
            (path.parents[1] / "late-asked").touch()
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


def rows(place: Path) -> list[tuple[str, int]]:
    return sorted((row["file"], row["n"]) for row in committed_rows(place / "out"))


def test_stop_does_not_wait_for_a_lane_that_does_not_start_as_no_lane_has_read(
    spark: SparkSession, place: Path
) -> None:
    query = (
        continuous.read(spark).format(GatedTable()).option("path", str(place / "in")).load()
        .writeStream.format(StagedTable()).option("path", str(place / "out")).option("tasks", "1")
        .option("checkpointLocation", str(place / "checkpoint")).trigger(continuous="50 milliseconds").start()
    )  # fmt: skip
    try:
        eventually((place / "late-asked").exists)
        assert not query._runner.is_reading
        query.stop()
        assert query.exception() is None
        assert query.status["message"] == "Stopped"
        assert rows(place) == []
    finally:
        (place / "gate").touch()
