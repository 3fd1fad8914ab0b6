"""Column buffers that the kernel fills, and the Arrow batches over them, without copying."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from pyspark_kafka.records import _variant

HEADER_TYPE = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE, nullable=False))

# The columns that are part of a record; topic and partition are known to the caller that fetched it.
RECORD_FIELDS: dict[str, pa.Field[Any]] = {
    "key": pa.field("key", pa.binary()),
    "value": pa.field("value", pa.binary()),
    "offset": pa.field("offset", pa.int64(), nullable=False),
    "timestamp": pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
    "timestampType": pa.field("timestampType", pa.int32(), nullable=False),
    "headers": pa.field("headers", HEADERS_TYPE),
}
COLUMN_NAMES = tuple(RECORD_FIELDS)

# Offsets of a plain binary column are 32-bit.
MAX_DATA_BYTES = 2**31 - 1
_FIRST_HEADER_SLOTS = 1024
_FIRST_HEADER_BYTES = 16 * 1024
_REPLACED_AT_ONCE = 16 * 1024


@lru_cache(maxsize=64)
def record_schema(columns: tuple[str, ...]) -> pa.Schema:
    """Return the Arrow schema of the named columns, in their order.

    Raises:
        ValueError: for a name that is not in COLUMN_NAMES.
    """
    for name in columns:
        if name not in RECORD_FIELDS:
            raise ValueError(f"unknown record column {name!r}; known are {', '.join(COLUMN_NAMES)}")
    return pa.schema([RECORD_FIELDS[name] for name in columns])


class _Bytes:
    """Ends, data and validity of one column of byte strings; grows by copying what is filled."""

    def __init__(self, slots: int, capacity: int) -> None:
        self.capacity = capacity
        self.slots = slots
        self.ends = pa.allocate_buffer(4 * (slots + 1))
        self.ends_view = memoryview(self.ends).cast("B").cast("i")
        self.ends_view[0] = 0
        self.valid = bytearray(b"\xff") * ((slots + 7) // 8 or 1)
        self.data = pa.allocate_buffer(capacity + int(_variant.kernel.reading.SLACK))
        self.data_view = memoryview(self.data).cast("B")

    def grow_data(self, used: int, capacity: int) -> None:
        old = self.data_view
        self.capacity = capacity
        self.data = pa.allocate_buffer(capacity + int(_variant.kernel.reading.SLACK))
        self.data_view = memoryview(self.data).cast("B")
        self.data_view[:used] = old[:used]

    def grow_slots(self, used: int, slots: int) -> None:
        old = self.ends_view
        self.slots = slots
        self.ends = pa.allocate_buffer(4 * (slots + 1))
        self.ends_view = memoryview(self.ends).cast("B").cast("i")
        self.ends_view[: used + 1] = old[: used + 1]
        # A new one: a bytearray that the kernel has a view of cannot be resized.
        self.valid = bytearray(self.valid.ljust((slots + 7) // 8, b"\xff"))

    def to_array(self, kind: pa.DataType, rows: int, used: int, nulls: int) -> Any:
        validity = pa.py_buffer(self.valid) if nulls else None
        return pa.Array.from_buffers(kind, rows, [validity, self.ends, self.data.slice(0, used)], nulls)


class Piece:
    """The buffers of one future Arrow batch: the requested columns, with room for `rows` rows.

    Args:
        columns: names in the order of the batch, of COLUMN_NAMES.
        rows: how many rows fit.
        data_bytes: the first capacity of key and value data, each.
    """

    def __init__(self, columns: tuple[str, ...], rows: int, data_bytes: int) -> None:
        self._columns = columns
        self.filled = _variant.kernel.reading.PieceColumns(rows)
        self._key = self._value = self._header_keys = self._header_values = None
        self._offset = self._time = self._type = None
        data_bytes = min(data_bytes, MAX_DATA_BYTES)
        if "key" in columns:
            self._key = key = _Bytes(rows, data_bytes)
            self.filled.set_key(key.ends_view, key.data_view, key.valid, key.capacity)
        if "value" in columns:
            self._value = value = _Bytes(rows, data_bytes)
            self.filled.set_value(value.ends_view, value.data_view, value.valid, value.capacity)
        if "offset" in columns:
            self._offset = pa.allocate_buffer(8 * rows)
            self.filled.set_offset(memoryview(self._offset).cast("B").cast("q"))
        if "timestamp" in columns:
            self._time = pa.allocate_buffer(8 * rows)
            self.filled.set_time(memoryview(self._time).cast("B").cast("q"))
        if "timestampType" in columns:
            self._type = pa.allocate_buffer(4 * rows)
            self.filled.set_type(memoryview(self._type).cast("B").cast("i"))
        if "headers" in columns:
            self._list_ends = pa.allocate_buffer(4 * (rows + 1))
            view = memoryview(self._list_ends).cast("B").cast("i")
            view[0] = 0
            self._list_valid = bytearray(b"\xff") * ((rows + 7) // 8)
            self.filled.set_header_rows(view, self._list_valid)
            self._header_keys = _Bytes(_FIRST_HEADER_SLOTS, _FIRST_HEADER_BYTES)
            self._header_values = _Bytes(_FIRST_HEADER_SLOTS, _FIRST_HEADER_BYTES)
            self._give_headers()

    @property
    def rows(self) -> int:
        """The number of filled rows."""
        return int(self.filled.counts()[0])

    @property
    def data_bytes(self) -> int:
        """The number of filled bytes in keys, values and headers."""
        counts, headers = self.filled.counts(), self.filled.header_counts()
        return int(counts[1] + counts[3] + headers[1] + headers[2] + 8 * headers[0])

    def grow_key(self, needed: int) -> bool:
        """Make room for `needed` more bytes of key data; False when a binary column cannot hold them."""
        key = self._key
        if key is None or not _grow(key, self.filled.counts()[1], needed):
            return False
        self.filled.set_key(key.ends_view, key.data_view, key.valid, key.capacity)
        return True

    def grow_value(self, needed: int) -> bool:
        """Make room for `needed` more bytes of value data; False when a binary column cannot hold them."""
        value = self._value
        if value is None or not _grow(value, self.filled.counts()[3], needed):
            return False
        self.filled.set_value(value.ends_view, value.data_view, value.valid, value.capacity)
        return True

    def grow_headers(self, needed: int) -> bool:
        """Make room for headers that take `needed` bytes; False when the columns cannot hold them."""
        keys, values = self._header_keys, self._header_values
        if keys is None or values is None:
            return False
        count, key_used, value_used, _, _ = self.filled.header_counts()
        if not _grow(keys, key_used, needed) or not _grow(values, value_used, needed):
            return False
        # One capacity serves both data buffers; two bytes are the least that a header takes.
        for column, used in ((keys, key_used), (values, value_used)):
            if column.capacity < max(keys.capacity, values.capacity):
                column.grow_data(used, max(keys.capacity, values.capacity))
            column.grow_slots(count, max(2 * column.slots, count + needed // 2 + 1))
        self._give_headers()
        return True

    def to_batch(self) -> pa.RecordBatch:
        """Return the filled rows as a batch that owns the buffers; the piece must not be filled further."""
        rows, key_used, key_nulls, value_used, value_nulls, _ = self.filled.counts()
        arrays: dict[str, Any] = {}
        if self._key is not None:
            arrays["key"] = self._key.to_array(pa.binary(), rows, key_used, key_nulls)
        if self._value is not None:
            arrays["value"] = self._value.to_array(pa.binary(), rows, value_used, value_nulls)
        for name, buffer in (("offset", self._offset), ("timestamp", self._time), ("timestampType", self._type)):
            if buffer is not None:
                arrays[name] = pa.Array.from_buffers(RECORD_FIELDS[name].type, rows, [None, buffer], 0)
        if self._header_keys is not None:
            arrays["headers"] = self._headers_array()
        schema = record_schema(self._columns)
        if not self._columns:
            # A batch of no columns still has rows: that is all a count needs.
            rows_only: Any = pa.Array.from_buffers(pa.struct([]), rows, [None])
            return pa.RecordBatch.from_struct_array(rows_only)
        return pa.RecordBatch.from_arrays(list(map(arrays.__getitem__, self._columns)), schema=schema)

    def _headers_array(self) -> Any:
        rows, _, _, _, _, null_rows = self.filled.counts()
        count, key_used, value_used, value_nulls, ascii_keys = self.filled.header_counts()
        if self._header_keys is None or self._header_values is None:  # pragma: no cover - both or none
            return None
        keys = self._header_keys.to_array(pa.string(), count, key_used, 0)
        if not ascii_keys:
            keys = _valid_utf8(keys)
        values = self._header_values.to_array(pa.binary(), count, value_used, value_nulls)
        struct = pa.Array.from_buffers(HEADER_TYPE, count, [None], 0, 0, [keys, values])
        validity = pa.py_buffer(self._list_valid) if null_rows else None
        return pa.Array.from_buffers(HEADERS_TYPE, rows, [validity, self._list_ends], null_rows, 0, [struct])

    def _give_headers(self) -> None:
        keys, values = self._header_keys, self._header_values
        if keys is not None and values is not None:
            self.filled.set_headers(
                keys.ends_view,
                keys.data_view,
                values.ends_view,
                values.data_view,
                values.valid,
                min(keys.slots, values.slots),
                min(keys.capacity, values.capacity),
            )


def _grow(column: _Bytes, used: int, needed: int) -> bool:
    if used + needed > MAX_DATA_BYTES:
        return False
    if used + needed > column.capacity:
        column.grow_data(used, min(max(2 * column.capacity, used + needed), MAX_DATA_BYTES))
    return True


def _valid_utf8(keys: Any) -> Any:
    """Replace what is not UTF-8 by U+FFFD, as Java's String does."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.view(pa.binary())
        # In steps: as Python's objects all keys together would take many times their bytes.
        steps = (raw.slice(at, _REPLACED_AT_ONCE).to_pylist() for at in range(0, len(raw), _REPLACED_AT_ONCE))
        return pa.concat_arrays(
            [pa.array([key.decode("utf-8", "replace") for key in step], pa.string()) for step in steps]
        )
    return keys
