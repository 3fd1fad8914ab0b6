"""The types of Arrow that JSON is written from. Pure."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

_KNOWN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)
_KEYS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)


def plain_type(given: pa.DataType) -> pa.DataType:
    """Return the type that a column is cast to before it is written, mostly the same.

    Bytes of a fixed number, views of bytes and texts, dictionaries and extensions become what Spark has: the encoder
    knows bytes and times by their types, and arrow-json writes hex for the bytes of others.

    Raises:
        SchemaError: JSON has no form for a part of it.
    """
    return _plain(given, "")


def _plain(given: pa.DataType, path: str) -> pa.DataType:
    if isinstance(given, pa.BaseExtensionType):
        return _plain(given.storage_type, path)
    if pa.types.is_dictionary(given):
        return _plain(given.value_type, path)
    if pa.types.is_fixed_size_binary(given) or pa.types.is_binary_view(given):
        return pa.binary()
    if pa.types.is_string_view(given):
        return pa.string()
    if pa.types.is_struct(given):
        fields = [each.with_type(_plain(each.type, f"{path}.{each.name}" if path else each.name)) for each in given]
        return pa.struct(fields)
    if pa.types.is_map(given):
        key = _plain(given.key_type, f"{path}[key]")
        if not any(is_one(key) for is_one in _KEYS):
            raise _no_form(f"{path}[key]", given.key_type)
        item = given.item_field.with_type(_plain(given.item_type, path))
        return pa.map_(given.key_field.with_type(key), item, keys_sorted=given.keys_sorted)
    # pyarrow loses items where it casts a view of lists: JSON has no form for one.
    if pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given):
        return pa.list_(given.value_field.with_type(_plain(given.value_type, f"{path}[]")))
    if not any(is_one(given) for is_one in _KNOWN):
        raise _no_form(path or "value", given)
    return given


def _no_form(path: str, found: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Column '{path}' has the type {found}, which JSON has no form for.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column.",
        parameters={"column": path, "found": found},
    )
