"""Batch writes through Spark, read back by an independent consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.partitioner.default import murmur2

from support import Record, consume

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from conftest import TopicMaker


def write(rows: DataFrame, bootstrap_servers: str, **options: Any) -> None:
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer.options(**options).mode("append").save()


def java_partition(key: bytes | None, partition_count: int) -> int:
    """Java's choice, by another implementation of its hash than ours."""
    assert key is not None
    positive: int = murmur2(key) & 0x7FFFFFFF
    return positive % partition_count


def test_keys_values_headers_nulls_and_tombstones(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    rows = spark.createDataFrame(
        [
            (bytearray(b"k"), "text", [("a", bytearray(b"1")), ("a", None)], 0),
            (None, "", [], 1),
            (bytearray(b""), None, None, 2),
        ],
        "key binary, value string, headers array<struct<key:string,value:binary>>, ignored int",
    ).coalesce(1)
    write(rows, bootstrap_servers, topic=topic)
    found = sorted(consume(bootstrap_servers, topic, 3), key=lambda r: r.offset)
    assert [(r.key, r.value, r.headers) for r in found] == [
        (b"k", b"text", [("a", b"1"), ("a", None)]),
        (None, b"", []),
        (b"", None, []),
    ]


def test_rows_go_to_the_topic_of_their_column(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    first, second = make_topic(), make_topic(partitions=2)
    rows = spark.createDataFrame([(first, "a"), (second, "b"), (first, "c")], "topic string, value string")
    write(rows, bootstrap_servers)
    assert {r.value for r in consume(bootstrap_servers, first, 2)} == {b"a", b"c"}
    assert {r.value for r in consume(bootstrap_servers, second, 1)} == {b"b"}


def test_the_topic_option_goes_before_the_column(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    # With the option set, the column is not even checked.
    rows = spark.createDataFrame([(1, "a")], "topic int, value string")
    write(rows, bootstrap_servers, topic=topic)
    assert [r.value for r in consume(bootstrap_servers, topic, 1)] == [b"a"]


def test_keys_land_where_javas_partitioner_puts_them(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=7)
    rows = spark.range(500).selectExpr("concat('key-', id) AS key", "'v' AS value")
    write(rows, bootstrap_servers, topic=topic)
    for record in consume(bootstrap_servers, topic, 500):
        assert record.partition == java_partition(record.key, 7)


def test_the_partition_column_goes_before_the_key_and_null_leaves_it_to_the_key(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=4)
    rows = spark.createDataFrame(
        [("same", "explicit", 3), ("same", "by key", None), ("same", "explicit", 0)],
        "key string, value string, partition int",
    )
    write(rows, bootstrap_servers, topic=topic)
    by_key = java_partition(b"same", 4)
    found = {(r.value, r.partition) for r in consume(bootstrap_servers, topic, 3)}
    assert found == {(b"explicit", 3), (b"explicit", 0), (b"by key", by_key)}


def test_order_within_a_task_and_a_key_is_kept(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=3)
    rows = spark.range(0, 30_000, numPartitions=1).selectExpr(
        "CAST(id % 10 AS STRING) AS key", "CAST(id AS STRING) AS value"
    )
    write(rows, bootstrap_servers, topic=topic)
    by_key: dict[bytes | None, list[int]] = {}
    for record in sorted(consume(bootstrap_servers, topic, 30_000), key=lambda r: (r.partition, r.offset)):
        by_key.setdefault(record.key, []).append(int(record.value or b""))
    assert len(by_key) == 10
    assert all(values == sorted(values) for values in by_key.values())


def test_rows_without_a_key_are_spread_over_the_partitions(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    rows = spark.range(0, 400_000, numPartitions=2).selectExpr("repeat('x', 50) AS value")
    write(rows, bootstrap_servers, topic=topic)
    records = consume(bootstrap_servers, topic, 400_000)
    assert {r.partition for r in records} == {0, 1}


def test_no_rows_write_nothing_and_succeed(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    write(spark.createDataFrame([], "value string"), bootstrap_servers, topic=topic)
    assert consume(bootstrap_servers, topic, 0) == []


def test_timestamps_are_the_time_of_writing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    import time  # noqa: PLC0415 - used here only

    topic = make_topic()
    before = int(time.time() * 1000)
    write(spark.createDataFrame([("v",)], "value string"), bootstrap_servers, topic=topic)
    record: Record = consume(bootstrap_servers, topic, 1)[0]
    assert record.timestamp_ms is not None
    assert before <= record.timestamp_ms <= int(time.time() * 1000)
