"""The package as an archive that Spark ships, beside a Python that has its dependencies and not the package."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kit.independent_client import Record, produce
from kit.pointers import REPO

if TYPE_CHECKING:
    from kit.fixtures.broker import TopicMaker

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

pytestmark = pytest.mark.full("Installation from a wheel")


def python_without_the_package(place: Path) -> Path:
    """Make an environment with everything of the one of the tests, but for packages that are installed in place."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (own,) = place.glob("lib/python*/site-packages")
    # As a line of a .pth file: the .pth files in that folder are not read.
    (own / "dependencies.pth").write_text(str(Path(str(find_spec("pyarrow").origin)).parents[1]))  # type: ignore[union-attr]
    return place / "bin" / "python"


def archive(place: Path) -> Path:
    """Make an archive of the sources, as the wheel in Python only is one."""
    path = place / "pyspark_kafka.zip"
    root = REPO / "src"
    with zipfile.ZipFile(path, "w") as file:
        for each in sorted((root / "pyspark_kafka").rglob("*.py")):
            file.write(each, each.relative_to(root))
    return path


def test_package_that_spark_ships_as_an_archive_reads_and_writes(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"%d" % i) for i in range(5)])
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    python = python_without_the_package(tmp_path / "env")
    shipped = str(archive(tmp_path))
    spark = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += ["--py-files", shipped, str(program), bootstrap_servers, source, target]
    ran = subprocess.run(
        [*command, str(tmp_path / "checkpoint")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        # Spark hands the files to tasks, not to the processes of the driver that plan a stream.
        env={**os.environ, "PYTHONPATH": shipped, "PYSPARK_PYTHON": str(python), "SPARK_HOME": str(spark)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    assert ran.stdout.splitlines() == ["driver True", "rows 5", "task True"]
