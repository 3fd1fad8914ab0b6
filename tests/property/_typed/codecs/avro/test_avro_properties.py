"""Avro as fastavro reads it: random schemas, values, evolutions."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kit.avro_resolution import NoValue, further_evolved, resolved, resolves, with_defaults
from kit.avro_schemas import evolved, schemas, values_of
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.encoding import AvroEncoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.bounds import SizeBudget
from pyspark_kafka.errors import SchemaError


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def plain(schema: Any, value: Any) -> Any:
    """What a column has, in the form that fastavro has."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if value is None or not others:
            return None
        if len(others) == 1:
            return plain(others[0], value)
        number = next((number for number in range(len(others)) if value[f"member{number}"] is not None), None)
        return None if number is None else plain(others[number], value[f"member{number}"])
    if value is None or isinstance(schema, str):
        return value
    if schema["type"] == "record":
        return {field["name"]: plain(field["type"], value[field["name"]]) for field in schema["fields"]}
    if schema["type"] == "array":
        return [plain(schema["items"], item) for item in value]
    if schema["type"] == "map":
        return {key: plain(schema["values"], item) for key, item in value}
    return value


def in_columns(schema: Any, value: Any) -> Any:
    """A value of fastavro with numbers as columns hold them: a float has 32 bits."""
    if isinstance(schema, list):
        wide = "double" in schema
        floats = [branch for branch in schema if branch == "float"]
        if isinstance(value, float) and floats and not wide:
            return in_columns("float", value)
        records = [branch for branch in schema if isinstance(branch, dict)]
        return in_columns(records[0], value) if isinstance(value, (dict, list)) and records else value
    if schema == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if isinstance(schema, str) or value is None:
        return value
    if schema["type"] == "record":
        return {field["name"]: in_columns(field["type"], value[field["name"]]) for field in schema["fields"]}
    if schema["type"] == "array":
        return [in_columns(schema["items"], item) for item in value]
    if schema["type"] == "map":
        return {key: in_columns(schema["values"], item) for key, item in value.items()}
    return value


@given(st.data())
def test_values_are_those_that_fastavro_reads(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(st.lists(values_of(schema), min_size=1, max_size=4))
    decoder = AvroDecoder(parse_schema(json.dumps(schema)))
    column, bad = decoder.decode(pa.array([encoded(schema, row) for row in rows], pa.binary()))
    column.validate(full=True)
    assert bad == []
    read = [
        fastavro.schemaless_reader(io.BytesIO(encoded(schema, row)), fastavro.parse_schema(schema), None)
        for row in rows
    ]
    assert [plain(schema, row) for row in column.to_pylist()] == read


@given(st.data())
def test_values_of_another_schema_are_those_that_fastavro_resolves(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    reader = data.draw(evolved(schema))
    row = data.draw(values_of(schema))
    raw = encoded(schema, row)
    try:
        expected = fastavro.schemaless_reader(
            io.BytesIO(raw), fastavro.parse_schema(schema), fastavro.parse_schema(reader)
        )
    except Exception:  # noqa: BLE001 - fastavro raises whatever it meets
        expected = None
    try:
        column, bad = AvroDecoder(parse_schema(json.dumps(schema)), parse_schema(json.dumps(reader))).decode(
            pa.array([raw], pa.binary())
        )
    except SchemaError:
        assert expected is None
        return
    column.validate(full=True)
    if expected is None:
        assert bad
    else:
        assert bad == []
        assert plain(reader, column.to_pylist()[0]) == in_columns(reader, expected)


@given(st.data())
def test_values_of_another_schema_are_those_of_the_specification(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    reader = data.draw(further_evolved(data.draw(evolved(schema)) if data.draw(st.booleans()) else schema))
    reader = with_defaults(reader) if data.draw(st.integers(0, 3)) == 0 else reader
    rows = data.draw(st.lists(values_of(schema), min_size=1, max_size=3))
    try:
        decoder = AvroDecoder(parse_schema(json.dumps(schema)), parse_schema(json.dumps(reader)))
    except SchemaError:
        assert not resolves(schema, reader)
        return
    assert resolves(schema, reader)
    column, bad = decoder.decode(pa.array([encoded(schema, row) for row in rows], pa.binary()))
    column.validate(full=True)
    wrong = {each.row for each in bad}
    for number, row in enumerate(rows):
        try:
            expected = resolved(schema, row, reader)
        except NoValue:
            assert number in wrong
            continue
        assert number not in wrong
        assert plain(reader, column[number].as_py()) == expected


@given(st.data())
def test_values_that_were_changed_are_read_or_named_and_spoil_no_other(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    row = data.draw(values_of(schema))
    raw = bytearray(encoded(schema, row))
    broken = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    broken = broken[: data.draw(st.integers(0, len(broken)))] + data.draw(st.binary(max_size=3))
    column, bad = AvroDecoder(parse_schema(json.dumps(schema))).decode(
        pa.array([bytes(raw), bytes(broken), bytes(raw)], pa.binary())
    )
    column.validate(full=True)
    assert [each.row for each in bad] in ([], [1])
    assert column[0] == column[2]
    if bad:
        assert column[1].as_py() is None


@given(st.data())
def test_columns_are_written_so_that_fastavro_reads_the_same_values(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(st.lists(values_of(schema), min_size=1, max_size=4))
    parsed = parse_schema(json.dumps(schema))
    read = pa.array([encoded(schema, row) for row in rows], pa.binary())
    column, _ = AvroDecoder(parsed).decode(read)
    written = AvroEncoder(parsed).encode(column, b"\0\1")
    again = [
        fastavro.schemaless_reader(io.BytesIO(each[2:]), fastavro.parse_schema(schema), None)
        for each in written.to_pylist()
    ]
    assert again == [
        fastavro.schemaless_reader(io.BytesIO(each), fastavro.parse_schema(schema), None) for each in read.to_pylist()
    ]
    part = column.slice(1)
    assert AvroEncoder(parsed).encode(part, b"\0\1").to_pylist() == written.to_pylist()[1:]


@given(st.data(), st.integers(0, 100))
def test_values_of_a_batch_have_no_more_cells_than_their_bytes_and_the_batch_allow(
    data: st.DataObject, free: int
) -> None:
    schema = {"type": "array", "items": data.draw(schemas())}
    rows = data.draw(st.lists(st.lists(values_of(schema["items"]), max_size=20), min_size=1, max_size=4))
    values = [encoded(schema, row) for row in rows]
    decoder = AvroDecoder(parse_schema(json.dumps(schema)))
    budget = SizeBudget(1, free)
    column, bad = decoder.decode(pa.array(values, pa.binary()), budget=budget)
    cells = [cells_of(row, column.type) for row in decoder.decode(pa.array(values, pa.binary())).column.to_pylist()]
    for row, (count, value) in enumerate(zip(cells, values, strict=True)):
        surplus = max(0, count - len(value))
        assert (row in {each.row for each in bad}) == (surplus > free)
        free -= 0 if surplus > free else surplus
    assert budget.free == free


def cells_of(value: Any, kind: pa.DataType) -> int:
    """Return how many cells the items of a value have."""
    if value is None:
        return 0
    if pa.types.is_struct(kind):
        return sum(cells_of(value[each.name], each.type) for each in kind)
    if pa.types.is_list(kind):
        return sum(width(kind.value_type) + cells_of(each, kind.value_type) for each in value)
    if pa.types.is_map(kind):
        return sum(2 + width(kind.item_type) + cells_of(each, kind.item_type) for _, each in value)
    return 0


def width(kind: pa.DataType) -> int:
    """Return how many cells a row of a type has, without those of lists and maps in it."""
    return 1 + (sum(width(each.type) for each in kind) if pa.types.is_struct(kind) else 0)
