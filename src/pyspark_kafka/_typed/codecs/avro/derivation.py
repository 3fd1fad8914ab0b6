"""The schema of Avro that fits columns, for those who have none. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "long"),
    (pa.types.is_signed_integer, "int"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time, {"type": "long", "logicalType": "time-micros"}),
)


def derive_schema(kind: pa.DataType, topic: str, name: str) -> str:
    """Return the schema of a column as JSON.

    Every field, item and value of a map is a union with null, which is its default: that is a compatible schema if a
    column is added later, and does not change if Spark finds that a column has no nulls. Spark's `to_avro` makes other
    schemas: with null as the second branch, without defaults, with decimals in `fixed`.

    Args:
        kind: of the column.
        topic: the namespace, in which characters that Avro has no place for are underscores.
        name: of the record, `key` or `value`. Records within it have the name of their field, and the name of the
            record around them as their namespace.

    Raises:
        SchemaError: a type has no form in Avro, or the name of a field is none in Avro.

    Example:
        >>> derive_schema(pa.struct([("a", pa.int64())]), "my-topic", "value")
        '{"type":"record","name":"value","namespace":"my_topic","fields":[{"name":"a","type":["null","long"],"default":null}]}'
    """
    space = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    if space[:1].isdigit():
        space = f"_{space}"
    return json.dumps(_type(kind, space, name, ""), separators=(",", ":"))


def _type(kind: pa.DataType, space: str, name: str, path: str) -> Any:
    for is_one, found in _SIMPLE:
        if is_one(kind):
            return found
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_type, space, name, f"{path}[]")]}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _type(kind.item_type, space, name, f"{path}[]")]}
    if not pa.types.is_struct(kind):
        raise _no_form(path or name, f"has the type {kind}, which Avro has no form for", kind)
    fields = []
    for each in kind:
        inner = f"{path}.{each.name}" if path else each.name
        if not _NAME.fullmatch(each.name):
            raise _no_form(inner, "has a name that Avro does not allow: letters, digits and underscores only", kind)
        made = _type(each.type, f"{space}.{name}", each.name, inner)
        fields.append({"name": each.name, "type": ["null", made], "default": None})
    return {"type": "record", "name": name, "namespace": space, "fields": fields}


def _no_form(path: str, reason: str, found: pa.DataType) -> SchemaError:
    return SchemaError(
        f"No Avro schema can be made for the DataFrame: column '{path}' {reason}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast or rename the column, or set the schema.",
        parameters={"column": path, "found": found},
    )
