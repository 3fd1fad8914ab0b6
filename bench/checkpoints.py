"""How long `pyspark-kafka checkpoint` takes for a checkpoint of 100,000 batches, in both versions of the offset log.

Run: make bench-checkpoints, or with ARGS="--batches 10000" for another number.

A query with 10 partitions; every command is a process of its own, from its start to its end, three times, and the
median counts. Files are read from the page cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from goals import Figure, seconds
from rich.console import Console
from rich.table import Table

_PARTITIONS = 10
_RUNS = 3
_GOAL_S = 2.0
_CONF = {f"spark.sql.streaming.setting{number}": "value" for number in range(12)}


def main() -> None:
    """Measure, print a table, and keep the numbers in bench/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--every", action="store_true", help="also the commands that read every file")
    given = parser.parse_args()
    figures = []
    for version in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            place = _write(Path(folder), given.batches, version)
            figures += [
                _measured(version, _GOAL_S, "explain", place),
                _measured(version, _GOAL_S, "explain", "--json", place),
                _measured(version, _GOAL_S, "show", place),
                _measured(version, None, "explain", "--batches", "1000", place),
            ]
            if given.every and version == 1:
                figures += [
                    _measured(version, None, "explain", "--all", place),
                    _measured(version, None, "verify", place),
                ]
    table = Table("what", "figure", "goal", "met", title=f"{given.batches:,} batches of {_PARTITIONS} partitions")
    for figure in figures:
        table.add_row(figure.name, figure.figure, figure.goal, figure.verdict)
    Console(width=120).print(table)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    kept = {figure.name: figure.values for figure in figures}
    (results / "checkpoints.json").write_text(json.dumps(kept, indent=2))


def _write(place: Path, batches: int, version: int) -> str:
    """Write a checkpoint as Spark does, apart from its hidden checksums; the last batch is not finished."""
    for directory in ("offsets", "commits", "sources/0"):
        (place / directory).mkdir(parents=True)
    (place / "metadata").write_text('{"id":"6a1c1f0e-9d0a-4c7e-8a37-0f7f5e2c9b11"}')
    prefix = "0:" if version == 2 else ""
    for number in range(batches):
        planned = 1_767_225_600_000 + number * 1_000
        metadata = {"batchWatermarkMs": planned - 60_000, "batchTimestampMs": planned, "conf": _CONF}
        end = {"orders": {str(partition): number * 100 + partition for partition in range(_PARTITIONS)}}
        text = f"v{version}\n{json.dumps(metadata)}\n{prefix}{json.dumps(end)}"
        (place / "offsets" / str(number)).write_text(text)
        if number < batches - 1:
            (place / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return str(place)


def _measured(version: int, goal_s: float | None, *arguments: str) -> Figure:
    command = [sys.executable, "-m", "pyspark_kafka", "checkpoint", *arguments]
    took = []
    for _ in range(_RUNS if goal_s is not None else 1):
        began = time.perf_counter()
        # Faults would have a status of their own.
        subprocess.run(command, check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    name = f"{' '.join(arguments[:-1])}, version {version}"
    median = statistics.median(took)
    if goal_s is None:
        return Figure(name, f"{median:.2f} s", values={"seconds": median})
    return seconds(name, median, goal_s)


if __name__ == "__main__":
    main()
