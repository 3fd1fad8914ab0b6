"""Patterns of times in JSON and those of Spark's from_json and to_json: the same moments, and the same texts."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pyspark_kafka.formats import decode, encode

# Of each pattern some texts of it. All patterns are compared on all texts.
TIMES = {
    "yyyy-MM-dd HH:mm:ss": ["2026-01-02 03:04:05", "0000-02-29 23:59:59", "2026-02-29 00:00:00", "2026-01-02 24:00:00"],
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]": [
        "2026-01-02T03:04:05",
        "2026-01-02t03:04:05.5z",
        "2026-01-02T03:04:05.123+02:00",
        "2026-01-02T03:04:05.1234Z",
        "2026-01-02T03:04:05-18:00",
        "2026-01-02T03:04:05+18:01",
        "2026-01-02T03:04:05+01:60",
    ],
    "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSX": ["2026-01-02T03:04:05.123456789+0230", "2026-01-02T03:04:05.9Z"],
    "yyyyMMddHHmmss": ["20260102030405", "00010101000000", "2026010203040", "202601020304055"],
    "yyyyMMdd": ["20260102", "20261301", "20260431"],
    "d/M/yyyy H:m:s": ["2/1/2026 3:4:5", "002/01/2026 03:04:05", "31/12/1969 23:59:59", "0/1/2026 3:4:5"],
    "dd.MM.yy HH:mm": ["02.01.26 03:04", "29.02.00 00:00", "02.01.99 03:04"],
    "dd/MMM/yyyy:HH:mm:ss Z": [
        "02/Jan/2026:03:04:05 +0200",
        "02/jan/2026:03:04:05 -0130",
        "02/January/2026:03:04:05 +0000",
    ],
    "MMMM d, y h:mm a": [
        "January 2, 2026 3:04 PM",
        "may 31, 26 12:59 am",
        "January 2, 2026 13:04 PM",
        "May 1, 1 0:00 AM",
    ],
    "hh:mm:ss": ["12:00:00", "03:04:05", "13:04:05"],
    "HH:mm": ["03:04"],
    "yyyy-MM-dd HH:mm:ssxx": ["2026-01-02 03:04:05+0000", "2026-01-02 03:04:05Z"],
    "yyyy-MM-dd HH:mm:ssxxx": ["2026-01-02 03:04:05-00:30"],
    "yyyy-MM-dd HH:mm:ss ZZZZZ": ["2026-01-02 03:04:05 Z", "2026-01-02 03:04:05 +05:30"],
    "yyyy-MM-dd HH:mm:ss VV": [
        "2026-01-02 03:04:05 Europe/Paris",
        "2026-03-29 02:30:00 Europe/Paris",
        "2026-10-25 02:30:00 Europe/Paris",
        "2026-01-02 03:04:05 Mars/Base",
        "2026-01-02 03:04:05 UTC",
    ],
    "'at'' 'yyyy": ["at' 2026", "at' 20260"],
    "yyyy[-MM[-dd]]": ["2026", "2026-05", "2026-05-06", "2026-"],
}
DATES = {
    "dd.MM.yyyy": ["02.01.2026", "31.04.2026", "2.1.2026"],
    "d MMM yy": ["2 Jan 26", "02 feb 99"],
    "yyyyMMdd": ["20260102", "2026010"],
    "yyyy[-MM]": ["2026", "2026-07"],
}
WRITTEN = ["2026-01-02T03:04:05.123456", "1969-12-31T12:59:59.999999", "0001-01-01T00:00:00", "9999-12-31T23:59:59"]


def test_patterns_read_and_write_what_sparks_functions_do(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")
    compare(session, "TIMESTAMP", "timestampFormat", TIMES, [f"{text}Z" for text in WRITTEN])
    compare(session, "DATE", "dateFormat", DATES, [text[:10] for text in WRITTEN])


def compare(session: SparkSession, kind: str, option: str, table: dict[str, list[str]], written: list[str]) -> None:
    texts = [*dict.fromkeys(text for each in table.values() for text in each), "", "x"]
    documents = [json.dumps({"v": text}) for text in texts]
    number, whole = ("unix_micros", pa.int64()) if kind == "TIMESTAMP" else ("unix_date", pa.int32())
    read = [F.call_function(number, F.from_json("t", f"v {kind}", {option: pattern})["v"]) for pattern in table]
    frame = session.createDataFrame(list(enumerate(documents)), "n INT, t STRING")
    theirs = frame.orderBy("n").select(*read).collect()
    made = session.createDataFrame([(text,) for text in written], "t STRING").select(F.col("t").cast(kind).alias("v"))
    wrote = made.select(*[F.to_json(F.struct("v"), {option: pattern}) for pattern in table]).collect()
    column = decode(pa.array([json.dumps({"v": text}) for text in written]), "json", schema=f"v {kind}").column
    for at, pattern in enumerate(table):
        argument: dict[str, Any] = {"timestamp_format" if kind == "TIMESTAMP" else "date_format": pattern}
        found = decode(pa.array(documents), "json", schema=f"v {kind}", on_bad="null", **argument)
        numbers = pc.struct_field(found.column, "v").cast(whole).to_pylist()
        expected = {text: row[at] for text, row in zip(texts, theirs, strict=True)}
        assert (pattern, dict(zip(texts, numbers, strict=True))) == (pattern, expected)
        assert [each.row for each in found.bad] == [row for row, value in enumerate(numbers) if value is None]
        assert [text.decode() for text in encode(column, "json", **argument).to_pylist()] == [row[at] for row in wrote]
