"""Columns of any DataFrame decoded and encoded with `mapInArrow`, on a classic session and on Spark Connect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka.formats import decode_column, encode_column

SCHEMA = "id BIGINT, tags ARRAY<STRING>, at TIMESTAMP, m MAP<STRING, STRUCT<x: DOUBLE>>"
DOCUMENT = {"id": 1, "tags": ["a", None], "at": "2026-11-22T18:00:00Z", "m": {"k": {"x": 0.5}}}


def test_columns_are_decoded_as_from_json_does_and_encoded_again(either_session: SparkSession) -> None:
    rows = [(1, json.dumps(DOCUMENT)), (2, None), (3, '{"id": 3}')]
    df = either_session.createDataFrame(rows, "n INT, value STRING").repartition(2)
    decoding = decode_column("value", "json", schema=SCHEMA)
    decoded = df.mapInArrow(decoding, decoding.output_schema(df.schema))
    expected = df.selectExpr("n", f"from_json(value, '{SCHEMA}') AS value")
    assert decoded.schema == expected.schema
    assert decoded.orderBy("n").collect() == expected.orderBy("n").collect()
    encoding = encode_column("value", "json")
    encoded = decoded.mapInArrow(encoding, encoding.output_schema(decoded.schema))
    found = {row["n"]: row["value"] for row in encoded.collect()}
    assert found[2] is None
    assert json.loads(bytes(found[3])) == {"id": 3}


def test_bad_values_of_any_source_become_dead_letters(either_session: SparkSession) -> None:
    df = either_session.sql(
        "SELECT CAST('k' AS BINARY) AS key, CAST('{' AS BINARY) AS value, 't' AS topic, 3 AS partition, 7L AS offset"
    )
    decoding = decode_column("value", "json", schema="id BIGINT", on_bad="null", corrupt_column="_corrupt_record")
    typed = df.mapInArrow(decoding, decoding.output_schema(df.schema))
    (letter,) = pyspark_kafka.dead_letters(typed, topic="dead").collect()
    assert (letter["topic"], bytes(letter["key"]), bytes(letter["value"])) == ("dead", b"k", b"{")
    headers = {each["key"]: bytes(each["value"]) for each in letter["headers"]}
    assert headers["__connect.errors.offset"] == b"7"
    assert headers["__connect.errors.exception.class.name"] == b"DECODE_FAILED"


def test_a_stream_is_decoded(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text('{"id":1}\n{"id":2}\n')
    lines = spark.readStream.text(str(tmp_path / "in"))
    decoding = decode_column("value", "json", schema="id BIGINT")
    rows = lines.mapInArrow(decoding, decoding.output_schema(lines.schema)).select("value.*")
    writer = rows.writeStream.format("json").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert sorted(row["id"] for row in spark.read.json(str(tmp_path / "out")).collect()) == [1, 2]


def test_a_bad_value_fails_the_task_and_names_its_record(spark: SparkSession) -> None:
    df = spark.sql("SELECT '{' AS value, 't' AS topic, 3 AS partition, 7L AS offset")
    decoding = decode_column("value", "json", schema="id BIGINT")
    with pytest.raises(
        Exception, match=r"\[VALUE_NOT_DECODABLE\] The record at offset 7 of t-3 cannot be read as json"
    ):
        df.mapInArrow(decoding, decoding.output_schema(df.schema)).collect()
