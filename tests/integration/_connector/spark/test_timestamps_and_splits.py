"""Reads by time, with more tasks than partitions, and in batches of a least size, through Spark and a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import load

BASE = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def topic(bootstrap_servers: str, make_topic: TopicMaker) -> str:
    """Two partitions with records a second apart: ten in the first one, four in the second."""
    name = make_topic(partitions=2)
    produce(
        bootstrap_servers,
        name,
        [
            Record(None, b"%d-%d" % (partition, i), partition=partition, timestamp_ms=BASE + 1000 * i)
            for partition, count in ((0, 10), (1, 4))
            for i in range(count)
        ],
    )
    return name


def read(spark: SparkSession, bootstrap_servers: str, topic: str, **options: Any) -> DataFrame:
    return load(spark, bootstrap_servers, subscribe=topic, **options)


def values(rows: DataFrame) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows.select("value").collect())


def names(first: range, second: range) -> list[str]:
    return [f"0-{i}" for i in first] + [f"1-{i}" for i in second]


def test_a_batch_reads_from_one_time_to_before_another(spark: SparkSession, bootstrap_servers: str, topic: str) -> None:
    found = read(
        spark,
        bootstrap_servers,
        topic,
        # Between two records; and ISO 8601 in another zone, of the record 7.
        startingTimestamp=str(BASE + 1500),
        endingTimestamp="2023-11-14T23:13:27+01:00",
    )
    assert values(found) == names(range(2, 7), range(2, 4))


def test_times_by_partition_and_offsets_go_together(spark: SparkSession, bootstrap_servers: str, topic: str) -> None:
    starting = {topic: {"0": BASE + 8000, "1": "2023-11-14T22:13:21Z"}}
    ending = {topic: {"0": -1, "1": 3}}
    found = read(
        spark,
        bootstrap_servers,
        topic,
        startingOffsetsByTimestamp=json.dumps(starting),
        endingOffsets=json.dumps(ending),
    )
    assert values(found) == names(range(8, 10), range(1, 3))


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 2),
        ({"minPartitions": "7"}, 7),
        ({"maxRecordsPerPartition": "3"}, 6),
        ({"minPartitions": "2"}, 2),
        ({"maxPartitionsPerTask": "2"}, 1),
    ],
)
def test_a_read_has_as_many_tasks_as_asked_for_and_the_same_rows(
    spark: SparkSession, bootstrap_servers: str, topic: str, options: dict[str, str], tasks: int
) -> None:
    rows = read(spark, bootstrap_servers, topic, **options)
    assert rows.rdd.getNumPartitions() == tasks
    assert values(rows) == names(range(10), range(4))


def test_a_stream_starts_by_time_and_is_split(
    spark: SparkSession, bootstrap_servers: str, topic: str, tmp_path: Path
) -> None:
    stream = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = stream.options(
        subscribe=topic, startingTimestamp=str(BASE + 2000), minPartitions="5", maxRecordsPerPartition="4"
    ).load()
    query = (
        rows.selectExpr("CAST(value AS STRING) AS value", "spark_partition_id() AS task")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.value for row in found) == names(range(2, 10), range(2, 4))
    assert len({row.task for row in found}) == 5


@pytest.mark.full("Waits for limits of time")
def test_a_stream_waits_for_a_least_number_of_offsets(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    stream = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = stream.options(
        subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="5", maxOffsetsPerTrigger="7"
    ).load()

    def run(new: int, **trigger: Any) -> list[int]:
        """Produce this number of records, run the query to its end, and return the rows of its batches."""
        produce(bootstrap_servers, topic, [Record(None, b"v")] * new)
        query = (
            rows.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(**trigger)
            .start()
        )
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    # Of 12, the 5 that are left after the first batch are just enough.
    assert run(12, availableNow=True) == [7, 5]
    # Of 11, the 4 that are left are not; the next run begins with them.
    assert run(11, availableNow=True) == [7]
    assert run(0, availableNow=True) == [4]
    assert run(1, availableNow=True) == [1]
    # A once trigger takes all there is.
    assert run(9, once=True) == [9]
