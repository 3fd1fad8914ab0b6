"""Which branch of the reader's union a value goes to, and which named types are the same."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyspark_kafka.errors import SchemaError
from pyspark_kafka.formats.avro.decoding import AvroDecoder
from pyspark_kafka.formats.avro.schema import parse_schema


def record(name: str, *aliases: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "aliases": list(aliases),
        "fields": [{"name": each, **kind} for each, kind in fields.items()],
    }


def enum(name: str, *symbols: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), "aliases": list(aliases)}


def fixed(name: str, *aliases: str) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": 1, "aliases": list(aliases)}


def decoder(writer: Any, reader: Any) -> AvroDecoder:
    return AvroDecoder(parse_schema(json.dumps(writer)), parse_schema(json.dumps(reader)))


def read(raw: bytes, writer: Any, reader: Any) -> Any:
    column, bad = decoder(writer, reader).decode(pa.array([raw], pa.binary()))
    assert bad == []
    return column[0].as_py()


def member(raw: bytes, writer: Any, reader: Any) -> tuple[str, Any]:
    """Return the only member that is there."""
    ((name, value),) = ((name, value) for name, value in read(raw, writer, reader).items() if value is not None)
    return name, value


def oracle(raw: bytes, writer: Any, reader: Any) -> Any:
    """Return what fastavro reads: a value of a named type with the name of the reader's type."""
    return fastavro.schemaless_reader(
        io.BytesIO(raw), fastavro.parse_schema(writer), fastavro.parse_schema(reader), return_named_type=True
    )


EVENTS = [record("a.Event", x={"type": "int", "default": 0}), record("b.Event", y={"type": "int"})]
LETTERS = [enum("a.E", "X"), enum("b.E", "X", "Y")]
X = {"type": "int", "default": 0}


@pytest.mark.parametrize(
    ("schema", "raw", "expected"),
    [
        (EVENTS, b"\x00\x02", ("member0", {"x": 1})),
        (EVENTS, b"\x02\x04", ("member1", {"y": 2})),
        (LETTERS, b"\x00\x00", ("member0", "X")),
        (LETTERS, b"\x02\x00", ("member1", "X")),
        (LETTERS, b"\x02\x02", ("member1", "Y")),
        ([fixed("a.F"), fixed("b.F")], b"\x02\x07", ("member1", b"\x07")),
    ],
)
def test_a_branch_goes_to_the_type_of_its_full_name(schema: Any, raw: bytes, expected: tuple[str, Any]) -> None:
    assert member(raw, schema, schema) == expected
    number = int(expected[0].removeprefix("member"))
    assert oracle(raw, schema, schema) == (schema[number]["name"], expected[1])


@pytest.mark.parametrize(
    ("writer", "reader", "raw", "expected"),
    [
        # An alias, before a record whose fields fit too.
        ([record("A", x=X), record("B", x=X)], [record("B2", "B", x=X), record("A2", "A", x=X)], b"\x00\x02", 1),
        ([record("A", x=X), record("B", x=X)], [record("B2", "B", x=X), record("A2", "A", x=X)], b"\x02\x02", 0),
        ([record("n.A", x=X), "null"], [record("m.B", x=X), record("m.C", "n.A", x=X)], b"\x00\x02", 1),
        (
            [enum("A", "X"), enum("B", "X")],
            [enum("B2", "X", aliases=("B",)), enum("A2", "X", aliases=("A",))],
            b"\x00\x00",
            1,
        ),
        # A name without its namespace, before a record of another name.
        ([record("a.A", x=X), "null"], [record("c.B", x=X), record("c.A", x=X)], b"\x00\x02", 1),
    ],
)
def test_a_branch_goes_to_its_alias_or_namesake_next(writer: Any, reader: Any, raw: bytes, expected: int) -> None:
    name, value = member(raw, writer, reader)
    assert name == f"member{expected}"
    assert oracle(raw, writer, reader) == (reader[expected]["name"], value)


def test_a_branch_goes_to_its_full_name_before_an_alias_and_to_an_alias_before_a_namesake() -> None:
    writer = [enum("a.E", "X"), "null"]
    assert member(b"\0\0", writer, [enum("b.F", "X", aliases=("a.E",)), enum("a.E", "X")]) == ("member1", "X")
    assert member(b"\0\0", writer, [enum("b.E", "X"), enum("b.F", "X", aliases=("a.E",))]) == ("member1", "X")
    assert member(b"\0\0", writer, [enum("b.F", "X", aliases=("E",)), enum("c.E", "X")]) == ("member1", "X")


def test_a_branch_goes_to_no_other_record_if_its_own_does_not_fit() -> None:
    writer = [record("A", x={"type": "string"}), "int"]
    reader = [record("A", x={"type": "int"}), record("B", y=X), "int"]
    column, bad = decoder(writer, reader).decode(pa.array([b"\x00\x02z", b"\x02\x02"], pa.binary()))
    assert [each.row for each in bad] == [0]
    assert column.to_pylist() == [None, {"member0": None, "member1": None, "member2": 1}]


def test_a_branch_goes_to_another_record_if_one_of_its_name_in_another_namespace_does_not_fit() -> None:
    writer = [record("w.A", x={"type": "string"}), "int"]
    reader = [record("old.A", x={"type": "int"}), record("r.A2", x={"type": "string"})]
    assert member(b"\x00\x02z", writer, reader) == ("member1", {"x": "z"})


@pytest.mark.parametrize(
    ("writer", "reader", "raw", "expected"),
    [
        (enum("Old", "A", "B"), enum("New", "A", "B", aliases=("Old",)), b"\x02", "B"),
        (enum("n.Old", "A"), enum("n.New", "A", aliases=("Old",)), b"\x00", "A"),
        (enum("n.Old", "A"), enum("m.New", "A", aliases=("n.Old",)), b"\x00", "A"),
        (enum("n.Old", "A"), enum("m.New", "A", aliases=("Old",)), b"\x00", "A"),
        (fixed("Old"), fixed("New", "Old"), b"\x07", b"\x07"),
    ],
)
def test_an_enum_or_fixed_is_read_by_an_alias(writer: Any, reader: Any, raw: bytes, expected: Any) -> None:
    assert read(raw, writer, reader) == expected
    assert oracle(raw, writer, reader) == expected


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (enum("Old", "A"), enum("New", "A", aliases=("Older",))),
        (enum("n.Old", "A"), enum("New", "A", aliases=("m.Old",))),
        (enum("Old", "A", aliases=("New",)), enum("New", "A")),
        (fixed("Old"), fixed("New")),
    ],
)
def test_an_enum_or_fixed_of_another_name_is_refused(writer: Any, reader: Any) -> None:
    with pytest.raises(SchemaError, match=r"\[SCHEMA_RESOLUTION_FAILED\]"):
        decoder(writer, reader)
    with pytest.raises(fastavro.read.SchemaResolutionError):
        oracle(b"\0", writer, reader)
