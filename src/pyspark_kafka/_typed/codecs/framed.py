"""Values of several schemas in one array: each is read with its schema, into its row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from pyspark_kafka._typed.codecs.bounds import cell_budget
from pyspark_kafka._typed.codecs.parts import concat_parts
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._typed.codecs.bounds import SizeBudget
    from pyspark_kafka._typed.codecs.schemas import SchemaId
    from pyspark_kafka._typed.codecs.wire_format import FramedValues

_T = TypeVar("_T")

# Invented ids would cause requests for schemas from all readers. So after this number of failed look-ups of one array,
# or after this time for them, ids that need another request are not looked up.
MAX_UNKNOWN = 100
MAX_UNKNOWN_S = 30.0


class ValueDecoder(Protocol):
    """The decoder of one schema."""

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

    Runs on: executor; blocks when `decoder_of` does.

    Args:
        framed: the values with their ids, as `wire_format.read_wire_format` returns them.
        arrow_type: the result type of all decoders.
        decoder_of: the `look_up` of `find_schemas`.
        is_known: as in `find_schemas`.

    Returns:
        A row for each value. In addition to the bad values of the decoders, values without an id and values whose
        schema was not found are bad.
    """
    values, skipped = framed.values, framed.skipped
    bad = list(framed.bad)
    alone = len(framed.ids) == 1 and not bad
    columns = [pa.nulls(1, arrow_type)]
    # The index of each row in the concatenated columns; the first one is the null of rows without a value.
    found = np.zeros(len(values), np.int64)
    length = 1
    budget = cell_budget()
    for _, rows, decoder in find_schemas(framed, decoder_of, is_known, bad):
        if alone:
            # All values have one schema, the usual case: nothing is moved.
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
    """Yield the ids of an array with their rows and look-up results, ids with the most rows first.

    Known ids are always looked up. Other ids are looked up until 100 of them were not found, or their requests
    took 30 s. So made-up ids never affect values of a known schema, and of other schemas only the ones with the
    fewest values.

    Runs on: executor; blocks when `look_up` does, which is called once for each id.

    Args:
        framed: the values with their ids.
        look_up: returns the result for an id. Raises `UnknownSchemaError` if the values are at fault; any other
            error passes, so that an outage of a registry does not make values bad.
        is_known: whether `look_up` needs no request for an id.
        bad: receives the values whose schema was not found, or not looked up.
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
    """Return each id of some rows with its rows, ids with the most rows first."""
    if len(places) and places.min() == places.max() >= 0:
        return [(int(places[0]), np.arange(len(places)))]
    order = np.argsort(places, kind="stable")
    order = order[np.searchsorted(places[order], 0) :]
    numbers, starts = np.unique(places[order], return_index=True)
    groups = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True) if len(numbers) else ()
    return sorted(groups, key=lambda each: -len(each[1]))
