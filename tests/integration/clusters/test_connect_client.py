"""A client of Spark Connect alone: PySpark's own `pyspark-client`, without Spark and without this package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.programs.submitted import python_without_the_package

pytestmark = pytest.mark.full("Clusters")

# Of an older release than the server may be: Spark Connect allows that.
_CLIENT = "pyspark-client==4.2.0"
_PROGRAM = """
import sys
from importlib.util import find_spec
import pyspark
from pyspark.sql import SparkSession

url, servers, source, target, checkpoint = sys.argv[1:]
print("client", pyspark.__version__, find_spec("pyspark_kafka"), find_spec("pyspark.core"))
spark = SparkSession.builder.remote(url).create()
kafka = {"kafka.bootstrap.servers": servers}
rows = spark.read.format("pyspark_kafka").options(**kafka, subscribe=source).load()
print("rows", rows.count())
query = (
    spark.readStream.format("pyspark_kafka").options(**kafka, subscribe=source, startingOffsets="earliest").load()
    .writeStream.format("pyspark_kafka").options(**kafka, topic=target, deliveryGuarantee="exactly_once")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
query.awaitTermination()
print("error", query.exception())
"""


def test_client_without_this_package_reads_and_writes(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    values = [b"%d" % number for number in range(20)]
    produce(bootstrap_servers, source, [Record(None, value) for value in values])
    python = str(python_without_the_package(tmp_path / "env"))
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", _CLIENT]
    subprocess.run(install, check=True, timeout=300)
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    ran = subprocess.run(
        [python, str(program), connect_url, bootstrap_servers, source, target, str(tmp_path / "checkpoint")],
        capture_output=True, text=True, timeout=450, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.splitlines() == ["client 4.2.0 None None", "rows 20", "error None"]
    await_committed(bootstrap_servers, target, values)
