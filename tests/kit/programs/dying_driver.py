"""A program with a continuous query over files, whose driver is killed within the commit of its second epoch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from kit.continuous import FilesTable, StagedTable, StagedWrite
from kit.pointers import REPO
from pyspark_kafka import continuous
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.continuous.query.builder import ContinuousFrame

_KINDS: dict[str, type] = {"sink": StagedWrite, "files": EpochFiles}
_ENDS_AFTER_S = 180


def run_until_killed(program: str, place: Path, point: str) -> None:
    """Run the text of a program, which calls `copy_until_killed`, and check that it was killed.

    Args:
        program: its text.
        place: the folder with the query's `in`, `out` and `checkpoint`.
        point: "sink" or "files", the name of a method, "before" or "after".
    """
    script = place / "killed.py"
    script.write_text(program)
    killed = subprocess.run(
        [sys.executable, str(script), str(place), point],
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
        capture_output=True,
        text=True,
        timeout=_ENDS_AFTER_S,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-4000:]


def copy_until_killed(steps: Callable[[ContinuousFrame], ContinuousFrame], more: str) -> None:
    """In the program: copy files until one epoch is committed; add text to file "a"; die when that is committed."""
    place, point = sys.argv[1:]
    _die_at(*point.split())
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    query = (
        steps(continuous.read(spark).format(FilesTable()).option("path", f"{place}/in").load())
        .writeStream.format(StagedTable())
        .option("path", f"{place}/out")
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(continuous="50 ms")
        .start()
    )
    while not Path(place, "checkpoint/commits/0").exists():
        query.awaitTermination(0.05)
    with Path(place, "in/a").open("a") as file:
        file.write(more)
    query.awaitTermination()


def _die_at(kind: str, method: str, moment: str) -> None:
    inner = getattr(_KINDS[kind], method)

    def call(self: Any, epoch: int, *arguments: Any) -> Any:
        if moment == "after":
            inner(self, epoch, *arguments)
        if epoch >= 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return None if moment == "after" else inner(self, epoch, *arguments)

    setattr(_KINDS[kind], method, call)
