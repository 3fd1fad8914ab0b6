"""The memory of Arrow arrays as the kernel takes it."""

from __future__ import annotations

from array import array
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc


def fixed_values(column: pa.Array, kind: Literal["B", "i", "q"], width: int) -> Any:
    """Return the values of a fixed-width column.

    Args:
        column: of a type with `width` bytes a value; may be a slice.
        kind: the format of the values as in `array.array`; B for their bytes.
        width: how many bytes a value has.
    """
    data = column.buffers()[1]
    if data is None:
        return array(kind)
    raw = memoryview(data).cast("B")[width * column.offset : width * (column.offset + len(column))]
    return raw if kind == "B" else raw.cast(kind)


def validity(column: pa.Array) -> Any:
    """Return a byte for each row, 0 where it is null; None if no row is null."""
    if not column.null_count:
        return None
    return fixed_values(pc.is_valid(column).cast(pa.uint8()), "B", 1)


def byte_ranges(column: pa.Array) -> tuple[Any, Any]:
    """Return the starts of a column's strings or bytes, 64-bit and one more than rows, and the bytes of all.

    The offsets are checked: they are in order and within the bytes.
    """
    wide = column.cast(pa.large_binary())
    wide.validate(full=True)
    _, offsets, data = wide.buffers()
    if offsets is None:
        return array("q", [0]), b""
    ends = memoryview(offsets).cast("B").cast("q")[wide.offset : wide.offset + len(wide) + 1]
    return ends, b"" if data is None else memoryview(data).cast("B")
