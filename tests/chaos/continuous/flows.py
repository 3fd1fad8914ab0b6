"""Continuous queries on a cluster in motion, in the driver program of `chaos.driver`."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from chaos.continuous import flowing, planted
from chaos.continuous.striking import keep_all_epochs
from chaos.world import dead_of, out_of
from pyspark_kafka import continuous
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.continuous.query.handle import ContinuousQuery

# Beside the checkpoint, while its store fails: before what is asked, or after it is done.
FAILS = ".fails"
BEFORE, AFTER = "before", "after"


def patch_driver() -> None:
    """Let checkpoints fail while a file says so, and keep all epochs for the checker."""
    keep_all_epochs()
    planted.patch_driver()
    path, put = CheckpointFiles._path, CheckpointFiles._put_local

    def failing_path(files: CheckpointFiles, name: str) -> str:
        if _mode(files) == BEFORE:
            raise OSError(errno.EIO, "a fault of the test", name)
        return path(files, name)

    def failing_put(files: CheckpointFiles, name: str, *args: Any, **named: Any) -> bool:
        is_new = put(files, name, *args, **named)
        if _mode(files) == AFTER:
            raise OSError(errno.EIO, "a fault of the test, after the write", name)
        return is_new

    CheckpointFiles._path = failing_path  # type: ignore[assignment,method-assign]
    CheckpointFiles._put_local = failing_put  # type: ignore[assignment,method-assign]


def _mode(files: CheckpointFiles) -> str:
    try:
        return Path(files.location + FAILS).read_text()
    except FileNotFoundError:
        return ""


def start(spark: SparkSession, query: dict[str, Any], name: str, servers: str) -> ContinuousQuery:
    """Start a query, or start it again."""
    (Path(query["place"]) / flowing.WORKERS).mkdir(parents=True, exist_ok=True)
    kafka = {"kafka.bootstrap.servers": servers}
    typed = {"startingOffsets": "earliest", "valueFormat": "string", "mode": "PERMISSIVE"}
    frame = continuous.read(spark).format(query["format"]).options(**kafka, **typed, **query["source"]).load()
    copy = flowing.FlowCopy(query["place"], out_of(query["name"]), dead_of(query["name"]), query["apart"])
    copy, more = planted.plant(copy, query)
    return (
        frame.mapInArrow(copy, flowing.SCHEMA)
        .writeStream.format(query["format"])
        .options(**kafka, **query["sink"], **more)
        .option("checkpointLocation", query["checkpoint"])
        .option("tasks", query["tasks"])
        .queryName(name)
        .trigger(continuous=query["trigger"])
        .start()
    )
