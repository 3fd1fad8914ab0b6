"""Batch reads through Spark, against the real broker; records come from an independent producer."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.reading import load


def test_all_columns_carry_what_was_produced(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    produce(
        bootstrap_servers,
        topic,
        [
            Record(b"k0", b"v0", partition=0, timestamp_ms=1_700_000_000_123, headers=[("h", b"1"), ("h", b"")]),
            Record(None, b"", partition=0, timestamp_ms=1_700_000_000_124),
            Record(b"", None, partition=1, timestamp_ms=1_700_000_000_125),
        ],
    )
    rows = (
        load(spark, bootstrap_servers, subscribe=topic, includeHeaders="true").orderBy("partition", "offset").collect()
    )
    assert [(r.key, r.value, r.topic, r.partition, r.offset, r.timestampType) for r in rows] == [
        (b"k0", b"v0", topic, 0, 0, 0),
        (None, b"", topic, 0, 1, 0),
        (b"", None, topic, 1, 0, 0),
    ]
    base = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc)
    assert [r.timestamp.astimezone(timezone.utc) for r in rows] == [base + timedelta(milliseconds=i) for i in range(3)]
    assert [(h.key, h.value) for h in rows[0].headers] == [("h", b"1"), ("h", b"")]
    # Like Spark's own connector: a record without headers has null, not an empty array.
    assert rows[1].headers is None
    assert rows[2].headers is None


def test_the_schema_is_sparks_with_headers_only_when_asked(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    plain = load(spark, bootstrap_servers, subscribe=topic).schema
    assert [(f.name, f.dataType.simpleString()) for f in plain] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    with_headers = load(spark, bootstrap_servers, subscribe=topic, includeHeaders="true").schema
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_a_schema_prunes_and_reorders_columns(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"v")])
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = reader.option("subscribe", topic).schema("offset long, value binary, topic string").load()
    assert rows.columns == ["offset", "value", "topic"]
    assert [tuple(r) for r in rows.collect()] == [(0, b"v", topic)]


def test_sql_reads_views_and_refuses_tables_whose_options_spark_would_not_pass(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 3)
    name = topic.replace("-", "_")
    options = f"'kafka.bootstrap.servers' '{bootstrap_servers}', subscribe '{topic}'"
    with pytest.raises(Exception, match=r"\[SQL_TABLE_NOT_SUPPORTED\] A table of SQL over a topic cannot be created"):
        spark.sql(f"CREATE TABLE t_{name} USING pyspark_kafka OPTIONS ({options})")
    spark.sql(f"CREATE TEMPORARY VIEW v_{name} USING pyspark_kafka OPTIONS ({options})")
    assert spark.sql(f"SELECT offset FROM v_{name}").count() == 3  # noqa: S608 - our own names
    # Spark does not ask for the schema of a table that names its columns.
    spark.sql(f"CREATE TABLE t_{name} (offset BIGINT) USING pyspark_kafka OPTIONS ({options})")
    try:
        with pytest.raises(Exception, match="Spark does not pass the options of a table to its queries"):
            spark.sql(f"SELECT * FROM t_{name}").collect()  # noqa: S608
        given = options.replace("servers' '", "servers' = '").replace("subscribe '", "'subscribe' = '")
        assert spark.sql(f"SELECT * FROM t_{name} WITH ({given})").count() == 3  # noqa: S608
        with pytest.raises(Exception, match="INSERT_COLUMN_ARITY_MISMATCH"):
            spark.sql(f"INSERT INTO v_{name} SELECT 'k', 'v'")
    finally:
        spark.sql(f"DROP TABLE t_{name}")
        spark.catalog.dropTempView(f"v_{name}")


def test_an_empty_topic_gives_no_rows(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    assert load(spark, bootstrap_servers, subscribe=make_topic(partitions=3)).count() == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_goes_out_and_comes_back(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, codec: str
) -> None:
    topic = make_topic(partitions=2)
    rows = spark.range(3000).selectExpr("CAST(id AS STRING) AS key", "concat('value-', id) AS value")
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer.option("topic", topic).option("kafka.compression.type", codec).mode("append").save()
    back = load(spark, bootstrap_servers, subscribe=topic).selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
    assert {tuple(r) for r in back.collect()} == {(str(i), f"value-{i}") for i in range(3000)}
    seen = consume(bootstrap_servers, topic, 3000)
    assert {(r.key, r.value) for r in seen} == {(b"%d" % i, b"value-%d" % i) for i in range(3000)}


def test_ranges_by_partition_are_half_open(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(b"k", b"%d" % i, partition=i % 2) for i in range(20)])
    rows = load(
        spark,
        bootstrap_servers,
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 3, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 7, "1": -1}}),
    )
    found = sorted((r.partition, r.offset) for r in rows.collect())
    assert found == [(0, o) for o in range(3, 7)] + [(1, o) for o in range(10)]


def test_assign_reads_the_listed_partitions_only(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=3)
    produce(bootstrap_servers, topic, [Record(b"k", b"%d" % i, partition=i % 3) for i in range(9)])
    rows = load(spark, bootstrap_servers, assign=json.dumps({topic: [0, 2]}))
    assert sorted({r.partition for r in rows.collect()}) == [0, 2]


def test_subscribe_pattern_is_searched_in_topic_names(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    first, second = make_topic(), make_topic()
    for topic in (first, second):
        produce(bootstrap_servers, topic, [Record(b"k", topic.encode())])
    rows = load(spark, bootstrap_servers, subscribePattern=first[3:])
    assert [r.topic for r in rows.collect()] == [first]


def test_several_topics_with_a_hyphen_and_a_dot_in_their_names(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topics = [make_topic(), make_topic()]
    for topic in topics:
        produce(bootstrap_servers, topic, [Record(b"k", b"v")] * 5)
    rows = load(spark, bootstrap_servers, subscribe=" , ".join(topics))
    assert sorted(r.topic for r in rows.collect()) == sorted(topics * 5)


def test_null_and_empty_are_kept_apart_in_headers(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    headers = [("null", None), ("empty", bytearray(b"")), ("null", bytearray(b"x"))]
    rows = spark.createDataFrame([("v", headers)], "value string, headers array<struct<key:string,value:binary>>")
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer.option("topic", topic).mode("append").save()
    found = load(spark, bootstrap_servers, subscribe=topic, includeHeaders="true").collect()[0].headers
    assert [(h.key, h.value) for h in found] == [("null", None), ("empty", b""), ("null", b"x")]
