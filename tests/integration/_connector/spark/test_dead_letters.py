"""Dead letters and the way back as expressions: exact headers, on a classic session and on Spark Connect."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyspark_kafka
from pyspark_kafka.errors import OptionError, SchemaError

_CORRUPT = "struct<column:string,reason:string,message:string,schemaId:string,rawKey:binary,rawValue:binary>"
_HEADERS = "array<struct<key:string,value:binary>>"
_SCHEMA = (
    f"key binary, value struct<id:int>, topic string, partition int, offset bigint, timestamp timestamp, "
    f"headers {_HEADERS}, _corrupt_record {_CORRUPT}"
)
_TIME = datetime(2026, 11, 22, 18, 0, 0, 123000, timezone.utc)
_MS = b"1795370400123"
_MESSAGE = "the value of field 'id' has another type"
_FAULT = ("value", "TYPE_MISMATCH", _MESSAGE, "7", b"k", b"\x00{}")


def row(
    headers: Sequence[tuple[str, bytes]] | None = None, fault: tuple[Any, ...] | None = _FAULT, offset: int = 42
) -> tuple[Any, ...]:
    value = None if fault else (1,)
    return (b"k", value, "orders", 3, offset, _TIME, headers, fault)


def typed(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), _SCHEMA)


def headers_of(found: Any) -> list[tuple[str, bytes]]:
    return [(each["key"], bytes(each["value"])) for each in found["headers"]]


def connect_fault(reason: bytes = b"TYPE_MISMATCH", message: bytes = _MESSAGE.encode()) -> list[tuple[str, bytes]]:
    return [
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"pyspark_kafka"),
        ("__connect.errors.exception.class.name", reason),
        ("__connect.errors.exception.message", message),
    ]


def coordinates(topic: bytes, partition: bytes, offset: bytes, prefix: str = "__connect.errors.") -> list[Any]:
    return [(prefix + "topic", topic), (prefix + "partition", partition), (prefix + "offset", offset)]


def test_dead_letters_are_the_bad_rows_with_headers_of_kafka_connect(either_session: SparkSession) -> None:
    df = typed(either_session, row(fault=None, offset=41), row([("trace", b"\x01")]), row(None, offset=43))
    letters = pyspark_kafka.dead_letters(df, topic="it's `dead`")
    assert letters.columns == ["topic", "key", "value", "headers"]
    first, second = letters.collect()
    assert (first["topic"], bytes(first["key"]), bytes(first["value"])) == ("it's `dead`", b"k", b"\x00{}")
    time = [("__connect.errors.timestamp", _MS)]
    assert headers_of(first) == [("trace", b"\x01"), *coordinates(b"orders", b"3", b"42"), *time, *connect_fault()]
    assert headers_of(second) == [*coordinates(b"orders", b"3", b"43"), *time, *connect_fault()]


def test_dead_letters_have_headers_of_kafka_streams(either_session: SparkSession) -> None:
    df = typed(either_session, row()).drop("headers", "timestamp")
    (found,) = pyspark_kafka.dead_letters(df, topic="dead", headers="streams").collect()
    prefix = "__streams.errors."
    fault = [(prefix + "exception", b"TYPE_MISMATCH"), (prefix + "message", _MESSAGE.encode())]
    assert headers_of(found) == [*coordinates(b"orders", b"3", b"42", prefix), *fault]


def test_a_bad_key_and_nulls_are_written_as_they_are(spark: SparkSession) -> None:
    df = typed(spark, row(fault=("key", "DECODE_FAILED", None, None, b"\xff", None)))
    (found,) = pyspark_kafka.dead_letters(df, topic="dead").collect()
    assert (bytes(found["key"]), found["value"]) == (b"\xff", None)
    headers = dict(headers_of(found))
    assert headers["__connect.errors.stage"] == b"KEY_CONVERTER"
    assert headers["__connect.errors.exception.message"] == b""


@pytest.mark.parametrize("letter", ["a", "ü", "€", "😀"])
def test_messages_are_cut_between_characters(spark: SparkSession, letter: str) -> None:
    df = typed(spark, row(fault=("value", "DECODE_FAILED", "x" + letter * 2000, None, None, b"")))
    (found,) = pyspark_kafka.dead_letters(df, topic="dead").collect()
    message = dict(headers_of(found))["__connect.errors.exception.message"]
    assert message == ("x" + letter * ((1024 - 1) // len(letter.encode()))).encode()


def test_a_record_that_was_a_dead_letter_before_keeps_its_first_coordinates(spark: SparkSession) -> None:
    first = [*coordinates(b"first", b"0", b"1"), *connect_fault(b"DECODE_FAILED", b"earlier")]
    df = typed(spark, row([("own", b"1"), *first]))
    (found,) = pyspark_kafka.dead_letters(df, topic="dead").collect()
    assert headers_of(found) == [("own", b"1"), *coordinates(b"first", b"0", b"1"), *connect_fault()]


@pytest.mark.parametrize("topic", [b"", None, b"no topic", b"a\n", b"..", b"a/b", b"\xff", b"x" * 250])
def test_headers_that_name_no_topic_are_replaced_by_the_true_coordinates(spark: SparkSession, topic: Any) -> None:
    df = typed(spark, row([("own", b"1"), *coordinates(topic, b"0", b"1")])).drop("timestamp")
    (found,) = pyspark_kafka.dead_letters(df, topic="dead").collect()
    assert headers_of(found) == [("own", b"1"), *coordinates(b"orders", b"3", b"42"), *connect_fault()]


def test_other_names_of_the_corrupt_column_are_used(spark: SparkSession) -> None:
    df = typed(spark, row()).withColumnRenamed("_corrupt_record", "bad `one`")
    assert pyspark_kafka.dead_letters(df, topic="dead", corrupt_column="bad `one`").count() == 1


def test_good_rows_and_dead_letters_become_one_dataframe(either_session: SparkSession) -> None:
    df = typed(either_session, row(fault=None, offset=41), row([("trace", b"1")]))
    good = ["'orders.big' AS topic", "CAST(value.id AS STRING) AS key", "to_json(value) AS value", "1 AS partition"]
    rows = pyspark_kafka.with_dead_letters(df, good, topic="orders.dead")
    assert dict(rows.dtypes) == {
        "topic": "string", "key": "binary", "value": "binary", "headers": _HEADERS, "partition": "int",
    }  # fmt: skip
    first, second = rows.collect()
    assert (first["topic"], bytes(first["key"]), bytes(first["value"])) == ("orders.big", b"1", b'{"id":1}')
    assert (first["headers"], first["partition"]) == (None, 1)
    assert (second["topic"], bytes(second["key"]), bytes(second["value"])) == ("orders.dead", b"k", b"\x00{}")
    assert second["partition"] is None
    assert headers_of(second)[:2] == [("trace", b"1"), ("__connect.errors.topic", b"orders")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda df: df.drop("_corrupt_record"), "column '_corrupt_record' is missing"),
        (lambda df: df.select("_corrupt_record"), "column 'topic' is missing; column 'partition' is missing"),
        (
            lambda df: df.selectExpr("* EXCEPT (offset)", "'1' AS offset"),
            "column 'offset' is string and must be bigint",
        ),
        (
            lambda df: df.selectExpr("* EXCEPT (_corrupt_record)", "'{}' AS _corrupt_record"),
            "column '_corrupt_record.column' is missing",
        ),
    ],
)
def test_columns_that_do_not_fit_are_named(spark: SparkSession, change: Any, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        pyspark_kafka.dead_letters(change(typed(spark, row())), topic="dead")
    assert expected in str(caught.value)
    assert '.option("mode", "PERMISSIVE")' in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"topic": ""}, "Argument 'topic' is ''"),
        ({"topic": "dead", "headers": "spring"}, "Argument 'headers' is 'spring', and must be 'connect' or 'streams'"),
    ],
)
def test_arguments_that_are_wrong_are_refused(spark: SparkSession, arguments: Any, expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        pyspark_kafka.dead_letters(typed(spark, row()), **arguments)


@pytest.mark.parametrize(
    ("good", "expected"),
    [
        (["to_json(value) AS value"], "column 'topic' is missing"),
        (["'t' AS topic", "value"], "column 'value' is struct<id:int> and must be string or binary"),
        ("'t' AS topic", "must be a list of SQL expressions"),
    ],
)
def test_good_columns_that_cannot_be_written_are_named(spark: SparkSession, good: Any, expected: str) -> None:
    with pytest.raises((SchemaError, OptionError)) as caught:
        pyspark_kafka.with_dead_letters(typed(spark, row()), good, topic="dead")
    assert expected in str(caught.value)


def dead(spark: SparkSession, *rows: Sequence[tuple[str, bytes]] | None) -> DataFrame:
    """Return a read of a topic of dead letters with these headers."""
    records = [(b"k", b"v", "dead", 0, offset, _TIME, headers) for offset, headers in enumerate(rows)]
    return spark.createDataFrame(
        records,
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
        f"headers {_HEADERS}",
    )


def test_redriven_rows_go_where_they_came_from_without_the_headers_of_the_fault(either_session: SparkSession) -> None:
    again = [("own", b"1"), *coordinates(b"orders", b"3", b"42"), *connect_fault(), ("last", b"")]
    (found,) = pyspark_kafka.redrive(dead(either_session, again), keep_partition=True).collect()
    assert (found["topic"], found["partition"]) == ("orders", 3)
    assert (bytes(found["key"]), bytes(found["value"])) == (b"k", b"v")
    assert headers_of(found) == [("own", b"1"), ("last", b"")]
    about = [found[name] for name in ("reason", "message", "origin_partition", "origin_offset", "dead_offset")]
    assert about == ["TYPE_MISMATCH", _MESSAGE, 3, 42, 0]


def test_dead_letters_come_back_as_the_records_that_they_were(spark: SparkSession) -> None:
    letters = pyspark_kafka.dead_letters(typed(spark, row([("own", b"1")])), topic="dead", headers="streams")
    read = letters.selectExpr("*", "0 AS partition", "0L AS offset")
    (found,) = pyspark_kafka.redrive(read, headers="streams").collect()
    assert (found["topic"], bytes(found["key"]), bytes(found["value"])) == ("orders", b"k", b"\x00{}")
    assert headers_of(found) == [("own", b"1")]
    assert "partition" not in found.asDict()


_NO_ORIGIN = "it has no header '__connect.errors.topic'"
_NO_NAME = "its header '__connect.errors.topic' holds no name of a topic"
_ITSELF = "its header '__connect.errors.topic' names the topic of dead letters itself"
_NO_PARTITION = "its header '__connect.errors.partition' is missing or holds no partition"
UNKNOWN: list[tuple[Any, str]] = [
    (None, _NO_ORIGIN),
    ([("own", b"1")], _NO_ORIGIN),
    ([("__connect.errors.topic", b"")], _NO_ORIGIN),
    ([("__connect.errors.topic", b"a b")], _NO_NAME),
    ([("__connect.errors.topic", b".")], _NO_NAME),
    ([("__connect.errors.topic", b"..")], _NO_NAME),
    ([("__connect.errors.topic", b"orders\n")], _NO_NAME),
    ([("__connect.errors.topic", b"\xff")], _NO_NAME),
    ([("__connect.errors.topic", b"x" * 250)], _NO_NAME),
    ([("__connect.errors.topic", b"dead")], _ITSELF),
    ([("__connect.errors.topic", b"orders")], _NO_PARTITION),
    (coordinates(b"orders", b"-1", b"0"), _NO_PARTITION),
    (coordinates(b"orders", b"\xff", b"0"), _NO_PARTITION),
]


@pytest.mark.parametrize(("headers", "problem"), UNKNOWN)
def test_a_record_without_an_origin_fails_the_query(spark: SparkSession, headers: Any, problem: str) -> None:
    df = dead(spark, coordinates(b"orders", b"0", b"1"), headers)
    with pytest.raises(Exception, match="DEAD_LETTER_ORIGIN_UNKNOWN") as caught:
        pyspark_kafka.redrive(df, keep_partition=True).collect()
    assert f"The dead letter dead-0 at offset 1 cannot be sent back: {problem}. It was not sent. Hint:" in str(
        caught.value
    )


def test_records_without_an_origin_are_left_out_or_returned_alone(either_session: SparkSession) -> None:
    df = dead(either_session, coordinates(b"orders", b"0", b"1"), *(headers for headers, _ in UNKNOWN))
    sent = pyspark_kafka.redrive(df, keep_partition=True, unknown="skip").collect()
    assert [each["dead_offset"] for each in sent] == [0]
    rest = pyspark_kafka.redrive(df, keep_partition=True, unknown="only").collect()
    assert [(each["offset"], each["problem"]) for each in rest] == [
        (n + 1, text) for n, (_, text) in enumerate(UNKNOWN)
    ]


def test_redriven_rows_are_filtered_by_reason_topic_and_time(spark: SparkSession) -> None:
    df = dead(
        spark,
        [*coordinates(b"orders", b"0", b"1"), *connect_fault(b"DECODE_FAILED")],
        [*coordinates(b"orders", b"0", b"2"), *connect_fault(b"SCHEMA_ID_NOT_FOUND")],
        [*coordinates(b"payments", b"0", b"1"), *connect_fault(b"SCHEMA_ID_NOT_FOUND")],
    )
    rows = pyspark_kafka.redrive(df).where("dead_timestamp >= '2026-11-22 00:00:00'")
    found = rows.where("topic = 'orders' AND reason = 'SCHEMA_ID_NOT_FOUND'").collect()
    assert [each["origin_offset"] for each in found] == [2]


def test_a_read_without_headers_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match=r"column 'headers' is missing.*includeHeaders"):
        pyspark_kafka.redrive(dead(spark).drop("headers"))
    with pytest.raises(OptionError, match="Argument 'unknown' is 'ignore'"):
        pyspark_kafka.redrive(dead(spark), unknown="ignore")  # type: ignore[arg-type]
