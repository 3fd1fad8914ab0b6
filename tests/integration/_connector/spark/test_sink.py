"""Batch writes through Spark, read back by an independent consumer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from kafka.partitioner.default import murmur2
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce

_FURTHER = pytest.mark.full("Further codecs and framings")


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
    topic = make_topic()
    before = int(time.time() * 1000)
    write(spark.createDataFrame([("v",)], "value string"), bootstrap_servers, topic=topic)
    record: Record = consume(bootstrap_servers, topic, 1)[0]
    assert record.timestamp_ms is not None
    assert before <= record.timestamp_ms <= int(time.time() * 1000)


def identities(records: list[Record]) -> dict[bytes | None, list[tuple[str, bytes | None]]]:
    return {record.value: record.headers or [] for record in records}


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_identity_headers_of_a_batch_write_name_job_task_and_row(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, guarantee: str
) -> None:
    topic = make_topic(partitions=3)
    rows = spark.range(0, 6, numPartitions=2).selectExpr(
        "CAST(id AS STRING) AS value", "array(struct('own' AS key, binary('h') AS value)) AS headers"
    )
    write(rows, bootstrap_servers, topic=topic, identityHeaders="true", deliveryGuarantee=guarantee)
    found = identities(consume(bootstrap_servers, topic, 6))
    jobs = {dict(headers)["pyspark-kafka-query"] for headers in found.values()}
    assert len(jobs) == 1
    for number in range(6):
        assert found[b"%d" % number] == [
            ("own", b"h"),
            ("pyspark-kafka-query", *jobs),
            ("pyspark-kafka-batch", b"0"),
            ("pyspark-kafka-partition", b"%d" % (number // 3)),
            ("pyspark-kafka-index", b"%d" % (number % 3)),
        ]


def test_identity_headers_of_an_exactly_once_stream_name_its_query(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(None, b"v", 0)])
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer = writer.options(topic=target, identityHeaders="true", deliveryGuarantee="exactly_once")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    (record,) = consume(bootstrap_servers, target, 1)
    assert (record.headers or [])[0] == ("pyspark-kafka-query", str(query.id).encode())


def test_identity_headers_of_a_stream_are_the_same_when_a_micro_batch_is_run_again(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)

    def run() -> str:
        reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
        writer = rows.select("key", "value").writeStream.format("pyspark_kafka")
        writer = writer.option("kafka.bootstrap.servers", bootstrap_servers).option("topic", target)
        writer = writer.option("identityHeaders", "true").option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return str(query.id)

    produce(bootstrap_servers, source, [Record(None, b"%d" % n, n % 2) for n in range(4)])
    run()
    produce(bootstrap_servers, source, [Record(None, b"%d" % n, n % 2) for n in range(4, 10)])
    query_id = run()
    # The second batch is written, and not noted as committed: it is run again.
    for commit in (tmp_path / "commits" / "1", tmp_path / "commits" / ".1.crc"):
        commit.unlink()
    assert run() == query_id
    records = consume(bootstrap_servers, target, 4 + 6 + 6)
    by_value: dict[bytes | None, set[tuple[tuple[str, bytes | None], ...]]] = {}
    for record in records:
        by_value.setdefault(record.value, set()).add(tuple(record.headers or ()))
    every = [headers for found in by_value.values() for headers in found]
    # What was written twice has one identity, and no two records share one.
    assert [len(found) for found in by_value.values()] == [1] * 10
    assert len(set(every)) == 10
    for number in range(10):
        (headers,) = by_value[b"%d" % number]
        assert headers[:2] == (
            ("pyspark-kafka-query", query_id.encode()),
            ("pyspark-kafka-batch", b"0" if number < 4 else b"1"),
        )
        assert headers[3] == ("pyspark-kafka-index", b"%d" % ((number if number < 4 else number - 4) // 2))


@pytest.mark.parametrize("mode", ["overwrite", "ignore", "error"])
def test_no_save_mode_but_append_writes_anything(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, mode: str
) -> None:
    topic = make_topic()
    writer = spark.createDataFrame([("v",)], "value string").write.format("pyspark_kafka").mode(mode)
    with pytest.raises(Exception, match=r"(?i)overwrite|truncate|ignore|errorifexists"):
        writer.option("kafka.bootstrap.servers", bootstrap_servers).option("topic", topic).save()
    assert consume(bootstrap_servers, topic, 0) == []


def test_rows_that_choose_topic_and_partition_go_there(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    small, large = make_topic(), make_topic(partitions=3)
    rows = spark.createDataFrame(
        [(small, "a", 0), (large, "b", 2), (large, "c", 1), (small, "d", 0), (large, "e", 2)],
        "topic string, value string, partition int",
    )
    write(rows.coalesce(1), bootstrap_servers)
    placed = {
        topic: [(r.value, r.partition) for r in sorted(consume(bootstrap_servers, topic, n), key=lambda r: r.offset)]
        for topic, n in ((small, 2), (large, 3))
    }
    assert placed[small] == [(b"a", 0), (b"d", 0)]
    assert sorted(placed[large], key=lambda found: found[0] or b"") == [(b"b", 2), (b"c", 1), (b"e", 2)]


def test_a_partition_that_only_another_topic_has_is_refused(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    small, large = make_topic(), make_topic(partitions=3)
    rows = spark.createDataFrame([(large, "a", 2), (small, "b", 2)], "topic string, value string, partition int")
    with pytest.raises(Exception, match=rf"PARTITION_OUT_OF_RANGE\] Writing to topic '{small}'.*partition 2"):
        write(rows.coalesce(1), bootstrap_servers)


def test_names_of_columns_are_matched_with_their_case_and_others_have_no_effect(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    rows = spark.sql(
        "SELECT 'v' AS value, 'K' AS Key, 1L AS Partition, timestamp'2001-01-01 00:00:00' AS timestamp, 5 AS TOPIC"
    )
    before = time.time()
    write(rows, bootstrap_servers, topic=topic)
    (record,) = consume(bootstrap_servers, topic, 1)
    assert (record.key, record.value) == (None, b"v")
    assert (record.timestamp_ms or 0) >= int(before * 1000)


def test_a_topic_of_a_row_that_cannot_be_is_named(spark: SparkSession, bootstrap_servers: str) -> None:
    rows = spark.createDataFrame([("no/topic", "v")], "topic string, value string")
    with pytest.raises(Exception, match="no/topic"):
        write(rows, bootstrap_servers, **{"kafka.max.block.ms": "1000"})


@pytest.mark.parametrize(
    "codec", ["none", "zstd", *(pytest.param(each, marks=_FURTHER) for each in ("gzip", "snappy", "lz4"))]
)
def test_producer_options_have_javas_names(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, codec: str
) -> None:
    topic = make_topic(config={"min.insync.replicas": "1"})
    rows = spark.range(0, 2_000, numPartitions=1).selectExpr("repeat('x', 500) AS value")
    options = {
        "acks": "all",
        "linger.ms": "5",
        "batch.size": "65536",
        "max.request.size": "131072",
        "delivery.timeout.ms": "60000",
        "request.timeout.ms": "20000",
        "buffer.memory": str(4 << 20),
        "max.in.flight.requests.per.connection": "2",
        "enable.idempotence": "true",
        "compression.type": codec,
        "retries": "3",
    }
    levels = {"gzip": "9", "lz4": "9", "zstd": "7"}
    if codec in levels:
        options[f"compression.{codec}.level"] = levels[codec]
    write(rows, bootstrap_servers, topic=topic, **{f"kafka.{name}": value for name, value in options.items()})
    assert len(consume(bootstrap_servers, topic, 2_000)) == 2_000


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_rows_are_written_to_a_topic_that_takes_small_batches_only(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, guarantee: str
) -> None:
    topic = make_topic(partitions=2, config={"max.message.bytes": "20000"})
    rows = spark.range(0, 20_000, numPartitions=2).selectExpr(
        "CAST(id % 7 AS STRING) AS key", "concat(id, '-', repeat('x', 50)) AS value"
    )
    write(rows, bootstrap_servers, topic=topic, deliveryGuarantee=guarantee)
    records = consume(bootstrap_servers, topic, 20_000)
    numbers = [int((record.value or b"").split(b"-")[0]) for record in records]
    assert sorted(numbers) == list(range(20_000))
    in_order: dict[tuple[bytes | None, bool], list[int]] = {}
    for record in sorted(records, key=lambda record: (record.partition, record.offset)):
        number = int((record.value or b"").split(b"-")[0])
        in_order.setdefault((record.key, number < 10_000), []).append(number)
    assert all(found == sorted(found) for found in in_order.values())
