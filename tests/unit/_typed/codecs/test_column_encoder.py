"""Columns to values of each format, with what stands before them."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from kit.protobuf_schema import everything, file_set
from pyspark_kafka._typed.codecs import column_encoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import RecordError, SchemaError

ROW = pa.struct([("a", pa.int64())])
NUMBER = pa.struct([("i", pa.int32())])
RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
UUID_FIXED = {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}
GUID = "0123abcd-0123-abcd-0123-abcd0123abcd"


def avro(framing: str = "none", schema_id: Any = None, text: str = RECORD, kind: pa.DataType = ROW) -> ColumnFormat:
    return ColumnFormat("avro", framing, kind, RegisteredSchema("AVRO", text, schema_id=schema_id))


def protobuf(framing: str, schema_id: Any, message: str | None, kind: pa.DataType) -> ColumnFormat:
    text = base64.b64encode(file_set().SerializeToString()).decode()
    return ColumnFormat("protobuf", framing, kind, RegisteredSchema("PROTOBUF", text, schema_id=schema_id), message)


@pytest.mark.parametrize(
    ("column", "values", "encoded"),
    [
        (ColumnFormat("string", "none", pa.string()), ["é", None, ""], ["é".encode(), None, b""]),
        (ColumnFormat("json", "none", ROW), [{"a": 1}, None], [b'{"a":1}', None]),
        (avro(), [{"a": 1}, None], [b"\x02", None]),
        (avro("confluent", 7), [{"a": 1}, None], [b"\0\0\0\0\x07\x02", None]),
        (avro("glue", GUID), [{"a": 1}], [b"\x03\x00" + uuid.UUID(GUID).bytes + b"\x02"]),
        (avro("confluentHeader", GUID), [{"a": 1}], [b"\x02"]),
        (protobuf("none", None, "kit.Other", pa.struct([("x", pa.float64())])), [{"x": 0.0}], [b""]),
        # The second message of its file, then the first, which is written short.
        (
            protobuf("confluent", 1, "kit.Everything", pa.struct([("i", pa.int32())])),
            [{"i": 1}],
            [b"\0\0\0\0\1\2\2\x08\1"],
        ),
        (protobuf("confluent", 1, None, pa.struct([("x", pa.float64())])), [{"x": 0.0}, None], [b"\0\0\0\0\1\0", None]),
    ],
)
def test_values_stand_behind_their_framing(column: ColumnFormat, values: Any, encoded: Any) -> None:
    found = ColumnEncoder(column).encode(pa.array(values, column.arrow_type))
    assert found.type == pa.binary()
    assert found.to_pylist() == encoded


def test_the_id_in_a_header_is_that_of_keys_or_of_values() -> None:
    column = avro("confluentHeader", GUID)
    raw = b"\x01" + uuid.UUID(GUID).bytes
    assert ColumnEncoder(column).header == ("__value_schema_id", raw)
    assert ColumnEncoder(column, is_key=True).header == ("__key_schema_id", raw)
    assert ColumnEncoder(avro()).header is None
    # Of a registry that does not say the GUID.
    assert ColumnEncoder(avro("confluentHeader", 7)).header == ("__value_schema_id", b"\0\0\0\0\x07")
    kind = pa.struct([("i", pa.int32())])
    assert ColumnEncoder(protobuf("confluentHeader", GUID, "kit.Everything", kind)).header == (
        "__value_schema_id",
        raw + b"\2\2",
    )


def test_the_path_of_a_nested_message_is_written() -> None:
    files = file_set()
    outer = files.file[0].message_type.add(name="Outer")
    outer.nested_type.add(name="A")
    outer.nested_type.add(name="B").field.add(
        name="x", number=1, label=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_INT32
    )
    text = base64.b64encode(files.SerializeToString()).decode()
    schema = RegisteredSchema("PROTOBUF", text, schema_id=1)
    kind = pa.struct([("x", pa.int32())])
    column = ColumnFormat("protobuf", "confluent", kind, schema, "kit.Outer.B")
    assert ColumnEncoder(column).encode(pa.array([{"x": 1}], kind)).to_pylist() == [b"\0\0\0\0\1\x04\x04\x02\x08\1"]


@pytest.mark.parametrize(
    ("framing", "schema_id", "wanted"),
    [
        ("confluent", None, "a number"),
        ("confluent", GUID, "a number"),
        ("glue", 7, "a UUID"),
        ("glue", "x", "a UUID"),
        ("confluentHeader", None, "a number or a UUID"),
    ],
)
def test_a_framing_without_its_kind_of_id_is_refused(framing: str, schema_id: Any, wanted: str) -> None:
    with pytest.raises(SchemaError, match=rf"SCHEMA_ID_MISSING.* {framing} needs {wanted} as the id"):
        ColumnEncoder(avro(framing, schema_id))


def test_a_column_that_does_not_fit_is_refused_before_any_row() -> None:
    with pytest.raises(SchemaError, match="Column 'a' has the type string"):
        ColumnEncoder(avro(kind=pa.struct([("a", pa.string())])))
    with pytest.raises(SchemaError, match="Column 'value' has the type int64, which cannot be written as text"):
        ColumnEncoder(ColumnFormat("string", "none", pa.int64()))
    with pytest.raises(SchemaError, match=r"Column 'b' .* no such field"):
        ColumnEncoder(protobuf("none", None, None, pa.struct([("b", pa.int32())])))
    with pytest.raises(SchemaError, match="Avro cannot be written without a schema"):
        ColumnEncoder(ColumnFormat("avro", "none", ROW))


def test_null_is_a_tombstone_also_where_the_schema_has_a_null() -> None:
    column = avro(text='["null", "long"]', kind=pa.int64())
    assert ColumnEncoder(column).encode(pa.array([None, 1], pa.int64())).to_pylist() == [None, b"\x02\x02"]


def test_large_strings_are_taken_for_small_ones() -> None:
    column = avro(text='"string"', kind=pa.string())
    assert ColumnEncoder(column).encode(pa.array(["a"], pa.large_string())).to_pylist() == [b"\x02a"]


@pytest.mark.parametrize(("rows", "pieces"), [(0, 1), (1, 1), (10, 4)])
def test_columns_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch, rows: int, pieces: int) -> None:
    monkeypatch.setattr(column_encoder, "_PIECE_BYTES", 24)
    values = pa.array([{"a": number} for number in range(rows)], ROW)
    encoder = ColumnEncoder(avro())
    found = list(encoder.encode_pieces(values))
    assert [start for start, _ in found] == [3 * number for number in range(pieces)]
    assert encoder.encode(values).to_pylist() == [bytes([2 * number]) for number in range(rows)]


@pytest.mark.parametrize(
    ("column", "values", "field", "reason"),
    [
        (avro(), [{"a": 1}] * 7 + [{"a": None}], "a", "it is null, and the schema has no null there"),
        (
            avro(text=json.dumps({"type": "array", "items": UUID_FIXED}), kind=pa.list_(pa.string())),
            [[], [GUID]] * 3 + [[], ["no UUID"]],
            "[]",
            "the text is not a UUID",
        ),
        (
            ColumnFormat("json", "none", pa.struct([("l", pa.list_(pa.float64()))])),
            [{"l": [1.0, 2.0, 3.0]}] * 7 + [{"l": [1.0, float("nan")]}, {"l": []}],
            "l[]",
            "the number is not finite",
        ),
        (
            ColumnFormat("json", "none", ROW, RegisteredSchema("JSON", '{"required": ["a"]}')),
            [{"a": 1}] * 7 + [{"a": None}],
            "a",
            "it is null, and the schema requires it",
        ),
        (
            avro(text='{"type": "long", "logicalType": "time-micros"}', kind=pa.time64("ns")),
            [1000] * 7 + [1001],
            "value",
            "a value does not fit the type that the schema has",
        ),
        (
            protobuf("none", None, "kit.Everything", pa.struct([("n", pa.list_(pa.int64()))])),
            [{"n": [1, 2, 3]}] * 7 + [{"n": [None]}],
            "n",
            "a list or map has a null",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(
    monkeypatch: pytest.MonkeyPatch, column: ColumnFormat, values: Any, field: str, reason: str
) -> None:
    array = pa.array(values, column.arrow_type)
    # In one part, and in parts of a row or two.
    for part_bytes in (1 << 20, 16):
        monkeypatch.setattr(column_encoder, "_PIECE_BYTES", part_bytes)
        with pytest.raises(RecordError) as caught:
            ColumnEncoder(column).encode(array)
        parameters = caught.value.parameters
        assert (parameters["row"], parameters["field"], parameters["reason"]) == ("7", field, reason)
        assert f"Row 7 of the batch cannot be written in {parameters['format']}: field '{field}': {reason}." in str(
            caught.value
        )


def test_a_column_format_survives_the_way_to_an_executor() -> None:
    import pickle  # noqa: PLC0415 - as Spark sends it

    descriptor, made = everything()
    column = protobuf("none", None, descriptor.full_name, NUMBER)
    encoder = ColumnEncoder(pickle.loads(pickle.dumps(column)))  # noqa: S301 - of this process
    (encoded,) = encoder.encode(pa.array([{"i": 3}], NUMBER)).to_pylist()
    assert made.FromString(encoded).i == 3


def raw_text(*values: bytes | None) -> pa.Array:
    """Return a column of strings with any bytes, as Spark's cast of bytes makes it."""
    column = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(column), column.buffers(), column.null_count)


def texts_of(format_name: str) -> ColumnFormat:
    kind = pa.struct([("x", pa.string())])
    if format_name == "string":
        return ColumnFormat("string", "none", pa.string())
    if format_name == "json":
        return ColumnFormat("json", "none", kind)
    if format_name == "avro":
        text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "string"]}]})
        return avro(text=text, kind=kind)
    files = descriptor_pb2.FileDescriptorSet()
    message = files.file.add(name="m.proto", syntax="proto2").message_type.add(name="M")
    message.field.add(name="x", number=1, label=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING)
    schema = RegisteredSchema("PROTOBUF", base64.b64encode(files.SerializeToString()).decode())
    return ColumnFormat("protobuf", "none", kind, schema)


@pytest.mark.parametrize("format_name", ["string", "json", "avro", "protobuf"])
def test_text_that_is_not_utf_8_is_refused_by_row_and_field(format_name: str) -> None:
    column = texts_of(format_name)
    texts = raw_text("é".encode(), None, b"ok", b"secret\xff\xfe", b"\xc3")
    array = texts if format_name == "string" else pa.StructArray.from_arrays([texts], ["x"])
    field = "value" if format_name == "string" else "x"
    with pytest.raises(RecordError, match=rf"VALUE_NOT_ENCODABLE.*Row 3 .* '{field}': the text is not UTF-8") as caught:
        ColumnEncoder(column).encode(array)
    assert caught.value.parameters["row"] == "3"
    assert caught.value.parameters["field"] == field
    assert "secret" not in str(caught.value)
    assert ColumnEncoder(column).encode(array.slice(0, 3)).null_count == (format_name == "string")


@pytest.mark.parametrize("pieces", [1, 4])
def test_text_within_lists_and_maps_is_looked_at_but_not_that_of_nulls(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    bad, good = raw_text(b"a", b"b", b"\xff", b"d"), pa.array(["a", "b", "c", "d"])
    ends = pa.array([0, 1, 2, 3, 4], pa.int32())
    columns = {
        "l[]": pa.StructArray.from_arrays([pa.ListArray.from_arrays(ends, bad)], ["l"]),
        "m[key]": pa.StructArray.from_arrays([pa.MapArray.from_arrays(ends, bad, good)], ["m"]),
        "m[]": pa.StructArray.from_arrays([pa.MapArray.from_arrays(ends, good, bad)], ["m"]),
        "s.x": pa.StructArray.from_arrays([pa.StructArray.from_arrays([bad], ["x"])], ["s"]),
    }
    for path, array in columns.items():
        monkeypatch.setattr(column_encoder, "_PIECE_BYTES", -(-array.nbytes // pieces))
        encoder = ColumnEncoder(ColumnFormat("json", "none", array.type))
        with pytest.raises(RecordError, match="the text is not UTF-8") as caught:
            encoder.encode(array)
        assert (caught.value.parameters["row"], caught.value.parameters["field"]) == ("2", path)
        hidden = pa.StructArray.from_arrays(
            array.flatten(), names=[array.type.field(0).name], mask=pa.array([False, False, True, False])
        )
        assert encoder.encode(hidden).null_count == 1
