"""How far queries are behind, out of Spark's own events: classic Spark here, Spark Connect in a process of its own."""

from __future__ import annotations

import json
import logging
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from kit.fixtures.broker import TopicMaker
from kit.fixtures.leftovers import collect_quietly
from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program
from pyspark_kafka import metrics

_PAGE = Path(__file__).parents[4] / "docs" / "monitoring.md"


class Lines(logging.Handler):
    """Collects the lines of the log, and tells when there are enough."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self.lines.append(record.getMessage())
            self._changed.notify_all()

    def of(self, query: StreamingQuery, rows: int) -> list[str]:
        """Wait until the lines of a query name this number of rows: Spark's listener bus is a thread of its own."""

        def found() -> list[str]:
            return [line for line in self.lines if f" {str(query.id)[:8]} batch " in line]

        def told() -> int:
            return sum(int(count) for line in found() for count in re.findall(r" rows=(\d+) ", line))

        with self._changed:
            assert self._changed.wait_for(lambda: told() >= rows, timeout=300), self.lines
            return found()


class Witness(StreamingQueryListener):
    """Another listener of the same bus: what it has heard, all have heard."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's contract
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's contract
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802 - Spark's contract
        self.ended.set()


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, log = Lines(), logging.getLogger("pyspark_kafka.metrics")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[metrics.MetricsListener]:
    listener = metrics.listen(spark)
    yield listener
    listener.stop()


def blocks() -> list[str]:
    found: list[str] = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    return found


def stream(spark: SparkSession, bootstrap_servers: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    return reader.options(**({"subscribe": topic, "startingOffsets": "earliest"} | options)).load().select("value")


def run(rows: DataFrame, place: Path) -> StreamingQuery:
    """Read all there is, into nothing."""
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.queryName("orders").trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.usefixtures("listener")
def test_each_micro_batch_says_how_far_it_is_behind_what_its_trigger_saw(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, lines: Lines
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"v", number % 2) for number in range(60)])
    query = run(stream(spark, bootstrap_servers, topic, maxOffsetsPerTrigger="20"), tmp_path)
    expected = [
        f"query 'orders' {str(query.id)[:8]} batch {batch}: source 0 ({topic}) rows=20 behind {behind}"
        for batch, behind in enumerate(("min=20 max=20 avg=20.0", "min=10 max=10 avg=10.0", "unknown"))
    ]
    assert lines.of(query, 60) == expected
    found = metrics.latest(query)
    assert found is not None
    assert found.sources == (metrics.SourceMetrics(0, (topic,), 20, 0, 0, 0.0),)
    # Its end may be heard of meanwhile.
    assert str(query.id) in [one.query_id for one in metrics.snapshot()]


@pytest.mark.usefixtures("listener")
def test_the_end_of_a_first_batch_can_be_read_though_it_carries_its_start(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, lines: Lines
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 7)
    rows = stream(spark, bootstrap_servers, topic, startingOffsets="latest", maxOffsetsPerTrigger="20")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 5)
        first, *_ = lines.of(query, 5)
    finally:
        query.stop()
    ends = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[2])[topic]
    assert ends == {"00": 7, "0": 7}
    assert first.endswith(" behind unknown")


@pytest.mark.usefixtures("listener")
def test_several_sources_of_one_query_are_counted_apart(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, lines: Lines
) -> None:
    one, other = make_topic(partitions=2), make_topic()
    produce(bootstrap_servers, one, [Record(None, b"v", number % 2) for number in range(10)])
    produce(bootstrap_servers, other, [Record(None, b"v", 0)] * 4)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    rows = (
        stream(spark, bootstrap_servers, one)
        .union(rate.selectExpr("CAST(CAST(value AS STRING) AS BINARY) AS value"))
        .union(stream(spark, bootstrap_servers, other))
    )
    query = run(rows, tmp_path)
    (line, *_) = lines.of(query, 14)
    assert f"source 0 ({one}) rows=" in line
    assert f"source 2 ({other}) rows=" in line
    assert "source 1" not in line


def test_a_session_is_listened_to_once_whichever_python_object_stands_for_it(
    spark: SparkSession, listener: metrics.MetricsListener
) -> None:
    assert metrics.listen(spark) is listener
    active = type(spark).getActiveSession()
    assert active is not None
    assert metrics.listen(active) is listener
    other = spark.newSession()
    second = metrics.listen(other)
    assert second is not listener
    second.stop()


def test_no_more_is_logged_after_a_stop(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, lines: Lines
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)])
    listener = metrics.listen(spark)
    heard = run(stream(spark, bootstrap_servers, topic), tmp_path / "heard")
    lines.of(heard, 1)
    listener.stop()
    witness = Witness()
    spark.streams.addListener(witness)
    silent = run(stream(spark, bootstrap_servers, topic), tmp_path / "silent")
    assert witness.ended.wait(300)
    spark.streams.removeListener(witness)
    assert not [line for line in lines.lines if str(silent.id) in line]


def test_spark_counts_the_rows_of_the_sink(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(None, b"v", 0)] * 7)
    writer = stream(spark, bootstrap_servers, source).writeStream.format("pyspark_kafka")
    query = (
        writer.option("kafka.bootstrap.servers", bootstrap_servers)
        .options(topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    last = query.lastProgress
    assert last is not None
    assert last.sink.numOutputRows == 7
    # The reason for all this.
    assert last.sources[0].metrics == {}


@pytest.mark.full("Programs of the pages")
def test_the_examples_of_the_page_run_as_they_stand_for_a_query_that_runs_already(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, lines: Lines
) -> None:
    topic = make_topic()
    rows = stream(spark, bootstrap_servers, topic, maxOffsetsPerTrigger="20")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.queryName("exposed").trigger(processingTime="100 milliseconds").start()
    names: dict[str, Any] = {"spark": spark, "query": query}
    try:
        query.processAllAvailable()
        listening, state, exposing, stalling = blocks()
        exec(listening, names)  # noqa: S102 - the page's own example
        exec(state, names)  # noqa: S102 - the same; this query has no state
        assert exposing.count("9404") == 1
        exec(exposing.replace("9404", "0"), names)  # noqa: S102 - the same, at a port that is free
        # Nobody but Spark holds the listener.
        collect_quietly()
        produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 30)
        lines.of(query, 30)
        with urllib.request.urlopen(names["endpoint"].url, timeout=60) as response:  # noqa: S310 - of this test
            text = response.read().decode()
        assert f'pyspark_kafka_source_partitions{{query="exposed",query_id="{query.id}",source="0"}} ' in text
        exec(stalling, names)  # noqa: S102 - the same
        assert str(query.id) not in [stalled.query_id for stalled in names["stalled"]]
        exec(stalling.replace("> 60", ">= 0"), names)  # noqa: S102 - the same, for any time without progress
        assert str(query.id) in [stalled.query_id for stalled in names["stalled"]]
    finally:
        query.stop()
        if "endpoint" in names:
            names["endpoint"].stop()
        metrics.listen(spark).stop()


_CONNECT = """
import logging
import sys
import threading
from pyspark.sql import SparkSession
from pyspark_kafka import metrics

remote, servers, topic, place = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
stopping = threading.Event()
# The first event is not handled before the removal, so that others are pending then.
logging.getLogger("pyspark_kafka.metrics").addFilter(lambda record: stopping.wait(60))
listener = metrics.listen(spark)
assert metrics.listen(spark) is listener
rows = (spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "20").load())
query = (rows.select("value").writeStream.format("noop").option("checkpointLocation", place + "/checkpoint")
         .queryName("orders").trigger(availableNow=True).start())
query.awaitTermination()
stopping.set()
# Returns when all events of the query have been handled.
listener.stop()
found = metrics.latest(query)
print("latest", found.batch_id, found.terminated, found.sources[0].metrics)
# The program ends though the server could send events for ever.
assert metrics.listen(spark) is not listener
"""


@pytest.mark.full("Spark Connect")
def test_metrics_are_the_same_on_spark_connect(
    bootstrap_servers: str, make_topic: TopicMaker, connect_url: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 50)
    flags = ("-W", "error:Failed to")
    said, log = run_logging_program(
        _CONNECT, connect_url, bootstrap_servers, topic, str(tmp_path), place=tmp_path, flags=flags
    )
    # Visible in a program that configures no logging.
    form = (
        r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d INFO pyspark_kafka\.metrics: query 'orders' [0-9a-f]{8} batch (\d): source 0 "
        rf"\({topic}\) rows=\d\d behind (?:min=\d+ max=(\d+) avg=\d+\.0|unknown)$"
    )
    assert re.findall(form, log, re.MULTILINE) == [("0", "30"), ("1", "10"), ("2", "")]
    assert (
        "latest 2 True {'minOffsetsBehindLatest': '0', 'maxOffsetsBehindLatest': '0', 'avgOffsetsBehindLatest': '0.0'}"
        in said
    )


_CLASSIC = """
import logging.config
import sys
from pyspark.sql import SparkSession
from pyspark_kafka import metrics

servers, topic, place, configured = sys.argv[1:]
if configured == "yes":
    # As many programs do; what existed before, such as the log of metrics, is disabled by it.
    handler = {"class": "logging.StreamHandler", "formatter": "own"}
    form = {"format": "own form: %(message)s"}
    root = {"level": "WARNING", "handlers": ["console"]}
    parts = {"formatters": {"own": form}, "handlers": {"console": handler}, "root": root}
    logging.config.dictConfig({"version": 1, **parts})
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
listener = metrics.listen(spark)
rows = (spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "20").load())
query = (rows.select("value").writeStream.format("noop").option("checkpointLocation", place + "/checkpoint")
         .queryName("orders").trigger(availableNow=True).start())
query.awaitTermination()
while metrics.latest(query) is None or not metrics.latest(query).terminated:
    pass
spark.stop()
"""


@pytest.mark.full("Drivers of their own")
@pytest.mark.parametrize("configured", ["no", "yes"])
def test_each_micro_batch_is_a_line_by_default_in_a_program(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, configured: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 50)
    _, log = run_logging_program(_CLASSIC, bootstrap_servers, topic, str(tmp_path), configured, place=tmp_path)
    before = {"no": r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d INFO pyspark_kafka\.metrics:", "yes": "own form:"}[configured]
    found = re.findall(rf"^{before} query 'orders' [0-9a-f]{{8}} batch (\d): ", log, re.MULTILINE)
    assert found == ["0", "1", "2"]
