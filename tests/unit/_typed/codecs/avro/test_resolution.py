"""Which branch of the reader's union a value goes to, and which named types are the same."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka.errors import SchemaError


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


def decimal(precision: Any, scale: Any, kind: str = "bytes", **words: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": "decimal", "precision": precision, "scale": scale, **words}


def in_fixed(precision: Any, scale: Any) -> dict[str, Any]:
    return decimal(precision, scale, "fixed", name="F", size=2)


SCALES = [
    (decimal(10, 2), decimal(12, 4)),
    (decimal(64, 2), decimal(12, 4)),
    (decimal(12, 4), decimal(64, 2)),
    (decimal(64, 4), decimal(64, 2)),
    (decimal(64, 127), decimal(38, 2)),
    (decimal(64, -127), decimal(38, 2)),
    (decimal("64", 2), decimal(12, 4)),
    (in_fixed(64, 2), in_fixed(4, 0)),
    (in_fixed(64, 2), in_fixed(64, 3)),
]
AROUND: dict[str, Callable[[Any], Any]] = {
    "alone": lambda kind: kind,
    "nullable": lambda kind: ["null", kind],
    "in a list": lambda kind: {"type": "array", "items": kind},
    "in a map": lambda kind: {"type": "map", "values": kind},
    "in a union": lambda kind: ["string", "null", kind, "int"],
    "in a record": lambda kind: record("R", a={"type": kind}),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("written", "wanted"), SCALES)
def test_decimals_of_two_scales_are_never_one_column(written: Any, wanted: Any, around: str) -> None:
    place = AROUND[around]
    scales = f"a decimal of scale {written['scale']}, the reader wants one of scale {wanted['scale']}"
    values = {"nullable": [b"\x02\x02\x05", b"\x00"], "in a union": [b"\x04\x02\x05", b"\x02"]}
    if around in values:
        # Only the values of this branch are bad.
        found = decoder(place(written), place(wanted)).decode(pa.array(values[around]))
        assert [each.row for each in found.bad] == [0]
        return
    with pytest.raises(SchemaError, match=scales):
        decoder(place(written), place(wanted))


def test_decimals_of_one_scale_and_plain_bytes_are_read() -> None:
    five = b"\x04\x01\xf4"
    assert str(read(five, decimal(64, 2), decimal(38, 2))) == "5.00"
    assert str(read(five, "bytes", decimal(38, 2))) == "5.00"
    assert read(five, decimal(10, 2), "bytes") == b"\x01\xf4"
    assert read(five, decimal(10, 2), decimal(64, 2)) == b"\x01\xf4"


def test_default_of_a_decimal_has_the_scale_of_its_reader() -> None:
    wanted = record("R", d={"type": decimal(64, 2), "default": "\x01"}, e={"type": decimal(9, 2), "default": "\x05"})
    assert str(read(b"", record("R"), wanted)["e"]) == "0.05"


def test_nanoseconds_beside_an_int_in_a_union_keep_their_unit() -> None:
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    found = decoder(["int", {"type": "long", "logicalType": "timestamp-micros"}], ["int", nanos])
    column, bad = found.decode(pa.array([b"\x00\x02", b"\x02\x02"]))
    assert column.to_pylist() == [1, None]
    assert [each.row for each in bad] == [1]


def test_branch_of_the_same_type_and_another_unit_leaves_none_to_be_promoted_to() -> None:
    written = {"type": "long", "logicalType": "timestamp-micros"}
    with pytest.raises(SchemaError, match="the reader wants long or double"):
        decoder(written, [{"type": "long", "logicalType": "timestamp-nanos"}, "double"])


@pytest.mark.parametrize(
    ("kind", "default"), [("string", None), ("double", "x"), ({"type": "map", "values": "int"}, []), ("int", 0.5)]
)
def test_default_that_does_not_fit_is_refused_where_it_is_needed(kind: Any, default: Any) -> None:
    wanted = record("R", a={"type": kind, "default": default})
    decoder(record("R", a={"type": kind}), wanted)
    with pytest.raises(SchemaError, match="whose default does not fit its type"):
        decoder(record("R"), wanted)
