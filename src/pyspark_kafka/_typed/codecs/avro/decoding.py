"""Values in Avro to Arrow: a column of a reader's schema, and the rows that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.avro.arrow_memory import byte_ranges, validity
from pyspark_kafka._typed.codecs.avro.columns import build_column
from pyspark_kafka._typed.codecs.avro.resolution import build_step
from pyspark_kafka._typed.codecs.bounds import TOO_MANY_CELLS, cell_budget
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason
from pyspark_kafka.errors import RecordError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._typed.codecs.avro.columns import AvroColumn
    from pyspark_kafka._typed.codecs.avro.schema import Schema
    from pyspark_kafka._typed.codecs.bounds import SizeBudget

_READING = _variant.kernel.reading
# Why a value could not be read, by the kernel's codes.
_REASONS = {
    _READING.CUT_SHORT: "it ends in the middle of a field",
    _READING.BAD_VARINT: "a number has more than ten bytes",
    _READING.OUT_OF_RANGE: "a number is out of the range of its type",
    _READING.BAD_BRANCH: "it names a branch that the union does not have",
    _READING.BAD_SYMBOL: "it names a symbol that the enum does not have",
    _READING.BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    _READING.BAD_LENGTH: "a length is negative",
    _READING.BAD_COUNT: "an array or map has more items than can follow",
    _READING.BAD_TEXT: "a string is not UTF-8",
    _READING.TRAILING: "bytes follow the value",
    _READING.NOT_READABLE: "the reader's schema has no place for its branch or symbol",
    _READING.BAD_DECIMAL: "a decimal has more digits than its precision",
    _READING.TOO_DEEP: "it is nested more than 64 deep",
    _READING.TOO_MANY_CELLS: TOO_MANY_CELLS,
}


# All other codes are a value that is not Avro of its schema.
_KINDS = {_READING.NOT_READABLE: Reason.RESOLUTION_FAILED}


class AvroDecoder:
    """Reads values of one writer's schema as columns of a reader's.

    Runs on: executor; pure computation. For one thread at a time.

    Attributes:
        arrow_type: what `decode` returns. Every field is nullable; an enum and a uuid are strings, a union of several
            types is a struct with the fields `member0`, `member1`, ... as Spark's from_avro has it. A map has every
            entry, also several of one key.
    """

    def __init__(
        self,
        writer: Schema,
        reader: Schema | None = None,
        wanted: pa.DataType | None = None,
        *,
        recursive_field_max_depth: int = 0,
    ) -> None:
        """Resolve the schemas.

        Args:
            writer: what the values were written with.
            reader: what they are wanted as; None: the same.
            wanted: a type with the wanted fields of records, in their order; None: all. The others are
                skipped: they need not resolve, and their contents are not checked.
            recursive_field_max_depth: see `build_column`.

        Raises:
            SchemaError: the one cannot be read as the other, the reader's has a record that holds itself, or a field
                is wanted that it does not have.
        """
        self._writer = writer
        self._reader = writer if reader is None else reader
        self._wanted = wanted
        self._max_depth = recursive_field_max_depth
        # Made once to find out whether they fit; each call has columns of its own.
        self.arrow_type: pa.DataType = self._new()[0].arrow_type

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values.

        Args:
            values: of type binary or large_binary.
            skipped: bytes at the beginning of each value that are not part of it, such as the id of its schema.
            budget: the cells of the batch that the values are a part of; None: they are all of it.

        Returns:
            The column, and the values that could not be read.

        Raises:
            RecordError: a column of the result would pass 2 GiB.
        """
        column, step = self._new()
        ends, data = byte_ranges(values)
        budget = cell_budget() if budget is None else budget
        found, budget.free = _variant.kernel.reading.decode_rows(
            step,
            column.builder,
            data,
            ends,
            0,
            len(values),
            skipped,
            validity(values),
            budget.per_byte,
            budget.free,
        )
        if any(code == _READING.TOO_LARGE for _, code, _ in found):
            raise RecordError(
                f"{len(values)} values in Avro have a column of more than 2 GiB, which no Arrow array holds. "
                "None was read.",
                condition="VALUES_TOO_LARGE",
                hint="Read fewer fields of them, or decode fewer values at a time.",
                parameters={"values": len(values)},
            )
        bad = [
            BadValue(row, _KINDS.get(code, Reason.DECODE_FAILED), f"{_REASONS[code]}, after {position} bytes")
            for row, code, position in found
        ]
        return DecodedValues(column.finish(), bad)

    def _new(self) -> tuple[AvroColumn, Any]:
        column = build_column(self._reader, self._reader.root, self._wanted, recursive_field_max_depth=self._max_depth)
        return column, build_step(self._writer, self._reader, column)
