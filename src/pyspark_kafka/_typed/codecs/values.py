"""The result of decoding an array of values: a column, and the bad values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


class Reason(str, Enum):
    """The reason of an unreadable value, in the words of Databricks for `from_avro` and `from_json`."""

    INCOMPLETE_HEADER = "INCOMPLETE_HEADER"
    INVALID_MAGIC_BYTE = "INVALID_MAGIC_BYTE"
    SCHEMA_ID_NOT_FOUND = "SCHEMA_ID_NOT_FOUND"
    DECODE_FAILED = "DECODE_FAILED"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    RESOLUTION_FAILED = "RESOLUTION_FAILED"


@dataclass(frozen=True, slots=True)
class BadValue:
    """An unreadable value.

    Attributes:
        row: its row in the array.
        reason: the kind of fault.
        message: the fault, as the end of a sentence, without content of the value.
    """

    row: int
    reason: Reason
    message: str


class DecodedValues(NamedTuple):
    """A column with a row for each value, and the bad values in the order of their rows.

    The row of a bad or missing value is null.
    """

    column: pa.Array
    bad: list[BadValue]


def refuse_lost_times(found: DecodedValues) -> DecodedValues:
    """Return values without times and durations that do not fit into 64 bits of microseconds.

    For decoders that return the minimum or maximum for such a time.
    """
    lost = find_values(found.column, _is_time, _lost_times)
    if not lost:
        return found
    bad = list(found.bad)
    reasons = {row: f"the time of field '{path}' is out of range" for row, path in lost.items()}
    column = refuse_rows(found.column, reasons, bad)
    return DecodedValues(column, sorted(bad, key=lambda each: each.row))


def refuse_rows(column: pa.Array, reasons: Mapping[int, str], bad: list[BadValue]) -> pa.Array:
    """Return a column with nulls in the rows with a reason, and note their values as bad: the type does not fit."""
    bad += [BadValue(row, Reason.TYPE_MISMATCH, reason) for row, reason in reasons.items()]
    good = np.ones(len(column), bool)
    good[list(reasons)] = False
    return pc.if_else(pa.array(good), column, pa.scalar(None, column.type))


def find_values(
    column: pa.Array, of_kind: Callable[[pa.DataType], bool], places_in: Callable[[pa.Array], list[int]]
) -> dict[int, str]:
    """Return the rows of a column with a certain value at any depth, each with the path of the first such field.

    Args:
        column: of any type.
        of_kind: whether a type may have such values.
        places_in: returns the positions of such values in an array of the type.
    """
    found: dict[int, str] = {}

    def look(part: pa.Array, rows: Any, path: str) -> None:
        # The row of each item; None if each item is a row.
        kind = part.type
        if not has_kind(kind, of_kind):
            return
        if of_kind(kind):
            for at in places_in(part):
                found.setdefault(at if rows is None else int(rows[at]), path)
        elif pa.types.is_struct(kind):
            for number, each in enumerate(kind):
                look(part.field(number), rows, f"{path}.{each.name}" if path else each.name)
        else:
            offsets = np.asarray(part.offsets)
            items = part.values if pa.types.is_list(kind) else part.items
            parents = np.repeat(np.arange(len(part)) if rows is None else rows, np.diff(offsets))
            look(items.slice(offsets[0], offsets[-1] - offsets[0]), parents, path)

    look(column, None, "")
    return found


def has_kind(kind: pa.DataType, of_kind: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type, or one within it, is of a kind."""
    return of_kind(kind) or any(has_kind(kind.field(at).type, of_kind) for at in range(kind.num_fields))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _lost_times(column: pa.Array) -> list[int]:
    numbers = column.cast(pa.int64())
    ends = pc.min_max(numbers)
    if ends["min"].as_py() not in (None, _FIRST) and ends["max"].as_py() != _LAST:
        return []
    places = pc.indices_nonzero(pc.or_(pc.equal(numbers, _FIRST), pc.equal(numbers, _LAST)))
    return list(np.asarray(places).tolist())
