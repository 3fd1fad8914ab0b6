"""Schemas of Avro from their JSON."""

from __future__ import annotations

import sys

import pytest

from pyspark_kafka.errors import MissingDependencyError, SchemaError
from pyspark_kafka.formats.avro.schema import Array, Enum, Field, Primitive, Record, Reference, Union, parse_schema


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
        '["null", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "Missing"}]}]',
        "[" * 2000,
        '{"type": "array", "items": ' * 100 + '"int"' + "}" * 100,
        '"' + "a" * 2_000_000 + '"',
    ],
)
def test_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"\[SCHEMA_INVALID\] The Avro schema cannot be used: "):
        parse_schema(text)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro.schema", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "pyspark-kafka\[avro\]"'):
        parse_schema("long")
