"""Fields that are text in JSON and something else as a column: bytes, and times that have a pattern."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.values import refuse_rows

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.json.time_patterns import TimePatterns
    from pyspark_kafka._typed.codecs.values import BadValue


class TextFields:
    """Reads the texts of such fields, at any depth."""

    def __init__(self, times: TimePatterns) -> None:
        """Read bytes as Base64, and times by these patterns."""
        self._times = times

    def read_type(self, given: pa.DataType) -> pa.DataType:
        """Return a type with text in the place of such fields."""
        if pa.types.is_struct(given):
            return pa.struct([pa.field(each.name, self.read_type(each.type)) for each in given])
        if pa.types.is_list(given):
            return pa.list_(pa.field(given.value_field.name, self.read_type(given.value_type)))
        if pa.types.is_map(given):
            return pa.map_(given.key_type, pa.field("value", self.read_type(given.item_type)))
        return pa.string() if pa.types.is_binary(given) or self._times.of(given) is not None else given

    def read(self, column: pa.Array, wanted: pa.DataType, bad: list[BadValue]) -> pa.Array:
        """Return a column of type `read_type(wanted)` as `wanted`; rows with a text that cannot be read are null."""
        wrong: dict[int, str] = {}
        found = self._read(column, wanted, "", None, wrong)
        return refuse_rows(found, wrong, bad) if wrong else found

    def _read(self, column: pa.Array, wanted: pa.DataType, path: str, rows: Any, wrong: dict[int, str]) -> pa.Array:
        """Return a part of the column; `rows` has the row of each item, None if each is its own."""
        if column.type == wanted:
            return column
        if pa.types.is_struct(wanted):
            children = [
                self._read(column.field(number), each.type, _within(path, each.name), rows, wrong)
                for number, each in enumerate(wanted)
            ]
            return pa.StructArray.from_arrays(children, fields=list(wanted), mask=pc.is_null(column))
        if pa.types.is_list(wanted) or pa.types.is_map(wanted):
            # Without what is in memory beside its rows.
            own = column.take(pa.array(np.arange(len(column))))
            inner = np.repeat(np.arange(len(own)) if rows is None else rows, np.diff(np.asarray(own.offsets)))
            if pa.types.is_list(wanted):
                content = self._read(own.values, wanted.value_type, path, inner, wrong)
            else:
                items = self._read(own.items, wanted.item_type, path, inner, wrong)
                content = pa.StructArray.from_arrays([own.keys, items], fields=[wanted.key_field, wanted.item_field])
            buffers = own.buffers()[:2]
            return pa.Array.from_buffers(wanted, len(own), buffers, own.null_count, own.offset, children=[content])
        pattern = self._times.of(wanted)
        found, places, reason = (
            (*pattern.read(column, wanted), "not a time of its format") if pattern else _base64(column)
        )
        for at in places:
            wrong.setdefault(at if rows is None else int(rows[at]), f"the value of field '{path}' is {reason}")
        return found


def _base64(column: pa.Array) -> tuple[pa.Array, list[int], str]:
    decoded: list[bytes | None] = []
    wrong = []
    for row, text in enumerate(column.to_pylist()):
        try:
            decoded.append(None if text is None else base64.b64decode(text, validate=True))
        except ValueError:
            decoded.append(None)
            wrong.append(row)
    return pa.array(decoded, pa.binary()), wrong, "not Base64"


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
