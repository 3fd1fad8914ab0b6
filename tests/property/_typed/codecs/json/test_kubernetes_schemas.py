"""Kubernetes' own JSON Schemas: documents of them are read as columns of Spark, written again, and still valid."""

from __future__ import annotations

import base64
import json
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from kit.typed_page import through_spark
from pyspark_kafka._client.options import FormatOptions
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka._typed.typed.column_formats import column_of_schema

_FOLDER = max(
    (
        each
        for each in files("kubernetes_validate").joinpath("kubernetes-json-schema").iterdir()
        if "strict" not in each.name
    ),
    key=lambda each: [int(part) for part in each.name.strip("v").removesuffix("-local").split(".")],
)
_NAMES = sorted(each.name for each in _FOLDER.iterdir() if each.name.endswith(".json") and each.name[0] != "_")
_SHARED = "/api/_definitions.json"
_MAX_DEPTH = 3
_ANYTHING = (
    st.booleans()
    | st.integers(0, 9)
    | st.text(max_size=3)
    | st.dictionaries(st.text(max_size=2), st.none(), max_size=1)
)


@cache
def text_of(name: str) -> str:
    return _FOLDER.joinpath(name).read_text()


@cache
def definitions() -> Any:
    return json.loads(text_of("_definitions.json"))


@cache
def column_of(name: str) -> ColumnFormat:
    schema = RegisteredSchema("JSON", text_of(name), (NamedSchema(_SHARED, text_of("_definitions.json")),))
    return column_of_schema("value", FormatOptions("json", "none", open_parts="text"), schema)


@cache
def registry() -> Any:
    return Registry().with_resource(_SHARED, DRAFT202012.create_resource(definitions()))


@st.composite
def values(draw: st.DrawFn, schema: Any, depth: int = 0) -> Any:
    """Values that a schema of Kubernetes takes."""
    if "$ref" in schema:
        return draw(values(definitions()["$defs"][schema["$ref"].rpartition("/")[2]], depth))
    if "oneOf" in schema:
        # Null fits several of them, and so none.
        return draw(values(draw(st.sampled_from(schema["oneOf"])), depth).filter(lambda found: found is not None))
    kinds = schema.get("type", "any")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object" and "properties" in schema:
        required = schema.get("required", ())
        chosen = [
            name
            for name in schema["properties"]
            if name in required or (depth < _MAX_DEPTH and not draw(st.integers(0, 3)))
        ]
        return {name: draw(values(schema["properties"][name], depth + 1)) for name in chosen}
    if kind == "object" and schema.get("additionalProperties"):
        return draw(st.dictionaries(st.text(max_size=3), values(schema["additionalProperties"], depth + 1), max_size=2))
    if kind == "array":
        return draw(st.lists(values(schema["items"], depth + 1), max_size=2 if depth < _MAX_DEPTH else 0))
    return draw(_simple(kind, schema))


def _simple(kind: str, schema: Any) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "byte":
        return st.binary(max_size=3).map(lambda raw: base64.b64encode(raw).decode())
    if schema.get("format") == "date-time":
        return st.just("2026-01-01T00:00:00Z")
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(-(1 << 31), (1 << 31) - 1),
        "number": st.floats(-1e6, 1e6),
        "string": st.text(max_size=5),
        "object": st.dictionaries(st.text(max_size=2), _ANYTHING, max_size=2),
    }
    return simple.get(kind, _ANYTHING)


def written_form(value: Any, schema: Any, kind: pa.DataType) -> Any:
    """Return a value as it is written from a type: without its null members, but in parts of any type.

    A schema that holds itself is a part of any type from some depth on.
    """
    if "$ref" in schema:
        return written_form(value, definitions()["$defs"][schema["$ref"].rpartition("/")[2]], kind)
    if isinstance(value, dict) and "properties" in schema and pa.types.is_struct(kind):
        inner = {
            name: written_form(each, schema["properties"][name], kind.field(name).type) for name, each in value.items()
        }
        return {name: each for name, each in inner.items() if each is not None or name in schema.get("required", ())}
    if isinstance(value, dict) and schema.get("additionalProperties") and pa.types.is_map(kind):
        of_values = {
            name: written_form(each, schema["additionalProperties"], kind.item_type) for name, each in value.items()
        }
        return {name: each for name, each in of_values.items() if each is not None}
    if isinstance(value, list) and "items" in schema and pa.types.is_list(kind):
        return [written_form(each, schema["items"], kind.value_type) for each in value]
    return value


def test_null_in_a_schema_within_a_schema_is_written_from_the_depth_on_where_it_is_a_text() -> None:
    (name,) = [each for each in _NAMES if each == "jsonschemaprops-apiextensions-v1.json"]
    document = {"not": {"minimum": None, "not": {"minimum": None}}}
    decoded = ColumnDecoder(column_of(name), None).decode(pa.array([json.dumps(document)], pa.binary()))
    (written,) = ColumnEncoder(column_of(name)).encode(through_spark(decoded.column)).to_pylist()
    assert json.loads(written) == {"not": {"not": {"minimum": None}}}
    assert written_form(document, json.loads(text_of(name)), decoded.column.type) == json.loads(written)


def has_null_item(value: Any) -> bool:
    """Return whether a list has a null, which a column has for a part of any type too."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, list) and None in value) or any(map(has_null_item, inner))


@given(st.data())
def test_documents_of_kubernetes_are_written_as_they_were_read(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(_NAMES))
    schema = json.loads(text_of(name))
    if "properties" not in schema:
        return
    documents = [
        each for each in data.draw(st.lists(values(schema), min_size=1, max_size=3)) if not has_null_item(each)
    ]
    column = column_of(name)
    decoded = ColumnDecoder(column, None).decode(pa.array([json.dumps(each) for each in documents], pa.binary()))
    assert decoded.bad == []
    written = ColumnEncoder(column).encode(through_spark(decoded.column)).to_pylist()
    assert [json.loads(each) for each in written] == [
        written_form(each, schema, decoded.column.type) for each in documents
    ]
    validator = jsonschema.Draft202012Validator(schema, registry=registry())
    for each in written:
        validator.validate(json.loads(each))
