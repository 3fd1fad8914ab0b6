"""The wire log of a query: switched on by an environment variable, in the processes that plan, read and write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program

pytestmark = pytest.mark.full("Drivers of their own")

PAGE = Path(__file__).parents[4] / "docs" / "troubleshooting.md"
CHAPTER = "## Requests and responses"

_PROGRAM = """
import os, sys
from pyspark.sql import SparkSession

servers, topic, copy, checkpoint = sys.argv[1:]
os.environ["PYSPARK_KAFKA_WIRE_LOG"] = "1"
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
kafka = {"kafka.bootstrap.servers": servers}
rows = spark.readStream.format("pyspark_kafka").options(**kafka, subscribe=topic, startingOffsets="earliest").load()
writer = rows.select("value").writeStream.format("pyspark_kafka").options(**kafka, topic=copy)
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""


def shape(line: str) -> str:
    """Return a line of the log without what differs from run to run: time, address, ids, sizes, durations."""
    line = re.sub(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ", "", line)
    line = re.sub(r"\[(queryId=|runId=|batchId=|stage=|TID=)[^\]]*\]", "[task]", line)
    line = re.sub(r"Subscribe\[[^\]]*\]", "Subscribe", line)
    line = re.sub(r"\b[\w.-]+:\d+\b", "broker", line)
    return re.sub(r"(v|=)[\d.]+", r"\1N", line)


def lines_of_the_page() -> list[str]:
    chapter = PAGE.read_text().partition(CHAPTER)[2].partition("\n## ")[0]
    (block,) = re.findall(r"```text\n(.*?)```", chapter, re.DOTALL)
    return str(block).splitlines()


def test_an_environment_variable_switches_the_wire_log_on(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, copy = make_topic(), make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"planted-%d" % i) for i in range(10)])
    _, log = run_logging_program(_PROGRAM, bootstrap_servers, topic, copy, str(tmp_path / "checkpoint"), place=tmp_path)
    lines = [line for line in log.splitlines() if " pyspark_kafka.wire: " in line]
    assert "planted" not in "".join(lines)
    seen = {shape(line) for line in lines}
    assert [line for line in lines_of_the_page() if shape(line) not in seen] == []
