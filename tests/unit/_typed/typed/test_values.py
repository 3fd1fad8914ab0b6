"""Arrays decoded and encoded by the public functions, each format and each way to say a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kit.protobuf_schema import file_set
from pyspark_kafka.errors import OptionError, RecordError, SchemaError
from pyspark_kafka.formats import decode, encode

AVRO = json.dumps(
    {
        "type": "record",
        "name": "order",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
)
COLUMN = pa.array(
    [{"id": 1, "name": "a"}, None, {"id": 2, "name": None}], pa.struct([("id", pa.int64()), ("name", pa.string())])
)
STRUCT = StructType([StructField("id", LongType()), StructField("name", StringType())])
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        "id BIGINT, name STRING",
        COLUMN.type,
        pa.schema(list(COLUMN.type)),
        STRUCT,
        STRUCT.json(),
        json.dumps(JSON_SCHEMA),
    ],
    ids=["sql", "arrow", "arrow schema", "spark", "spark json", "json schema"],
)
def test_json_comes_back_with_each_kind_of_schema(schema: Any) -> None:
    decoded = decode(encode(COLUMN, "json"), "json", schema=schema)
    assert decoded.column.to_pylist() == COLUMN.to_pylist()
    assert (decoded.bad, decoded.schema_ids) == ([], None)


def test_avro_comes_back_also_from_a_file_and_in_chunks(tmp_path: Path) -> None:
    values = encode(pa.chunked_array([COLUMN[:1], COLUMN[1:]]), "avro", schema=AVRO)
    assert values.to_pylist() == [b"\x02\x02\x02a", None, b"\x04\x00"]
    file = tmp_path / "order.avsc"
    file.write_text(AVRO)
    decoded = decode(pa.chunked_array([values]), "avro", schema=f"file:{file}")
    assert decoded.column.to_pylist() == COLUMN.to_pylist()


def test_protobuf_comes_back_with_a_file_descriptor_set() -> None:
    schema = file_set().SerializeToString()
    column = pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())]))
    values = encode(column, "protobuf", schema=schema, message="kit.Other")
    decoded = decode(values, "protobuf", schema=schema, message="kit.Other")
    assert decoded.column.to_pylist() == column.to_pylist()


def test_protobuf_comes_back_with_the_text_of_its_file() -> None:
    schema = 'syntax = "proto3"; package p; message One { int64 a = 1; } message Two { string b = 1; }'
    column = pa.array([{"b": "x"}], pa.struct([("b", pa.string())]))
    values = encode(column, "protobuf", schema=schema, message="p.Two", schema_id=7)
    assert values.to_pylist() == [b"\x00\x00\x00\x00\x07\x02\x02\x0a\x01x"]
    decoded = decode(values, "protobuf", schema=schema, message="p.Two", framing="confluent")
    assert decoded.column.to_pylist() == column.to_pylist()


def test_json_is_checked_against_a_json_schema() -> None:
    strict = json.dumps({**JSON_SCHEMA, "additionalProperties": False, "required": ["id"]})
    assert encode(COLUMN[:1], "json", schema=strict).to_pylist() == [b'{"id":1,"name":"a"}']
    with pytest.raises(SchemaError):
        encode(pa.array([{"id": "x"}]), "json", schema=strict)


def test_text_is_decoded_and_encoded() -> None:
    texts = pa.array(["ü", None])
    values = encode(texts, "string")
    assert values.to_pylist() == ["ü".encode(), None]
    assert decode(values, "string").column.to_pylist() == ["ü", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_values_may_be_text_or_large(kind: pa.DataType) -> None:
    values = pa.array(['{"id":1}'], pa.string()).cast(kind)
    assert decode(values, "json", schema="id BIGINT").column.to_pylist() == [{"id": 1}]


def test_an_id_stands_before_values_if_it_is_given() -> None:
    values = encode(COLUMN, "avro", schema=AVRO, schema_id=7)
    assert values.to_pylist() == [b"\x00\x00\x00\x00\x07\x02\x02\x02a", None, b"\x00\x00\x00\x00\x07\x04\x00"]
    texts = encode(COLUMN, "json", schema_id=7)
    decoded = decode(texts, "json", schema="id BIGINT", framing="confluent")
    assert decoded.column.to_pylist() == [{"id": 1}, None, {"id": 2}]
    assert decoded.schema_ids is not None
    assert decoded.schema_ids.to_pylist() == ["7", None, "7"]


def test_a_bad_value_is_an_error_or_a_null_row_that_is_named() -> None:
    values = pa.array([b'{"id":1}', b"{secret", None, b'{"id":{}}'])
    with pytest.raises(RecordError) as caught:
        decode(values, "json", schema="id BIGINT")
    text = str(caught.value)
    assert text.startswith("[VALUE_NOT_DECODABLE] Row 1 cannot be read as json: DECODE_FAILED: ")
    assert "1 more of the same array cannot be read either. Nothing was decoded." in text
    assert "secret" not in text
    decoded = decode(values, "json", schema="id BIGINT", on_bad="null")
    assert decoded.column.to_pylist() == [{"id": 1}, None, None, None]
    assert [(each.row, each.reason.value) for each in decoded.bad] == [(1, "DECODE_FAILED"), (3, "TYPE_MISMATCH")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"value_format": "xml"}, "Argument 'value_format' is 'xml'"),
        ({"schema": 5}, "Argument 'schema' is 'int', and must be text, bytes, a type of Arrow or a schema of Spark"),
        ({"on_bad": "skip"}, "Argument 'on_bad' is 'skip', and must be 'raise' or 'null'"),
        ({"registry": {"schema.registry.url": "http://localhost:1"}}, "Argument 'subject' must be set with a registry"),
        ({"schema": "id INT", "framing": "sniff"}, "'valueFraming'"),
        ({"schema": "id INT", "registry": {"schema.registri.url": "x"}}, "schema.registry.url"),
        ({}, "'valueSchema' must be set"),
        ({"values": pa.array([1]), "schema": "id INT"}, "Argument 'values' is 'int64', and must be binary or text"),
    ],
)
def test_arguments_of_decode_that_are_wrong_are_named(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        decode(**{"values": pa.array([b"{}"]), "value_format": "json", **arguments})
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"value_format": "xml"}, "Argument 'value_format' is 'xml'"),
        ({"value_format": "avro"}, "Argument 'schema' must be set with avro"),
        ({"framing": "confluentHeader"}, "Argument 'framing' is 'confluentHeader'"),
        ({"framing": "sniff"}, "Argument 'framing' is 'sniff'"),
        ({"schema": "id BIGINT"}, "Argument 'schema' is 'columns', and must be a JSON Schema, or left out"),
        ({"registry": {"schema.registry.url": "http://localhost:1"}}, "Argument 'subject' must be set with a registry"),
    ],
)
def test_arguments_of_encode_that_are_wrong_are_named(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        encode(COLUMN, **{"value_format": "json", **arguments})
    assert expected in str(caught.value)


def test_a_framing_without_an_id_is_refused() -> None:
    with pytest.raises(SchemaError, match="SCHEMA_ID_MISSING"):
        encode(COLUMN, "avro", schema=AVRO, framing="confluent")


def test_a_row_that_does_not_fit_is_named() -> None:
    column = pa.array([{"id": 1, "name": "a"}, {"id": None, "name": "b"}], COLUMN.type)
    with pytest.raises(RecordError, match="Row 1"):
        encode(column, "avro", schema=AVRO)


def test_a_record_that_holds_itself_is_decoded_as_deep_as_is_asked() -> None:
    schema = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"n","type":["null","r"]}]}'
    values = pa.array([b"\2\2\4\0"])
    assert decode(values, "avro", schema=schema, recursive_field_max_depth=2).column.to_pylist() == [
        {"a": 1, "n": {"a": 2}}
    ]
    with pytest.raises(SchemaError, match="recursive_field_max_depth"):
        decode(values, "avro", schema=schema)
    with pytest.raises(OptionError, match="recursiveFieldMaxDepth"):
        decode(values, "avro", schema=schema, recursive_field_max_depth=99)
