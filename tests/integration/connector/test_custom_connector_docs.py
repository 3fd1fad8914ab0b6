"""The programs of docs/custom-sources.md and docs/custom-sinks.md, run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DOCS = Path(__file__).parents[3] / "docs"


def programs(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (_DOCS / page).read_text(), re.DOTALL)


def test_source_of_the_page_is_read(spark: SparkSession) -> None:
    names: dict[str, Any] = {"spark": spark, "__name__": "__main__"}
    exec(programs("custom-sources.md")[0], names)  # noqa: S102 - our own text
    rows = names["df"].collect()
    assert [(row.number, row.celsius) for row in rows] == [(n, 20 + n % 7) for n in range(100)]


def test_source_of_the_page_keeps_its_contract(tmp_path: Path) -> None:
    source, contract = programs("custom-sources.md")
    source = source.partition("spark.dataSource")[0]
    (tmp_path / "test_readings.py").write_text(f"{source}\n{contract}")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_sink_of_the_page_writes_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    (sink,) = programs("custom-sinks.md")
    exec(sink, {"spark": spark, "__name__": "__main__"})  # noqa: S102 - our own text
    exec(programs("custom-sources.md")[0], {"spark": spark, "__name__": "__main__"})  # noqa: S102 - our own text
    place = tmp_path / "files"
    place.mkdir()
    for readings in (100, 250):
        query = (
            spark.readStream.format("readings").option("readings", str(readings)).load()
            .writeStream.format("json_files").option("path", str(place))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination(120)
        # The commit of the last micro-batch is lost: Spark runs it again.
        for name in sorted((tmp_path / "checkpoint" / "commits").iterdir())[-2:]:
            name.unlink()
    found = [row["number"] for path in place.glob("*.json") for row in json.loads(path.read_text())]
    assert sorted(found) == list(range(200))
