"""Values of several schemas in one array: each is read with its own, and stands in its own row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from pyspark_kafka.formats.bounds import cell_budget
from pyspark_kafka.formats.parts import concat_parts
from pyspark_kafka.formats.schemas import UnknownSchemaError
from pyspark_kafka.formats.values import BadValue, DecodedValues, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.formats.bounds import SizeBudget
    from pyspark_kafka.formats.schemas import SchemaId
    from pyspark_kafka.formats.wire_format import FramedValues

_T = TypeVar("_T")

# Whoever makes up ids makes everyone who reads ask for schemas: after this number of questions of one array that found
# none, or this time with them, ids that would need another question are not looked up.
MAX_UNKNOWN = 100
MAX_UNKNOWN_S = 30.0


class ValueDecoder(Protocol):
    """What reads values of one schema."""

    arrow_type: pa.DataType

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values, without the first bytes of each, within the cells of their batch."""
        ...


def decode_framed(
    framed: FramedValues,
    arrow_type: pa.DataType,
    decoder_of: Callable[[SchemaId], ValueDecoder],
    is_known: Callable[[SchemaId], bool],
) -> DecodedValues:
    """Read values, each with the decoder of its schema.

    Runs on: executor; as often blocking as `decoder_of` is.

    Args:
        framed: the values with their ids, as `wire_format.read_wire_format` returns them.
        arrow_type: what all decoders return.
        decoder_of: as `find_schemas` asks.
        is_known: as of `find_schemas`.

    Returns:
        A row for each value. Bad are, besides those that a decoder names, values without an id, and those whose schema
        `find_schemas` did not find.
    """
    values, skipped = framed.values, framed.skipped
    bad = list(framed.bad)
    alone = len(framed.ids) == 1 and not bad
    columns = [pa.nulls(1, arrow_type)]
    # Where each row stands in the columns one after the other; the first is the null of rows that have no value.
    found = np.zeros(len(values), np.int64)
    length = 1
    budget = cell_budget()
    for _, rows, decoder in find_schemas(framed, decoder_of, is_known, bad):
        if alone:
            # All of one schema, the usual case: nothing is moved.
            return decoder.decode(values, skipped)
        part = decoder.decode(values.take(pa.array(rows)), skipped, budget)
        bad += [BadValue(int(rows[each.row]), each.reason, each.message) for each in part.bad]
        found[rows] = np.arange(length, length + len(rows))
        columns.append(part.column)
        length += len(rows)
    column = concat_parts(columns, arrow_type).take(pa.array(found))
    return DecodedValues(column, sorted(bad, key=lambda each: each.row))


def find_schemas(
    framed: FramedValues,
    look_up: Callable[[SchemaId], _T],
    is_known: Callable[[SchemaId], bool],
    bad: list[BadValue],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[SchemaId, Any, _T]]:
    """Yield the ids of an array with their rows and with what was found for them, those of the most rows first.

    Ids that are known are always looked up. The others are until 100 of them were not there, or the questions about
    these took 30 s: so made-up ids spoil no value of a schema that was seen before, and of others only those with the
    fewest values.

    Runs on: executor; as often blocking as `look_up` is, which is called once for each id.

    Args:
        framed: the values with their ids.
        look_up: returns what there is for an id. Raises `UnknownSchemaError` where the values are at fault; any other
            error passes, so that an outage of a registry makes no value bad.
        is_known: whether `look_up` needs no question for an id.
        bad: takes the values whose schema was not found, or not looked up.
        clock: monotonic seconds; tests pass their own.
    """
    unknown, spent_s = 0, 0.0
    for number, rows in _rows_by_id(framed.places):
        schema_id = framed.ids[number]
        known = is_known(schema_id)
        if not known and (unknown >= MAX_UNKNOWN or spent_s >= MAX_UNKNOWN_S):
            message = f"its schema {schema_id} was not looked up, after {unknown} others that do not exist"
            bad += [BadValue(row, Reason.SCHEMA_ID_NOT_FOUND, message) for row in rows.tolist()]
            continue
        began = clock()
        try:
            found = look_up(schema_id)
        except UnknownSchemaError as error:
            bad += [BadValue(row, error.reason, f"its schema {schema_id} {error}") for row in rows.tolist()]
            if not known and error.reason is Reason.SCHEMA_ID_NOT_FOUND:
                unknown += 1
                spent_s += clock() - began
        else:
            yield schema_id, rows, found


def _rows_by_id(places: Any) -> list[tuple[int, Any]]:
    """Return each id of some rows with its rows, those of the most rows first."""
    if len(places) and places.min() == places.max() >= 0:
        return [(int(places[0]), np.arange(len(places)))]
    order = np.argsort(places, kind="stable")
    order = order[np.searchsorted(places[order], 0) :]
    numbers, starts = np.unique(places[order], return_index=True)
    groups = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True) if len(numbers) else ()
    return sorted(groups, key=lambda each: -len(each[1]))
