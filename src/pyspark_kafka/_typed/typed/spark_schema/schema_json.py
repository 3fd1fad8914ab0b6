"""The JSON of Spark's schemas, `df.schema.json()`, as an Arrow type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka._typed.typed.spark_schema.types import (
    MAX_COLUMNS,
    MAX_DEPTH,
    MAX_TEXT_BYTES,
    SIMPLE_TYPES,
    UNREADABLE,
    columns_error,
    decimal_type,
    list_type,
    map_type,
    struct_type,
    unreadable,
)

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
_FIRST_WORD = re.compile(r"[a-z_]+")


def is_schema_json(parsed: Any) -> bool:
    """Whether parsed JSON is a schema of Spark: a struct with a list of fields."""
    return isinstance(parsed, dict) and parsed.get("type") == "struct" and isinstance(parsed.get("fields"), list)


def parse_schema_json(text: str) -> pa.StructType:
    """Return the columns of a schema in Spark's JSON as a struct, all of them nullable.

    Runs on: driver; pure.

    Raises:
        SchemaError: it is something else, has a type that no format is read as, or is too large.

    Source: Spark `DataType.fromJson`.

    Example:
        >>> parse_schema_json('{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}')
        StructType(struct<id: int64>)
    """
    import json  # noqa: PLC0415 - the other language does not need it

    if len(text) > MAX_TEXT_BYTES:
        raise columns_error("JSON of Spark's schema", f"it has {len(text)} characters, more than {MAX_TEXT_BYTES}")
    try:
        parsed = json.loads(text)
        if not is_schema_json(parsed):
            raise ValueError('it is not {"type":"struct","fields":[…]}')  # noqa: TRY301 - one place makes the error
        return _StructReader().read(parsed, "", 0)
    except RecursionError as error:
        raise columns_error("JSON of Spark's schema", f"it nests more than {MAX_DEPTH} types") from error
    except ValueError as error:
        raise columns_error("JSON of Spark's schema", str(error)[:300]) from error


class _StructReader:
    """Reads one schema; its method raises ValueError with the end of a sentence."""

    def __init__(self) -> None:
        self._columns = 0

    def read(self, given: Any, path: str, depth: int) -> pa.DataType:
        place = f"column '{path}'" if path else "the schema"
        if depth > MAX_DEPTH:
            raise ValueError(f"it nests more than {MAX_DEPTH} types")
        if isinstance(given, str):
            return _simple(given, place)
        if not isinstance(given, dict):
            raise ValueError(f"{place} has no type")  # noqa: TRY004 - as all that is wrong with the text
        kind = given.get("type")
        if kind == "struct" and isinstance(given.get("fields"), list):
            return struct_type([self._field(each, path, depth) for each in given["fields"]])
        if kind == "array":
            return list_type(self.read(given.get("elementType"), f"{path}[]", depth + 1))
        if kind == "map":
            keys = self.read(given.get("keyType"), f"{path}[key]", depth + 1)
            return map_type(keys, self.read(given.get("valueType"), f"{path}[]", depth + 1))
        if kind == "udt":
            raise ValueError(f"{unreadable('udt')}, for {place}")
        raise ValueError(f"{place} has an unknown type")

    def _field(self, given: Any, path: str, depth: int) -> tuple[str, pa.DataType]:
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            raise ValueError(f"it has more than {MAX_COLUMNS} columns")
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(name, str) or not name:
            raise ValueError("a field has no name")
        return name, self.read(given.get("type"), f"{path}.{name}" if path else name, depth + 1)


def _simple(name: str, place: str) -> pa.DataType:
    found = _DECIMAL.fullmatch(name)
    if found:
        return decimal_type(int(found[1]), int(found[2]))
    if name in SIMPLE_TYPES:
        return SIMPLE_TYPES[name]
    if name in ("decimal", "null"):
        return decimal_type(10, 0) if name == "decimal" else SIMPLE_TYPES["void"]
    word = _FIRST_WORD.match(name)
    if word and word[0] == "string":
        # string collate UNICODE_CI
        return SIMPLE_TYPES["string"]
    if word and word[0] in UNREADABLE:
        raise ValueError(f"{unreadable(word[0])}, for {place}")
    raise ValueError(f"{place} has an unknown type")
