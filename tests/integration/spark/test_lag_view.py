"""Lag as a DataFrame, on classic Spark and on Spark Connect, and with what it refuses."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, commit_positions, produce
from kit.programs.run import run_connect_program
from kit.waiting import eventually
from pyspark_kafka import metrics

_SCRIPT = """
import sys
from pyspark.sql import SparkSession

servers, group = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = (spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("view", "lag")
        .option("lagGroup", group).load().select("partition", "records_behind").orderBy("partition").collect())
print("lag", [tuple(row) for row in rows], type(spark).__module__)
spark.stop()
"""


def view(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    return (
        spark.read.format("pyspark_kafka").options(**{"kafka.bootstrap.servers": servers}, view="lag", **options).load()
    )


def group_of(servers: str, topic: str) -> str:
    group = f"g-{uuid.uuid4().hex[:8]}"
    now_ms = time.time_ns() // 1_000_000
    produce(servers, topic, [Record(None, b"v", 0, now_ms) for _ in range(5)])
    commit_positions(servers, group, {(topic, 0): 2, (topic, 1): 0})
    return group


def test_view_has_a_row_for_each_partition_and_is_looked_up_again(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(2)
    rows = view(spark, bootstrap_servers, lagGroup=group_of(bootstrap_servers, topic)).orderBy("partition")
    first, second = rows.collect()
    assert (first.topic, first.partition, first.state, first.position, first.records_behind) == (
        topic,
        0,
        "known",
        2,
        3,
    )
    assert first.bytes_behind > 0
    assert first.position_time is not None
    assert first.missing is None
    assert (second.records_behind, second.seconds_behind, second.headroom_s) == (0, 0.0, float("inf"))
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)])
    assert rows.first().records_behind == 4  # type: ignore[union-attr]


def test_view_of_the_checkpoint_of_a_real_query_is_behind_by_what_it_has_not_read(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0) for _ in range(10)])
    stream = spark.readStream.format("pyspark_kafka").options(
        **{"kafka.bootstrap.servers": bootstrap_servers}, subscribe=topic, startingOffsets="earliest"
    )
    query = (
        stream.load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0) for _ in range(3)])
    (row,) = view(spark, bootstrap_servers, lagCheckpoint=str(tmp_path / "checkpoint"), subscribe=topic).collect()
    assert (row.position, row.log_end, row.records_behind) == (10, 13, 3)


@pytest.mark.full("Spark Connect")
def test_view_works_on_spark_connect(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    group = group_of(bootstrap_servers, make_topic(2))
    said = run_connect_program(_SCRIPT, bootstrap_servers, group, place=tmp_path)
    assert "lag [(0, 3), (1, 0)] pyspark.sql.connect" in said


def test_view_refuses_a_stream_and_other_columns(spark: SparkSession, bootstrap_servers: str) -> None:
    with pytest.raises(Exception, match="OPTION_MISSING"):
        view(spark, bootstrap_servers)
    with pytest.raises(Exception, match="SCHEMA_NOT_SUPPORTED"):
        spark.read.format("pyspark_kafka").schema("topic STRING").options(
            **{"kafka.bootstrap.servers": bootstrap_servers}, view="lag", lagGroup="g"
        ).load().collect()


def test_lag_of_the_queries_that_a_session_runs(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0) for _ in range(10)])
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    stream = spark.readStream.format("pyspark_kafka").options(**servers, subscribe=topic, startingOffsets="earliest")
    name = f"q_{uuid.uuid4().hex[:8]}"
    query = (
        stream.option("maxOffsetsPerTrigger", "4")
        .load()
        .writeStream.queryName(name)
        .format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100000 days")
        .start()
    )
    try:
        eventually(lambda: query.lastProgress is not None and query.lastProgress["numInputRows"] > 0, 120.0)
        (found,) = metrics.lag(spark, servers)[name]
    finally:
        query.stop()
    assert (found.position, found.end, found.records_behind) == (4, 10, 6)
