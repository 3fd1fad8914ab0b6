"""Arrow types as Spark has them, and whether a schema has the requested columns. Pure."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka.errors import SchemaError


def spark_has(given: pa.DataType) -> pa.DataType:
    """Return the type that Spark has for a type of a format: all parts nullable, and named as Spark names them.

    A time of day is its number of microseconds, or what its unit is: Spark has a type of its own for it only if a
    setting allows it.
    """
    if pa.types.is_struct(given):
        return pa.struct([pa.field(each.name, spark_has(each.type)) for each in given])
    if pa.types.is_list(given) or pa.types.is_large_list(given):
        return pa.list_(pa.field("element", spark_has(given.value_type)))
    if pa.types.is_map(given):
        return pa.map_(spark_has(given.key_type), pa.field("value", spark_has(given.item_type)))
    if pa.types.is_time(given):
        return pa.int64()
    if pa.types.is_string_view(given):
        return pa.string()
    if pa.types.is_decimal256(given):
        return pa.decimal128(given.precision, given.scale)
    if pa.types.is_timestamp(given):
        return pa.timestamp("us", "UTC") if given.tz else pa.timestamp("us")
    if pa.types.is_duration(given):
        return pa.duration("us")
    return given


def narrowed(found: pa.DataType, asked: pa.DataType, path: str) -> pa.DataType:
    """Return a type with the requested fields, in their order.

    Args:
        found: what a schema has.
        asked: the requested part: structs may have fewer fields in any order, everything else is equal.
        path: what `found` is, for errors.

    Raises:
        SchemaError: a field does not exist, is requested twice, or has another type.
    """
    if pa.types.is_struct(found) and pa.types.is_struct(asked):
        fields: list[pa.Field] = []
        for each in asked:
            number = found.get_field_index(each.name)
            if number < 0 or each.name in {other.name for other in fields}:
                known = ", ".join(other.name for other in found) or "none"
                fault = "is asked for twice" if number >= 0 else f"does not exist; its fields are {known}"
                raise _not_there(f"{path}.{each.name}", fault)
            fields.append(pa.field(each.name, narrowed(found.field(number).type, each.type, f"{path}.{each.name}")))
        return pa.struct(fields)
    if pa.types.is_list(found) and pa.types.is_list(asked):
        return pa.list_(pa.field("element", narrowed(found.value_type, asked.value_type, f"{path}[]")))
    if pa.types.is_map(found) and pa.types.is_map(asked):
        keys = narrowed(found.key_type, asked.key_type, f"{path}[key]")
        return pa.map_(keys, pa.field("value", narrowed(found.item_type, asked.item_type, f"{path}[]")))
    if _alike(found, asked):
        return found
    raise _not_there(path, f"is {found} in the schema, not {asked}")


def _alike(found: pa.DataType, asked: pa.DataType) -> bool:
    # An engine may have the session's zone where a source has UTC: the instants are the same.
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(asked):
        return bool((found.tz is None) == (asked.tz is None))
    return bool(found == asked)


def _not_there(path: str, fault: str) -> SchemaError:
    return SchemaError(
        f"The schema given to the reader does not fit: field '{path}' {fault}. Nothing was read.",
        condition="SCHEMA_MISMATCH.SOURCE",
        hint="Name a subset of the fields with their own types, in any order, or set no schema.",
        parameters={"column": path},
    )
