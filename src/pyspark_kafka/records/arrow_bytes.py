"""Arrow arrays of strings, bytes and headers as the buffers that the kernel reads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_kafka.errors import RecordError, SchemaError
from pyspark_kafka.records import _variant

# Stands in for a data buffer that Arrow leaves out of an empty column.
_NO_DATA = memoryview(bytes(64))
_NULL = pa.null().id
_WIDE = frozenset({pa.large_string().id, pa.large_binary().id})
_PLAIN = frozenset({pa.string().id, pa.binary().id}) | _WIDE


def bytes_column(array: pa.Array[Any] | None, name: str) -> tuple[Any | None, int]:
    """Return a kernel column over a string or binary array, and its bytes; (None, 0) when all is null.

    Raises:
        SchemaError: the array has another type.
    """
    if array is None or array.type.id == _NULL or (len(array) and array.null_count == len(array)):
        return None, 0
    plain = array if array.type.id in _PLAIN else _plain(array, name)
    wide = plain.type.id in _WIDE
    # Checks that the ends of the offsets lie inside the data; the kernel trusts them.
    plain.validate()
    validity, offsets, data = plain.buffers()
    ends = _ints(offsets, wide=wide)
    first, length = plain.offset, len(plain)
    size = ends[first + length] - ends[first] if length else 0
    column = _variant.kernel.writing.BytesColumn(
        length,
        first,
        ends,
        wide,
        memoryview(data).cast("B") if data is not None and data.size else _NO_DATA,
        data.size if data is not None else 0,
        _raw(validity) if plain.null_count and validity is not None else None,
    )
    return column, size


def list_column(headers: Any) -> tuple[Any, Any, Any, int, int]:
    """Return kernel columns over list<struct<key, value>>: rows, keys and values; and how many headers and bytes.

    Raises:
        SchemaError: the array has another type.
        RecordError: a header or its key is null.
    """
    kind = headers.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        raise _wrong_type("headers", kind, "array<struct<key: string, value: binary>>")
    names = [kind.value_type.field(index).name for index in range(kind.value_type.num_fields)]
    if sorted(names) != ["key", "value"]:
        raise _wrong_type("headers", kind, "array<struct<key: string, value: binary>>")
    headers.validate()
    wide = pa.types.is_large_list(kind)
    validity, offsets = headers.buffers()[:2]
    ends = _ints(offsets, wide=wide)
    count = ends[headers.offset + len(headers)] - ends[headers.offset]
    rows = _variant.kernel.writing.BytesColumn(
        len(headers),
        headers.offset,
        ends,
        wide,
        _NO_DATA,
        0,
        _raw(validity) if headers.null_count and validity is not None else None,
    )
    structs = headers.values
    keys, values = structs.field("key"), structs.field("value")
    _refuse_null_keys(headers)
    key_column, key_bytes = _never_absent(keys, "headers.key")
    value_column, value_bytes = _never_absent(values, "headers.value")
    return rows, key_column, value_column, count, key_bytes + value_bytes


def _refuse_null_keys(headers: Any) -> None:
    structs: Any = headers.values
    if not structs.null_count and not structs.field("key").null_count:
        # Of all buffers, and without the cost of a copy.
        return
    structs = headers.flatten()
    if not structs.null_count and not structs.field("key").null_count:
        return
    for row, entries in enumerate(headers.to_pylist()):
        for index, entry in enumerate(entries or ()):
            if entry is None or entry["key"] is None:
                raise RecordError(
                    f"row {row}: header {index} has a null key, which Kafka does not allow. The row was not sent.",
                    condition="HEADER_KEY_NULL",
                    hint="Set a key for every header.",
                    parameters={"row": row, "header": index},
                )


def _never_absent(array: pa.Array[Any], name: str) -> tuple[Any, int]:
    """As bytes_column, but a column of nulls stays one: it is indexed by header."""
    column, size = bytes_column(array, name)
    if column is None:
        ends = memoryview(bytes(4 * (len(array) + 1))).cast("i")
        nulls = bytes(len(array) // 8 + 1)
        column = _variant.kernel.writing.BytesColumn(len(array), 0, ends, False, _NO_DATA, 0, nulls)
    return column, size


def _plain(array: Any, name: str) -> Any:
    kind = array.type
    if isinstance(kind, pa.DictionaryType):
        return _plain(array.dictionary_decode(), name)
    if kind.id in _PLAIN:
        return array
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    raise _wrong_type(name, kind, "string or binary")


def _wrong_type(name: str, kind: pa.DataType, expected: str) -> SchemaError:
    return SchemaError(
        f"column {name!r} has type {kind}; expected {expected}. Nothing was sent.",
        condition="COLUMN_TYPE",
        hint=f"Cast column {name!r}.",
        parameters={"column": name, "type": kind, "expected": expected},
    )


def _raw(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(buffer).cast("B") if buffer is not None and buffer.size else _NO_DATA


def _ints(buffer: pa.Buffer | None, *, wide: bool) -> memoryview:
    size = 8 if wide else 4
    raw = _raw(buffer)
    return raw[: len(raw) // size * size].cast("q" if wide else "i")
