"""Values that are text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.parts import concat_parts, split_by_size
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.bounds import SizeBudget

_MAX_BYTES = 1 << 30


class TextDecoder:
    """Reads values as text, which must be UTF-8.

    Runs on: executor; pure computation.

    Attributes:
        arrow_type: what `decode` returns.
    """

    arrow_type: pa.DataType = pa.string()

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values.

        Args:
            values: of type binary or large_binary.
            skipped: bytes at the beginning of each value that are not part of it, such as the id of its schema.
            budget: not needed: a text has one cell.

        Raises:
            RecordError: the texts together are more than 2 GiB.
        """
        del budget
        bad: list[BadValue] = []
        columns = []
        for at, part in split_by_size(values, _MAX_BYTES):
            if skipped:
                # With its default, or a larger one, pyarrow 25 computes a negative size of its buffers.
                part = pc.binary_slice(part, skipped, (1 << 31) - 1)  # noqa: PLW2901
            columns.append(_decode_part(part.cast(pa.binary()), at, bad))
        return DecodedValues(concat_parts(columns, self.arrow_type), bad)


def _decode_part(values: pa.Array, start: int, bad: list[BadValue]) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts: list[bytes | None] = values.to_pylist()
    for row, text in enumerate(texts):
        try:
            if text is not None:
                text.decode()
        except UnicodeDecodeError as error:
            bad.append(BadValue(start + row, Reason.DECODE_FAILED, f"it is not UTF-8, after {error.start} bytes"))
            texts[row] = None
    return pa.array(texts, pa.string())


def has_text(kind: pa.DataType) -> bool:
    """Return whether a type has text, also within."""
    return _is_text(kind) or any(has_text(kind.field(number).type) for number in range(kind.num_fields))


def find_bad_text(column: pa.Array) -> tuple[int, str] | None:
    """Return the first row that has a text that is not UTF-8, and the path of the text; None if there is none.

    Arrow and Spark do not look at the bytes of a string: a cast of bytes to a string leaves them as they are.
    """
    if _bad_path(column, "") is None:
        return None
    start, count = 0, len(column)
    while count > 1:
        half = count // 2
        if _bad_path(column.slice(start, half), "") is None:
            start, count = start + half, count - half
        else:
            count = half
    return start, _bad_path(column.slice(start, 1), "") or "value"


def _bad_path(column: pa.Array, path: str) -> str | None:
    """Return the path of the first child with a bad text; a child within a null does not count."""
    kind = column.type
    if not has_text(kind):
        return None
    if _is_text(kind):
        large = pa.types.is_large_string(kind)
        try:
            column.cast(pa.large_binary() if large else pa.binary()).cast(kind)
        except pa.ArrowInvalid:
            return path or "value"
        return None
    if pa.types.is_struct(kind):
        names = [each.name for each in kind]
        parts = zip([f"{path}.{name}" if path else name for name in names], column.flatten(), strict=True)
        return next((bad for inner, part in parts if (bad := _bad_path(part, inner)) is not None), None)
    if pa.types.is_map(kind):
        column = column.drop_null() if column.null_count else column
        if len(column) == 0:
            return None
        first = column.offsets[0].as_py()
        count = column.offsets[-1].as_py() - first
        bad = _bad_path(column.keys.slice(first, count), f"{path}[key]")
        return bad if bad is not None else _bad_path(column.items.slice(first, count), f"{path}[]")
    return _bad_path(column.flatten(), f"{path}[]")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
