"""The commands of docs/deploy.md that start a standalone cluster and a server of Spark Connect, with pip's PySpark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pointers import REPO
from kit.programs.run import kill_program
from kit.programs.submitted import submitted
from kit.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.full("Clusters")

_PAGE = (REPO / "docs" / "deploy.md").read_text()
_ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
_COUNT = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers, topic = sys.argv[1:]
orders = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
print("rows", orders.load().count())
"""


def block(language: str, word: str) -> str:
    """Return the block of the page that has a text."""
    (found,) = [each for each in re.findall(rf"```{language}\n(.*?)```", _PAGE, re.DOTALL) if word in each]
    return str(found)


@contextmanager
def running(command: str, place: Path, name: str) -> Iterator[Path]:
    """Run a command in a shell until the end of the block; return the file with what it prints."""
    log = place / name
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=place, env=_ENVIRONMENT,
        )  # fmt: skip
    try:
        yield log
    finally:
        kill_program(process)


def found_in(log: Path, pattern: str) -> str:
    """Wait until a log has a text, and return its first group."""
    eventually(lambda: re.search(pattern, log.read_text()) is not None)
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]


def test_cluster_that_the_page_starts_reads_a_topic(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"%d" % number) for number in range(5)])
    of_master, of_worker = block("sh", "deploy.master.Master").splitlines()
    of_master = of_master.replace("--host master --port 7077", "--host 127.0.0.1 --port 0 --webui-port 0")
    program = tmp_path / "count.py"
    program.write_text(_COUNT)
    with running(of_master, tmp_path, "master.log") as log:
        url = found_in(log, r"Starting Spark master at (spark://\S+)")
        of_worker = f"{of_worker.replace('spark://master:7077', url)} --webui-port 0 --cores 1 --memory 1g"
        with (
            running(of_worker, tmp_path, "worker.log") as workers,
            submitted(
                "--master", url, "--executor-memory", "512m", "--conf", "spark.ui.enabled=false",
                str(program), bootstrap_servers, topic,
                place=tmp_path, environment={"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            ) as counting,
        ):  # fmt: skip
            assert found_in(workers, r"Successfully registered with master (\S+)") == url
            counting.succeed()
            assert "rows 5" in counting.log


def test_server_that_the_page_starts_answers_its_client(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"%d" % number) for number in range(5)])
    command = block("sh", "start-connect-server.sh").rstrip().replace("port=15002", "port=0")
    command += " --master local[1] --conf spark.ui.enabled=false --conf spark.connect.grpc.binding.address=127.0.0.1"
    with running(command, tmp_path, "server.log") as log:
        port = found_in(log, r"Spark Connect server started at: \S*:(\d+)")
        client = block("python", "sc://server:15002").replace("server:15002", f"127.0.0.1:{port}")
        client = client.replace("kafka-1:9092", bootstrap_servers).replace('"orders"', f'"{topic}"')
        counted = subprocess.run(
            [sys.executable, "-c", client],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            cwd=tmp_path,
        )
    assert counted.stdout == "5\n", counted.stderr[-4000:]
