"""Arrays decoded and encoded inside `mapInArrow`, on a classic session and on Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, tags ARRAY<STRING>, at TIMESTAMP, m MAP<STRING, STRUCT<x: DOUBLE>>"
DOCUMENT = {"id": 1, "tags": ["a", None], "at": "2026-11-22T18:00:00Z", "m": {"k": {"x": 0.5}}}


def test_arrays_are_decoded_as_from_json_does_and_encoded_again(either_session: SparkSession) -> None:
    # Inside, because executors have no module of tests.
    def decoded_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark_kafka.formats import decode  # noqa: PLC0415

        for batch in batches:
            value = decode(batch["value"], "json", schema=SCHEMA).column
            yield pa.RecordBatch.from_arrays([batch["n"], value], ["n", "value"])

    def encoded_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark_kafka.formats import encode  # noqa: PLC0415

        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch["n"], encode(batch["value"], "json")], ["n", "value"])

    rows = [(1, json.dumps(DOCUMENT)), (2, None), (3, '{"id": 3}')]
    df = either_session.createDataFrame(rows, "n INT, value STRING").repartition(2)
    decoded = df.mapInArrow(decoded_rows, f"n INT, value STRUCT<{SCHEMA}>")
    expected = df.selectExpr("n", f"from_json(value, '{SCHEMA}') AS value")
    assert decoded.orderBy("n").collect() == expected.orderBy("n").collect()
    found = {row["n"]: row["value"] for row in decoded.mapInArrow(encoded_rows, "n INT, value BINARY").collect()}
    assert found[2] is None
    assert json.loads(bytes(found[3])) == {"id": 3}
