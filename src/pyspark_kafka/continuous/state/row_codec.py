"""Rows of a state as bytes: columns of fixed width side by side, then texts with their lengths. Pure."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.errors import SchemaError

_MAX_COLUMNS = 64
_LENGTH = struct.Struct("<I")
_FORMATS = {
    pa.bool_(): "?",
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
    pa.float32(): "f",
    pa.float64(): "d",
    # Decimals.
    pa.binary(16): "16s",
}


class RowCodec:
    """Encodes the rows of one schema, and decodes them. Only the same schema reads what it has written.

    A row is one number with a bit for each column that is null, the columns of fixed width, then length and bytes of
    each text. The number has 1 byte for up to 8 columns, otherwise 8.

    Args:
        schema: up to 64 columns: booleans, integers, floats, decimals, dates, timestamps, strings, binaries.

    Raises:
        SchemaError: a column has another type, or there are none or too many.
    """

    def __init__(self, schema: pa.Schema) -> None:
        if not 1 <= len(schema) <= _MAX_COLUMNS:
            raise _refused(f"it has {len(schema)} columns, and must have 1 to {_MAX_COLUMNS}")
        # Keys without a value are null.
        self.schema = pa.schema([field.with_nullable(True) for field in schema])
        self._stored = [_stored_type(field) for field in schema]
        self._fixed = [number for number, kind in enumerate(self._stored) if kind in _FORMATS]
        self._texts = [number for number, kind in enumerate(self._stored) if kind not in _FORMATS]
        formats = "".join(_FORMATS[self._stored[number]] for number in self._fixed)
        self._struct = struct.Struct(f"<{'B' if len(schema) <= 8 else 'Q'}{formats}")

    def encode(self, columns: Sequence[pa.Array]) -> list[bytes]:
        """Return the bytes of each row. The columns have the types of the schema."""
        stored = [_cast(column, kind) for column, kind in zip(columns, self._stored, strict=True)]
        nulls = [0] * len(stored[0])
        for number, column in enumerate(stored):
            if column.null_count:
                bit = 1 << number
                nulls = [
                    bits | bit if missing else bits
                    for bits, missing in zip(nulls, column.is_null().to_pylist(), strict=True)
                ]
        fixed = [_without_nulls(stored[number]).to_pylist() for number in self._fixed]
        pack = self._struct.pack
        rows = [pack(*row) for row in zip(nulls, *fixed, strict=True)]
        for number in self._texts:
            texts = stored[number].to_pylist()
            rows = [row + _LENGTH.pack(len(text or b"")) + (text or b"") for row, text in zip(rows, texts, strict=True)]
        return rows

    def decode(self, rows: Sequence[bytes | None]) -> pa.RecordBatch:
        """Return the rows; one that is None is null in all columns."""
        columns: list[list[object]] = [[] for _ in self._stored]
        unpack, size = self._struct.unpack_from, self._struct.size
        for row in rows:
            if row is None:
                for column in columns:
                    column.append(None)
                continue
            nulls, *values = unpack(row)
            for number, value in zip(self._fixed, values, strict=True):
                columns[number].append(None if nulls >> number & 1 else value)
            at = size
            for number in self._texts:
                (length,) = _LENGTH.unpack_from(row, at)
                at += _LENGTH.size + length
                columns[number].append(None if nulls >> number & 1 else row[at - length : at])
        arrays = [
            _cast(pa.array(column, stored), field.type)
            for column, stored, field in zip(columns, self._stored, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    is_decimal = pa.types.is_decimal128(column.type) or pa.types.is_decimal128(kind)
    return column.view(kind) if is_decimal else column.cast(kind)


def _without_nulls(column: pa.Array) -> pa.Array:
    if not column.null_count:
        return column
    zero = pa.scalar(bytes(16), column.type) if column.type == pa.binary(16) else pa.scalar(0).cast(column.type)
    return pc.fill_null(column, zero)


def _stored_type(field: pa.Field) -> pa.DataType:
    kind = field.type
    if kind in _FORMATS:
        return kind
    if pa.types.is_decimal128(kind):
        return pa.binary(16)
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.binary()
    raise _refused(f"column {field.name!r} has type {kind}")


def _refused(reason: str) -> SchemaError:
    return SchemaError(
        f"The schema of a state cannot be used: {reason}. Nothing was read.",
        condition="STATE_SCHEMA_INVALID",
        hint="Use columns of booleans, integers, floats, decimals, dates, timestamps, strings or binaries; keep other "
        "values as JSON in a string.",
    )
