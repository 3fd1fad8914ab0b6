"""Filters that decide what is read, through Spark and a real broker: the same rows, fewer of them fetched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_program
from kit.reading import load

CONF = "spark.sql.python.filterPushdown.enabled"
BASE = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with filters pushed down to Python sources."""
    spark.conf.set(CONF, "true")
    yield spark
    spark.conf.unset(CONF)


@pytest.fixture(scope="module")
def topics(bootstrap_servers: str, make_topic: TopicMaker) -> list[str]:
    """Two topics of three partitions with six records each, whose times go up, but for one."""
    names = [make_topic(partitions=3), make_topic(partitions=3)]
    for name in names:
        produce(
            bootstrap_servers,
            name,
            [
                # The third record of each partition is older than its neighbours.
                Record(None, b"%d" % i, partition=partition, timestamp_ms=BASE + (500 if i == 2 else 1000 * i))
                for partition in range(3)
                for i in range(6)
            ],
        )
    return names


@pytest.fixture(scope="module")
def plain(spark: SparkSession, bootstrap_servers: str, topics: list[str]) -> Iterator[DataFrame]:
    """All records, held by Spark: what it filters of these has not been pushed anywhere."""
    rows = read(spark, bootstrap_servers, topics).cache()
    assert rows.count() == 2 * 3 * 6
    yield rows
    rows.unpersist()


def read(spark: SparkSession, bootstrap_servers: str, topics: list[str], **options: Any) -> DataFrame:
    return load(spark, bootstrap_servers, subscribe=",".join(topics), **options)


def pushing(spark: SparkSession, bootstrap_servers: str, topics: list[str], **options: Any) -> DataFrame:
    return read(spark, bootstrap_servers, topics, pushDownPredicate="true", **options)


def rows_of(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.collect())


FILTERS = [
    "partition = 1",
    "partition <> 1",
    "partition in (0, 2)",
    "partition not in (0, 2)",
    "partition > 0 and partition <= 1",
    "partition <=> 2",
    "partition = 7",
    "partition = 1 and partition = 2",
    "partition is null",
    "partition = null",
    "offset = 3",
    "offset between 2 and 4",
    "offset > 2.5",
    "offset < 1 or offset > 4",
    "offset <> 3",
    "offset in (1, 5)",
    "offset >= 100",
    "offset < 9223372036854775807",
    "not (offset > 2)",
    "topic = '{0}'",
    "topic <> '{0}'",
    "topic in ('{0}', 'other')",
    "topic like 't%' and partition = 0 and offset = 0",
    "timestamp >= '2023-11-14T22:13:22Z'",
    "timestamp > '2023-11-14T22:13:23Z'",
    "timestamp > '2023-11-14T22:13:22.999999Z'",
    "timestamp = '2023-11-14T22:13:20.5Z'",
    "timestamp < '2023-11-14T22:13:21Z'",
    "timestamp >= '2023-11-14T22:13:21Z' and timestamp < '2023-11-14T22:13:24Z' and offset > 1 and partition < 2",
    "timestamp >= '2030-01-01'",
    "timestamp >= '1969-12-31T23:59:59.998Z'",
    "timestamp between '2023-11-14' and date'2023-11-15'",
    "cast(value as string) = '4' and partition = 1",
]


@pytest.mark.parametrize("condition", FILTERS)
def test_a_pushed_filter_gives_the_rows_that_spark_itself_lets_through(
    pushdown: SparkSession, bootstrap_servers: str, topics: list[str], plain: DataFrame, condition: str
) -> None:
    where = condition.format(*topics)
    found = pushing(pushdown, bootstrap_servers, topics).where(where)
    assert rows_of(found) == rows_of(plain.where(where))
    assert found.schema == plain.schema


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_times_are_compared_in_the_sessions_zone(
    pushdown: SparkSession, bootstrap_servers: str, topics: list[str], zone: str
) -> None:
    at = datetime(2023, 11, 14, 22, 13, 23, tzinfo=timezone.utc)
    local = at.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")
    pushdown.conf.set("spark.sql.session.timeZone", zone)
    try:
        for bound in (f.lit(at), f.lit(local)):
            found = pushing(pushdown, bootstrap_servers, topics[:1]).where(f.col("timestamp") >= bound)
            assert sorted(row.offset for row in found.collect()) == sorted([3, 4, 5] * 3)
    finally:
        pushdown.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("condition", "tasks"),
    [
        ("partition = 1", 2),
        ("topic = '{0}' and partition > 0", 2),
        # Spark's own, which reads nothing.
        ("partition = 7", 1),
        # Records may come there until a task runs.
        ("offset >= 100", 6),
        # Nothing to leave out.
        ("cast(value as string) = '4'", 6),
    ],
)
def test_only_partitions_that_a_filter_lets_through_have_tasks(
    pushdown: SparkSession, bootstrap_servers: str, topics: list[str], condition: str, tasks: int
) -> None:
    found = pushing(pushdown, bootstrap_servers, topics).where(condition.format(*topics))
    assert found.rdd.getNumPartitions() == tasks


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("partition = 1 and offset > 2 and topic <> 'x'", False),
        ("timestamp > '2023-11-14T22:13:22Z'", True),
        ("offset <> 3", True),
    ],
)
def test_spark_evaluates_only_what_ranges_do_not_settle(
    pushdown: SparkSession, bootstrap_servers: str, topics: list[str], condition: str, *, left: bool
) -> None:
    found = pushing(pushdown, bootstrap_servers, topics).where(condition)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert ("Filter " in plan) == left


def test_filters_go_with_ranges_and_splits(pushdown: SparkSession, bootstrap_servers: str, topics: list[str]) -> None:
    options = {"startingTimestamp": str(BASE + 1000), "maxRecordsPerPartition": "2"}
    where = "offset < 5 and partition <> 0 and timestamp >= '2023-11-14T22:13:22Z'"
    found = pushing(pushdown, bootstrap_servers, topics, **options).where(where)
    expected = read(pushdown, bootstrap_servers, topics, **options).cache()
    assert rows_of(found) == rows_of(expected.where(where))
    expected.unpersist()
    assert found.count() == 2 * 2 * 2


def test_a_filtered_dataframe_that_is_used_again_sees_new_records(
    pushdown: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"x", timestamp_ms=BASE)] * 3)
    late = "2023-11-15"
    by_offset = pushing(pushdown, bootstrap_servers, [topic]).where("offset >= 2 and offset < 6")
    by_time = pushing(pushdown, bootstrap_servers, [topic]).where(f"timestamp >= '{late}'")
    assert (by_offset.count(), by_time.count()) == (1, 0)
    produce(bootstrap_servers, topic, [Record(None, b"x", timestamp_ms=BASE + 86_400_000)] * 5)
    assert (by_offset.count(), by_time.count()) == (4, 5)


def test_filters_stay_with_spark_without_the_option_whatever_the_setting(
    spark: SparkSession, bootstrap_servers: str, topics: list[str]
) -> None:
    for setting in ("false", "true"):
        spark.conf.set(CONF, setting)
        try:
            rows = read(spark, bootstrap_servers, topics[:1])
            assert rows.where("partition = 1").count() == 6
            assert rows.where("partition = 1").rdd.getNumPartitions() == 3
            # One load(), two filters.
            assert rows.where("partition = 1").union(rows.where("offset = 1")).count() == 6 + 3
        finally:
            spark.conf.unset(CONF)


def test_spark_names_the_missing_setting_if_only_the_option_is_set(
    spark: SparkSession, bootstrap_servers: str, topics: list[str]
) -> None:
    with pytest.raises(PySparkException, match=rf"DATA_SOURCE_PUSHDOWN_DISABLED.*{CONF}"):
        pushing(spark, bootstrap_servers, topics).where("partition = 1").count()


def test_spark_mixes_up_the_filters_of_two_queries_of_one_load(
    pushdown: SparkSession, bootstrap_servers: str, topics: list[str]
) -> None:
    # Why it takes an option: what is planned last is read by all. Where this fails, Spark has been fixed, and the
    # option may become the default.
    rows = pushing(pushdown, bootstrap_servers, topics[:1])
    assert rows.where("partition = 1").count() == 6
    assert rows.count() == 6
    mixed = rows.where("partition = 1").union(rows.where("partition = 2"))
    assert {row.partition for row in mixed.collect()} == {2}
    # With a load() each they are kept apart.
    one, other = (pushing(pushdown, bootstrap_servers, topics[:1]).where(f"partition = {n}") for n in (1, 2))
    assert sorted(row.partition for row in one.union(other).collect()) == [1] * 6 + [2] * 6


_SCRIPT = """
import sys
from pyspark.sql import SparkSession

remote, servers, topics = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topics)
where = "partition = 1 and offset > 2 and timestamp >= '2023-11-14T22:13:24Z'"
print("plain", reader.load().where(where).count())
try:
    reader.option("pushDownPredicate", "true").load().where(where).count()
except Exception as error:
    print("refused", "DATA_SOURCE_PUSHDOWN_DISABLED" in str(error))
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
print("pushed", reader.option("pushDownPredicate", "true").load().where(where).count())
print("without", reader.option("pushDownPredicate", "false").load().where(where).count())
spark.stop()
"""


@pytest.mark.full("Spark Connect")
def test_pushed_filters_are_the_same_on_spark_connect(
    bootstrap_servers: str, topics: list[str], connect_url: str, tmp_path: Path
) -> None:
    said = run_program(_SCRIPT, connect_url, bootstrap_servers, ",".join(topics), place=tmp_path)
    for line in ("plain 4", "refused True", "pushed 4", "without 4"):
        assert line in said
