"""Avro of each type that the page names, read as a column of Spark and written again."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.typed_page import through_spark, types_of
from pyspark_kafka.formats import decode, encode

_DAY_US = 86_400_000_000
_INT64 = (1 << 63) - 1
# What a number of a logical type may be, so that a column has it.
_RANGES = {
    "time-millis": (0, _DAY_US // 1000 - 1),
    "time-micros": (0, _DAY_US - 1),
    "timestamp-millis": (-(_INT64 // 1000), _INT64 // 1000),
    "local-timestamp-millis": (-(_INT64 // 1000), _INT64 // 1000),
}
_TYPES = [json.loads(avro) for avro, _ in types_of("Avro")]
_OTHER_TYPES = [
    {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 9},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
    {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 127},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
    {"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"},
]


def without_logical_types(schema: Any) -> Any:
    """Return a schema whose values fastavro reads and writes as they are."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    words = {word: given for word, given in schema.items() if word not in ("logicalType", "precision", "scale")}
    for word in ("type", "items", "values"):
        if word in words:
            words[word] = without_logical_types(words[word])
    if "fields" in words:
        words["fields"] = [{**field, "type": without_logical_types(field["type"])} for field in words["fields"]]
    return words


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values of a schema as fastavro takes them without logical types."""
    if isinstance(schema, list):
        return st.one_of([values_of(branch) for branch in schema])
    words = schema if isinstance(schema, dict) else {"type": schema}
    kind, logical = words["type"], words.get("logicalType")
    if kind == "record":
        return st.fixed_dictionaries({field["name"]: values_of(field["type"]) for field in words["fields"]})
    if kind == "array":
        return st.lists(values_of(words["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values_of(words["values"]), max_size=3)
    if logical == "decimal" and words["scale"] <= words["precision"] <= 38:
        most = 10 ** words["precision"] - 1
        return st.integers(-most, most).map(lambda number: two_complement(number, words.get("size")))
    if logical == "uuid" and kind == "string":
        return st.uuids().map(str)
    size = 31 if kind == "int" else 63
    numbers = _RANGES.get(str(logical), (-(1 << size), (1 << size) - 1))
    plain: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(*numbers),
        "long": st.integers(*numbers),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(width=32, allow_nan=False),
        "bytes": st.binary(max_size=8),
        "string": st.text(max_size=8),
    }
    if kind == "fixed":
        return st.binary(min_size=words["size"], max_size=words["size"])
    return st.sampled_from(words["symbols"]) if kind == "enum" else plain[kind]


def two_complement(number: int, size: int | None) -> bytes:
    """Return a number as Java's BigInteger writes it, or in a fixed size."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(size or bits // 8 + 1, "big", signed=True)


def within(schema: Any) -> list[Any]:
    """Return a type alone, and in each other type that may have it."""
    found = [schema, {"type": "array", "items": schema}, {"type": "map", "values": schema}]
    if isinstance(schema, list):
        return found
    other = {"type": "enum", "name": "other", "symbols": ["X"]}
    return [*found, *([] if schema == "null" else [["null", schema], [schema, "null"], ["null", other, schema]])]


@pytest.mark.parametrize("schema", [*_TYPES, *_OTHER_TYPES], ids=json.dumps)
@given(data=st.data())
def test_values_are_written_as_they_were_read(schema: Any, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(within(schema)))
    record = {"type": "record", "name": "value", "fields": [{"name": "x", "type": kind}]}
    raw = fastavro.parse_schema(without_logical_types(record))
    values = []
    for row in data.draw(st.lists(values_of(record), min_size=1, max_size=4)):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, raw, row)
        values.append(out.getvalue())
    column = through_spark(decode(pa.array(values, pa.binary()), "avro", schema=json.dumps(record)).column)
    again = encode(column, "avro", schema=json.dumps(record)).to_pylist()
    assert [numbers_of(raw, each) for each in again] == [numbers_of(raw, each) for each in values]


def numbers_of(schema: Any, value: bytes) -> Any:
    """Return what fastavro reads, without the branch of a union: a column of two types of numbers has one of them."""
    return fastavro.schemaless_reader(io.BytesIO(value), schema, None)
