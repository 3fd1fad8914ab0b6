"""An operator's evening, as docs/operations.md tells it: a query falls behind, and is run again from an hour ago."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke
from kit.programs.run import run_logging_program

pytestmark = [pytest.mark.full("Operator's evening"), pytest.mark.spark]

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_PARTITIONS = 2
# One record a minute from three hours ago on; none near the hour that the query is forked to, so that the time which
# the test itself takes does not matter.
_AGES_MINUTES = [age for age in range(180, 0, -1) if not 35 <= age <= 60]

# Reads ten records a batch: three batches, or all that there is.
_QUERY = """
import json, sys
from pyspark.sql import SparkSession
from pyspark_kafka.testing import ensure_java_for_spark

servers, topic, checkpoint, rows, batches = sys.argv[1:]
ensure_java_for_spark()
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
orders = (
    spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "10")
    .option("warnHeadroom", "90m").option("commitOffsetsToGroup", topic).load()
)
writer = (
    orders.selectExpr("CAST(value AS string) AS value").writeStream.format("parquet").option("path", rows)
    .option("checkpointLocation", checkpoint)
)
if batches == "all":
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
else:
    # It may have begun another batch when it is stopped.
    from pyspark.sql.streaming.listener import StreamingQueryListener
    import threading
    done = threading.Event()
    class Enough(StreamingQueryListener):
        def onQueryStarted(self, event): pass
        def onQueryProgress(self, event):
            if event.progress.batchId + 1 >= int(batches):
                done.set()
        def onQueryTerminated(self, event): pass
    spark.streams.addListener(Enough())
    query = writer.trigger(processingTime="2 seconds").start()
    assert done.wait(400)
    query.stop()
spark.stop()
"""


def query(servers: str, topic: str, checkpoint: Path, rows: Path, batches: str, place: Path) -> str:
    """Run the query in a program of its own; return what it logged."""
    place.mkdir(exist_ok=True)
    return run_logging_program(_QUERY, servers, topic, str(checkpoint), str(rows), batches, place=place)[1]


def values(rows: Path, checkpoint: Path) -> list[int]:
    """Return the values that a run has written in finished batches: of the files that Spark's log of the sink names.

    A run that is stopped may leave a batch whose files are there, and that a restart finishes.
    """
    finished = {path.name for path in (checkpoint / "commits").iterdir()}
    named: set[str] = set()
    for log in (rows / "_spark_metadata").iterdir():
        if log.name.partition(".")[0] in finished:
            named |= {json.loads(line)["path"].rpartition("/")[2] for line in log.read_text().splitlines()[1:]}
    found: list[Any] = []
    for name in sorted(named):
        found += pq.read_table(rows / name)["value"].to_pylist()
    return sorted(map(int, found))


def test_query_that_falls_behind_is_seen_and_run_again_from_an_hour_ago(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    servers = ("--bootstrap-servers", bootstrap_servers)
    # The oldest record has an hour left.
    topic = make_topic(partitions=_PARTITIONS, config={"retention.ms": str(4 * _HOUR_MS)})
    now_ms = time.time_ns() // 1_000_000
    records = [Record(None, b"%d" % age, age % _PARTITIONS, now_ms - age * _MINUTE_MS) for age in _AGES_MINUTES]
    produce(bootstrap_servers, topic, records)
    checkpoint, forked = tmp_path / "checkpoint", tmp_path / "forked"

    # It falls behind, and the warning comes.
    logged = query(bootstrap_servers, topic, checkpoint, tmp_path / "rows", "3", tmp_path / "first")
    (warning,) = [line for line in logged.splitlines() if "Brokers may soon delete records" in line]
    assert f"of topic '{topic}' that this query has not read" in warning
    assert "by retention.ms" in warning
    assert "Hint: Let the query read faster" in warning

    # Lag shows where.
    shown = invoke("lag", "--checkpoint", str(checkpoint), *servers, "--json", "--min-headroom", "2h")
    assert shown.exit_code == 1, shown.output
    partitions = json.loads(shown.stdout)["partitions"]
    read = len(values(tmp_path / "rows", checkpoint))
    assert read >= 30
    assert sum(each["records_behind"] for each in partitions) == len(records) - read
    assert all(0 < each["headroom_s"] < 2 * 3_600 for each in partitions)

    # Kafka's own view is the same.
    group = invoke("lag", "--group", topic, *servers, "--json")
    assert group.exit_code == 0, group.output
    assert sum(each["records_behind"] for each in json.loads(group.stdout)["partitions"]) >= len(records) - read

    # The report shows since when.
    page = tmp_path / "report.html"
    assert invoke("report", str(checkpoint), "--html", str(page), *servers).exit_code == 0
    text = page.read_text()
    assert f"<b>{len(records) - read}</b><span>records behind</span>" in text
    assert "Brokers may delete the next record of" in text

    # What a restart would do, in words; and nothing is wrong with the files.
    told = invoke("checkpoint", "explain", str(checkpoint))
    assert told.exit_code == 0
    assert topic in told.stdout
    assert invoke("checkpoint", "verify", str(checkpoint), *servers).exit_code == 0

    # A fork to an hour ago: the plan first, which changes nothing.
    to_an_hour_ago = ("checkpoint", "fork", str(checkpoint), str(forked), "--at", "1 hour ago", *servers)
    plan = invoke(*to_an_hour_ago)
    assert plan.exit_code == 0, plan.output
    assert topic in plan.stdout
    assert not forked.exists()
    done = invoke(*to_an_hour_ago, "--yes")
    assert done.exit_code == 0, done.output

    # The forked query has the last hour, all of it and nothing twice.
    query(bootstrap_servers, topic, forked, tmp_path / "again", "all", tmp_path / "second")
    assert values(tmp_path / "again", forked) == [age for age in sorted(_AGES_MINUTES) if age < 60]
    after = invoke("lag", "--checkpoint", str(forked), *servers, "--json", "--max-records", "0")
    assert after.exit_code == 0, after.output
