"""The pipeline of docs/guides/pipelines.md, run twice: each record of the topic is in the table once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pages import guide_text
from kit.programs.cli import invoke
from kit.programs.run import connect_server_port

pytestmark = pytest.mark.full("Programs of the pages")


def block(language: str) -> str:
    """Return the only block of the page in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", guide_text("pipelines"), re.DOTALL)
    return str(found)


def table(place: Path, name: str) -> pa.Table:
    files = sorted((place / "spark-warehouse" / name).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


def test_pipeline_continues_in_its_next_run(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    topic = make_topic()
    (tmp_path / "transformations").mkdir()
    spec = block("yaml").replace("file:///pipelines/orders", (tmp_path / "storage").as_uri())
    (tmp_path / "spark-pipeline.yml").write_text(spec)
    program = block("python").replace("localhost:9092", bootstrap_servers)
    program = program.replace('"subscribe", "orders"', f'"subscribe", "{topic}"')
    (tmp_path / "transformations" / "orders.py").write_text(program)
    (command,) = re.findall(r"^spark-pipelines (run .+)$", block("sh"), re.MULTILINE)
    for first, last in ((0, 3), (3, 4)):
        records = [Record(None, b'{"id": %d, "amount": 1.5}' % number) for number in range(first, last)]
        produce(bootstrap_servers, topic, records)
        with connect_server_port():
            done = subprocess.run(
                [Path(sys.executable).with_name("spark-pipelines"), *command.split()],
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
                capture_output=True, text=True, timeout=290, check=False, cwd=tmp_path,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert sorted(table(tmp_path, "orders")["id"].to_pylist()) == list(range(last))
        assert table(tmp_path, "totals").to_pylist() == [{"orders": last, "amount": 1.5 * last}]
    (checkpoint,) = {path.parent for path in (tmp_path / "storage").rglob("commits")}
    explained = invoke("checkpoint", "explain", str(checkpoint))
    assert f"{topic} with 1 partition" in " ".join(explained.output.split())
