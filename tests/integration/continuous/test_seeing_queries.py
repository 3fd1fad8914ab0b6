"""What a continuous query from Kafka tells while it runs: lag, latencies, events, figures, on classic and Connect."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from rich.console import Console

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program
from kit.waiting import PATIENCE_S
from pyspark_kafka import continuous, metrics
from pyspark_kafka.continuous.query.handle import ContinuousQuery


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Let records come faster than they are read."""
    for batch in batches:
        time.sleep(0.1)
        yield batch.select(["value"])


def start(spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path) -> ContinuousQuery:
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest")
        # One record batch in each response, so that epochs end between them.
        .option("kafka.max.partition.fetch.bytes", 3_000).option("kafka.fetch.max.bytes", 3_000).load()
        .mapInArrow(slowly, "value binary")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("checkpointLocation", str(checkpoint)).queryName("slow")
        .trigger(continuous="100 milliseconds").start()
    )  # fmt: skip


class Collects(StreamingQueryListener):
    """Keeps what it hears of one query, and tells when that has ended."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.reports: list[Any] = []
        self.terminated: list[Any] = []
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None:
        self.started.append(event)

    def onQueryProgress(self, event: Any) -> None:
        self.reports.append(event.progress)

    def onQueryTerminated(self, event: Any) -> None:
        self.terminated.append(event)
        self.ended.set()


class Broken(Collects):
    """Raises in every method."""

    def onQueryStarted(self, event: Any) -> None:
        raise RuntimeError("boom")

    onQueryProgress = onQueryTerminated = onQueryStarted


@pytest.fixture
def listeners(spark: SparkSession) -> Iterator[list[Collects]]:
    """Listen with what raises, with what collects, and with the metrics of the package, for all sessions and one."""
    # The last of them is called last: what it has heard the others know.
    listener = metrics.listen(spark)
    found = [Broken(), Collects()]
    for each in found:
        continuous.streams.addListener(each)
    yield found
    for each in found:
        continuous.streams.removeListener(each)
    listener.stop()


def test_query_tells_lag_latencies_and_events(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    listeners: list[Collects],
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    a_minute_ago = int(time.time() * 1000) - 60_000
    records = [Record(None, b"v" * 1_000, number % 2, a_minute_ago) for number in range(200)]
    # Four in each record batch: no more epochs than a query remembers.
    produce(bootstrap_servers, source, records, batch_size=4_500, linger_ms=60_000)
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    assert query in continuous.streams.active
    assert continuous.streams.get(query.id) is query
    file = io.StringIO()
    shown = continuous.show(query, Console(file=file, width=200))
    query.processAllAvailable()
    progress = query.lastProgress
    assert progress is not None
    (read,) = progress.sources
    assert json.loads(read.endOffset) == json.loads(read.latestOffset) == {source: {"0": 100, "1": 100}}
    assert read.metrics["maxOffsetsBehindLatest"] == "0"
    query.stop()

    _, heard = listeners
    assert heard.ended.wait(PATIENCE_S)
    (begun,), (over,) = heard.started, heard.terminated
    for event in (begun, over):
        assert (str(event.id), str(event.runId)) == (query.id, query.runId)
    assert (begun.name, over.exception) == ("slow", None)
    reports = [each for each in heard.reports if each.numInputRows]
    assert reports == [each for each in query.recentProgress if each.numInputRows]
    assert sum(each.numInputRows for each in reports) == 200
    # The function is slow, and the readers know from the responses how much there is.
    behind = [int(each.sources[0].metrics["maxOffsetsBehindLatest"]) for each in reports]
    assert max(behind) > 20
    assert behind[-1] == 0
    for each in reports:
        lag = {
            partition: end - json.loads(each.sources[0].endOffset)[source].get(partition, 0)
            for partition, end in json.loads(each.sources[0].latestOffset)[source].items()
        }
        assert max(lag.values()) == int(each.sources[0].metrics["maxOffsetsBehindLatest"])
        # From the timestamps that the producer has set.
        assert each["latencySince"] == "record"
        assert 59_000 < each["latencyMs"]["p50"] <= each["latencyMs"]["p99"] <= each["latencyMs"]["max"]
        assert each["commitLatencyMs"]["max"] >= each["latencyMs"]["max"] - 1

    found = metrics.latest(query.id)
    assert found is not None
    assert (found.name, found.terminated, found.seconds_since_progress) == ("slow", True, None)
    assert found.sources[0].topics == (source,)
    assert found.sources[0].max_offsets_behind_latest == 0
    lines = [record.getMessage() for record in caplog.records if record.name == "pyspark_kafka.metrics"]
    form = rf"query 'slow' {query.id[:8]} batch \d+: source 0 \({source}\) rows=(\d+) behind min=\d+ max=\d+ avg="
    assert sum(int(rows) for line in lines for rows in re.findall(form, line)) == 200
    assert any(re.search(r"; latency p50=\d+\.\d ms p99=\d+\.\d ms$", line) for line in lines)
    # Once for each of its methods.
    assert sum(record.name == "pyspark_kafka._connector.spark.local_bus" for record in caplog.records) == 3

    assert shown.wait(PATIENCE_S)
    assert file.getvalue().splitlines()[-1].endswith("200 rows: Stopped")
    assert query not in continuous.streams.active
    assert query.exception() is None


def test_listener_of_another_session_hears_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(None, b"v", 0)])
    listener = metrics.listen(spark.newSession())
    collects = Collects()
    continuous.streams.addListener(collects)
    try:
        query = start(spark, bootstrap_servers, source, target, tmp_path)
        query.processAllAvailable()
        query.stop()
        assert collects.ended.wait(PATIENCE_S)
    finally:
        listener.stop()
        continuous.streams.removeListener(collects)
    assert sum(each.numInputRows for each in collects.reports) == 1
    assert metrics.latest(query.id) is None


_CONNECT = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark_kafka import continuous, metrics

remote, servers, source, target, place = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()

class Prints(StreamingQueryListener):
    def onQueryStarted(self, event):
        print("started", event.name)

    def onQueryProgress(self, event):
        if event.progress.numInputRows:
            print("progress", event.progress.numInputRows, event.progress["latencyMs"]["p99"] > 0)

    def onQueryTerminated(self, event):
        print("terminated", event.exception)

listener, prints = metrics.listen(spark), Prints()
continuous.streams.addListener(prints)
query = (
    continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
    .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    .option("checkpointLocation", place + "/checkpoint").queryName("orders").trigger(continuous="5 minutes").start()
)
query.processAllAvailable()
query.stop()
continuous.streams.removeListener(prints)
listener.stop()
found = metrics.latest(query)
print("latest", found.num_input_rows, found.terminated, found.sources[0].max_offsets_behind_latest)
"""


@pytest.mark.full("Spark Connect")
def test_events_and_figures_are_the_same_on_spark_connect(
    bootstrap_servers: str, make_topic: TopicMaker, connect_url: str, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(None, b"v", 0)] * 5)
    said, log = run_logging_program(
        _CONNECT, connect_url, bootstrap_servers, source, target, str(tmp_path), place=tmp_path
    )
    lines = said.splitlines()
    assert lines[0] == "started orders"
    assert "progress 5 True" in lines
    assert "terminated None" in lines
    assert re.search(r"^latest \d True 0$", said, re.MULTILINE)
    assert re.search(rf"INFO pyspark_kafka\.metrics: query 'orders' .* source 0 \({source}\) rows=5 behind min=0 ", log)
