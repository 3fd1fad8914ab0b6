"""JSON Schema, draft 4 to 2020-12, as an Arrow type: what documents that fit it are read as.

Nothing is validated with it, and nothing is fetched: `$ref` leads into the schema itself or into its references in the
registry.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka._typed.codecs.json.document_parts import JSON_TEXT, connect_decimal
from pyspark_kafka._typed.codecs.json.schemas.schema_documents import (
    NEWEST_DRAFT,
    LostReference,
    SchemaDocuments,
    has_types,
    says_members,
    says_type,
)
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._typed.codecs.json.schemas.schema_documents import SchemaResource
    from pyspark_kafka._typed.codecs.schemas import NamedSchema

_MAX_BYTES = 4 << 20
_MAX_DEPTH = 64
# Definitions that are used repeatedly make a type much larger than its text.
_MAX_PARTS = 20_000
_MAX_NAME_BYTES = 4 << 20
_FORMATS = {"date-time": pa.timestamp("us", "UTC"), "date": pa.date32()}
_NULL = "null"
_CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_MAX_SCALE, _MAX_SCALE_DIGITS = 38, 9
_MAX_PATH = 1000


def parse_json_schema(text: str, references: Sequence[NamedSchema] = (), *, open_parts: bool = False) -> pa.DataType:
    """Return the type that documents of a schema are read as. All its parts are nullable.

    | Schema | Column |
    | --- | --- |
    | object with `properties` | struct; other members are skipped |
    | object with `additionalProperties` or one of `patternProperties`, and no `properties` | map of its values |
    | array with `items` | array |
    | integer, number, boolean | bigint, double, boolean |
    | string | string; timestamp with the format date-time, date with date; binary with Base64 as its encoding |
    | a list of types, `oneOf` or `anyOf` with null | the other one |
    | `allOf` of objects, and what is beside a `$ref` | struct of all their properties |
    | `enum`, `const` without a type | the type of the values |
    | number with Kafka Connect's name of decimals | `document_parts.connect_decimal` |
    | with `open_parts`, any other part | `document_parts.JSON_TEXT` |

    Where `$schema` names draft 7 or an earlier one, what is beside a `$ref` means nothing.

    Runs on: driver; pure.

    Args:
        text: the schema.
        references: schemas that `$ref` names, by their names or by their `$id`.
        open_parts: whether a part of any type, of one of several types, or that holds itself, is the text of the part;
            otherwise it is an error.

    Raises:
        SchemaError: it is not a JSON Schema, too large or too deep, or a part of it is not a column: the text has its
            path.

    Source: JSON Schema 2020-12, and the drafts 4, 6, 7 and 2019-09.

    Example:
        >>> parse_json_schema('{"type": "object", "properties": {"id": {"type": "integer"}}}')
        StructType(struct<id: int64>)
    """
    size = len(text) + sum(len(each.text) for each in references)
    if size > _MAX_BYTES:
        raise _invalid(f"it has {size} characters, more than {_MAX_BYTES}")
    documents = {each.name: _load(each.text, f"its reference '{each.name}'") for each in references}
    try:
        return _SchemaReader(_load(text, "it"), documents, open_parts=open_parts).read()
    except RecursionError as error:
        raise _invalid(f"it nests more than {_MAX_DEPTH} types") from error
    except ValueError as error:
        # urllib, of an address such as http://[
        raise _invalid(f"an $id or a $ref is not an address: {str(error)[:100]}") from error


def _load(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"{what} is not JSON: {str(error)[:200]}") from error


class _SchemaPart:
    """A part of a schema: where it stands, for `$ref` in it and for errors.

    Attributes:
        resource: what `$ref` is relative to.
        path: the column.
        depth: how many types are around it.
        within: the `$ref` that lead here; one that leads to itself has no end.
    """

    __slots__ = ("depth", "path", "resource", "within")

    def __init__(self, resource: SchemaResource, path: str = "", depth: int = 0, within: tuple[str, ...] = ()) -> None:
        self.resource, self.path, self.depth, self.within = resource, path, depth, within

    def inner(self, path: str) -> _SchemaPart:
        if self.depth >= _MAX_DEPTH:
            raise _invalid(f"it nests more than {_MAX_DEPTH} types")
        return _SchemaPart(self.resource, path, self.depth + 1, self.within)

    def entered(self, schema: Any) -> _SchemaPart:
        resource = self.resource.enter(schema)
        return self if resource is self.resource else _SchemaPart(resource, self.path, self.depth, self.within)

    def behind(self, key: str, resource: SchemaResource) -> _SchemaPart:
        if key in self.within:
            raise _OpenPartError("holds itself, which the type of a column cannot")
        if len(self.within) >= 2 * _MAX_DEPTH:
            raise _invalid(f"it nests more than {_MAX_DEPTH} types")
        return _SchemaPart(resource, self.path, self.depth, (*self.within, key))

    def fault(self, reason: str) -> SchemaError:
        return _invalid(f"{_named(self.path)} {reason}")


class _OpenPartError(Exception):
    """A part of a schema that no type of a column is; the text is the reason."""


class _SchemaReader:
    """Reads one schema."""

    def __init__(self, root: Any, references: dict[str, Any], *, open_parts: bool) -> None:
        self._documents = SchemaDocuments(root, references)
        self._open_parts = open_parts
        self._parts = 0
        self._name_bytes = 0

    def read(self) -> pa.DataType:
        root = self._documents.root
        return self._type(root.root, _SchemaPart(root))

    def _type(self, schema: Any, place: _SchemaPart) -> pa.DataType:
        try:
            return self._column_type(schema, place)
        except _OpenPartError as error:
            return self._open(str(error), place)

    def _open(self, reason: str, place: _SchemaPart) -> pa.DataType:
        if self._open_parts:
            return JSON_TEXT
        raise _invalid(
            f"{_named(place.path)} {reason}",
            "Set 'openParts' to text to have such parts as strings with their JSON; or change the schema; or set "
            "'valueSchema' to the columns to read, such as id BIGINT, name STRING.",
        )

    def _column_type(self, schema: Any, place: _SchemaPart) -> pa.DataType:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise _invalid(f"it has more than {_MAX_PARTS} parts")
        if schema is True:
            raise _OpenPartError("may be anything")
        if not isinstance(schema, dict):
            raise place.fault("has no schema")
        place = place.entered(schema)
        if "$ref" in schema:
            beside = _without(schema, "$ref")
            if place.resource.draft >= NEWEST_DRAFT and says_members(beside):
                return self._all_of({"allOf": [{"$ref": schema["$ref"]}, beside]}, place)
            return self._referred(schema["$ref"], place)
        for name in ("$dynamicRef", "$recursiveRef"):
            if name in schema:
                raise _OpenPartError(f"has a {name}, which may lead to several types")
        said = [name for name in ("oneOf", "anyOf") if has_types(schema.get(name))]
        if said and (len(said) > 1 or schema.keys() & {"properties", "allOf"}):
            # Each says some of the members.
            own = _without(schema, *said)
            parts = [own] if own.keys() & {"properties", "allOf"} else []
            return self._all_of({"allOf": [*parts, *({name: schema[name]} for name in said)]}, place)
        branches: Any = schema.get("oneOf", schema.get("anyOf"))
        # Branches without a type, such as branches that require one member or another, only restrict.
        if has_types(branches):
            return self._one_of(schema, branches, place)
        if "allOf" in schema:
            return self._all_of(schema, place)
        return self._plain(schema, _one_type(schema, place), place)

    def _plain(self, schema: dict[str, Any], name: str, place: _SchemaPart) -> pa.DataType:
        if name == "object":
            return self._object(schema, place)
        if name == "array":
            return self._array(schema, place)
        if name == "string":
            encoded = schema.get("contentEncoding") == "base64" or schema.get("connect.type") == "bytes"
            return pa.binary() if encoded else _FORMATS.get(str(schema.get("format")), pa.string())
        if name in ("number", "integer") and _is_connect_decimal(schema):
            return _connect_decimal(schema, place)
        simple = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), _NULL: pa.null()}
        if name not in simple:
            raise place.fault(f"has the type '{name[:40]}', which JSON Schema does not have")
        return simple[name]

    def _object(self, schema: dict[str, Any], place: _SchemaPart) -> pa.DataType:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return pa.struct(self._fields(properties, place))
        patterns = schema.get("patternProperties")
        others = [schema.get("additionalProperties")]
        others += list(patterns.values()) if isinstance(patterns, dict) else []
        values = [each for each in others if isinstance(each, dict) and each]
        if not values:
            if schema.get("additionalProperties") is False and not patterns:
                return pa.struct([])
            raise _OpenPartError("is an object without properties, whose members may be anything")
        inner = place.inner(f"{place.path}[]")
        return pa.map_(pa.string(), pa.field("value", self._same([self._type(each, inner) for each in values], inner)))

    def _fields(self, properties: dict[str, Any], place: _SchemaPart) -> list[pa.Field]:
        # A definition that is referred to repeatedly has its names repeatedly.
        self._name_bytes += sum(len(name.encode(errors="surrogatepass")) for name in properties)
        if self._name_bytes > _MAX_NAME_BYTES:
            raise _invalid(f"its columns have names of more than {_MAX_NAME_BYTES} bytes together")
        return [
            pa.field(name, self._type(each, place.inner(f"{place.path}.{name}" if place.path else name)))
            for name, each in properties.items()
        ]

    def _array(self, schema: dict[str, Any], place: _SchemaPart) -> pa.DataType:
        items = schema.get("prefixItems", schema.get("items"))
        inner = place.inner(f"{place.path}[]")
        if isinstance(items, list) and items:
            rest = schema.get("items") if "prefixItems" in schema else schema.get("additionalItems")
            each_type = self._same(
                [self._type(each, inner) for each in (*items, *([rest] if isinstance(rest, dict) else []))], inner
            )
        elif isinstance(items, dict):
            each_type = self._type(items, inner)
        else:
            raise _OpenPartError("is an array without items, which may be anything")
        return pa.list_(pa.field("element", each_type))

    def _one_of(self, schema: dict[str, Any], branches: list[Any], place: _SchemaPart) -> pa.DataType:
        kinds = [self._type(_with_type(each, schema), place) for each in branches]
        others = [each for each in kinds if not pa.types.is_null(each)]
        return self._same(others, place) if others else pa.null()

    def _same(self, kinds: list[pa.DataType], place: _SchemaPart) -> pa.DataType:
        """Return the common type of several schemas, a number if they have whole and other numbers."""
        distinct = list(dict.fromkeys(kinds))
        if len(distinct) == 1:
            return distinct[0]
        if set(distinct) == {pa.int64(), pa.float64()}:
            return pa.float64()
        return self._open(f"may be one of {len(distinct)} types, which one column cannot", place)

    def _all_of(self, schema: dict[str, Any], place: _SchemaPart) -> pa.DataType:
        parts = schema["allOf"]
        if not isinstance(parts, list) or not parts:
            raise place.fault("has allOf without a list of schemas")
        own = _without(schema, "allOf")
        # What only restricts, such as minimum, has no type; and a plain type only repeats what another part says.
        saying = [each for each in (*parts, own) if says_type(each)]
        kinds = [self._type(each, place) for each in [*filter(says_members, saying)] or saying]
        if not kinds:
            raise place.fault("has no type")
        if any(map(pa.types.is_struct, kinds)):
            # Members without a name in the schema are skipped.
            kinds = [each for each in kinds if not pa.types.is_map(each)]
        elif set(kinds) == {pa.int64(), pa.float64()}:
            return pa.int64()
        if not all(map(pa.types.is_struct, kinds)):
            return self._same(kinds, place)
        fields: dict[str, pa.Field] = {}
        for each in (field for kind in kinds for field in kind):
            if fields.setdefault(each.name, each).type != each.type:
                raise place.fault(f"has member '{each.name}' as two types in its allOf")
        return pa.struct(list(fields.values()))

    def _referred(self, reference: Any, place: _SchemaPart) -> pa.DataType:
        if not isinstance(reference, str):
            raise place.fault("has a $ref that is not text")
        try:
            found, resource, key = self._documents.find(reference, place.resource)
        except LostReference as error:
            raise place.fault(str(error)) from None
        return self._type(found, place.behind(key, resource))


def _without(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a part of a schema, which is not what its `$id` names."""
    return {name: each for name, each in schema.items() if name not in names and name not in ("$id", "id")}


def _one_type(schema: dict[str, Any], place: _SchemaPart) -> str:
    """Return the name of the type, without null beside it."""
    given = schema.get("type")
    names = given if isinstance(given, list) else [given]
    others = [each for each in names if each != _NULL]
    if given is not None:
        if not names:
            raise place.fault("has a list of no types")
        if not others:
            return _NULL
        if len(others) == 2 and "integer" in others and "number" in others:
            return "number"
        if len(others) > 1 or not isinstance(others[0], str):
            raise _OpenPartError("may be one of several types, which one column cannot")
        return others[0]
    if "enum" in schema or "const" in schema:
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        return _type_of_values(values)
    if "properties" in schema or "additionalProperties" in schema or "patternProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    raise _OpenPartError("has no type, so it may be anything")


def _type_of_values(values: list[Any]) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): _NULL}
    found = {names.get(type(each), "") for each in values} - {_NULL}
    if found == {"integer", "number"}:
        return "number"
    if len(found) > 1 or "" in found:
        raise _OpenPartError("is one of values of several types, which one column cannot be")
    return found.pop() if found else _NULL


def _is_connect_decimal(schema: dict[str, Any]) -> bool:
    return schema.get("title") == _CONNECT_DECIMAL or schema.get("connect.type") == "bytes"


def _connect_decimal(schema: dict[str, Any], place: _SchemaPart) -> pa.DataType:
    """Return the decimal type from Connect's JsonSchemaConverter, whose values are Base64 or numbers.

    Source: JsonSchemaData of confluentinc/schema-registry; which of both is an option of the converter.
    """
    parameters = schema.get("connect.parameters")
    scale = str(parameters.get("scale", "")) if isinstance(parameters, dict) else ""
    if not scale.lstrip("-").isdecimal() or len(scale) > _MAX_SCALE_DIGITS:
        raise place.fault("is a decimal of Kafka Connect without a scale among its connect.parameters")
    if not 0 <= int(scale) <= _MAX_SCALE:
        raise place.fault(f"is a decimal of Kafka Connect with the scale {scale}, which no column has")
    return connect_decimal(int(scale))


def _with_type(branch: Any, around: dict[str, Any]) -> Any:
    """Return a branch with the type that stands beside oneOf, if it has none itself."""
    if isinstance(branch, dict) and not says_type(branch) and "type" in around:
        return {**branch, "type": around["type"]}
    return branch


def _named(path: str) -> str:
    shown = path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]}…"
    return f"column '{shown}'" if path else "the document"


def _invalid(
    reason: str,
    hint: str = "Change the schema; or set 'valueSchema' to the columns to read, such as id BIGINT, name STRING.",
) -> SchemaError:
    return SchemaError(
        f"The JSON Schema cannot be used: {reason}. Nothing was read.",
        condition="SCHEMA_INVALID",
        hint=hint,
        parameters={"reason": reason},
    )
