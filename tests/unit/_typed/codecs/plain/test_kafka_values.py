from __future__ import annotations

import math
import struct
from typing import Any, cast

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.column_format import NumberFormat, TypedFormat
from pyspark_kafka._typed.codecs.plain.kafka_values import NumberDecoder, NumberEncoder, UuidDecoder
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka.errors import RecordError, SchemaError
from pyspark_kafka.formats import decode, encode

ID = "0b9a1f4e-6f7c-4a44-9f0a-1c2d3e4f5a6b"

# What Java's serializers of these names write: DataOutput's forms, the highest byte first.
NUMBERS: list[tuple[str, str, list[Any], pa.DataType]] = [
    ("short", ">h", [0, 1, -2, (1 << 15) - 1, -(1 << 15)], pa.int16()),
    ("integer", ">i", [0, 1, -2, (1 << 31) - 1, -(1 << 31)], pa.int32()),
    ("long", ">q", [0, 1, -2, (1 << 63) - 1, -(1 << 63)], pa.int64()),
    ("float", ">f", [0.0, -1.5, math.inf], pa.float32()),
    ("double", ">d", [0.0, -1.1, 5e-324, -math.inf], pa.float64()),
]


@pytest.mark.parametrize(("name", "form", "numbers", "kind"), NUMBERS)
def test_numbers_of_kafkas_serializers_are_read_and_written(
    name: TypedFormat, form: str, numbers: list[Any], kind: pa.DataType
) -> None:
    raw = [struct.pack(form, number) for number in numbers]
    values = pa.array([b"beside", None, *raw, None]).slice(1)
    found = decode(values, name)
    assert (found.column.type, found.bad, found.schema_ids) == (kind, [], None)
    assert found.column.to_pylist() == [None, *numbers, None]
    assert encode(found.column, name).to_pylist() == [None, *raw, None]
    assert encode(found.column.slice(1, 2), name).to_pylist() == raw[:2]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_number_of_another_length_is_bad_and_spoils_no_other(kind: pa.DataType) -> None:
    values = pa.array([b"", bytes(7), bytes(7) + b"\x05", bytes(9), None], kind)
    found = decode(values, "long", on_bad="null")
    assert found.column.to_pylist() == [None, None, 5, None, None]
    expected = [
        (row, f"it has a length of {size}, and a long of Kafka has 8 bytes") for row, size in [(0, 0), (1, 7), (3, 9)]
    ]
    assert found.bad == [BadValue(row, Reason.DECODE_FAILED, text) for row, text in expected]
    with pytest.raises(
        RecordError, match=r"Row 0 cannot be read as integer: DECODE_FAILED: it has a length of 0, and an"
    ):
        decode(values, "integer")


def test_nan_is_a_number_and_no_null() -> None:
    found = decode(pa.array([struct.pack(">d", math.nan), None]), "double")
    assert found.column.null_count == 1
    assert math.isnan(found.column[0].as_py())
    assert encode(found.column, "double").to_pylist() == [struct.pack(">d", math.nan), None]


def test_arrays_without_values_have_no_numbers() -> None:
    for values in (pa.array([], pa.binary()), pa.array([None, None], pa.binary())):
        assert decode(values, "integer").column == pa.nulls(len(values), pa.int32())
        assert decode(values, "uuid").column == pa.nulls(len(values), pa.string())
        assert encode(pa.nulls(len(values), pa.int32()), "integer") == pa.nulls(len(values), pa.binary())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("integer", pa.int64()),
        ("float", pa.float64()),
        ("long", pa.float64()),
        ("double", pa.int64()),
        ("short", pa.string()),
    ],
)
def test_column_whose_numbers_may_not_fit_is_refused(name: str, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=f"Column 'value' has the type {kind}, which cannot be written as {name}"):
        NumberEncoder(cast("NumberFormat", name), kind)


def test_narrower_numbers_are_written_at_their_full_width() -> None:
    assert encode(pa.array([-1, None], pa.int32()), "long").to_pylist() == [b"\xff" * 8, None]
    assert encode(pa.array([1.5], pa.float32()), "double").to_pylist() == [struct.pack(">d", 1.5)]


def test_uuids_are_read_and_written_as_java_writes_them() -> None:
    found = decode(pa.array([ID.encode(), None, ID.upper().encode()]), "uuid")
    assert found.column.to_pylist() == [ID, None, ID]
    assert encode(pa.array([ID.upper(), None]), "uuid").to_pylist() == [ID.encode(), None]


@pytest.mark.parametrize(
    "text",
    [b"", ID[:-1].encode(), ID.encode() + b"\n", b"1-1-1-1-1", b"\xff" * 36, ID.replace("-", "0").encode(), bytes(16)],
)
def test_text_that_is_no_uuid_is_bad_and_not_written(text: bytes) -> None:
    found = UuidDecoder().decode(pa.array([text, ID.encode()]))
    assert found.column.to_pylist() == [None, ID]
    assert found.bad == [BadValue(0, Reason.DECODE_FAILED, "it is not a UUID as text of 36 characters")]
    with pytest.raises(RecordError, match="cannot be written in uuid: field 'value': it is not a UUID"):
        encode(pa.array([ID, text.decode("latin-1")]), "uuid")


def test_many_bad_numbers_are_all_named() -> None:
    found = NumberDecoder("short").decode(pa.array([b"abc"] * 1000 + [b"\0\1"]))
    assert [each.row for each in found.bad] == list(range(1000))
    assert found.column[1000].as_py() == 1
