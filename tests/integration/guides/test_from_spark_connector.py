"""docs/guides/from-spark-connector.md with a checkpoint in the form of Spark's connector.

tests/integration/_connector/spark/test_checkpoint_interop.py runs that connector itself, where its jars are.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.checkpoint_files import write_checkpoint
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pages import GuidePage
from kit.pointers import REPO
from pyspark_kafka._connector.spark.processes import required_version


@pytest.mark.full("Programs of the pages")
def test_job_continues_at_the_offset_of_the_former_connector(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(2)
    produce(bootstrap_servers, topic, [Record(None, b"%d" % number, number % 2) for number in range(10)])
    ends = [{topic: {"0": 1, "1": 1}}, {topic: {"0": 2, "1": 2}}, {topic: {"0": 3, "1": 4}}]
    # The last batch has begun and is not finished.
    write_checkpoint(tmp_path / "orders", ends, finished=2, initial={topic: {"0": 0, "1": 0}})
    # What the job before has written into the log of Spark's file sink: two batches, of no files here.
    (tmp_path / "tables" / "orders" / "_spark_metadata").mkdir(parents=True)
    for batch in ("0", "1"):
        (tmp_path / "tables" / "orders" / "_spark_metadata" / batch).write_text("v1")
    own = {"localhost:9092": bootstrap_servers, '"orders"': f'"{topic}"', "/checkpoints": str(tmp_path)}
    page = GuidePage("from-spark-connector", spark, {**own, '"/tables': f'"{tmp_path}/tables'})

    told = page.command("checkpoint explain")
    assert "faults" in told
    page.run('format("pyspark_kafka")  # was: kafka')

    rows = spark.read.parquet(str(tmp_path / "tables" / "orders")).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(p, o) for p in (0, 1) for o in (2, 3, 4)]
    lag = page.command("pyspark-kafka lag", "--json")
    assert [each["records_behind"] for each in json.loads(lag)["partitions"]] == [0, 0]


def test_job_before_and_after_differ_in_one_word() -> None:
    text = (REPO / "docs" / "guides" / "from-spark-connector.md").read_text()
    before = text.partition("```text\n")[2].partition("```")[0]
    after = text.partition("```python\n")[2].partition("lines =")[0]
    assert before.replace('"kafka")', '"pyspark_kafka")') == after.replace("  # was: kafka", "")


def test_oldest_spark_of_the_guide_is_the_oldest_that_the_package_accepts() -> None:
    text = (REPO / "docs" / "guides" / "from-spark-connector.md").read_text()
    first = text.partition("## First: Spark 4\n")[2].partition("\n## ")[0]
    oldest = ".".join(map(str, required_version._OLDEST))
    assert f"Spark must be {oldest} or newer." in first
    assert f"Move to Spark {oldest} or newer with Spark's own connector" in first
    # In the first line that such a reader looks at, before any program.
    assert text.index("## First: Spark 4") < text.index("```")
