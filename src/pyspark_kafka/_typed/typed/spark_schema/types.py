"""Spark's types without parts, by their names, as Arrow types; and what both languages refuse."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

MAX_TEXT_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_COLUMNS = 10_000
MAX_DIGITS = 38

SIMPLE_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
}
# Types of Spark that no format is read as, and what to write instead.
UNREADABLE = {
    "char": "STRING",
    "character": "STRING",
    "varchar": "STRING",
    "interval": "BIGINT",
    "time": "STRING or BIGINT",
    "variant": "STRING",
    "geometry": "BINARY",
    "geography": "BINARY",
    "udt": "the type that it is stored as",
}


def list_type(items: pa.DataType) -> pa.DataType:
    """Return the type of an array, as Spark has it in Arrow."""
    return pa.list_(pa.field("element", items))


def map_type(keys: pa.DataType, values: pa.DataType) -> pa.DataType:
    """Return the type of a map, as Spark has it in Arrow."""
    return pa.map_(keys, pa.field("value", values))


def struct_type(fields: Iterable[tuple[str, pa.DataType]]) -> pa.StructType:
    """Return the type of a struct whose fields are all nullable.

    Raises:
        ValueError: a name stands twice, with the end of a sentence.
    """
    named = list(fields)
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            raise ValueError(f"column '{name}' stands there twice")
        seen.add(name)
    return pa.struct([pa.field(name, kind) for name, kind in named])


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the type of a decimal.

    Raises:
        ValueError: Spark has no such decimal, with the end of a sentence.
    """
    if not 0 < precision <= MAX_DIGITS or not 0 <= scale <= precision:
        raise ValueError(f"there is no DECIMAL({precision},{scale}): at most {MAX_DIGITS} digits, scale within them")
    return pa.decimal128(precision, scale)


def unreadable(name: str) -> str:
    """Return the reason for refusing a type, as the end of a sentence."""
    return f"a column cannot be read as {name.upper()}; write {UNREADABLE[name.lower()]}"


def columns_error(language: str, reason: str) -> SchemaError:
    """Build the error for a text that does not name columns."""
    return SchemaError(
        f"The {language} cannot be used: {reason}. Nothing was read.",
        condition="SCHEMA_INVALID",
        hint="Correct the option; an example is id BIGINT, name STRING, tags ARRAY<STRING>.",
        parameters={"reason": reason},
    )
