"""A loaded DataFrame that is used again while its topic changes, through Spark and a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kit.administration import delete_records
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import load
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.options import parse_batch_read_options


def read(spark: SparkSession, bootstrap_servers: str, topic: str, **options: Any) -> DataFrame:
    return load(spark, bootstrap_servers, subscribe=topic, **options)


def offsets(rows: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in rows.select("partition", "offset").collect())


def span(first: range, second: range = range(0)) -> list[tuple[int, int]]:
    return [(0, offset) for offset in first] + [(1, offset) for offset in second]


def add(bootstrap_servers: str, topic: str, count: int, partition: int = 0) -> None:
    produce(bootstrap_servers, topic, [Record(None, b"%d" % i, partition=partition) for i in range(count)])


def trim(bootstrap_servers: str, topic: str, before: int) -> None:
    """Remove the first partition's records below an offset, as retention does."""
    raw = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    with borrow_client(parse_batch_read_options(raw).connection) as client:
        delete_records(client, {TopicPartition(topic, 0): before})


@pytest.fixture
def topic(bootstrap_servers: str, make_topic: TopicMaker) -> str:
    """Two partitions: ten records in the first one, none in the second."""
    name = make_topic(partitions=2)
    add(bootstrap_servers, name, 10)
    return name


@pytest.mark.parametrize("options", [{}, {"minPartitions": "5"}, {"maxRecordsPerPartition": "3"}], ids=repr)
def test_a_dataframe_that_is_used_again_sees_new_records(
    spark: SparkSession, bootstrap_servers: str, topic: str, options: dict[str, str]
) -> None:
    rows = read(spark, bootstrap_servers, topic, **options)
    assert offsets(rows) == span(range(10))
    add(bootstrap_servers, topic, 5)
    add(bootstrap_servers, topic, 2, partition=1)
    assert offsets(rows) == span(range(15), range(2))


@pytest.mark.parametrize("options", [{}, {"minPartitions": "2"}], ids=repr)
def test_a_dataframe_that_is_used_again_begins_where_the_log_does_by_then(
    spark: SparkSession, bootstrap_servers: str, topic: str, options: dict[str, str]
) -> None:
    rows = read(spark, bootstrap_servers, topic, **options)
    assert offsets(rows) == span(range(10))
    trim(bootstrap_servers, topic, 4)
    assert offsets(rows) == span(range(4, 10))


def test_numbers_and_times_stay_where_they_were_when_planned(
    spark: SparkSession, bootstrap_servers: str, topic: str
) -> None:
    starting, ending = {topic: {"0": 2, "1": -2}}, {topic: {"0": 8, "1": -1}}
    numbers = read(
        spark, bootstrap_servers, topic, startingOffsets=json.dumps(starting), endingOffsets=json.dumps(ending)
    )
    # No record is so late, so the read ends where the log did when it was planned.
    late = str(int(time.time() * 1000) + 3_600_000)
    times = read(spark, bootstrap_servers, topic, endingTimestamp=late)
    assert offsets(numbers) == span(range(2, 8))
    assert offsets(times) == span(range(10))
    add(bootstrap_servers, topic, 5)
    add(bootstrap_servers, topic, 5, partition=1)
    assert offsets(numbers) == span(range(2, 8), range(5))
    assert offsets(times) == span(range(10))


def test_an_end_behind_the_log_is_data_loss(spark: SparkSession, bootstrap_servers: str, topic: str) -> None:
    ending = json.dumps({topic: {"0": 25, "1": -1}})
    with pytest.raises(PySparkException, match=r"COULD_NOT_READ_OFFSET_RANGE\] Offsets \[10, 25\)"):
        read(spark, bootstrap_servers, topic, endingOffsets=ending).collect()
    rows = read(spark, bootstrap_servers, topic, endingOffsets=ending, failOnDataLoss="false")
    assert offsets(rows) == span(range(10))


def test_assign_leaves_out_partitions_that_do_not_exist_and_takes_limits_for_the_others(
    spark: SparkSession, bootstrap_servers: str, topic: str
) -> None:
    add(bootstrap_servers, topic, 4, partition=1)
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    reader = reader.option("assign", json.dumps({topic: [0, 9]}))
    assert offsets(reader.option("startingOffsets", json.dumps({topic: {"0": 7}})).load()) == span(range(7, 10))
    assert offsets(reader.option("startingOffsets", json.dumps({topic: "earliest"})).load()) == span(range(10))
    with pytest.raises(PySparkException, match=rf"DOES_NOT_MATCH_ASSIGNED\].*names {topic}-9, which do not exist"):
        reader.option("startingOffsets", json.dumps({topic: {"0": 7, "9": -2}})).load().collect()
