"""The programs of docs/custom-sources.md and docs/custom-sinks.md, run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo

pytestmark = pytest.mark.full("Programs of the pages")

_DOCS = Path(__file__).parents[3] / "docs"


def programs(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (_DOCS / page).read_text(), re.DOTALL)


def source_of_the_page(spark: SparkSession, path: Path) -> dict[str, Any]:
    """Run the program of the page over a file of ours; return its names."""
    names: dict[str, Any] = {"spark": spark, "__name__": "__main__"}
    exec(programs("custom-sources.md")[0].replace("/data/readings.txt", str(path)), names)  # noqa: S102 - our own text
    return names


def test_source_of_the_page_is_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "readings.txt"
    path.write_text("".join(f"{number / 2}\n" for number in range(250)))
    rows = source_of_the_page(spark, path)["df"].collect()
    assert [(row.number, row.celsius) for row in rows] == [(number, number / 2) for number in range(250)]


def test_sources_of_the_page_keep_their_contract(tmp_path: Path) -> None:
    simple, limited, followed, contract, limited_contract, followed_contract = programs("custom-sources.md")
    sources = [each.partition("spark.dataSource")[0] for each in (simple, limited)]
    cases = [contract, limited_contract, followed_contract]
    (tmp_path / "test_readings.py").write_text("\n".join([*sources, followed, *cases]))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:randomly", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "TestLimitedReadings::test_limits_are_respected_and_never_stall[3] PASSED" in run.stdout
    assert "TestFollowedReadings::test_each_epoch_continues_with_no_row_lost_or_doubled PASSED" in run.stdout


def test_sink_of_the_page_keeps_its_contract(tmp_path: Path) -> None:
    sink, _, contract = programs("custom-sinks.md")
    (tmp_path / "test_files.py").write_text("\n".join([sink.partition("spark.dataSource")[0], contract]))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:randomly", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert (
        "TestJsonFiles::test_kill_inside_of_a_commit_loses_and_doubles_nothing[StreamingWrite.commit] PASSED"
        in run.stdout
    )


def test_sink_of_the_page_writes_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    exec(programs("custom-sinks.md")[0], {"spark": spark, "__name__": "__main__"})  # noqa: S102 - our own text
    path, place, checkpoint = tmp_path / "readings.txt", tmp_path / "files", tmp_path / "checkpoint"
    path.touch()
    place.mkdir()
    source_of_the_page(spark, path)
    for readings in (100, 250):
        path.write_text("1\n" * readings)
        for _ in range(2):
            query = (
                spark.readStream.format("readings").option("path", str(path)).load()
                .writeStream.format("json_files").option("path", str(place))
                .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            )  # fmt: skip
            query.awaitTermination(120)
            # The commit of the last micro-batch is lost: Spark runs it again.
            last = max(int(name.name) for name in (checkpoint / "commits").iterdir() if name.name.isdecimal())
            for name in (str(last), f".{last}.crc"):
                (checkpoint / "commits" / name).unlink()
    found = [row["number"] for file in place.glob("*.json") for row in json.loads(file.read_text())]
    assert sorted(found) == list(range(250))


def test_batch_write_of_the_page_writes_its_rows_once_for_each_job(tmp_path: Path) -> None:
    session = MagicMock()
    names: dict[str, Any] = {"spark": session, "__name__": "__main__"}
    for program in programs("custom-sinks.md")[:2]:
        exec(program, names)  # noqa: S102 - our own text
    assert session.dataSource.register.call_args.args[0].name() == "json_jobs"
    rows = pa.record_batch({"id": [1, 2, 3]})
    for _ in range(2):
        write = names["JsonJobs"]().newWriteBuilder(LogicalWriteInfo({"path": str(tmp_path)}, rows.schema)).build()
        job = write.toBatch()
        factory = job.createBatchWriterFactory(PhysicalWriteInfo(3))
        writers = [factory.createWriter(task, 10 + task) for task in range(3)]
        for writer in writers:
            writer.write(rows)
        messages = [writer.commit() for writer in writers]
        # The last task has failed: nothing of this job is left.
        job.abort([*messages[:2], None])
        assert len(list(tmp_path.glob(".prepared*"))) == 1
        messages[:2] = [writer.commit() for writer in writers[:2]]
        job.commit(messages)
    found = [row["id"] for file in tmp_path.glob("*.json") for row in json.loads(file.read_text())]
    assert sorted(found) == sorted([1, 2, 3] * 6)
    assert list(tmp_path.glob(".prepared*")) == []


def test_limited_source_of_the_page_is_registered_and_loaded() -> None:
    session = MagicMock()
    exec(programs("custom-sources.md")[1], {"spark": session, "__name__": "__main__"})  # noqa: S102 - our own text
    assert session.dataSource.register.call_args.args[0].name() == "limited_readings"
    session.readStream.format.assert_called_once_with("limited_readings")
