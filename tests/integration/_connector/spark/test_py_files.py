"""The package as an archive that Spark ships, beside a Python that has its dependencies and not the package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.submitted import SPARK, build_archive_of_package, python_without_the_package

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
import pyspark_kafka

servers, source, target, place = sys.argv[1:]
connection = {"kafka.bootstrap.servers": servers}
print("driver", ".zip/" in pyspark_kafka.__file__)
query = (
    spark.readStream.format("pyspark_kafka").options(**connection, subscribe=source, startingOffsets="earliest").load()
    .writeStream.format("pyspark_kafka").options(**connection, topic=target, deliveryGuarantee="exactly_once")
    .option("checkpointLocation", place).trigger(availableNow=True).start()
)
query.awaitTermination()
print("rows", spark.read.format("pyspark_kafka").options(**connection, subscribe=target).load().count())
where = udf(lambda _: __import__("pyspark_kafka").__file__, "string")
print("task", ".zip/" in spark.range(1).select(where("id")).first()[0])
"""

pytestmark = pytest.mark.full("Installations")


def test_package_that_spark_ships_as_an_archive_reads_and_writes(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"%d" % i) for i in range(5)])
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    python = python_without_the_package(tmp_path / "env")
    shipped = str(build_archive_of_package(tmp_path))
    command = [str(SPARK / "bin" / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += ["--py-files", shipped, str(program), bootstrap_servers, source, target]
    ran = subprocess.run(
        [*command, str(tmp_path / "checkpoint")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        # Spark hands the files to tasks, not to the processes of the driver that plan a stream.
        env={**os.environ, "PYTHONPATH": shipped, "PYSPARK_PYTHON": str(python), "SPARK_HOME": str(SPARK)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    assert ran.stdout.splitlines() == ["driver True", "rows 5", "task True"]
