"""Arrow columns to values in JSON: one document a value."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.json.document_parts import (
    JSON_TEXT,
    has_parts,
    is_json,
    merged,
    part_type,
    parts_to_write,
)
from pyspark_kafka._typed.codecs.json.plain_types import plain_type
from pyspark_kafka._typed.codecs.json.time_patterns import NO_PATTERNS
from pyspark_kafka.errors import MissingDependencyError, RecordError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.codecs.json.document_parts import DocumentPart
    from pyspark_kafka._typed.codecs.json.time_patterns import TimePatterns

# The member that a value which is not an object is written in, and taken out of.
_ONLY = "v"
_WIDE = 64
_DAY = 86400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Days since 1970 of 0000-01-01 and 9999-12-31: what has a year of four digits, as RFC 3339 wants it. arrow-json writes
# "+10000-01-01" beyond, which it does not read as a timestamp, and the text of an error beyond what chrono holds.
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896


class JsonEncoder:
    """Writes structs as JSON objects, as Spark's `to_json` does; columns of other types as the JSON of their values.

    Null members are left out, both of structs and of maps; `to_json` writes the null members of maps. Bytes are Base64
    text. Times are ISO 8601 with as many digits as they have, and instants in UTC; `to_json` writes milliseconds, in
    the time zone of the session. Keys of maps are text. NaN and infinity are refused; `to_json` writes them as text.
    Refused, too, are dates of other years than 0000 to 9999, and times that are not within a day.

    Runs on: executor; pure computation.
    """

    def __init__(
        self, arrow_type: pa.DataType, times: TimePatterns = NO_PATTERNS, documents: pa.DataType | None = None
    ) -> None:
        """Write values of a type.

        Args:
            arrow_type: the type.
            times: how times and dates are written.
            documents: the type of a JSON Schema, with the parts whose text columns hold; None: there are none.

        Raises:
            SchemaError: it has a type that JSON has no form for.
            MissingDependencyError: without the package arro3-io.
        """
        self._type = plain_type(arrow_type)
        self._is_object = pa.types.is_struct(self._type)
        self._times = times
        self._has_texts = _needs_texts(self._type, times)
        self._documents = documents
        self._parts = None if documents is None else parts_to_write(documents, self._type)
        self._write = _writer()

    def encode(self, column: pa.Array, prefix: bytes = b"", nulls: DocumentPart | None = None) -> pa.Array:
        """Encode a column, a value for each row.

        Args:
            column: of the type.
            prefix: what stands before each value, such as the id of its schema.
            nulls: null members that are not left out.

        Returns:
            A binary array. A row that is null is null: a tombstone.

        Raises:
            RecordError: a number is not finite, or a date or time out of range, which JSON has no form for, or the text
                of a part is not JSON; it names the field and, unless the value is within a list or a map, the row.
        """
        if column.type != self._type:
            column = column.cast(self._type)
        _refuse_unwritable(column, "")
        if self._parts is not None:
            _refuse_no_json(column, self._documents, "")
        present = column.drop_null() if column.null_count else column
        if len(present) == 0:
            return pa.nulls(len(column), pa.binary())
        ready = _with_texts(present, self._times) if self._has_texts else present
        if not self._is_object:
            ready = pa.StructArray.from_arrays([ready], names=[_ONLY])
        out = io.BytesIO()
        names = [ready.type.field(number).name for number in range(ready.type.num_fields)]
        if names:
            self._write(pa.RecordBatch.from_arrays(ready.flatten(), names=names), out)
        else:
            out.write(b"{}\n" * len(present))
        lines = pc.split_pattern(pa.scalar(out.getvalue(), pa.binary()), b"\n")
        values = lines.values.slice(0, len(present))
        if not self._is_object:
            values = pc.binary_slice(values, len(_ONLY) + 4, -1)
        part = merged(self._parts, nulls)
        if part is not None:
            values = pa.array(map(part.rewrite, values.to_pylist()), pa.binary())
        if prefix:
            values = pc.binary_join_element_wise(pa.scalar(prefix), values, pa.scalar(b""))
        if not column.null_count:
            return values
        valid = pc.is_valid(column)
        places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
        return values.take(pc.if_else(valid, places, None))


def _writer() -> Callable[..., Any]:
    try:
        import arro3.io  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Values in JSON need the Python package 'arro3-io', which cannot be imported.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install it on the driver and on the executors: {install_command('json')}.",
            parameters={"package": "arro3-io"},
        ) from error
    found: Callable[..., Any] = arro3.io.write_ndjson
    return found


def _is_text(given: pa.DataType) -> bool:
    return bool(pa.types.is_string(given) or pa.types.is_large_string(given))


def _is_bytes(given: pa.DataType) -> bool:
    return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given))


def _needs_texts(given: pa.DataType, times: TimePatterns) -> bool:
    """Return whether a type has bytes, times with a pattern, or maps whose keys are numbers."""
    if pa.types.is_map(given) and not _is_text(given.key_type):
        return True
    if _is_bytes(given) or times.of(given) is not None:
        return True
    return any(_needs_texts(given.field(number).type, times) for number in range(given.num_fields))


def _refuse_unwritable(column: pa.Array, path: str, *, in_items: bool = False) -> None:
    """Refuse what arrow-json writes as null (NaN, infinity), as the text of an error, or as no reader takes it (times).

    Only what is written counts: not what is in memory beside the rows, or beneath a null.
    """
    kind = column.type
    if not _has_unwritable(kind):
        return
    if pa.types.is_struct(kind):
        for number, child in enumerate(column.flatten()):
            name = kind.field(number).name
            _refuse_unwritable(child, f"{path}.{name}" if path else name, in_items=in_items)
    elif pa.types.is_map(kind):
        # A part of a column has the items of all rows in memory, also of rows that are not in the part.
        _refuse_unwritable(_compact(column).items, f"{path}[]", in_items=True)
    elif kind.num_fields:
        _refuse_unwritable(column.flatten(), f"{path}[]", in_items=True)
    elif pa.types.is_floating(kind):
        reason, hint = "the number is not finite", "Replace NaN and infinity, for example by null."
        _refuse_rows(pc.invert(pc.is_finite(column)), path, reason, hint, in_items=in_items)
    else:
        first, last, reason = _times(kind)
        numbers = column.cast(pa.int64() if kind.bit_width == _WIDE else pa.int32())
        ends = pc.min_max(numbers)
        if ends["min"].is_valid and (ends["min"].as_py() < first or ends["max"].as_py() > last):
            wrong = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
            _refuse_rows(wrong, path, reason, "Replace such a time, for example by null.", in_items=in_items)


def _refuse_no_json(column: pa.Array, documents: pa.DataType | None, path: str, *, in_items: bool = False) -> None:
    """Refuse what is written as it is, and is not JSON."""
    kind = column.type
    if documents is None or not has_parts(documents):
        return
    if documents == JSON_TEXT and _is_text(kind):
        wrong = pa.array([text is not None and not is_json(text) for text in column.to_pylist()], pa.bool_())
        hint = "Write one value of JSON into each row, for example with to_json(), or null."
        _refuse_rows(wrong, path, "the text is not JSON", hint, in_items=in_items)
    elif pa.types.is_struct(kind):
        for number, child in enumerate(column.flatten()):
            name = kind.field(number).name
            inner = f"{path}.{name}" if path else name
            _refuse_no_json(child, part_type(documents, kind, name), inner, in_items=in_items)
    elif pa.types.is_map(kind):
        _refuse_no_json(_compact(column).items, part_type(documents, kind), f"{path}[]", in_items=True)
    elif pa.types.is_list(kind):
        _refuse_no_json(column.flatten(), part_type(documents, kind), f"{path}[]", in_items=True)


def _refuse_rows(wrong: pa.Array, path: str, reason: str, hint: str, *, in_items: bool) -> None:
    if not pc.any(wrong).as_py():
        return
    # The place among the items of lists is not the row.
    row = None if in_items else pc.index(wrong, True).as_py()
    place = "A row" if row is None else f"Row {row}"
    raise RecordError(
        f"{place} of the batch cannot be written in JSON: field '{path or 'value'}': {reason}. "
        "Nothing of the batch was encoded.",
        condition="VALUE_NOT_ENCODABLE",
        hint=hint,
        parameters={"row": row, "field": path or "value", "reason": reason},
    )


def _times(kind: pa.DataType) -> tuple[int, int, str]:
    """Return the first and the last number that a type of dates or times may have, and what is wrong with others."""
    of_day = pa.types.is_time(kind)
    reason = "the time is not within a day" if of_day else "the year is not within 0000 to 9999"
    if pa.types.is_date(kind):
        scale = 1 if kind == pa.date32() else _DAY * 1000
        return _FIRST_DAY * scale, (_LAST_DAY + 1) * scale - 1, reason
    scale = _PER_SECOND[kind.unit]
    if of_day:
        return 0, _DAY * scale - 1, reason
    first, last = _FIRST_DAY * _DAY * scale, (_LAST_DAY + 1) * _DAY * scale - 1
    # Nanoseconds of 64 bits do not reach as far.
    return max(first, -(1 << 63)), min(last, (1 << 63) - 1), reason


def _has_unwritable(given: pa.DataType) -> bool:
    if pa.types.is_floating(given) or pa.types.is_date(given) or pa.types.is_time(given):
        return True
    if pa.types.is_timestamp(given):
        return True
    return any(_has_unwritable(given.field(number).type) for number in range(given.num_fields))


def _compact(column: pa.Array) -> pa.Array:
    """Return the column without the rows that are in memory before it and behind it."""
    return column.take(pa.array(np.arange(len(column))))


def _with_texts(column: pa.Array, times: TimePatterns) -> pa.Array:
    """Return the column with Base64 text in the place of bytes, times as their patterns, and text as keys of maps."""
    kind = column.type
    if not _needs_texts(kind, times):
        return column
    pattern = times.of(kind)
    if pattern is not None:
        return pattern.write(column)
    if _is_bytes(kind):
        return pa.array(
            [None if raw is None else base64.b64encode(raw).decode() for raw in column.to_pylist()], pa.string()
        )
    if pa.types.is_struct(kind):
        children = [_with_texts(column.field(number), times) for number in range(kind.num_fields)]
        names = [kind.field(number).name for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, names=names, mask=pc.is_null(column))
    own = _compact(column)
    if pa.types.is_map(kind):
        keys = own.keys if _is_text(kind.key_type) else own.keys.cast(pa.string())
        items = _with_texts(own.items, times)
        made = pa.map_(keys.type, items.type)
        content = pa.StructArray.from_arrays([keys, items], fields=[made.key_field, made.item_field])
    else:
        content = _with_texts(own.values, times)
        made = pa.list_(content.type)
    return pa.Array.from_buffers(made, len(own), own.buffers()[:2], own.null_count, own.offset, children=[content])
