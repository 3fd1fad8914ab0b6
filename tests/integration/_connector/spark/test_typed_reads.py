"""Keys and values as typed columns through Spark: batch, micro-batch, continuous, classic and Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.programs.run import run_connect_program
from pyspark_kafka import continuous
from pyspark_kafka._connector.spark.kafka_source import KafkaSource
from pyspark_kafka.errors import RecordError

DDL = "id BIGINT, name STRING, price DOUBLE"
JSON = {"valueFormat": "json", "valueSchema": DDL}


def document(number: int) -> bytes:
    return json.dumps({"id": number, "name": f"n{number}", "price": number / 2}).encode()


def documents(first: int, last: int, partitions: int = 1) -> list[Record]:
    return [Record(b"k%d" % i, document(i), partition=i % partitions) for i in range(first, last)]


def read(spark: SparkSession, servers: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).options(**{**JSON, **options}).load()


def stream(spark: SparkSession, servers: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    given = {"subscribe": topic, "startingOffsets": "earliest", **JSON, **options}
    return reader.options(**given).load()


def test_batch_read_has_values_as_a_table(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [*documents(0, 50, 2), Record(b"gone", None, partition=0)])
    frame = read(spark, bootstrap_servers, topic)
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,name:string,price:double>"
    rows = sorted(tuple(row) for row in frame.where("value IS NOT NULL").select("value.*").collect())
    assert rows == [(i, f"n{i}", i / 2) for i in range(50)]
    (gone,) = frame.where("value IS NULL").select("key", "partition", "offset").collect()
    assert (bytes(gone.key), gone.partition, gone.offset) == (b"gone", 0, 25)
    assert [row[0] for row in frame.agg({"value.price": "sum"}).collect()] == [sum(range(50)) / 2]


def test_a_part_of_the_fields_is_read_with_a_narrower_schema(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, documents(0, 10))
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    reader = reader.options(subscribe=topic, **JSON).schema("offset BIGINT, value STRUCT<price: DOUBLE, id: BIGINT>")
    assert [tuple(row) for row in reader.load().select("offset", "value.*").orderBy("offset").collect()] == [
        (i, i / 2, i) for i in range(10)
    ]


def test_keys_and_values_of_several_topics_are_typed_at_once(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    first, second = make_topic(), make_topic()
    produce(bootstrap_servers, first, [Record(b"a", b'{"id": 1, "only_here": true}')])
    produce(bootstrap_servers, second, [Record(b"b", b'{"name": "two", "id": 2}'), Record(b"gone", None)])
    frame = read(spark, bootstrap_servers, f"{first},{second}", keyFormat="string", includeHeaders="true")
    rows = frame.orderBy("value.id").select("key", "value", "headers").collect()
    assert [(row.key, row.value and tuple(row.value)) for row in rows] == [
        ("gone", None),
        ("a", (1, None, None)),
        ("b", (2, "two", None)),
    ]


BAD = {3: b"{", 7: b"", 8: b'{"id": "x"}'}


def with_bad(count: int) -> list[Record]:
    return [Record(b"k%d" % i, BAD.get(i, document(i))) for i in range(count)]


def test_permissive_has_bad_records_in_a_column_of_their_own(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, with_bad(10))
    frame = read(spark, bootstrap_servers, topic, mode="PERMISSIVE", columnNameOfCorruptRecord="bad")
    found = {row.offset: row for row in frame.collect()}
    assert len(found) == 10
    for offset, row in found.items():
        if offset in BAD:
            assert row.value is None
            assert (row.bad.column, bytes(row.bad.rawKey), bytes(row.bad.rawValue)) == (
                "value",
                b"k%d" % offset,
                BAD[offset],
            )
        else:
            assert (row.bad, row.value.id) == (None, offset)
    assert [found[offset].bad.reason for offset in BAD] == ["DECODE_FAILED", "DECODE_FAILED", "TYPE_MISMATCH"]


def test_a_read_with_too_many_bad_records_fails(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, with_bad(10))
    with pytest.raises(Exception, match=r"\[TOO_MANY_BAD_RECORDS\] 3 of 10 records"):
        read(spark, bootstrap_servers, topic, mode="DROPMALFORMED", maxCorruptRatio="0.2").collect()
    assert read(spark, bootstrap_servers, topic, mode="DROPMALFORMED", maxCorruptRatio="0.3").count() == 7


def test_micro_batches_are_typed_and_the_same_after_a_restart(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, documents(0, 40, 2))

    def run(checkpoint: str, out: str) -> list[tuple[int, str]]:
        rows = stream(spark, bootstrap_servers, topic, maxOffsetsPerTrigger="15").select("value.*", "offset")
        query = rows.writeStream.format("parquet").option("path", str(tmp_path / out))
        query = query.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        query.start().awaitTermination()
        schema = "id BIGINT, name STRING, price DOUBLE, offset BIGINT"
        return sorted((row.id, row.name) for row in spark.read.schema(schema).parquet(str(tmp_path / out)).collect())

    assert run("checkpoint", "out") == [(i, f"n{i}") for i in range(40)]
    produce(bootstrap_servers, topic, documents(40, 60, 2))
    assert run("checkpoint", "out") == [(i, f"n{i}") for i in range(60)]


def test_a_micro_batch_that_runs_again_has_the_same_rows(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """The query dies after its batch was written, and before Spark has committed it."""
    topic = make_topic()
    produce(bootstrap_servers, topic, with_bad(30))
    seen: list[list[tuple[int, int | None, str | None]]] = []

    def note(batch: DataFrame, _: int) -> None:
        rows = batch.selectExpr("offset", "value.id", "_corrupt_record.reason").orderBy("offset").collect()
        seen.append([tuple(row) for row in rows])
        if len(seen) == 1:
            raise RuntimeError("the query dies")

    def run() -> None:
        rows = stream(spark, bootstrap_servers, topic, mode="PERMISSIVE")
        query = rows.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="the query dies"):
        run()
    produce(bootstrap_servers, topic, documents(30, 35))
    run()
    assert seen[0] == seen[1]
    assert [row[0] for row in seen[0]] == list(range(30))
    assert [row[0] for row in seen[0] if row[2]] == sorted(BAD)
    assert [row[0] for row in seen[2]] == list(range(30, 35))


_CONNECT = """
import sys
from pyspark.sql import SparkSession

servers, topic, place, ddl = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest",
           "valueFormat": "json", "valueSchema": ddl}
batch = spark.read.format("pyspark_kafka").options(**options).load()
print("batch", batch.select("value.*").agg({"id": "sum"}).first()[0], batch.schema["value"].dataType.simpleString())
query = (spark.readStream.format("pyspark_kafka").options(**options).load().select("value.*")
         .writeStream.format("parquet").option("path", place + "/out")
         .option("checkpointLocation", place + "/checkpoint")
         .trigger(availableNow=True).start())
query.awaitTermination()
rows = spark.read.schema("id BIGINT, name STRING").parquet(place + "/out").collect()
print("stream", sum(row.id for row in rows), len(rows))
spark.stop()
"""


@pytest.mark.full("Spark Connect")
def test_typed_reads_work_on_spark_connect(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, documents(0, 30, 2))
    said = run_connect_program(_CONNECT, bootstrap_servers, topic, str(tmp_path), DDL, place=tmp_path)
    assert f"batch {sum(range(30))} struct<id:bigint,name:string,price:double>" in said
    assert f"stream {sum(range(30))} 30" in said


def to_text(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        ids = batch.column("value").field("id").to_pylist()
        yield pa.RecordBatch.from_arrays([pa.array([str(each) for each in ids])], names=["value"])


@pytest.fixture
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions of this module with the code: Spark's workers do not find it."""
    cloudpickle.register_pickle_by_value(request.module)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(request.module)  # type: ignore[no-untyped-call]


def run_continuous(spark: SparkSession, servers: str, source: str, target: str, place: Path, **options: str) -> None:
    reader = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.options(subscribe=source, startingOffsets="earliest", **JSON, **options)
    writer = reader.load().mapInArrow(to_text, "value STRING").writeStream.format("pyspark_kafka")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target).option("maxFailures", "0")
    writer = writer.option("checkpointLocation", str(place)).option("tasks", "2").trigger(availableNow=True)
    query = writer.start()
    assert query.awaitTermination(300)


@pytest.mark.usefixtures("by_value")
def test_continuous_query_reads_typed_values_past_partitions_of_bad_ones(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic()
    bad = [Record(b"bad", b"{", partition=0), *(Record(b"bad", b"[", partition=2) for _ in range(5))]
    produce(bootstrap_servers, source, [*documents(0, 30, 2), *bad])
    run_continuous(spark, bootstrap_servers, source, target, tmp_path, mode="DROPMALFORMED")
    assert sorted(int(record.value or b"") for record in consume(bootstrap_servers, target, 30)) == list(range(30))


@pytest.mark.usefixtures("by_value")
def test_continuous_query_fails_at_a_bad_record(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, with_bad(10))
    with pytest.raises(RecordError, match=r"\[BAD_RECORD\] .*The value of the record at offset 3 of " + source):
        run_continuous(spark, bootstrap_servers, source, target, tmp_path)


EVERY_TYPE = (
    "flag BOOLEAN, tiny TINYINT, small SMALLINT, n INT, id BIGINT, f FLOAT, d DOUBLE, price DECIMAL(10,2), day DATE, "
    "at TIMESTAMP, local TIMESTAMP_NTZ, text STRING, raw BINARY, tags ARRAY<STRING>, "
    "lines ARRAY<STRUCT<sku: STRING, n: INT>>, counts MAP<STRING, BIGINT>, "
    "inner STRUCT<a: INT, deep: STRUCT<b: STRING>>"
)


def test_values_of_every_type_reach_spark(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    value = {
        "flag": True, "tiny": 1, "small": 2, "n": 3, "id": 4, "f": 0.5, "d": 0.25, "price": 12.34, "day": "2026-11-22",
        "at": "2026-11-22T10:00:00.123456Z", "local": "2026-11-22T10:00:00", "text": "täxt", "raw": "AAEC",
        "tags": ["a", None], "lines": [{"sku": "s", "n": 1}, {"n": 2}], "counts": {"x": 1},
        "inner": {"a": 1, "deep": {"b": "c"}},
    }  # fmt: skip
    produce(bootstrap_servers, topic, [Record(None, json.dumps(value).encode()), Record(None, b"{}")])
    frame = read(spark, bootstrap_servers, topic, valueSchema=EVERY_TYPE)
    expected = spark.createDataFrame([], EVERY_TYPE).schema
    assert frame.select("value.*").schema == expected
    full, empty = (row.value.asDict(recursive=True) for row in frame.orderBy("offset").select("value").collect())
    assert set(empty.values()) == {None}
    assert full == {
        "flag": True, "tiny": 1, "small": 2, "n": 3, "id": 4, "f": 0.5, "d": 0.25, "price": Decimal("12.34"),
        "day": date(2026, 11, 22), "at": datetime.fromisoformat("2026-11-22T10:00:00.123456"),
        "local": datetime.fromisoformat("2026-11-22T10:00:00"), "text": "täxt", "raw": bytearray(b"\x00\x01\x02"),
        "tags": ["a", None], "lines": [{"sku": "s", "n": 1}, {"sku": None, "n": 2}], "counts": {"x": 1},
        "inner": {"a": 1, "deep": {"b": "c"}},
    }  # fmt: skip


def test_pushed_filters_narrow_a_typed_read_by_offsets_alone(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    """Fields of values may have the names of columns that filters are pushed for."""
    topic = make_topic()
    values = [b'{"offset": %d, "partition": 7}' % (100 - i) for i in range(20)]
    produce(bootstrap_servers, topic, [Record(None, value) for value in values])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read(
            spark, bootstrap_servers, topic, valueSchema="offset BIGINT, partition INT", pushDownPredicate="true"
        )
        found = frame.where("offset >= 5 AND value.offset > 90 AND value.partition = 7 AND value IS NOT NULL")
        assert sorted(row.offset for row in found.select("offset").collect()) == [5, 6, 7, 8, 9]
        assert found.where("value.offset = offset").count() == 0
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_kafka_source_has_batches_of_typed_values(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, documents(0, 10))
    given = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest", **JSON}
    source = KafkaSource(spark, {**given, "maxOffsetsPerTrigger": "6"})
    end = source.latestOffset()
    assert end is not None
    batch = source.getBatch(None, end)
    assert batch.schema == source.schema()
    assert sorted(row.id for row in batch.select("value.*").collect()) == list(range(6))
    source.stop()
