"""docs/deploy.md, "Change the version of a running query": a former version, this one, and the former one again."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import pyspark_kafka
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_all, consume_committed, produce
from kit.pointers import REPO
from kit.programs.run import run_logging_program

pytestmark = pytest.mark.full("Other versions of the package")

KINDS, GUARANTEES = ("micro-batches", "continuous"), ("at_least_once", "exactly_once")
# Versions, each with a commit of its source.
FORMER = {"0.1.0": "5dc07de0f753525786ed5158395999b631aba3e4"}
# The program that Spark's Python processes of tests start with is of this version.
PLAIN_PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
# It prints where the driver and the tasks have the package from.
PROGRAM = """
import json
import sys

from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka import continuous

servers, source, place, topics = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.showConsoleProgress", "false").config("spark.local.dir", f"{place}/local")
    .config("spark.sql.warehouse.dir", f"{place}/warehouse").getOrCreate()
)
read = {"kafka.bootstrap.servers": servers, "subscribe": source, "startingOffsets": "earliest"}


def target(name, guarantee):
    return {
        "kafka.bootstrap.servers": servers, "topic": json.loads(topics)[f"{name}-{guarantee}"],
        "deliveryGuarantee": guarantee, "checkpointLocation": f"{place}/{name}-{guarantee}",
    }


def origin(batches):
    import pyarrow as pa
    import pyspark_kafka

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"origin": [pyspark_kafka.__file__] * batch.num_rows})


for guarantee in ("at_least_once", "exactly_once"):
    to = target("micro-batches", guarantee)
    kept = {"checkpointLocation": to["checkpointLocation"]}
    rows = spark.readStream.format("pyspark_kafka").options(**read, **kept).load().select("value")
    writer = rows.writeStream.format("pyspark_kafka").options(**to).trigger(availableNow=True)
    writer.start().awaitTermination()
    frame = continuous.read(spark).format("pyspark_kafka").options(**read).load().select("value")
    # Version 0.1.0 has another name for it.
    writer = frame.write_stream if pyspark_kafka.__version__ == "0.1.0" else frame.writeStream
    writer = writer.format("pyspark_kafka").options(**target("continuous", guarantee))
    query = writer.trigger(continuous="200 ms").start()
    query.processAllAvailable()
    query.stop()
of_task = spark.range(1).mapInArrow(origin, "origin string").head().origin
print(json.dumps([pyspark_kafka.__version__, pyspark_kafka.__file__, of_task]))
"""


@pytest.fixture
def former_source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The source of a former version, uncompiled."""
    archive = subprocess.run(["git", "archive", request.param, "src"], cwd=REPO, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"The history of this checkout has no commit {request.param}.")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path / "former", filter="data")
    return tmp_path / "former" / "src"


@pytest.mark.parametrize(("former", "former_source"), FORMER.items(), ids=FORMER, indirect=["former_source"])
def test_query_continues_with_this_version_and_again_with_the_former_one(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, former: str, former_source: Path
) -> None:
    source = make_topic(2)
    topics = {f"{kind}-{guarantee}": make_topic(2) for kind in KINDS for guarantee in GUARANTEES}
    for turn, version in enumerate((former, pyspark_kafka.__version__, former)):
        values = [b"%d" % number for number in range(turn * 10, turn * 10 + 10)]
        produce(bootstrap_servers, source, [Record(None, value, int(value) % 2) for value in values])
        src = former_source if turn % 2 == 0 else REPO / "src"
        printed, _ = run_logging_program(
            PROGRAM, bootstrap_servers, source, str(tmp_path), json.dumps(topics),
            place=tmp_path, environment={"PYTHONPATH": str(src), **PLAIN_PYTHON},
        )  # fmt: skip
        package = str(src / "pyspark_kafka" / "__init__.py")
        assert json.loads(printed.splitlines()[-1]) == [version, package, package]
        # As if the driver had died after it wrote the batch: the next version runs the batch again.
        take_last_commit_away(tmp_path / "micro-batches-exactly_once" / "commits")
    for name, topic in topics.items():
        # With at least once, too: a query that was stopped, and not killed, writes nothing again.
        consume = consume_committed if name.endswith("exactly_once") else consume_all
        assert sorted(int(record.value or b"") for record in consume(bootstrap_servers, topic)) == [*range(30)], name


def take_last_commit_away(commits: Path) -> None:
    """Leave the last batch of a query unfinished."""
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
