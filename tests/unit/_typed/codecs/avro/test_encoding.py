"""Columns to values in Avro: types, and what does not fit."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.avro.encoding import AvroEncoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka.errors import RecordError, SchemaError

UTC = dt.timezone.utc
MEMBERS = pa.struct([("member0", pa.int32()), ("member1", pa.string())])


def encode(schema: Any, column: pa.Array, prefix: bytes = b"") -> list[bytes | None]:
    found: list[bytes | None] = AvroEncoder(parse_schema(json.dumps(schema))).encode(column, prefix).to_pylist()
    return found


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("schema", "column", "expected"),
    [
        ("int", pa.array([1, -1], pa.int8()), [b"\x02", b"\x01"]),
        ("long", pa.array([-(2**63)]), [b"\xff" * 9 + b"\x01"]),
        ("float", pa.array([1.5], pa.float32()), [b"\x00\x00\xc0\x3f"]),
        ("double", pa.array([1.5], pa.float32()), [b"\x00" * 6 + b"\xf8\x3f"]),
        ("boolean", pa.array([True, False]), [b"\x01", b"\x00"]),
        ("string", pa.array(["ä"], pa.large_string()), [b"\x04\xc3\xa4"]),
        (logical("int", "date"), pa.array([dt.date(1970, 1, 2)]), [b"\x02"]),
        (logical("int", "time-millis"), pa.array([dt.time(0, 0, 1)]), [b"\xd0\x0f"]),
        (logical("int", "time-millis"), pa.array([1_000_000]), [b"\xd0\x0f"]),
        (logical("long", "time-micros"), pa.array([1]), [b"\x02"]),
        (logical("long", "timestamp-millis"), pa.array([1]), [b"\x02"]),
        (logical("long", "timestamp-millis"), pa.array([1000], pa.timestamp("us", "UTC")), [b"\x02"]),
        (logical("long", "timestamp-micros"), pa.array([1], pa.timestamp("ms", "UTC")), [b"\xd0\x0f"]),
        (logical("long", "local-timestamp-micros"), pa.array([1], pa.timestamp("us")), [b"\x02"]),
        (logical("bytes", "decimal", precision=5, scale=2), pa.array([decimal.Decimal(-2)]), [b"\x04\xff\x38"]),
        (
            {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 5},
            pa.array([decimal.Decimal(-2), decimal.Decimal(300)]),
            [b"\xff\xff\xff\xfe", b"\x00\x00\x01\x2c"],
        ),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.array(["B"]).dictionary_encode(), [b"\x02"]),
        (["string", "null"], pa.array([None, "a"]), [b"\x02", b"\x00\x02a"]),
        (["null", "string"], pa.nulls(1), [b"\x00"]),
        (["int", "null", "long"], pa.array([None, 1]), [b"\x02", b"\x04\x02"]),
    ],
)
def test_a_column_has_its_values(schema: Any, column: pa.Array, expected: list[bytes]) -> None:
    assert encode(schema, column) == expected


WORDS = ["string", "null", {"type": "enum", "name": "E", "symbols": ["A"]}]


def test_the_members_of_a_union_are_taken_by_name() -> None:
    members = pa.struct([("member1", pa.string()), ("member0", pa.string())])
    column = pa.array([{"member1": "A"}, {"member0": "A"}], members)
    assert encode(WORDS, column) == [b"\x04\x00", b"\x00\x02A"]


@pytest.mark.parametrize("names", [("member1", "member2"), ("a", "b"), ("member0", "member0"), ("member0",)])
def test_members_of_a_union_with_other_names_are_refused(names: tuple[str, ...]) -> None:
    column = pa.array([], pa.struct([pa.field(name, pa.string()) for name in names]))
    with pytest.raises(
        SchemaError, match="Avro's union of 2 types, which is a struct with the fields member0 to member1"
    ):
        encode(WORDS, column)


def test_a_null_is_a_tombstone_without_a_prefix() -> None:
    assert encode("long", pa.array([1, None, 2]), b"id") == [b"id\x02", None, b"id\x04"]


def test_the_null_of_a_union_is_a_value() -> None:
    assert encode(["null", "long"], pa.array([None]), b"id") == [b"id\x00"]


@pytest.mark.parametrize(
    ("schema", "column", "text"),
    [
        ("int", pa.array([1, 2**31]), "Row 1 of the batch .* field 'value': the number is out of the range"),
        (
            {"type": "array", "items": "int"},
            pa.array([[1], [None]], pa.list_(pa.int32())),
            r"Row 1 .* field '\[\]': it is null, and the schema has no null there",
        ),
        (logical("long", "timestamp-millis"), pa.array([1], pa.timestamp("us", "UTC")), "parts of a millisecond"),
        (logical("int", "time-millis"), pa.array([1001]), "field 'value': the time has parts of a millisecond"),
        (logical("int", "time-millis"), pa.array([86_400_000_000]), "the number is out of the range"),
        (logical("long", "time-micros"), pa.array([86_400_000_000]), "the number is out of the range"),
        (logical("long", "time-micros"), pa.array([-1]), "the number is out of the range"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"]), "not a symbol of the schema's enum"),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"abc"]), "not as many bytes as the schema's fixed"),
        (
            {"type": "fixed", "name": "D", "size": 1, "logicalType": "decimal", "precision": 2},
            pa.array([decimal.Decimal(99), decimal.Decimal(100)]).cast(pa.decimal128(5, 0)),
            "decimal",
        ),
        (
            ["null", "string", "long"],
            pa.array([{"member0": "a", "member1": 1}]),
            "not exactly one of the members of the union is there",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(schema: Any, column: pa.Array, text: str) -> None:
    with pytest.raises((RecordError, SchemaError), match=text):
        encode(schema, column)


@pytest.mark.parametrize(
    ("schema", "column", "text"),
    [
        ("int", pa.array(["a"]), "Column 'value' has the type string, which cannot be written as Avro's int"),
        ("long", pa.array([1], pa.uint64()), "uint64"),
        ("float", pa.array([1.5]), "double, which cannot be written as Avro's float"),
        (
            logical("int", "time-millis"),
            pa.array([1], pa.int32()),
            r"int32, .* Avro's int \(time-millis\), which is a bigint of microseconds",
        ),
        (logical("long", "timestamp-micros"), pa.array([1], pa.timestamp("us")), "cannot be written as Avro's long"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]},
            pa.array([{"b": 1}]),
            "Column 'b' has the type int64, .* which has no such field",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]},
            pa.array([{"b": 1}]),
            "Field 'a' is missing: Avro's record 'R' needs it, and the column has only 'b'",
        ),
        (["null", "string", "long"], pa.array(["a"]), "a struct with the fields member0 to member1"),
    ],
)
def test_a_column_of_another_type_is_refused(schema: Any, column: pa.Array, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        encode(schema, column)


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (["int"], pa.array([1, None], pa.int32())),
        (["int", "string"], pa.array([{"member0": 1, "member1": None}, None], MEMBERS)),
    ],
    ids=str,
)
def test_a_null_is_a_tombstone_where_a_union_has_no_null(schema: Any, column: pa.Array) -> None:
    assert encode(schema, column, b"id") == [b"id\x00\x02", None]


def test_a_text_that_is_no_uuid_is_refused() -> None:
    schema = logical("string", "uuid")
    good = "7c9e6679-7425-40de-944b-E07FC1F90AE7"
    assert encode(schema, pa.array([good, None])) == [b"\x48" + good.encode(), None]
    for text in ("nope", "7c9e6679742540de944be07fc1f90ae7", good + "\n", ""):
        with pytest.raises(RecordError, match="the text is not a UUID"):
            encode({"type": "array", "items": schema}, pa.array([[good, text]]))
