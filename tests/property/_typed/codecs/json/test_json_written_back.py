"""JSON of each type that the page names, read as a column of Spark and written again."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.typed_page import through_spark, types_of
from pyspark_kafka.formats import decode, encode

_DECIMAL = {"title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes"}
_OTHER_SCHEMAS: list[Any] = [
    {"type": "null"},
    {"type": "object", "additionalProperties": False},
    {"type": "array", "items": {"type": ["null", "string"]}},
    {"type": "object", "required": ["a"], "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "number"}}},
    {"type": "number", **_DECIMAL, "connect.parameters": {"scale": "0"}},
    {"type": "number", **_DECIMAL, "connect.parameters": {"scale": "38"}},
    {},
    {"type": ["string", "integer"]},
    {"type": "array", "items": {"type": "object"}},
    {"type": "object", "additionalProperties": {"enum": ["a", 1]}},
]
_SCHEMAS = [*(json.loads(schema) for schema, _ in types_of("JSON Schema")), *_OTHER_SCHEMAS]
_ANYTHING = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner | st.none(), max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


class Value(NamedTuple):
    """A part of a document, and what is written for it; None is left out of an object."""

    given: Any
    written: Any


@st.composite
def values(draw: st.DrawFn, schema: Any) -> Value:
    """Values that fit a schema."""
    for word in ("oneOf", "allOf"):
        if word in schema:
            return draw(values(next(each for each in schema[word] if each != {"type": "null"})))
    if "$ref" in schema:
        both = {**schema["$defs"]["x"]["properties"], **schema["properties"]}
        return draw(_objects({"properties": both}))
    kinds = schema.get("type")
    if isinstance(kinds, list) and len(kinds) == 2 and "null" in kinds:
        kind = next(each for each in kinds if each != "null")
        return draw(st.just(Value(None, None)) | values({**schema, "type": kind}))
    if "properties" in schema:
        return draw(_objects(schema))
    if kinds == "object" and schema.get("additionalProperties"):
        inner = draw(st.dictionaries(st.text(max_size=3), values(schema["additionalProperties"]), max_size=3))
        return Value(
            {name: each.given for name, each in inner.items()}, {name: each.written for name, each in inner.items()}
        )
    if kinds == "array" and "items" in schema:
        items = draw(st.lists(values(schema["items"]), max_size=3))
        return Value([each.given for each in items], [each.written for each in items])
    if schema.get("title") == _DECIMAL["title"]:
        return draw(_decimals(int(schema["connect.parameters"]["scale"])))
    return draw(_plain(schema).map(lambda each: Value(each, each)))


def _plain(schema: Any) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("type") == "object":
        return (
            st.just({})
            if "additionalProperties" in schema
            else st.dictionaries(st.text(max_size=3), _ANYTHING, max_size=2)
        )
    texts = {"date-time": st.datetimes().map(_moment), "date": st.dates().map(str)}
    if schema.get("contentEncoding"):
        return st.binary(max_size=5).map(lambda raw: base64.b64encode(raw).decode())
    simple: dict[Any, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(-(1 << 63), (1 << 63) - 1),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "string": texts.get(schema.get("format"), st.text(max_size=5)),
    }
    return simple[schema["type"]] if isinstance(schema.get("type"), str) else _ANYTHING


def _moment(at: dt.datetime) -> str:
    digits = "" if not at.microsecond else "milliseconds" if not at.microsecond % 1000 else "microseconds"
    return f"{at.isoformat(timespec=digits or 'seconds')}Z"


@st.composite
def _decimals(draw: st.DrawFn, scale: int) -> Value:
    unscaled = draw(st.integers(-(10**38) + 1, 10**38 - 1))
    number = Decimal(f"{unscaled}e-{scale}")
    if draw(st.booleans()):
        return Value(number, number)
    raw = unscaled.to_bytes(17, "big", signed=True)
    return Value(base64.b64encode(raw).decode(), number)


@st.composite
def _objects(draw: st.DrawFn, schema: Any) -> Value:
    found = {name: draw(values(each)) for name, each in schema["properties"].items()}
    required = schema.get("required", ())
    kept = {name: each for name, each in found.items() if name in required or draw(st.booleans())}
    return Value(
        {name: each.given for name, each in kept.items()},
        {name: each.written for name, each in kept.items() if each.written is not None or name in required},
    )


def text_of(value: Any) -> str:
    """Return a value as JSON; decimals have all their digits."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name)}:{text_of(each)}' for name, each in value.items())}}}"
    return f"[{','.join(map(text_of, value))}]" if isinstance(value, list) else json.dumps(value)


def numbers(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


@pytest.mark.parametrize("schema", _SCHEMAS, ids=json.dumps)
@given(data=st.data())
def test_documents_are_written_as_they_were_read(schema: Any, data: st.DataObject) -> None:
    around = data.draw(st.sampled_from(("property", "required", "items", "values")))
    inner = {
        "items": {"type": "array", "items": schema},
        "values": {"type": "object", "additionalProperties": schema},
    }.get(around, schema)
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    root = {"type": "object", "properties": {"p": inner}, **definitions}
    if around == "required" and schema.get("type") != "null":
        root["required"] = ["p"]
    found = [each for each in data.draw(st.lists(values(root), min_size=1, max_size=4)) if _fits(each.given, around)]
    documents = [text_of(each.given) for each in found]
    if not documents:
        return
    column = through_spark(decode(pa.array(documents), "json", schema=json.dumps(root), open_parts="text").column)
    again = encode(column, "json", schema=json.dumps(root), open_parts="text").to_pylist()
    assert [numbers(each) for each in again] == [numbers(text_of(each.written)) for each in found]


def _fits(value: Any, around: str) -> bool:
    """Return whether no null is among the items of a list or the values of a map, which have none in the schema."""
    inner = value.get("p")
    items = inner.values() if isinstance(inner, dict) else inner
    return around not in ("items", "values") or items is None or None not in items
