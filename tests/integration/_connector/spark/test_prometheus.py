"""Figures of real queries as Prometheus scrapes them: classic Spark here, Spark Connect in a process of its own."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_logging_program
from kit.waiting import eventually
from pyspark_kafka import continuous, metrics
from pyspark_kafka.errors import SetupError


@pytest.fixture
def endpoint(spark: SparkSession) -> Iterator[metrics.PrometheusEndpoint]:
    made = metrics.prometheus(spark, 0)
    yield made
    made.stop()
    metrics.listen(spark).stop()


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - of this test
        text: str = response.read().decode()
        return text


def series(text: str, query_id: str) -> dict[str, dict[str, float]]:
    """Return the values of a query by name, and by source, topic and partition, or what else there is."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("query_id") == query_id:
                left = {name: value for name, value in sample.labels.items() if name not in ("query", "query_id")}
                found.setdefault(sample.name, {})["/".join(left[name] for name in sorted(left))] = sample.value
    return found


def start(
    spark: SparkSession, servers: str, topic: str, place: Path, every: str = "100 milliseconds"
) -> StreamingQuery:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20").load()
    writer = rows.select("value").writeStream.format("noop").option("checkpointLocation", str(place / "checkpoint"))
    return writer.queryName("orders").trigger(processingTime=every).start()


def test_scrape_has_what_a_query_has_read_and_its_end(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    endpoint: metrics.PrometheusEndpoint,
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"v", number % 2) for number in range(60)])
    query = start(spark, bootstrap_servers, topic, tmp_path)

    def now() -> dict[str, dict[str, float]]:
        return series(scraped(endpoint.url), str(query.id))

    try:
        query.processAllAvailable()
        eventually(lambda: now().get("pyspark_kafka_rows_read_total") == {"0": 60})
        found = now()
        # The last micro-batch has read all that it saw: what there is now nobody has asked.
        assert not {"pyspark_kafka_records_behind", "pyspark_kafka_source_records_behind"} & found.keys()
        assert found["pyspark_kafka_source_partitions"] == {"0": 2}
        assert found["pyspark_kafka_batches_total"] == {"": 3}
        assert found["pyspark_kafka_batch_duration_seconds_count"] == {"": 3}
        assert found["pyspark_kafka_query_up"] == {"": 1}
        # Spark's own parts of a micro-batch.
        phases = found["pyspark_kafka_batch_phase_seconds_total"]
        assert {"addBatch", "latestOffset", "triggerExecution"} <= phases.keys()
        assert phases["triggerExecution"] == pytest.approx(
            found["pyspark_kafka_batch_duration_seconds_sum"][""], rel=0.2
        )
        assert found["pyspark_kafka_time_since_progress_seconds"][""] < 60
    finally:
        query.stop()
    eventually(lambda: now().get("pyspark_kafka_query_up") == {"": 0})
    ended = ("pyspark_kafka_query_up", "pyspark_kafka_query_failed", "pyspark_kafka_query_failures_total")
    assert now() == {name: {"": 0} for name in ended}


def test_a_query_that_fails_is_told_from_one_that_was_stopped(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    endpoint: metrics.PrometheusEndpoint,
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"7", 0)] * 20)
    rows = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = rows.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    numbers = rows.load().selectExpr("CAST(CAST(value AS STRING) AS INT) AS number")
    writer = numbers.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        produce(bootstrap_servers, topic, [Record(None, b"no number", 0)])
        with pytest.raises(Exception, match="no number"):
            query.awaitTermination(300)
    finally:
        query.stop()
    eventually(lambda: series(scraped(endpoint.url), str(query.id)).get("pyspark_kafka_query_failed") == {"": 1})


def test_scrape_has_the_time_until_retention_reaches_the_position(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(config={"retention.ms": "3600000"})
    half_an_hour_ago = int(time.time() * 1000) - 1_800_000
    produce(bootstrap_servers, topic, [Record(None, b"v", 0, half_an_hour_ago)] * 50)
    endpoint = metrics.prometheus(spark, 0, connection={"kafka.bootstrap.servers": bootstrap_servers})
    query = start(spark, bootstrap_servers, topic, tmp_path, every="100000 days")

    def now() -> dict[str, dict[str, float]]:
        return series(scraped(endpoint.url), str(query.id))

    try:
        # After its first batch of 20 records the query rests, and 30 wait.
        eventually(lambda: "pyspark_kafka_headroom_seconds" in now())
        found = now()
        (headroom,) = found["pyspark_kafka_headroom_seconds"].values()
        assert 1_500 < headroom <= 1_800
        (age,) = found["pyspark_kafka_time_behind_seconds"].values()
        assert 1_800 <= age < 2_100
        assert found["pyspark_kafka_records_behind"] == {f"0/0/{topic}": 30}
    finally:
        query.stop()
        endpoint.stop()
        metrics.listen(spark).stop()


def test_server_listens_on_the_loopback_only_and_says_why_it_cannot(
    spark: SparkSession, endpoint: metrics.PrometheusEndpoint
) -> None:
    assert endpoint.url == f"http://127.0.0.1:{endpoint.port}/metrics"
    assert metrics.prometheus(spark, endpoint.port) is endpoint
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError) as caught:
            metrics.prometheus(spark, port)
    assert caught.value.condition == "METRICS_PORT_UNAVAILABLE"
    assert caught.value.message.startswith(f"Metrics for Prometheus cannot be served at 127.0.0.1, port {port}: ")
    endpoint.stop()
    with pytest.raises(OSError, match="refused"):
        scraped(endpoint.url)


def test_scrape_has_the_latencies_of_a_continuous_query(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    endpoint: metrics.PrometheusEndpoint,
) -> None:
    source, target = make_topic(), make_topic()

    def values(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch.select(["value"])

    query = (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .mapInArrow(values, "value binary")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(tmp_path)).queryName("live")
        .trigger(continuous="100 milliseconds").start()
    )  # fmt: skip

    def now() -> dict[str, dict[str, float]]:
        return series(scraped(endpoint.url), query.id)

    try:
        produce(bootstrap_servers, source, [Record(None, b"v", 0)] * 20)
        query.processAllAvailable()
        eventually(lambda: now().get("pyspark_kafka_rows_read_total") == {"0": 20})
        found = now()
        assert found["pyspark_kafka_rows_written_total"] == {"": 20}
        assert found["pyspark_kafka_records_behind"] == {f"0/0/{source}": 0}
    finally:
        query.stop()
    eventually(lambda: now().get("pyspark_kafka_query_up") == {"": 0})


_CONNECT = """
import sys
import urllib.request
from pyspark.sql import SparkSession
from pyspark_kafka import metrics

remote, servers, topic, place = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
endpoint = metrics.prometheus(spark, 0)
rows = (spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic).option("startingOffsets", "earliest").load())
query = (rows.select("value").writeStream.format("noop").option("checkpointLocation", place + "/checkpoint")
         .queryName("orders").start())
query.processAllAvailable()
wanted = f'pyspark_kafka_rows_read_total{{query="orders",query_id="{query.id}",source="0"}} 50.0'
text = ""
while wanted not in text:
    text = urllib.request.urlopen(endpoint.url).read().decode()
print(text)
query.stop()
metrics.listen(spark).stop()
"""


def test_scrape_is_that_of_the_client_on_spark_connect(
    bootstrap_servers: str, make_topic: TopicMaker, connect_url: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 50)
    said, _ = run_logging_program(_CONNECT, connect_url, bootstrap_servers, topic, str(tmp_path), place=tmp_path)
    assert 'pyspark_kafka_source_partitions{query="orders"' in said
    assert "pyspark_kafka_query_up{" in said
