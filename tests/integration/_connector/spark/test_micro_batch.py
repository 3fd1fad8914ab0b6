"""Streaming reads through Spark: triggers, limits, restarts, offsets in checkpoints and progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.options import ConnectionOptions


def stream(spark: SparkSession, bootstrap_servers: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    return reader.options(**options).load()


class Sink:
    """Collects what each batch of a query brought, by batch id."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.checkpoint = str(place / "checkpoint")

    def run(self, rows: DataFrame, **trigger: Any) -> StreamingQuery:
        """Run the query until it ends."""
        query = self.start(rows, **(trigger or {"availableNow": True}))
        query.awaitTermination()
        return query

    def start(self, rows: DataFrame, **trigger: Any) -> StreamingQuery:
        """Start the query."""
        values = rows.selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        return (
            values.writeStream.format("parquet")
            .option("path", str(self.place / "out"))
            .option("checkpointLocation", self.checkpoint)
            .trigger(**trigger)
            .start()
        )

    def values(self, spark: SparkSession) -> list[str]:
        """Return all values that were written, sorted."""
        rows = spark.read.schema("topic string, partition int, offset long, value string").parquet(
            str(self.place / "out")
        )
        return sorted(row.value for row in rows.collect())

    def end_offset(self, batch_id: int) -> Mapping[str, Any]:
        """Return the end offset that the checkpoint's offset log has for a batch."""
        lines = (Path(self.checkpoint) / "offsets" / str(batch_id)).read_text().splitlines()
        offset: Mapping[str, Any] = json.loads(lines[2])
        return offset


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path)


def numbered(first: int, last: int, partitions: int = 1) -> list[Record]:
    return [Record(b"k", b"v%03d" % i, partition=i % partitions) for i in range(first, last)]


def names(first: int, last: int) -> list[str]:
    return [f"v{i:03}" for i in range(first, last)]


def test_available_now_reads_everything_and_ends(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic(partitions=3)
    produce(bootstrap_servers, topic, numbered(0, 90, 3))
    sink.run(stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest"))
    assert sink.values(spark) == names(0, 90)


def test_available_now_honours_max_offsets_per_trigger_over_several_batches(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, numbered(0, 60, 2))
    query = sink.run(
        stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    )
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [20, 20, 20]
    assert sink.values(spark) == names(0, 60)
    assert sink.end_offset(0) == {topic: {"0": 10, "1": 10}}


def test_once_reads_everything_in_one_batch_and_ignores_the_limit(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 50))
    query = sink.run(
        stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="5"),
        once=True,
    )
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [50]
    assert sink.values(spark) == names(0, 50)


def test_processing_time_picks_up_what_arrives_while_it_runs(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 5))
    query = sink.start(
        stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest"), processingTime="100 milliseconds"
    )
    try:
        query.processAllAvailable()
        produce(bootstrap_servers, topic, numbered(5, 9))
        query.processAllAvailable()
        assert sink.values(spark) == names(0, 9)
    finally:
        query.stop()


def test_latest_is_the_default_start_of_a_stream(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 5))
    query = sink.start(stream(spark, bootstrap_servers, subscribe=topic), processingTime="100 milliseconds")
    try:
        query.processAllAvailable()
        produce(bootstrap_servers, topic, numbered(5, 8))
        query.processAllAvailable()
        assert sink.values(spark) == names(5, 8)
    finally:
        query.stop()


def test_a_restart_goes_on_where_the_checkpoint_ends(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, numbered(0, 10, 2))
    sink.run(stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest"))
    produce(bootstrap_servers, topic, numbered(10, 16, 2))
    # The checkpoint takes precedence over the option.
    query = sink.run(stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="latest"))
    assert sum(p.numInputRows for p in query.recentProgress) == 6
    assert sink.values(spark) == names(0, 16)
    assert sink.end_offset(1) == {topic: {"0": 8, "1": 8}}


def test_a_batch_that_was_not_committed_is_read_again_with_the_same_offsets(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    rows = stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest")

    def run() -> list[tuple[int, int]]:
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [(p.batchId, p.numInputRows) for p in query.recentProgress if p.numInputRows]

    produce(bootstrap_servers, topic, numbered(0, 4))
    assert run() == [(0, 4)]
    produce(bootstrap_servers, topic, numbered(4, 8))
    assert run() == [(1, 4)]
    # As if the driver had died between the offset log and the commit log of batch 1.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    produce(bootstrap_servers, topic, numbered(8, 11))
    assert run() == [(1, 4), (2, 3)]


def test_a_partition_that_is_added_while_the_query_runs_is_read_from_its_beginning(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 3))
    rows = stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest")
    sink.run(rows)
    host, port = bootstrap_servers.rsplit(":", 1)
    with borrow_client(ConnectionOptions(((host, int(port)),))) as client:
        create_partitions(client, {topic: 2})
    produce(bootstrap_servers, topic, [Record(b"k", b"v003", partition=1)])
    sink.run(rows)
    assert sink.values(spark) == names(0, 4)
    assert sink.end_offset(1) == {topic: {"0": 3, "1": 1}}


def test_progress_and_checkpoint_hold_sparks_offset_json(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, sink: Sink
) -> None:
    topic = make_topic(partitions=11)
    produce(bootstrap_servers, topic, [Record(b"k", b"v%03d" % i, partition=i) for i in range(11)])
    query = sink.run(stream(spark, bootstrap_servers, subscribe=topic, startingOffsets="earliest"))
    expected = {topic: {str(i): 1 for i in range(11)}}
    assert sink.end_offset(0) == expected
    progress = next(p for p in query.recentProgress if p.numInputRows)
    assert json.loads(progress.sources[0].endOffset) == expected
    # Partitions in the order of their numbers, so that the text of a position never changes.
    assert list(json.loads(progress.sources[0].endOffset)[topic]) == [str(i) for i in range(11)]


def test_a_stream_from_kafka_to_kafka(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=3)
    produce(bootstrap_servers, source, [Record(b"k%d" % i, b"v%03d" % i, partition=i % 2) for i in range(40)])
    rows = stream(spark, bootstrap_servers, subscribe=source, startingOffsets="earliest").select("key", "value")
    query = (
        rows.writeStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = consume(bootstrap_servers, target, 40)
    assert {(r.key, r.value) for r in found} == {(b"k%d" % i, b"v%03d" % i) for i in range(40)}


def test_aggregations_are_written_in_complete_mode(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"a", b"1"), Record(b"b", b"1"), Record(b"a", b"1")])
    counts = (
        stream(spark, bootstrap_servers, subscribe=source, startingOffsets="earliest")
        .groupBy("key")
        .count()
        .selectExpr("key", "CAST(count AS STRING) AS value")
    )
    query = (
        counts.writeStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert {(r.key, r.value) for r in consume(bootstrap_servers, target, 2)} == {(b"a", b"2"), (b"b", b"1")}
