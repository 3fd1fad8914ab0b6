"""Columns beside a JSON Schema: names, types and nulls."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.json.document_parts import JSON_TEXT
from pyspark_kafka._typed.codecs.json.schemas.schema_fit import JsonSchemaFit
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka.errors import RecordError, SchemaError

ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "at": {"type": ["string", "null"], "format": "date-time"},
        "home": {"$ref": "#/definitions/address"},
        "all": {"type": "array", "items": {"$ref": "#/definitions/address"}},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "required": ["id"],
    "definitions": {"address": ADDRESS},
}
HOME = pa.struct([("city", pa.string())])


def fit(*fields: tuple[str, pa.DataType], schema: Any = SCHEMA) -> JsonSchemaFit:
    return JsonSchemaFit(json.dumps(schema), pa.struct(fields))


def test_columns_of_the_types_of_the_schema_fit() -> None:
    fit(
        ("id", pa.int32()),
        ("price", pa.decimal128(5, 2)),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("home", HOME),
        ("all", pa.list_(HOME)),
        ("tags", pa.map_(pa.string(), pa.bool_())),
        ("any", pa.bool_()),
    )
    fit(("id", pa.int64()), ("price", pa.int64()))
    # What says nothing of properties allows all.
    fit(("a", pa.int64()), schema={"type": "object"})
    fit(("a", pa.int64()), schema=True)
    fit(("id", pa.int64()), ("more", pa.string()), schema={**SCHEMA, "additionalProperties": {"type": "string"}})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([("id", pa.string())], "Column 'id' has the type string, which cannot be written as JSON Schema's integer"),
        ([("id", pa.float64())], "Column 'id' has the type double"),
        ([("price", pa.int64())], r"Field 'id' is missing: the JSON Schema needs it, and the column has only 'price'"),
        ([("id", pa.int64()), ("more", pa.int64())], r"Column 'more' .* no such property"),
        ([("id", pa.int64()), ("name", pa.int64())], r"Column 'name' .* JSON Schema's string"),
        ([("id", pa.int64()), ("home", pa.struct([("x", pa.string())]))], r"Column 'home.x' .* no such property"),
        (
            [("id", pa.int64()), ("all", pa.list_(pa.struct([])))],
            r"Field 'all\[\].city' is missing: .* has no field",
        ),
        ([("id", pa.int64()), ("tags", pa.map_(pa.string(), pa.int32()))], r"Column 'tags\[\]' .* Schema's boolean"),
    ],
)
def test_a_column_that_does_not_fit_is_named_by_its_path(fields: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        fit(*fields)


def test_additional_properties_are_checked_by_their_schema() -> None:
    with pytest.raises(SchemaError, match=r"Column 'more' .* JSON Schema's string"):
        fit(("id", pa.int64()), ("more", pa.int64()), schema={**SCHEMA, "additionalProperties": {"type": "string"}})


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"id": None}, "Row 1 of the batch .* field 'id': it is null, and the schema requires it"),
        ({"id": 1, "home": {"city": None}}, "Row 1 .* field 'home.city': it is null"),
        ({"id": 1, "all": [{"city": "a"}, {"city": None}]}, r"A row .* field 'all\[\].city': it is null"),
        ({"id": 1, "all": [None]}, r"A row .* field 'all\[\]': it is null, and the schema has no null there"),
    ],
)
def test_a_null_that_the_schema_does_not_allow_is_named(row: Any, text: str) -> None:
    kind = pa.struct([("id", pa.int64()), ("home", HOME), ("all", pa.list_(HOME))])
    rules = JsonSchemaFit(json.dumps(SCHEMA), kind)
    good = {"id": 1, "home": None, "all": None}
    # A row that is null is a tombstone.
    rules.check_nulls(pa.array([good, None, {**good, "all": []}], kind))
    with pytest.raises(RecordError, match=text):
        rules.check_nulls(pa.array([good, {**good, **row}], kind))


NULLABLE: list[Any] = [
    {"type": ["integer", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/whole"}]},
    {"$ref": "#/$defs/maybe"},
    {"allOf": [{"$ref": "#/$defs/maybe"}]},
    {},
]
DEFINITIONS = {"whole": {"type": "integer"}, "maybe": {"type": ["null", "integer"]}}


@pytest.mark.parametrize("rule", NULLABLE, ids=json.dumps)
def test_a_required_member_that_takes_null_is_written_as_null(rule: Any) -> None:
    inner: dict[str, Any] = {"type": "object", "required": ["x"], "properties": {"x": rule, "y": {"type": "integer"}}}
    schema = {
        **inner,
        "$defs": DEFINITIONS,
        "properties": {
            **inner["properties"],
            "s": inner,
            "l": {"type": "array", "items": inner},
            "m": {"type": "object", "additionalProperties": inner},
        },
    }
    kind = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    around = pa.struct([*kind, ("s", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
    empty, full = {"x": None, "y": None}, {"x": 1, "y": 2}
    rows: list[Any] = [
        {**empty, "s": empty, "l": [empty, full], "m": [("a", empty), ("a", full)]},
        {**full, "s": full},
        None,
        {**full, "s": None, "l": None, "m": None},
    ]
    column = ColumnFormat("json", "none", around, RegisteredSchema("JSON", json.dumps(schema)))
    written = ColumnEncoder(column).encode(pa.array(rows, around)).to_pylist()
    assert json.loads(written[0], object_pairs_hook=list) == [
        ("s", [("x", None)]),
        ("l", [[("x", None)], [("x", 1), ("y", 2)]]),
        ("m", [("a", [("x", None)]), ("a", [("x", 1), ("y", 2)])]),
        ("x", None),
    ]
    assert written[1:] == [b'{"x":1,"y":2,"s":{"x":1,"y":2}}', None, b'{"x":1,"y":2}']


@pytest.mark.parametrize(
    "rule", [{"type": "integer"}, {"allOf": [{"type": "integer"}]}, {"allOf": [{"$ref": "#/$defs/whole"}]}]
)
def test_a_required_member_that_takes_no_null_is_refused(rule: Any) -> None:
    kind = pa.struct([("x", pa.int64())])
    schema = {"required": ["x"], "properties": {"x": rule}, "$defs": DEFINITIONS}
    with pytest.raises(RecordError, match="field 'x': it is null, and the schema requires it"):
        JsonSchemaFit(json.dumps(schema), kind).check_nulls(pa.array([{"x": None}], kind))


def test_a_text_of_a_part_fits_whatever_the_type_of_the_part_is() -> None:
    schema = {"properties": {"a": {"type": "object"}, "l": {"items": {"type": ["integer", "array"]}}}}
    kind = pa.struct([("a", pa.string()), ("l", pa.list_(pa.string()))])
    documents = pa.struct([("a", JSON_TEXT), ("l", pa.list_(JSON_TEXT))])
    JsonSchemaFit(json.dumps(schema), kind, documents)
    with pytest.raises(SchemaError, match="Column 'a' has the type string"):
        JsonSchemaFit(json.dumps(schema), kind)
    with pytest.raises(SchemaError, match="Column 'a' has the type int64"):
        JsonSchemaFit(json.dumps(schema), pa.struct([("a", pa.int64())]), documents)


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="The JSON Schema cannot be used"):
        JsonSchemaFit(text, pa.struct([]))


def test_references_without_an_end_are_left() -> None:
    JsonSchemaFit('{"$ref": "#"}', pa.struct([("a", pa.int64())]))
    JsonSchemaFit('{"$ref": "https://elsewhere.invalid/x"}', pa.struct([("a", pa.int64())]))


def test_properties_that_are_no_object_say_nothing() -> None:
    kind = pa.struct([("a", pa.int64())])
    JsonSchemaFit('{"properties": [1]}', kind).check_nulls(pa.array([{"a": 1}], kind))


def test_a_null_within_the_values_of_a_map_is_named() -> None:
    schema = {"properties": {"homes": {"type": "object", "additionalProperties": ADDRESS}}}
    kind = pa.struct([("homes", pa.map_(pa.string(), HOME))])
    rules = JsonSchemaFit(json.dumps(schema), kind)
    # A value that is null is left out, and so are the entries of other rows.
    bad = {"homes": [("x", {"city": None})]}
    good = {"homes": [("x", {"city": "a"}), ("y", None)]}
    rules.check_nulls(pa.array([bad, good, {"homes": None}, None, bad], kind).slice(1, 3))
    with pytest.raises(RecordError, match=r"A row .* field 'homes\[\].city': it is null, and the schema requires it"):
        rules.check_nulls(pa.array([good, bad], kind))


@pytest.mark.parametrize(
    "items",
    [
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"oneOf": [{"type": "string"}, {"$ref": "#/definitions/none"}]},
        {"$ref": "#/definitions/maybe"},
        {"type": ["null", "string"]},
        {},
    ],
)
def test_a_null_that_an_alternative_allows_is_written(items: Any) -> None:
    definitions = {"none": {"type": "null"}, "maybe": {"type": ["string", "null"]}}
    schema = {"properties": {"a": {"type": "array", "items": items}}, "definitions": definitions}
    kind = pa.struct([("a", pa.list_(pa.string()))])
    JsonSchemaFit(json.dumps(schema), kind).check_nulls(pa.array([{"a": ["x", None]}], kind))


def test_a_null_that_no_alternative_allows_is_named() -> None:
    items = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    kind = pa.struct([("a", pa.list_(pa.string()))])
    rules = JsonSchemaFit(json.dumps({"properties": {"a": {"items": items}}}), kind)
    with pytest.raises(RecordError, match="it is null, and the schema has no null there"):
        rules.check_nulls(pa.array([{"a": ["x", None]}], kind))


def test_rules_in_several_places_are_not_checked_in_one_of_them() -> None:
    base = {"definitions": {"base": {"properties": {"a": {"type": "integer"}}}}}
    beside = {**base, "$ref": "#/definitions/base", "properties": {"b": {"type": "string"}}}
    fields = ("a", pa.int64()), ("b", pa.string())
    fit(*fields, schema=beside)
    fit(*fields, schema={**base, "allOf": [{"$ref": "#/definitions/base"}], "properties": {"b": {"type": "string"}}})
    with pytest.raises(SchemaError, match=r"Column 'b' .* no such property"):
        fit(*fields, schema={**beside, "$schema": "http://json-schema.org/draft-07/schema#"})


def test_part_with_an_address_of_its_own_is_found_by_it() -> None:
    fields = ("a", pa.int64()), ("b", pa.string())
    named = {"definitions": {"x": {"$anchor": "x", "$id": "y", "definitions": {"x": {"type": "string"}}}}}
    # The anchor belongs to the part, and the part itself has no type.
    for reference in ("#x", "#/definitions/x"):
        fit(*fields, schema={**named, "properties": {"a": {"$ref": reference}, "b": {"type": "string"}}})
    for reference in ("y#/definitions/x", "#/definitions/x/definitions/x"):
        with pytest.raises(SchemaError, match="Column 'a' has the type int64"):
            fit(*fields, schema={**named, "properties": {"a": {"$ref": reference}, "b": {"type": "string"}}})


def test_nulls_behind_a_reference_to_another_document_are_judged_by_it() -> None:
    """A required member that takes null is written as null there too."""
    other = {"$defs": {"part": {"properties": {"spec": {"$ref": "#/$defs/spec"}}, "required": ["spec"]}}}
    other["$defs"]["spec"] = {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}
    schema = {"properties": {"items": {"items": {"$ref": "shared.json#/$defs/part"}}}}
    spec = pa.struct([("a", pa.int64())])
    kind = pa.struct([("items", pa.list_(pa.struct([("spec", spec)])))])
    references = (NamedSchema("shared.json", json.dumps(other)),)
    column = ColumnFormat("json", "none", kind, RegisteredSchema("JSON", json.dumps(schema), references))
    written = ColumnEncoder(column).encode(pa.array([{"items": [{"spec": None}, {"spec": {"a": None}}]}], kind))
    assert written.to_pylist() == [b'{"items":[{"spec":null},{"spec":{}}]}']
    other["$defs"]["spec"]["type"] = "object"
    rules = JsonSchemaFit(json.dumps(schema), kind, None, [NamedSchema("shared.json", json.dumps(other))])
    with pytest.raises(RecordError, match=r"items\[\]\.spec"):
        rules.check_nulls(pa.array([{"items": [{"spec": None}]}], kind))


def test_types_behind_a_reference_to_another_document_are_compared() -> None:
    other = [NamedSchema("shared.json", '{"$id": "https://x.example/shared.json", "type": "string"}')]
    for reference in ("shared.json", "https://x.example/shared.json"):
        schema = json.dumps({"properties": {"a": {"$ref": reference}}})
        JsonSchemaFit(schema, pa.struct([("a", pa.string())]), None, other)
        with pytest.raises(SchemaError, match="Column 'a' has the type int64"):
            JsonSchemaFit(schema, pa.struct([("a", pa.int64())]), None, other)
