"""Schemas in Avro that become much larger than their text."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from kit.texts import said
from pyspark_kafka._typed.codecs import bounds
from pyspark_kafka._typed.codecs.avro import columns
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import Schema, parse_schema
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.codecs.zigzag import put_zigzag
from pyspark_kafka.errors import SchemaError


def doubled(count: int, leaf: str) -> Any:
    """Return records each of which has the one before it twice."""
    made: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": leaf}]}
    for number in range(1, count + 1):
        fields = [{"name": "a", "type": made}, {"name": "b", "type": f"R{number - 1}"}]
        made = {"type": "record", "name": f"R{number}", "fields": fields}
    return made


def parsed(given: Any) -> Schema:
    return parse_schema(json.dumps(given))


def top(*more: Any) -> Schema:
    fields = [{"name": "n", "type": "int"}, *({"name": "m", "type": each} for each in more)]
    return parsed({"type": "record", "name": "Top", "fields": fields})


def test_records_that_are_too_many_parts_as_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="more than 20000 parts"):
        AvroDecoder(parsed(doubled(25, "int")))
    assert AvroDecoder(parsed(doubled(10, "int"))).arrow_type.num_fields == 2


def test_too_many_parts_in_a_member_of_a_union_that_is_not_wanted_are_refused() -> None:
    with pytest.raises(SchemaError, match="more than 20000 parts"):
        AvroDecoder(parsed(["null", "int", doubled(25, "int")]), None, pa.struct([("member0", pa.int32())]))


def test_how_long_a_doubled_record_is_at_least_is_found_at_once() -> None:
    # 2 ** 40 visits without a memory of what was counted.
    writer = top({"type": "array", "items": doubled(40, "int")})
    found = AvroDecoder(writer, top()).decode(pa.array([b"\x02\x00"]))
    assert found.column.to_pylist() == [{"n": 1}]


def test_records_without_a_byte_that_are_skipped_are_bounded() -> None:
    # A value of one byte would be skipped in 2 ** 40 steps.
    with pytest.raises(SchemaError, match="more than 100000 parts without a byte"):
        AvroDecoder(top(doubled(40, "null")), top())


def test_branches_of_a_writer_that_multiply_are_refused() -> None:
    # Each record has a union of two, and both of them the next two, all of which are read as one column.
    reader: Any = "int"
    written: Any = "int"
    for number in range(20):
        reader = {"type": "record", "name": f"X{number}", "fields": [{"name": "x", "type": reader}]}
        branches = [
            {"type": "record", "name": f"A{number}", "fields": [{"name": "x", "type": written}]},
            {"type": "record", "name": f"B{number}", "fields": [{"name": "x", "type": _names(written)}]},
        ]
        written = branches
    with pytest.raises(SchemaError, match="more than 100000 steps"):
        AvroDecoder(parsed(written), parsed(reader))


def _names(written: Any) -> Any:
    return [each["name"] for each in written] if isinstance(written, list) else written


def wide(fields: int) -> Any:
    """Return a record of that many fields."""
    return {"type": "record", "name": "Wide", "fields": [{"name": f"f{n}", "type": "int"} for n in range(fields)]}


def varint(number: int) -> bytes:
    written = bytearray()
    put_zigzag(number, written)
    return bytes(written)


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> int:
    """Plain Python takes seconds up to the bound itself."""
    monkeypatch.setattr(bounds, "FREE_CELLS", 1 << 16)
    return 1 << 16


def test_bytes_that_become_many_cells_are_a_bad_value(few_cells: int) -> None:
    # A null is one byte, and 1,000 cells.
    writer = parsed({"type": "array", "items": ["null", wide(999)]})
    few, many = (varint(count) + bytes(count) + b"\x00" for count in (20, few_cells // 900))
    found = AvroDecoder(writer).decode(pa.array([few, many, few]))
    assert found.column.to_pylist() == [[None] * 20, None, [None] * 20]
    assert found.bad == [BadValue(1, Reason.DECODE_FAILED, f"{bounds.TOO_MANY_CELLS}, after 2 bytes")]
    found.column.validate(full=True)
    # What is not wanted has no cells.
    reader = parsed({"type": "array", "items": ["null", {**wide(0), "fields": []}]})
    assert AvroDecoder(writer, reader).decode(pa.array([many])).bad == []


def test_values_of_a_batch_have_one_bound_of_cells_beyond_their_shares(few_cells: int) -> None:
    writer = parsed({"type": "array", "items": ["null", wide(999)]})
    item = 1000 - bounds.CELLS_PER_BYTE
    many = varint(20) + bytes(20) + b"\x00"
    count = few_cells // (20 * item)
    # An int of one byte has one cell: within its share it is read whatever stands before it.
    within = varint(1) + b"\x02" + bytes(999) + b"\x00"
    budget = bounds.cell_budget()
    found = AvroDecoder(writer).decode(pa.array([many] * (count + 2) + [within]), budget=budget)
    assert [each.row for each in found.bad] == [count, count + 1]
    assert len(found.column[count + 2]) == 1
    assert budget.free == few_cells - count * (20_000 - bounds.CELLS_PER_BYTE * len(many))


def test_blocks_of_a_map_have_one_bound_of_cells(few_cells: int) -> None:
    writer = parsed({"type": "map", "values": ["null", wide(997)]})
    block = b"\x02\x00\x00"
    most = few_cells // (1000 - bounds.CELLS_PER_BYTE * len(block))
    decoder = AvroDecoder(writer)
    for count in (4, most, most + 1):
        found = decoder.decode(pa.array([block * count + b"\x00"]))
        assert bool(found.bad) == (count > most)


def test_values_of_arrays_of_values_without_a_byte_are_bounded() -> None:
    writer = parsed({"type": "array", "items": {**wide(0), "fields": [{"name": "n", "type": "null"}]}})
    found = AvroDecoder(writer).decode(pa.array([varint(count) + b"\x00" for count in (2000, 70_000)]))
    assert [len(each or ()) for each in found.column.to_pylist()] == [2000, 0]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ({"type": "array", "items": "int"}, [1] * 1000),
        ({"type": "map", "values": "int"}, {str(each): 1 for each in range(400)}),
        ("string", "x" * 8000),
    ],
)
@pytest.mark.usefixtures("few_cells")
def test_defaults_of_items_have_cells_too(kind: Any, default: Any) -> None:
    item = {"type": "record", "name": "Item", "fields": [{"name": "a", "type": "int"}]}
    filled = {**item, "fields": [*item["fields"], {"name": "b", "type": kind, "default": default}]}
    writer, reader = (parsed({"type": "array", "items": each}) for each in (item, filled))
    values = pa.array([varint(count) + bytes(count) + b"\x00" for count in (3, 2_000)])
    found = AvroDecoder(writer, reader).decode(values)
    shown = list(default.items()) if isinstance(default, dict) else default
    assert found.column.to_pylist() == [[{"a": 0, "b": shown}] * 3, None]
    # Once a value they are no more than columns are.
    found = AvroDecoder(parsed(item), parsed(filled)).decode(pa.array([b"\x00"] * 3))
    assert found.bad == []


def test_items_whose_bytes_are_enough_for_their_cells_are_not_bounded() -> None:
    writer = parsed({"type": "array", "items": wide(200)})
    count = 300
    found = AvroDecoder(writer).decode(pa.array([varint(count) + bytes(200 * count) + b"\x00"]))
    assert found.bad == []
    assert len(found.column[0]) == count


def test_records_that_hold_themselves_twice_are_refused_before_they_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [{"name": "v", "type": "int"}, *({"name": each, "type": ["null", "Node"]} for each in ("left", "right"))]
    node = parsed({"type": "record", "name": "Node", "fields": fields})
    assert AvroDecoder(node, recursive_field_max_depth=10).arrow_type.num_fields == 3
    monkeypatch.setattr(columns, "_simple", lambda *_: pytest.fail("a column is built"))
    with pytest.raises(SchemaError) as caught:
        AvroDecoder(node, recursive_field_max_depth=20)
    assert said(caught.value) == (
        "[SCHEMA_INVALID] The Avro schema cannot be used: with recursiveFieldMaxDepth 20 it has more than 20000 parts "
        "as columns. Hint: Set option 'recursiveFieldMaxDepth' to a smaller number, or name the fields to read with "
        ".schema()."
    )


def test_items_that_gain_columns_by_a_newer_schema_are_read() -> None:
    fields = [{"name": f"n{number}", "type": ["null", "string"], "default": None} for number in range(300)]
    item = {"type": "record", "name": "Item", "fields": [{"name": "a", "type": "int"}]}
    writer = parsed({"type": "array", "items": item})
    reader = parsed({"type": "array", "items": {**item, "fields": [*item["fields"], *fields]}})
    found = AvroDecoder(writer, reader).decode(pa.array([varint(1_000) + bytes(1_000) + b"\x00"]))
    assert found.bad == []
    long = {**item, "fields": [*item["fields"], {"name": "s", "type": "string", "default": "x" * 40_000}]}
    found = AvroDecoder(writer, parsed({"type": "array", "items": long})).decode(
        pa.array([varint(100) + bytes(100) + b"\x00"])
    )
    assert found.bad == []
