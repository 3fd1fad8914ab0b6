"""JSON Schema as columns: each draft's forms, what is not a column, and that nothing is fetched."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.document_parts import JSON_TEXT, connect_decimal
from pyspark_kafka._typed.codecs.json.schemas.json_schema import parse_json_schema
from pyspark_kafka._typed.codecs.schemas import NamedSchema
from pyspark_kafka.errors import SchemaError

STRING, INTEGER, NUMBER, NULL = ({"type": name} for name in ("string", "integer", "number", "null"))
B_STRUCT = pa.struct([("b", pa.string())])
MOMENT = pa.timestamp("us", "UTC")


def of(schema: Any, **references: Any) -> pa.DataType:
    return parse_json_schema(
        json.dumps(schema), [NamedSchema(name, json.dumps(each)) for name, each in references.items()]
    )


def column(schema: Any, **more: Any) -> pa.DataType:
    """Return the type of a property with a schema."""
    return of({"type": "object", "properties": {"a": schema}, **more}).field("a").type


def refused(schema: Any, *references: NamedSchema) -> str:
    with pytest.raises(SchemaError) as caught:
        parse_json_schema(schema if isinstance(schema, str) else json.dumps(schema), references)
    assert caught.value.condition == "SCHEMA_INVALID"
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, pa.string()),
        (INTEGER, pa.int64()),
        (NUMBER, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        (NULL, pa.null()),
        ({"type": "string", "format": "date-time"}, MOMENT),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "time"}, pa.string()),
        ({"type": "string", "format": "uuid"}, pa.string()),
        ({"type": "string", "contentEncoding": "base64"}, pa.binary()),
        ({"type": "string", "connect.type": "bytes"}, pa.binary()),
        ({"type": ["string", "null"]}, pa.string()),
        ({"type": ["null", "integer", "number"]}, pa.float64()),
        ({"type": ["null"]}, pa.null()),
        ({"oneOf": [NULL, STRING]}, pa.string()),
        ({"anyOf": [INTEGER, NULL, NUMBER]}, pa.float64()),
        ({"oneOf": [NULL]}, pa.null()),
        ({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}, pa.string()),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}]}, pa.int64()),
        ({"enum": ["a", "b", None]}, pa.string()),
        ({"enum": [1, 2.5]}, pa.float64()),
        ({"const": True}, pa.bool_()),
        ({"const": None}, pa.null()),
        ({"type": "array", "items": STRING}, pa.list_(pa.field("element", pa.string()))),
        ({"items": [INTEGER, NUMBER]}, pa.list_(pa.field("element", pa.float64()))),
        ({"prefixItems": [STRING], "items": STRING}, pa.list_(pa.field("element", pa.string()))),
        ({"type": "object", "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.int64())),
        ({"patternProperties": {"^x": NUMBER}}, pa.map_(pa.string(), pa.float64())),
        ({"patternProperties": {"^x": NUMBER}, "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.float64())),
        ({"properties": {"b": STRING}, "additionalProperties": INTEGER}, B_STRUCT),
        ({"properties": {"b": STRING}, "oneOf": [{"required": ["b"]}, {"minProperties": 1}]}, B_STRUCT),
        ({"allOf": [{"properties": {"b": STRING}}, {"properties": {"c": INTEGER, "b": STRING}}]},
         pa.struct([("b", pa.string()), ("c", pa.int64())])),
        ({"allOf": [{"properties": {"b": STRING}}, {"required": ["b"]}], "properties": {"c": INTEGER}},
         pa.struct([("b", pa.string()), ("c", pa.int64())])),
        ({"allOf": [INTEGER, {"minimum": 5}]}, pa.int64()),
    ],
    ids=str,
)  # fmt: skip
def test_schema_becomes_a_column(schema: Any, expected: pa.DataType) -> None:
    found = column(schema)
    assert found == expected
    assert str(found) == str(expected)


def test_required_members_are_nullable() -> None:
    found = of({"type": "object", "properties": {"a": STRING}, "required": ["a"]})
    assert found.field("a").nullable


@pytest.mark.parametrize("key", ["definitions", "$defs", "anything/else"])
def test_references_lead_into_the_schema(key: str) -> None:
    definitions: dict[str, Any] = {"x~y/z %": STRING}
    outer, slash, inner = key.partition("/")
    schema = {outer: {inner: definitions} if slash else definitions}
    assert column({"$ref": f"#/{key}/x~0y~1z%20%25"}, **schema) == pa.string()


def test_references_may_be_anchors_of_any_draft() -> None:
    named = {
        "definitions": {
            "a": {"id": "#four", **STRING},
            "b": {"$id": "#six", **INTEGER},
            "c": {"$anchor": "nine", **NUMBER},
        }
    }
    assert column({"$ref": "#four"}, **named) == pa.string()
    assert column({"$ref": "#six"}, **named) == pa.int64()
    assert column({"$ref": "#nine"}, **named) == pa.float64()


def test_references_lead_to_schemas_of_the_registry() -> None:
    address = {
        "$id": "https://example.com/address.json",
        "properties": {"zip": {"$ref": "#/definitions/zip"}},
        "definitions": {"zip": STRING},
    }
    given = [
        NamedSchema("address.json", json.dumps(address)),
        NamedSchema("codes.json", json.dumps({"definitions": {"c": INTEGER}})),
    ]
    expected = pa.struct([("zip", pa.string())])
    for base in ({}, {"$id": "https://example.com/order.json"}, {"$id": "http://other/x#"}):
        schema = {**base, "properties": {"a": {"$ref": "address.json"}, "c": {"$ref": "codes.json#/definitions/c"}}}
        found = parse_json_schema(json.dumps(schema), given)
        assert found == pa.struct([("a", expected), ("c", pa.int64())])
    by_its_own_name = {"properties": {"a": {"$ref": "https://example.com/address.json"}}}
    assert parse_json_schema(json.dumps(by_its_own_name), given).field("a").type == expected


def test_references_are_not_fetched() -> None:
    """Nor are they read from files; an attempt to connect would be an error in unit tests."""
    for reference in ("http://127.0.0.1:1/a.json", "file:///etc/passwd", "other.json", "other.json#/a"):
        assert "which is neither in the schema nor among its references; nothing is fetched" in refused(
            {"properties": {"a": {"$ref": reference}}}
        )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        (True, "the document may be anything"),
        ({}, "the document has no type, so it may be anything"),
        ({"properties": {"a": {}}}, "column 'a' has no type, so it may be anything"),
        ({"properties": {"a": True}}, "column 'a' may be anything"),
        ({"properties": {"a": 5}}, "column 'a' has no schema"),
        ({"properties": {"a": {"type": "object"}}}, "column 'a' is an object without properties"),
        ({"properties": {"a": {"type": "array"}}}, "column 'a' is an array without items"),
        ({"properties": {"a": {"items": {"type": ["string", "integer"]}}}}, "column 'a[]' may be one of several types"),
        ({"properties": {"a": {"items": [STRING, INTEGER]}}}, "column 'a[]' may be one of 2 types"),
        ({"properties": {"a": {"properties": {"b": {"anyOf": [STRING, NUMBER]}}}}}, "column 'a.b' may be one of 2"),
        ({"properties": {"a": {"enum": ["a", 1]}}}, "column 'a' is one of values of several types"),
        ({"properties": {"a": {"const": []}}}, "column 'a' is one of values of several types"),
        ({"properties": {"a": {"type": "text"}}}, "column 'a' has the type 'text'"),
        ({"properties": {"a": {"type": {}}}}, "column 'a' may be one of several types"),
        ({"$id": "http://[x", "properties": {"a": {"$ref": "y"}}}, "an $id or a $ref is not an address"),
        ({"properties": {"a": {"type": 5}}}, "column 'a' may be one of several types"),
        ({"properties": {"a": {"allOf": []}}}, "column 'a' has allOf without a list"),
        ({"properties": {"a": {"allOf": [{"minimum": 5}]}}}, "column 'a' has no type"),
        ({"allOf": [{"properties": {"a": STRING}}, {"properties": {"a": INTEGER}}]}, "member 'a' as two types"),
        ({"properties": {"a": {"$ref": "#/b"}}}, "column 'a' refers to '#/b', where nothing is"),
        ({"properties": {"a": {"$ref": 5}}}, "column 'a' has a $ref that is not text"),
        ({"properties": {"a": {"$ref": "#"}}}, "column 'a.a' holds itself"),
        ({"properties": {"a": {"items": {"$ref": "#/properties/a"}}}}, "column 'a[][]' holds itself"),
        ({"$ref": "#"}, "the document holds itself"),
    ],
    ids=str,
)  # fmt: skip
def test_schema_that_is_no_column_is_refused_with_its_path(schema: Any, expected: str) -> None:
    assert f"The JSON Schema cannot be used: {expected}" in refused(schema) or expected in refused(schema)


CONNECT = {"title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes"}


def connect(scale: Any, kind: Any = "number") -> dict[str, Any]:
    return {"type": kind, **CONNECT, "connect.parameters": {"scale": scale}}


@pytest.mark.parametrize(
    "schema",
    [
        connect("2"),
        connect(2),
        connect("2", ["null", "number"]),
        {"oneOf": [NULL, connect("2")]},
        {**connect("2"), "title": "price"},
        {"type": "number", "title": CONNECT["title"], "connect.parameters": {"scale": "2"}},
    ],
)
def test_decimal_of_connect_is_one_of_its_scale(schema: Any) -> None:
    assert column(schema) == connect_decimal(2)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "number", **CONNECT}, "column 'a' is a decimal of Kafka Connect without a scale"),
        (connect("two"), "column 'a' is a decimal of Kafka Connect without a scale"),
        (connect("127"), "column 'a' is a decimal of Kafka Connect with the scale 127, which no column has"),
        (connect("-1"), "column 'a' is a decimal of Kafka Connect with the scale -1, which no column has"),
    ],
)
def test_decimal_of_connect_without_a_scale_of_columns_is_refused(schema: Any, expected: str) -> None:
    assert expected in refused({"properties": {"a": schema}})
    with pytest.raises(SchemaError):
        parse_json_schema(json.dumps({"properties": {"a": schema}}), open_parts=True)


def test_object_without_members_is_an_empty_struct() -> None:
    assert column({"type": "object", "additionalProperties": False}) == pa.struct([])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, JSON_TEXT),
        (True, JSON_TEXT),
        ({"type": "object"}, JSON_TEXT),
        ({"type": "array"}, JSON_TEXT),
        ({"type": ["string", "integer", "null"]}, JSON_TEXT),
        ({"enum": ["a", 1]}, JSON_TEXT),
        ({"anyOf": [STRING, {"items": INTEGER}]}, JSON_TEXT),
        ({"oneOf": [NULL, {"type": "object"}]}, JSON_TEXT),
        ({"anyOf": [STRING, {}]}, JSON_TEXT),
        ({"items": {"type": "object"}}, pa.list_(pa.field("element", JSON_TEXT))),
        ({"items": [STRING, INTEGER]}, pa.list_(pa.field("element", JSON_TEXT))),
        ({"additionalProperties": {"type": ["string", "integer"]}}, pa.map_(pa.string(), JSON_TEXT)),
        ({"properties": {"b": {}, "c": INTEGER}}, pa.struct([("b", JSON_TEXT), ("c", pa.int64())])),
        ({"properties": {"b": STRING}, "oneOf": [{"properties": {"c": STRING}}, {"type": "object"}]}, JSON_TEXT),
        ({"$ref": "#"}, pa.struct([("a", JSON_TEXT)])),
    ],
    ids=str,
)
def test_open_part_is_its_text_if_that_is_wanted(schema: Any, expected: pa.DataType) -> None:
    found = parse_json_schema(json.dumps({"type": "object", "properties": {"a": schema}}), open_parts=True)
    assert found.field("a").type == expected
    if schema != {"$ref": "#"}:
        assert "Set 'openParts' to text" in refused({"properties": {"a": schema}})


def test_reference_that_is_no_json_is_named() -> None:
    assert "its reference 'a.json' is not JSON" in refused({"properties": {"a": STRING}}, NamedSchema("a.json", "{"))


def test_size_is_bounded() -> None:
    deep: Any = STRING
    for _ in range(70):
        deep = {"items": deep}
    assert "it nests more than 64 types" in refused({"properties": {"a": deep}})
    doubled: dict[str, Any] = {"d0": {"properties": {"x": STRING}}}
    for number in range(1, 40):
        before = {"$ref": f"#/definitions/d{number - 1}"}
        doubled[f"d{number}"] = {"properties": {"a": before, "b": before}}
    assert "it has more than 20000 parts" in refused({"$ref": "#/definitions/d39", "definitions": doubled})
    chain = {f"d{number}": {"$ref": f"#/definitions/d{number + 1}"} for number in range(500)}
    assert "it nests more than 64 types" in refused({"$ref": "#/definitions/d0", "definitions": chain})
    assert "it has 5000002 characters" in refused(json.dumps("x" * 5_000_000))


def test_documents_that_fit_are_read_as_the_columns() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "id": INTEGER,
            "at": {"type": "string", "format": "date-time"},
            "day": {"oneOf": [NULL, {"type": "string", "format": "date"}]},
            "raw": {"type": "string", "contentEncoding": "base64"},
            "none": NULL,
            "tags": {"type": "array", "items": STRING},
            "counts": {"type": "object", "additionalProperties": INTEGER},
            "at_home": {"$ref": "#/definitions/place"},
        },
        "definitions": {"place": {"type": "object", "properties": {"x": NUMBER}}},
    }
    document = {
        "id": 5, "at": "2026-11-22T18:00:00Z", "day": "2026-11-22", "raw": "AAE=", "none": None, "tags": ["a"],
        "counts": {"b": 1}, "at_home": {"x": 1.5}, "more": True,
    }  # fmt: skip
    found = JsonDecoder(of(schema)).decode(pa.array([json.dumps(document), "{}"], pa.binary()))
    assert found.bad == []
    first, second = found.column.to_pylist()
    assert first["raw"] == b"\0\1"
    assert str(first["at"]) == "2026-11-22 18:00:00+00:00"
    assert str(first["day"]) == "2026-11-22"
    assert (first["none"], first["tags"], first["counts"], first["at_home"]) == (None, ["a"], [("b", 1)], {"x": 1.5})
    assert set(second.values()) == {None}


WORDS = [
    "type",
    "properties",
    "items",
    "$ref",
    "oneOf",
    "allOf",
    "enum",
    "const",
    "additionalProperties",
    "$id",
    "format",
]
VALUES = st.sampled_from(
    ["string", "object", "array", "integer", "null", "#", "#/properties/a", "a.json", 5, True, None]
)


@given(
    st.recursive(
        VALUES,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "a", "b"]), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_type_or_an_error(schema: Any) -> None:
    try:
        assert isinstance(of(schema), pa.DataType)
    except SchemaError as error:
        assert error.condition == "SCHEMA_INVALID"  # noqa: PT017 - both outcomes are right


def test_members_beside_alternatives_are_columns_too() -> None:
    kinds = [{"properties": {"kind": {"const": "a"}}}, {"properties": {"kind": {"const": "b"}}}]
    expected = pa.struct([("id", pa.int64()), ("kind", pa.string())])
    own = {"id": INTEGER, "kind": STRING}
    for name in ("oneOf", "anyOf"):
        assert of({"type": "object", "properties": own, name: kinds}) == expected
        assert of({"allOf": [{"properties": own}], name: kinds}) == expected
    both = of({"type": "object", "oneOf": kinds, "anyOf": [{"properties": {"id": INTEGER}}]})
    assert set(both.names) == {"id", "kind"}


def test_a_list_of_no_types_and_a_very_long_number_in_a_reference_are_refused() -> None:
    assert "column 'a' has a list of no types" in refused({"properties": {"a": {"type": []}}})
    assert "where nothing is" in refused({"properties": {"a": {"$ref": "#/x/" + "9" * 5000}}, "x": [STRING]})


OLD = {"$schema": "http://json-schema.org/draft-07/schema#"}
NEWER = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
BASE = {"$defs": {"base": {"type": "object", "properties": {"a": STRING}}}}


@pytest.mark.parametrize("draft", [{}, NEWER])
def test_members_beside_a_reference_are_columns(draft: dict[str, Any]) -> None:
    schema = {**draft, **BASE, "$ref": "#/$defs/base", "properties": {"b": INTEGER}}
    assert of(schema) == pa.struct([("a", pa.string()), ("b", pa.int64())])
    more = {**draft, **BASE, "$ref": "#/$defs/base", "allOf": [{"properties": {"b": INTEGER}}], "type": "object"}
    assert of(more) == pa.struct([("a", pa.string()), ("b", pa.int64())])


@pytest.mark.parametrize("number", ["3", "4", "6", "7"])
def test_members_beside_a_reference_mean_nothing_up_to_draft_7(number: str) -> None:
    old = {"$schema": f"http://json-schema.org/draft-0{number}/schema#"}
    schema = {**old, **BASE, "$ref": "#/$defs/base", "properties": {"b": INTEGER}}
    assert of(schema) == pa.struct([("a", pa.string())])


def test_each_document_is_of_its_own_draft() -> None:
    part = {**BASE, "$ref": "#/$defs/base", "properties": {"b": INTEGER}}
    both = pa.struct([("a", pa.string()), ("b", pa.int64())])
    schema = {"properties": {"x": {"$ref": "x"}}}
    assert of({**OLD, **schema}, x={**NEWER, **part}).field("x").type == both
    assert of({**NEWER, **schema}, x={**OLD, **part}).field("x").type == pa.struct([("a", pa.string())])
    assert of({**OLD, **schema}, x=part).field("x").type == pa.struct([("a", pa.string())])


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"type": "string"}, MOMENT),
        ({"type": ["string", "null"], "description": "when"}, MOMENT),
        ({"minLength": 5, "default": "x"}, MOMENT),
    ],
)
def test_type_beside_a_reference_repeats_it(beside: Any, expected: pa.DataType) -> None:
    named = {"$defs": {"at": {"type": "string", "format": "date-time"}}}
    assert column({"$ref": "#/$defs/at", **beside}, **named) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "allOf": [{"properties": {"b": STRING}}]}, B_STRUCT),
        ({"allOf": [{"properties": {"b": STRING}}, {"additionalProperties": False}]}, B_STRUCT),
        ({"allOf": [{"properties": {"b": STRING}}, {"additionalProperties": STRING}]}, B_STRUCT),
        ({"allOf": [NUMBER, INTEGER]}, pa.int64()),
        ({"allOf": [{"type": "array"}], "items": STRING}, pa.list_(pa.field("element", pa.string()))),
    ],
)
def test_all_of_has_what_its_parts_say_together(schema: Any, expected: pa.DataType) -> None:
    assert column(schema) == expected


def test_references_are_relative_to_the_part_with_an_address() -> None:
    item = {"$id": "item.json", "$defs": {"v": STRING}, "properties": {"b": {"$ref": "#/$defs/v"}}}
    schema = {
        "$id": "https://example.com/a/root.json",
        "$defs": {"v": INTEGER, "item": item},
        "properties": {
            "by_address": {"$ref": "item.json"},
            "by_path": {"$ref": "/a/item.json"},
            "by_place": {"$ref": "#/$defs/item"},
            "through": {"$ref": "#/$defs/item/properties/b"},
            "inside": {"$ref": "item.json#/$defs/v"},
            "own": {"$ref": "#/$defs/v"},
            "named": {"$ref": "root.json#/$defs/v"},
        },
    }
    found = of(schema)
    for name in ("by_address", "by_path", "by_place"):
        assert found.field(name).type == B_STRUCT
    assert found.field("through").type == found.field("inside").type == pa.string()
    assert found.field("own").type == found.field("named").type == pa.int64()
    inner = {"$id": "https://example.com/b/", "items": {"$ref": "other.json"}, "type": "array"}
    other = {"$id": "https://example.com/b/other.json", **STRING}
    assert column(inner, **{"$id": "https://example.com/a/", "$defs": {"o": other}}).value_type == pa.string()


def test_anchors_are_those_of_the_part_with_an_address() -> None:
    inner = {"$id": "inner", "$defs": {"x": {"$anchor": "x", **STRING}}, "properties": {"b": {"$ref": "#x"}}}
    schema = {"$defs": {"x": {"$anchor": "x", **INTEGER}}, "properties": {"i": inner, "o": {"$ref": "#x"}}}
    assert of(schema) == pa.struct([("i", B_STRUCT), ("o", pa.int64())])


def test_name_of_several_parts_is_refused() -> None:
    twice = {"$defs": {"a": {"$id": "x", **STRING}, "b": {"$id": "x", **INTEGER}}}
    assert "refers to 'x', which several parts" in refused({**twice, "properties": {"a": {"$ref": "x"}}})
    anchors = {"$defs": {"a": {"$anchor": "x", **STRING}, "b": {"$anchor": "x", **INTEGER}}}
    assert "refers to '#x', which several parts" in refused({**anchors, "properties": {"a": {"$ref": "#x"}}})
    # Those that say the same are one.
    same = {"$defs": {"a": {"$id": "x", **STRING}, "b": {"$id": "x", **STRING}}}
    assert column({"$ref": "x"}, **same) == pa.string()


def test_references_of_jackson_lead_to_ids_without_a_draft() -> None:
    place = {"type": "object", "id": "urn:jsonschema:Place", "properties": {"b": STRING}}
    schema = {
        "type": "object",
        "id": "urn:jsonschema:Order",
        "definitions": {"n": INTEGER},
        "properties": {
            "from": place,
            "to": {"type": "object", "$ref": "urn:jsonschema:Place"},
            "n": {"$ref": "#/definitions/n"},
        },
    }
    assert of(schema) == pa.struct([("from", B_STRUCT), ("to", B_STRUCT), ("n", pa.int64())])


def test_identifiers_within_values_are_ignored() -> None:
    data = {"const": {"$id": "x"}, "default": {"id": "http://[", "$anchor": "y"}, "$comment": "z"}
    properties = {"const": {"$anchor": "y", **STRING}, "a": {"$ref": "#y"}, "b": {**STRING, **data}}
    assert of({"properties": properties}).field("a").type == pa.string()


def test_dynamic_reference_is_refused() -> None:
    assert "column 'a' has a $dynamicRef, which" in refused({"properties": {"a": {"$dynamicRef": "#x"}}})
    assert "column 'a' has a $recursiveRef, which" in refused({"properties": {"a": {"$recursiveRef": "#"}}})


def test_names_of_columns_are_bounded_together() -> None:
    definition = {"properties": {"x" * 100_000: STRING}}
    fields = {f"f{number}": {"$ref": "#/$defs/d"} for number in range(50)}
    schema = {"$defs": {"d": definition}, "properties": fields}
    assert "its columns have names of more than 4194304 bytes together" in refused(schema)
    assert len(refused({"properties": {"x" * 100_000: {}}})) < 2000
