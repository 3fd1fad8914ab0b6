"""Schemas of Avro from their JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka._typed.codecs.avro.schema import (
    Array,
    Enum,
    Field,
    Primitive,
    Record,
    Reference,
    Union,
    load_schema_text,
    parse_schema,
)
from pyspark_kafka.errors import SchemaError


def test_names_are_resolved_with_their_namespaces() -> None:
    schema = parse_schema(
        '{"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "next", "type": ["null", "R"]}]}'
    )
    expected = Record("n.R", (Field("next", Union((Primitive("null"), Reference("n.R")))),))
    assert schema.root == expected
    assert schema.resolve(Reference("n.R")) == expected


@pytest.mark.parametrize("text", ["long", '"long"', '{"type": "long"}', ' {"type": "long"} '])
def test_a_primitive_has_several_forms(text: str) -> None:
    assert parse_schema(text).root == Primitive("long")


def test_an_enum_keeps_its_default() -> None:
    text = '{"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}}'
    assert parse_schema(text).root == Array(Enum("E", ("A",), "A"))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"type": "nothing"}',
        '{"type": "array"}',
        '{"type": "fixed", "name": "F", "size": "x"}',
        '{"type": "map"}',
        '{"type": 5}',
        '{"type": "enum", "name": "E"}',
        '{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
        '{"type": "record", "fields": []}',
        '{"type": "record", "name": "R", "fields": {}}',
        '{"type": "record", "name": "R", "fields": [{"name": "a"}]}',
        '{"type": "record", "name": "R", "fields": [{"type": "int"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
        "Missing",
        '["null", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "Missing"}]}]',
        "[" * 2000,
        '{"type": "array", "items": ' * 100 + '"int"' + "}" * 100,
        '"' + "a" * 2_000_000 + '"',
    ],
)
def test_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"\[SCHEMA_INVALID\] The Avro schema cannot be used: "):
        parse_schema(text)


def record(name: str, *types: Any, **words: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{number}", "type": kind} for number, kind in enumerate(types)],
        **words,
    }


def field_types(schema: Any) -> list[Any]:
    root = parse_schema(json.dumps(schema)).root
    assert isinstance(root, Record)
    return [each.type for each in root.fields]


LONE = {"type": "enum", "name": "E", "namespace": "", "symbols": ["A"]}
SPACED = {"type": "enum", "name": "E", "symbols": ["B"]}


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        # As Java's ParseContext does it: of the namespace first, else without one.
        ([LONE, "E"], [Enum("E", ("A",)), Reference("E")]),
        ([LONE, {"type": "E"}], [Enum("E", ("A",)), Reference("E")]),
        ([LONE, SPACED, "E"], [Enum("E", ("A",)), Enum("n.E", ("B",)), Reference("n.E")]),
        ([LONE, record("m.I", "E")], [Enum("E", ("A",)), Record("m.I", (Field("f0", Reference("E")),))]),
        ([{**SPACED, "name": ".E"}, "E", ".E"], [Enum("E", ("B",)), Reference("E"), Reference("E")]),
        ([SPACED, "n.E", "E"], [Enum("n.E", ("B",)), Reference("n.E"), Reference("n.E")]),
        # Before its definition, as in Avro 1.12.
        (["E", SPACED], [Reference("n.E"), Enum("n.E", ("B",))]),
        ([{**SPACED, "namespace": None}, "E"], [Enum("n.E", ("B",)), Reference("n.E")]),
    ],
)
def test_name_is_found_in_its_namespace_or_without_one(types: Any, expected: Any) -> None:
    assert field_types(record("R", *types, namespace="n")) == expected


def test_record_without_a_namespace_holds_itself_within_another() -> None:
    schema = parse_schema(json.dumps(record("Node", record("m.Other", ["null", "Node"]))))
    inner = schema.named["m.Other"]
    assert isinstance(inner, Record)
    assert inner.fields[0].type == Union((Primitive("null"), Reference("Node")))


def test_type_is_defined_twice_if_both_are_alike() -> None:
    inner = record("I", LONE, namespace="x")
    assert field_types(record("R", inner, inner, ["null", inner], LONE)) == [
        Record("x.I", (Field("f0", Enum("E", ("A",))),)),
        Record("x.I", (Field("f0", Enum("E", ("A",))),)),
        Union((Primitive("null"), Record("x.I", (Field("f0", Enum("E", ("A",))),)))),
        Enum("E", ("A",)),
    ]


D2, D4 = ({"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": scale} for scale in (2, 4))
OTHERS = [
    (SPACED, LONE),
    (record("I", "int"), record("I", "long")),
    (record("I", {"type": "array", "items": "int"}), record("I", {"type": "map", "values": "int"})),
    (record("I", D2), record("I", D4)),
    ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}),
]


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_type_that_is_defined_twice_and_not_alike_is_refused(first: Any, second: Any) -> None:
    with pytest.raises(SchemaError, match=r"type '\w' is defined twice, and not alike"):
        field_types(record("R", first, second))


def test_type_that_is_defined_within_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match="type 'R' is defined within itself"):
        field_types(record("R", record("R", "int")))


@pytest.mark.parametrize(
    ("kind", "default"),
    [("string", None), ("double", 0), ("boolean", "false"), ({"type": "map", "values": "int"}, []), (["int"], "x")],
)
def test_default_is_not_looked_at_before_it_is_needed(kind: Any, default: Any) -> None:
    root = parse_schema(
        json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind, "default": default}]})
    ).root
    assert isinstance(root, Record)
    assert (root.fields[0].has_default, root.fields[0].default) == (True, default)


def test_default_of_an_enum_that_is_no_symbol_is_ignored() -> None:
    assert parse_schema('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}').root == Enum("E", ("A",))


def test_undefined_type_name_is_shortened_in_the_error() -> None:
    with pytest.raises(SchemaError, match=f"type '{'a' * 100}…' is not defined in it"):
        parse_schema("a" * 5000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long", "long"),
        (" shop.Order\n", "shop.Order"),
        ('\ufeff{"type": "long"}', {"type": "long"}),
        ("\ufefflong", "long"),
        ('// of orders\n{"type": /* 64 bits */ "long"}', {"type": "long"}),
        ('/** "a" */ ["null", "long"] // the end', ["null", "long"]),
        ('{"doc": "http://a /* b */ \\" // c"} // d', {"doc": 'http://a /* b */ " // c'}),
    ],
)
def test_text_is_read_with_comments_and_a_mark(text: str, expected: Any) -> None:
    assert load_schema_text(text) == expected


@pytest.mark.parametrize("text", ["", "shop order", "<avro secret='x'/>", "5", "\ufeff", "s3cr3t:word"])
def test_text_that_is_neither_json_nor_a_name_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it is neither JSON nor the name of a type$"):
        load_schema_text(text)


def test_error_behind_a_comment_has_its_own_place() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        load_schema_text('/* a\n b */ {"type" "long"}')
    assert (caught.value.lineno, caught.value.colno) == (2, 15)


@pytest.mark.parametrize("part", ["/*", '"', '"/*', "//", '\\"'])
def test_comments_and_strings_without_an_end_are_searched_once(part: str) -> None:
    """A search from each beginning to the end of the text would take minutes."""
    with pytest.raises(json.JSONDecodeError):
        load_schema_text("{" + part * 300_000)
