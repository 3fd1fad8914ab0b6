"""Rows with keys and values of their own types, as rows of bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._connector.sink.executor.header_columns import append_constant_headers
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka.errors import RecordError

if TYPE_CHECKING:
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._typed.codecs.column_format import ColumnFormat

# Of rows that are encoded at a time: the bytes of one array of values stay far below 2 GiB.
_PIECE_BYTES = 32 << 20


class TypedRows:
    """Encodes the keys and values of one task.

    Runs on: executor; pure computation. Memory: the encoded values of one Arrow batch of Spark.

    Args:
        columns: the positions of the sink's columns, and the formats.

    Attributes:
        columns: the positions in the rows that `encode` returns, which have bytes only.
    """

    def __init__(self, columns: SinkColumns) -> None:
        self._given = columns
        self._encoders = [
            _TypedColumn(name, position, form)
            for name, position, form in (
                ("key", columns.key, columns.key_format),
                ("value", columns.value, columns.value_format),
            )
            if form is not None
        ]
        places = [columns.key, columns.value, columns.topic, columns.partition, columns.headers]
        if columns.headers < 0 and any(each.header for each in self._encoders):
            # A column of headers that the rows do not have.
            places[-1] = -2
        self._kept = [place for place in places if place != -1]
        key, value, topic, partition, headers = (self._kept.index(place) if place != -1 else -1 for place in places)
        self.columns = replace(
            columns,
            key=key,
            value=value,
            topic=topic,
            partition=partition,
            headers=headers,
            key_format=None,
            value_format=None,
        )
        self._rows_before = 0

    def encode(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return the rows, in one part or several.

        Raises:
            RecordError: a key or value does not fit; it names the row, counted in the task. Nothing is encoded then.
        """
        pieces = max(1, -(-batch.nbytes // _PIECE_BYTES))
        rows = -(-batch.num_rows // pieces)
        found = [
            self._encode_piece(batch.slice(start, rows), self._rows_before + start)
            for start in range(0, batch.num_rows, rows)
        ]
        self._rows_before += batch.num_rows
        return found

    def _encode_piece(self, rows: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        arrays: dict[int, Any] = {place: rows.column(place) for place in self._kept if place >= 0}
        added = []
        for each in self._encoders:
            arrays[each.position] = written = each.encode(arrays[each.position], first_row)
            if each.header is not None:
                added.append((*each.header, pc.is_valid(written)))
        if added:
            headers_at = self._given.headers
            own = rows.column(headers_at) if headers_at >= 0 else None
            arrays[headers_at if headers_at >= 0 else -2] = append_constant_headers(own, added)
        return pa.RecordBatch.from_arrays(
            [arrays[place] for place in self._kept], names=[str(number) for number in range(len(self._kept))]
        )


class _TypedColumn:
    def __init__(self, name: str, position: int, form: ColumnFormat) -> None:
        self._name = name
        self._is_struct = pa.types.is_struct(form.arrow_type)
        self._encoder = ColumnEncoder(form, is_key=name == "key")
        self.position = position
        self.header = self._encoder.header

    def encode(self, column: pa.Array, first_row: int) -> pa.Array:
        try:
            return self._encoder.encode(column)
        except RecordError as error:
            parameters = error.parameters
            row = first_row + int(parameters["row"]) if parameters.get("row", "").isdigit() else first_row
            field = parameters.get("field", "")
            place = f"'{self._name}'" + (f", field '{field}'" if self._is_struct or field != "value" else "")
            raise RecordError(
                f"Row {row} of the task, counted from 0, cannot be written: column {place}: "
                f"{parameters.get('reason', 'it does not fit')}. Nothing of its Arrow batch was sent; earlier rows of "
                "the task may have been.",
                condition="VALUE_NOT_ENCODABLE",
                hint=error.hint,
                parameters={**parameters, "row": row, "column": self._name},
            ) from error
