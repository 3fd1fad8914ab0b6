"""Lag as a DataFrame, on classic Spark and on Spark Connect, and of the queries that a session runs."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, commit_positions, produce
from kit.programs.run import run_connect_program
from kit.waiting import eventually
from pyspark_kafka import lag, metrics

_SCRIPT = """
import sys
from pyspark.sql import SparkSession
import pyspark_kafka

servers, group = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
report = pyspark_kafka.lag({"kafka.bootstrap.servers": servers}, group=group)
rows = spark.createDataFrame(report.to_arrow()).select("partition", "records_behind").orderBy("partition").collect()
print("lag", [tuple(row) for row in rows], type(spark).__module__)
spark.stop()
"""


def rows_of(spark: SparkSession, servers: str, group: str) -> DataFrame:
    report = lag({"kafka.bootstrap.servers": servers}, group=group)
    return spark.createDataFrame(report.to_arrow()).orderBy("partition")


def group_of(servers: str, topic: str) -> str:
    group = f"g-{uuid.uuid4().hex[:8]}"
    now_ms = time.time_ns() // 1_000_000
    produce(servers, topic, [Record(None, b"v", 0, now_ms) for _ in range(5)])
    commit_positions(servers, group, {(topic, 0): 2, (topic, 1): 0})
    return group


def test_dataframe_has_a_row_for_each_partition(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(2)
    first, second = rows_of(spark, bootstrap_servers, group_of(bootstrap_servers, topic)).collect()
    assert (first.topic, first.partition, first.state) == (topic, 0, "known")
    assert (first.position, first.records_behind) == (2, 3)
    assert first.bytes_behind > 0
    assert first.position_time is not None
    assert first.missing is None
    assert (second.records_behind, second.seconds_behind, second.headroom_s) == (0, 0.0, float("inf"))


@pytest.mark.full("Spark Connect")
def test_dataframe_works_on_spark_connect(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    group = group_of(bootstrap_servers, make_topic(2))
    said = run_connect_program(_SCRIPT, bootstrap_servers, group, place=tmp_path)
    assert "lag [(0, 3), (1, 0)] pyspark.sql.connect" in said


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
