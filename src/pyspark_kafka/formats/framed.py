"""Values of several schemas in one array: each is read with its own, and stands in its own row. Layer: formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from pyspark_kafka.formats.parts import concat_parts
from pyspark_kafka.formats.schemas import UnknownSchemaError
from pyspark_kafka.formats.values import BadValue, DecodedValues, Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.formats.framing import FramedValues
    from pyspark_kafka.formats.schemas import SchemaId

# Whoever makes up ids makes everyone who reads ask for schemas: more in one array are not looked up.
MOST_SCHEMAS = 100


class ValueDecoder(Protocol):
    """What reads values of one schema."""

    arrow_type: pa.DataType

    def decode(self, values: pa.Array, skipped: int = 0) -> DecodedValues:
        """Read an array of values, without the first bytes of each."""
        ...


def decode_framed(
    framed: FramedValues, arrow_type: pa.DataType, decoder_of: Callable[[SchemaId], ValueDecoder]
) -> DecodedValues:
    """Read values, each with the decoder of its schema.

    Runs on: executor; as often blocking as `decoder_of` is, which is asked once for each id.

    Args:
        framed: the values with their ids, as `framing.read_framing` returns them.
        arrow_type: what all decoders return.
        decoder_of: returns the decoder of a schema. Raises `UnknownSchemaError` where the values are at fault; any
            other error passes, so that an outage of a registry makes no value bad.

    Returns:
        A row for each value. Bad are, besides those that a decoder names, values without an id, of an unknown schema,
        and those of further schemas where an array has more than 100.
    """
    values, skipped, places = framed.values, framed.skipped, framed.places
    bad = list(framed.bad)
    if len(framed.ids) == 1 and not bad:
        # All of one schema, the usual case: nothing is moved.
        only = _decoder(decoder_of, framed.ids[0], np.nonzero(places == 0)[0], bad)
        if only is not None:
            return only.decode(values, skipped)
        return DecodedValues(pa.nulls(len(values), arrow_type), bad)
    columns = [pa.nulls(1, arrow_type)]
    # Where each row stands in the columns one after the other; the first is the null of rows that have no value.
    found = np.zeros(len(values), np.int64)
    length = 1
    # In one pass: there may be as many as values.
    bad += [beyond_most(row, framed.ids[places[row]]) for row in np.nonzero(places >= MOST_SCHEMAS)[0].tolist()]
    for number, schema_id in enumerate(framed.ids[:MOST_SCHEMAS]):
        rows = np.nonzero(places == number)[0]
        decoder = _decoder(decoder_of, schema_id, rows, bad)
        if decoder is None:
            continue
        part = decoder.decode(values.take(pa.array(rows)), skipped)
        bad += [BadValue(int(rows[each.row]), each.reason, each.message) for each in part.bad]
        found[rows] = np.arange(length, length + len(rows))
        columns.append(part.column)
        length += len(rows)
    column = concat_parts(columns, arrow_type).take(pa.array(found))
    return DecodedValues(column, sorted(bad, key=lambda each: each.row))


def beyond_most(row: int, schema_id: SchemaId) -> BadValue:
    """Return what is wrong with a value of a schema that is not looked up."""
    message = f"its schema {schema_id} is beyond the {MOST_SCHEMAS} that one array may have"
    return BadValue(row, Reason.SCHEMA_ID_NOT_FOUND, message)


def _decoder(
    decoder_of: Callable[[SchemaId], ValueDecoder], schema_id: SchemaId, rows: np.ndarray, bad: list[BadValue]
) -> ValueDecoder | None:
    try:
        return decoder_of(schema_id)
    except UnknownSchemaError as error:
        bad += [BadValue(row, error.reason, f"its schema {schema_id} {error}") for row in rows.tolist()]
        return None
