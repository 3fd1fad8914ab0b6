"""Whether columns fit a JSON Schema: their names and types before a row is written, nulls with each row.

What is checked are `type`, `properties`, `required`, `additionalProperties`, `items` and references, also to other
documents. Bounds, patterns, formats and `enum` are not; nor what is in `allOf`, beside a reference, or one of several
alternatives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.json.document_parts import JSON_TEXT, DocumentPart, part_type
from pyspark_kafka._typed.codecs.json.schemas.schema_documents import (
    NEWEST_DRAFT,
    LostReference,
    SchemaDocuments,
    has_types,
    says_members,
)
from pyspark_kafka._typed.codecs.projection import missing_field
from pyspark_kafka.errors import RecordError, SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.json.schemas.schema_documents import SchemaResource
    from pyspark_kafka._typed.codecs.schemas import NamedSchema

_MAX_REFERENCES = 64


class JsonSchemaFit:
    """The rules of one schema for columns of one type.

    Runs on: driver, for the check of the types, and executor; pure computation.
    """

    def __init__(
        self,
        text: str,
        arrow_type: pa.DataType,
        documents: pa.DataType | None = None,
        references: Sequence[NamedSchema] = (),
    ) -> None:
        """Compare names and types.

        Args:
            text: the schema.
            arrow_type: of the column.
            documents: the type of the schema, if columns hold the text of some parts, whose types are not compared.
            references: the documents that the schema refers to.

        Raises:
            SchemaError: the text is not a JSON Schema; or a field is missing, or surplus, or of another type.
        """
        try:
            root = json.loads(text)
            others = {each.name: json.loads(each.text) for each in references}
        except (ValueError, RecursionError) as error:
            raise _invalid("it is not valid JSON") from error
        if not isinstance(root, (dict, bool)):
            raise _invalid("it is not a JSON object")
        try:
            self._documents = SchemaDocuments(root, others)
        except ValueError as error:
            raise _invalid(f"an $id is not an address: {str(error)[:100]}") from error
        self._root = self._documents.root
        self._check(arrow_type, root, self._root, "", documents)

    def check_nulls(self, column: pa.Array) -> DocumentPart | None:
        """Refuse rows without a value where the schema requires one.

        Returns:
            The required members that take null, and are null in a row: null members are left out otherwise. None
            if there are none.

        Raises:
            RecordError: it names the row, unless that is within a list.
        """
        return self._check_nulls(column, self._root.root, self._root, "", nested=False)

    def _check(
        self, kind: pa.DataType, given: Any, around: SchemaResource, path: str, documents: pa.DataType | None
    ) -> None:
        schema, around = self._resolved(given, around)
        if schema is None or (documents == JSON_TEXT and _json_types(kind) == {"string"}):
            return
        if pa.types.is_null(kind):
            # Whether null may be there is checked with each row.
            return
        names = _names(schema)
        found = _json_types(kind)
        if names and not found & names and not (found == {"integer"} and "number" in names):
            raise _no_fit(path, f"JSON Schema's {' or '.join(sorted(names))}", kind)
        if pa.types.is_struct(kind):
            self._check_struct(kind, schema, around, path, documents)
        elif pa.types.is_list(kind):
            self._check(kind.value_type, schema.get("items"), around, f"{path}[]", part_type(documents, kind))
        elif pa.types.is_map(kind):
            rules = schema.get("additionalProperties")
            self._check(kind.item_type, rules, around, f"{path}[]", part_type(documents, kind))

    def _check_struct(
        self,
        kind: pa.DataType,
        schema: Mapping[str, Any],
        around: SchemaResource,
        path: str,
        documents: pa.DataType | None,
    ) -> None:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        others = schema.get("additionalProperties", False)
        is_open = others is not False or "patternProperties" in schema or not properties
        for each in kind:
            inner = _joined(path, each.name)
            if each.name in properties:
                self._check(each.type, properties[each.name], around, inner, part_type(documents, kind, each.name))
            elif not is_open:
                raise _no_fit(inner, "the JSON Schema, which has no such property", each.type)
            else:
                self._check(each.type, others, around, inner, None)
        names = {each.name for each in kind}
        for name in _required(schema):
            if name not in names:
                raise missing_field(_joined(path, name), "the JSON Schema", kind)

    def _check_nulls(
        self, column: pa.Array, given: Any, around: SchemaResource, path: str, *, nested: bool
    ) -> DocumentPart | None:
        schema, around = self._resolved(given, around)
        if schema is None:
            return None
        kind = column.type
        if pa.types.is_struct(kind):
            properties = schema.get("properties")
            properties = properties if isinstance(properties, dict) else {}
            required = _required(schema)
            nulls, members = [], {}
            for number, child in enumerate(column.flatten()):
                name = kind.field(number).name
                inner = _joined(path, name)
                if name in required and child.null_count:
                    missing = pc.and_(pc.is_null(child), pc.is_valid(column))
                    if pc.any(missing).as_py():
                        if name not in properties or not self._takes_null(properties[name], around):
                            row = None if nested else pc.index(missing, pa.scalar(value=True)).as_py()
                            raise _bad_row(row, inner, "it is null, and the schema requires it")
                        nulls.append(name)
                found = self._check_nulls(child, properties.get(name), around, inner, nested=nested)
                if found is not None:
                    members[name] = found
            return DocumentPart(members=members, nulls=tuple(nulls)) if members or nulls else None
        if pa.types.is_list(kind):
            items, rules = column.flatten(), schema.get("items")
            if items.null_count and not self._takes_null(rules, around):
                raise _bad_row(None, f"{path}[]", "it is null, and the schema has no null there")
            found = self._check_nulls(items, rules, around, f"{path}[]", nested=True)
            return None if found is None else DocumentPart(items=found)
        if pa.types.is_map(kind) and "patternProperties" not in schema:
            # Entries whose value is null are left out.
            rules = schema.get("additionalProperties")
            found = self._check_nulls(_map_values(column), rules, around, f"{path}[]", nested=True)
            return None if found is None else DocumentPart(entries=found)
        return None

    def _has_other_type(self, given: Any, around: SchemaResource) -> bool:
        """Whether a part of `allOf` has a type, itself or behind its reference, that is not null."""
        if isinstance(given, dict) and isinstance(given.get("$ref"), str):
            given, _ = self._behind(given["$ref"], around)
        return isinstance(given, dict) and bool(_names(given)) and "null" not in _names(given)

    def _takes_null(self, given: Any, around: SchemaResource) -> bool:
        """Whether a schema takes null, as far as that is checked."""
        left = [(given, around)]
        for _ in range(_MAX_REFERENCES):
            if not left:
                return False
            found, around = left.pop()
            if not isinstance(found, dict):
                return True
            around = around.enter(found)
            if isinstance(found.get("allOf"), list) and any(self._has_other_type(x, around) for x in found["allOf"]):
                continue
            branches = next((found[word] for word in ("oneOf", "anyOf") if has_types(found.get(word))), None)
            if isinstance(found.get("$ref"), str):
                left.append(self._behind(found["$ref"], around))
            elif branches is not None:
                left += [(each, around) for each in branches]
            elif not _names(found) or "null" in _names(found):
                return True
        return True

    def _resolved(self, given: Any, around: SchemaResource) -> tuple[dict[str, Any] | None, SchemaResource]:
        """Return a schema behind references and beside null, and where it is; None if nothing of it is checked."""
        for _ in range(_MAX_REFERENCES):
            if not isinstance(given, dict):
                break
            around = around.enter(given)
            if isinstance(given.get("$ref"), str):
                beside = {name: each for name, each in given.items() if name != "$ref"}
                if around.draft >= NEWEST_DRAFT and says_members(beside):
                    break
                given, around = self._behind(given["$ref"], around)
                continue
            if isinstance(given.get("allOf"), list) and any(map(says_members, given["allOf"])):
                break
            for word in ("oneOf", "anyOf"):
                branches = given.get(word)
                if isinstance(branches, list):
                    others = [each for each in branches if not (isinstance(each, dict) and _names(each) == {"null"})]
                    given = others[0] if len(others) == 1 else None
                    break
            else:
                return given, around
        return None, around

    def _behind(self, reference: str, around: SchemaResource) -> tuple[Any, SchemaResource]:
        """Return the target of a reference, and its place; None without a target."""
        try:
            return self._documents.find(reference, around)[:2]
        except (LostReference, ValueError):
            return None, around


def _map_values(column: pa.Array) -> pa.Array:
    """Return the values of the entries that the rows of a column have."""
    kind, children = pa.list_(column.type.item_type), [column.items]
    return pa.Array.from_buffers(kind, len(column), column.buffers()[:2], -1, column.offset, children).flatten()


def _names(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema allows; none if it does not say."""
    given = schema.get("type")
    listed = given if isinstance(given, list) else [given]
    return {each for each in listed if isinstance(each, str)}


def _required(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("required")
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _json_types(kind: pa.DataType) -> set[str]:
    """Return the JSON types of a type's values."""
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return {"object"}
    if pa.types.is_list(kind):
        return {"array"}
    if pa.types.is_boolean(kind):
        return {"boolean"}
    if pa.types.is_integer(kind):
        return {"integer"}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"number", "integer"} if pa.types.is_decimal(kind) and kind.scale == 0 else {"number"}
    return {"string"}


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _invalid(reason: str) -> SchemaError:
    return SchemaError(
        f"The JSON Schema cannot be used: {reason}.",
        condition="SCHEMA_INVALID",
        hint="Check the text of the schema.",
        parameters={"reason": reason},
    )


def _no_fit(path: str, wanted: str, found: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Column '{path or 'value'}' has the type {found}, which cannot be written as {wanted}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column, or change the schema.",
        parameters={"column": path or "value", "wanted": wanted, "found": found},
    )


def _bad_row(row: int | None, path: str, reason: str) -> RecordError:
    place = "A row" if row is None else f"Row {row}"
    return RecordError(
        f"{place} of the batch cannot be written in JSON: field '{path}': {reason}. Nothing of the batch was encoded.",
        condition="VALUE_NOT_ENCODABLE",
        hint="Fill or filter the nulls, or use a schema that allows them.",
        parameters={"row": row, "field": path, "reason": reason},
    )
