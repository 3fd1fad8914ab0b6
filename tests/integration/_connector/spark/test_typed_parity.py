"""Typed columns and Spark's from_json on the same topic: the same rows, but for the differences of docs/parity.md."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.parity_page import Difference, differences, shown
from pyspark_kafka.formats import decode

DDL = (
    "id BIGINT, number INT, name STRING, ratio DOUBLE, share FLOAT, ok BOOLEAN, at TIMESTAMP, day DATE, "
    "price DECIMAL(10, 2), local TIMESTAMP_NTZ, inner STRUCT<x: DOUBLE, note: STRING>, tags ARRAY<STRING>, "
    "counts MAP<STRING, BIGINT>"
)


def read_both(spark: SparkSession, servers: str, topic: str) -> tuple[list[Any], list[Any]]:
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    typed = reader.options(valueFormat="json", valueSchema=DDL, mode="PERMISSIVE").load()
    ours = typed.select("offset", "value", "_corrupt_record.reason").orderBy("offset").collect()
    value = F.from_json(F.col("value").cast("string"), DDL).alias("value")
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    theirs = reader.load().select("offset", value).orderBy("offset").collect()
    return ours, theirs


def row(draw: random.Random) -> dict[str, Any]:
    text = draw.choice(("", "a", "naïve € \U0001f980", 'a "b" \\ /\n\t', "12"))
    full = {
        "id": draw.choice((0, -1, (1 << 63) - 1, -(1 << 63), draw.randrange(1 << 40))),
        "number": draw.choice((0, (1 << 31) - 1, -(1 << 31), 5)),
        "name": text,
        "ratio": draw.choice((0.0, -0.5, 1e300, 5e-324, 3, draw.random())),
        "share": draw.choice((0.5, -1.25, 3)),
        "ok": draw.random() < 0.5,
        "at": draw.choice(("2026-11-22T18:30:00Z", "2026-11-22T18:30:00.123456Z", "2026-11-22T18:30:00.5+02:00")),
        "day": draw.choice(("2026-11-22", "1969-12-31")),
        "price": draw.choice((1.25, 99999999.99, -3, 0)),
        "inner": draw.choice(({}, {"x": 1.5, "note": text}, {"note": None, "more": [1, {"a": 2}]})),
        "tags": [text] * draw.randrange(3),
        "counts": {f"k{number}": number for number in range(draw.randrange(3))},
        "unknown": {"a": [1, 2, {"b": None}]},
    }
    kept = [name for name in full if draw.random() < 0.8]
    draw.shuffle(kept)
    return {name: None if draw.random() < 0.1 else full[name] for name in kept}


def test_rows_are_those_of_from_json(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    draw = random.Random(5)
    texts = [json.dumps(row(draw), indent=draw.choice((None, 2)), ensure_ascii=draw.random() < 0.5) for _ in range(500)]
    produce(bootstrap_servers, topic, [Record(None, text.encode()) for text in texts] + [Record(b"gone", None)])
    ours, theirs = read_both(spark, bootstrap_servers, topic)
    assert [each.reason for each in ours] == [None] * 501
    for mine, other, text in zip(ours, theirs, [*texts, "null"], strict=True):
        assert mine.value == other.value, text


def test_differences_from_from_json_are_those_of_the_page(spark: SparkSession) -> None:
    """What is read here is in tests/unit/_typed/codecs/test_parity_doc.py."""
    rows = differences()
    # One row with a column for each.
    found = spark.range(1).select(*(from_json(each, number) for number, each in enumerate(rows))).collect()[0]
    for number, each in enumerate(rows):
        assert (each, shown_row(found[f"r{number}"])) == (each, each.theirs)


def shown_row(found: Any) -> str:
    """Return a row as the page shows it."""
    if found["n"]:
        return "null"
    return shown(found["v"])


def from_json(row: Difference, number: int) -> Any:
    """Return the columns of a row: whether all of it is null, and the value."""
    parsed = F.from_json(F.lit(row.document), f"v {row.kind}")
    value = parsed["v"]
    if row.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        # Python has no year 10000, and another zone.
        value = value.cast("string")
    return F.struct(parsed.isNull().alias("n"), value.alias("v")).alias(f"r{number}")


def test_invalid_utf8_is_bad_and_a_long_name_readable_unlike_with_from_json(spark: SparkSession) -> None:
    texts = [b'{"v": 1, "x": "\xff"}', b'{"%s": 1, "v": 1}' % (b"x" * 50_001)]
    found = spark.createDataFrame([(each,) for each in texts], "value BINARY")
    parsed = found.select(F.from_json(F.col("value").cast("string"), "v INT")["v"]).collect()
    ours = decode(pa.array(texts), "json", schema="v INT", on_bad="null").column.to_pylist()
    assert ([each[0] for each in parsed], ours) == ([1, None], [None, {"v": 1}])


def test_time_without_an_offset_is_in_utc_and_for_from_json_in_the_zone_of_the_session(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b'{"at": "2026-01-01T00:00:00"}')])
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    reader = reader.option("subscribe", topic)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        typed = reader.options(valueFormat="json", valueSchema="at TIMESTAMP").load()
        ours = typed.selectExpr("unix_seconds(value.at)").collect()
        plain = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        parsed = F.from_json(F.col("value").cast("string"), "at TIMESTAMP")
        theirs = plain.option("subscribe", topic).load().select(F.unix_seconds(parsed["at"])).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    midnight = int(dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc).timestamp())
    assert (ours[0][0], theirs[0][0]) == (midnight, midnight + 5 * 3600)
