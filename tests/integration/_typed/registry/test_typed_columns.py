"""Columns that are written with the schemas of a real registry, and read with them: Apicurio's."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pyarrow as pa
import pytest

from pyspark_kafka._client.options import FormatOptions, RegistryOptions, TypedReadOptions
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka._typed.registry.connect import open_registry
from pyspark_kafka._typed.typed.read_formats import plan_read

PATH = "/apis/ccompat/v7"


@pytest.fixture
def topic() -> str:
    """A name that no other test has, and that may stand in a package of Protobuf."""
    return f"orders{uuid4().hex}"


def register(apicurio: str, subject: str, **body: Any) -> None:
    """Register a schema with what it refers to, as producers do."""
    url = f"{apicurio}/apis/ccompat/v7/subjects/{subject}/versions"
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")  # noqa: S310
    with urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.status == 200


def register_parts(apicurio: str, topic: str, kind: str) -> None:
    """Register a schema for a topic in one language; in two of them it refers to another one."""
    inner = [{"name": "inner.proto", "subject": f"{topic}-inner", "version": 1}]
    if kind == "avro":
        inner[0]["name"] = f"{topic}.Inner"
        fields = [{"name": "y", "type": "string"}]
        text = {"type": "record", "name": "Inner", "namespace": topic, "fields": fields}
        register(apicurio, f"{topic}-inner", schema=json.dumps(text))
        fields = [{"name": "x", "type": "long"}, {"name": "inner", "type": f"{topic}.Inner"}]
        text = {"type": "record", "name": "Outer", "namespace": topic, "fields": fields}
        register(apicurio, f"{topic}-value", schema=json.dumps(text), references=inner)
    elif kind == "protobuf":
        head = f'syntax = "proto3"; package {topic}; '
        text_of_inner = f"{head}message Inner {{ string y = 1; }}"
        register(apicurio, f"{topic}-inner", schema=text_of_inner, schemaType="PROTOBUF")
        text_of_outer = f'{head}import "inner.proto"; message Outer {{ int64 x = 1; Inner inner = 2; }}'
        register(apicurio, f"{topic}-value", schema=text_of_outer, schemaType="PROTOBUF", references=inner)
    else:
        parts = {"type": "object", "properties": {"y": {"type": "string"}}}
        schema = {"type": "object", "title": topic, "properties": {"x": {"type": "integer"}, "inner": parts}}
        register(apicurio, f"{topic}-value", schema=json.dumps(schema), schemaType="JSON")


def plan(registry: RegistryOptions, topic: str, kind: Any) -> ColumnFormat:
    column = plan_read(TypedReadOptions(value=FormatOptions(kind, "confluent"), registry=registry), topic).value
    assert column is not None
    return column


@pytest.mark.parametrize("kind", ["avro", "protobuf", "json"])
def test_columns_are_read_as_they_were_written(apicurio: str, topic: str, kind: str) -> None:
    register_parts(apicurio, topic, kind)
    options = RegistryOptions(urls=(apicurio + PATH,))
    column = plan(options, topic, kind)
    assert column.schema is not None
    rows = [{"x": 1, "inner": {"y": "a"}}, None, {"x": 2, "inner": {"y": "b"}}]
    written = ColumnEncoder(column).encode(pa.array(rows, column.arrow_type))
    assert written[0].as_py()[:5] == b"\0" + int(column.schema.schema_id or 0).to_bytes(4, "big")
    found = ColumnDecoder(column, open_registry(options)).decode(written)
    assert (found.column.to_pylist(), found.bad) == (rows, [])
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == [str(column.schema.schema_id), None, str(column.schema.schema_id)]


def test_values_of_an_older_schema_and_of_none_are_told_apart(apicurio: str, topic: str) -> None:
    options = RegistryOptions(urls=(apicurio + PATH,))
    fields: list[dict[str, Any]] = [{"name": "x", "type": "int"}]
    register(apicurio, f"{topic}-value", schema=json.dumps({"type": "record", "name": topic, "fields": fields}))
    older = plan(options, topic, "avro")
    values = ColumnEncoder(older).encode(pa.array([{"x": 1}, {"x": 2}], older.arrow_type)).to_pylist()
    fields = [{"name": "x", "type": "long"}, {"name": "z", "type": "string", "default": "none"}]
    register(apicurio, f"{topic}-value", schema=json.dumps({"type": "record", "name": topic, "fields": fields}))
    # Of another process: here the latest version is known for some seconds.
    newer = plan(RegistryOptions(urls=options.urls, timeout_ms=29_999), topic, "avro")
    unknown = b"\0" + (1 << 30).to_bytes(4, "big") + b"\x02"
    found = ColumnDecoder(newer, open_registry(options)).decode(pa.array([values[0], unknown, values[1]], pa.binary()))
    assert found.column.to_pylist() == [{"x": 1, "z": "none"}, None, {"x": 2, "z": "none"}]
    assert [(each.row, each.reason) for each in found.bad] == [(1, Reason.SCHEMA_ID_NOT_FOUND)]
    assert found.bad[0].message == f"its schema {1 << 30} is not in the schema registry {apicurio}{PATH}"
