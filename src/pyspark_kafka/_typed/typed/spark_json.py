"""Arrow types as the JSON of Spark's types: what `StructType.fromJson` reads. Pure."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.duration("us"): "interval day to second",
    pa.null(): "void",
}


def type_json(given: pa.DataType) -> Any:
    """Return a type as Spark's JSON has it; all parts are nullable.

    Raises:
        SchemaError: Spark has no such type.

    Source: Spark `DataType.jsonValue`.

    Example:
        >>> type_json(pa.list_(pa.int64()))
        {'type': 'array', 'elementType': 'long', 'containsNull': True}
    """
    if given in _NAMES:
        return _NAMES[given]
    if pa.types.is_struct(given):
        return {"type": "struct", "fields": [field_json(each.name, each.type) for each in given]}
    if pa.types.is_list(given) or pa.types.is_large_list(given):
        return {"type": "array", "elementType": type_json(given.value_type), "containsNull": True}
    if pa.types.is_map(given):
        keys, values = type_json(given.key_type), type_json(given.item_type)
        return {"type": "map", "keyType": keys, "valueType": values, "valueContainsNull": True}
    if pa.types.is_timestamp(given):
        return "timestamp_ntz" if given.tz is None else "timestamp"
    if pa.types.is_decimal128(given):
        return f"decimal({given.precision},{given.scale})"
    raise SchemaError(
        f"Spark has no type for Arrow's {given}. Nothing was read or written.",
        condition="SCHEMA_INVALID",
        hint="Use another type in the schema.",
        parameters={"found": given},
    )


def field_json(name: str, given: pa.DataType) -> dict[str, Any]:
    """Return a nullable column as Spark's JSON has it."""
    return {"name": name, "type": type_json(given), "nullable": True, "metadata": {}}
