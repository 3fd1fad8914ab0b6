"""Values as the serializers of Kafka's own clients write numbers and UUIDs.

Source: `org.apache.kafka.common.serialization`: `LongSerializer`, `IntegerSerializer`, `ShortSerializer`,
`DoubleSerializer`, `FloatSerializer`, `UUIDSerializer`, and their deserializers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason
from pyspark_kafka.errors import RecordError, SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.bounds import SizeBudget
    from pyspark_kafka._typed.codecs.column_format import NumberFormat

_UUID = r"\A[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\z"


class _Number(NamedTuple):
    """A number of Kafka's: its type as a column, its bytes in numpy's words, and the columns that become it exactly."""

    arrow_type: pa.DataType
    wire: np.dtype
    taken: tuple[pa.DataType, ...]


_NUMBERS: dict[str, _Number] = {
    "short": _Number(pa.int16(), np.dtype(">i2"), (pa.int8(), pa.int16())),
    "integer": _Number(pa.int32(), np.dtype(">i4"), (pa.int8(), pa.int16(), pa.int32())),
    "long": _Number(pa.int64(), np.dtype(">i8"), (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    "float": _Number(pa.float32(), np.dtype(">f4"), (pa.float32(),)),
    "double": _Number(pa.float64(), np.dtype(">f8"), (pa.float32(), pa.float64())),
}


class NumberDecoder:
    """Reads values that are one number each, with the highest byte first.

    Runs on: executor; pure computation.

    Attributes:
        arrow_type: what `decode` returns.
    """

    def __init__(self, number: NumberFormat) -> None:
        self._name = number
        self.arrow_type, self._wire, _ = _NUMBERS[number]

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values; one of another length is bad.

        Args:
            values: of type binary or large_binary.
            skipped: 0: nothing stands before these values.
            budget: not needed: a number has one cell.
        """
        del skipped, budget
        size = self._wire.itemsize
        lengths = pc.binary_length(values)
        fits = pc.fill_null(pc.equal(lengths, size), False)
        article = "an" if self._name[0] == "i" else "a"
        bad = [
            BadValue(
                row,
                Reason.DECODE_FAILED,
                f"it has a length of {lengths[row].as_py()}, and {article} {self._name} of Kafka has {size} bytes",
            )
            for row in _misfits(values, fits)
        ]
        filled = pc.if_else(fits, values, pa.scalar(bytes(size), values.type))
        data = filled.buffers()[2]
        numbers = np.frombuffer(data or b"", self._wire, len(values)).astype(self._wire.newbyteorder("="))
        # NaN is a number here, and not a null.
        column = pc.if_else(fits, pa.array(numbers, self.arrow_type, from_pandas=False), None)
        return DecodedValues(column, bad)


class NumberEncoder:
    """Writes numbers with the highest byte first."""

    def __init__(self, number: NumberFormat, kind: pa.DataType) -> None:
        self._type, self._wire, taken = _NUMBERS[number]
        if kind not in taken:
            raise _other_type(number, kind, self._type)

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Return the bytes of each number, null where the row is; there is no prefix."""
        del prefix
        numbers = pc.fill_null(column, 0).cast(self._type).to_numpy(zero_copy_only=False)
        data = np.ascontiguousarray(numbers, dtype=self._wire)
        offsets = np.arange(len(column) + 1, dtype=np.int32) * np.int32(self._wire.itemsize)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        written = pa.Array.from_buffers(pa.binary(), len(column), buffers)
        return pc.if_else(pc.is_valid(column), written, None) if column.null_count else written


class UuidDecoder:
    """Reads UUIDs, which are text of 36 characters, as text in lower case.

    Runs on: executor; pure computation.

    Attributes:
        arrow_type: what `decode` returns.
    """

    arrow_type: pa.DataType = pa.string()

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values; what is no such text is bad.

        Args:
            values: of type binary or large_binary.
            skipped: 0: nothing stands before these values.
            budget: not needed: a text has one cell.
        """
        del skipped, budget
        fits = pc.fill_null(pc.match_substring_regex(values, _UUID), False)
        bad = [
            BadValue(row, Reason.DECODE_FAILED, "it is not a UUID as text of 36 characters")
            for row in _misfits(values, fits)
        ]
        texts = pc.if_else(fits, values, None).cast(pa.binary()).cast(pa.string())
        return DecodedValues(pc.ascii_lower(texts), bad)


class UuidEncoder:
    """Writes UUIDs as text of 36 characters in lower case, as Java does: equal ones have equal bytes."""

    def __init__(self, kind: pa.DataType) -> None:
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise _other_type("uuid", kind, pa.string())

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Return the bytes of each text, null where the row is; there is no prefix.

        Raises:
            RecordError: a text is not a UUID.
        """
        del prefix
        wrong = _misfits(column, pc.fill_null(pc.match_substring_regex(column, _UUID), False))
        if wrong:
            raise RecordError(
                f"Row {wrong[0]} is not a UUID as text of 36 characters.",
                condition="VALUE_NOT_ENCODABLE",
                parameters={"row": wrong[0], "field": "value", "reason": "it is not a UUID as text of 36 characters"},
            )
        return pc.ascii_lower(column).cast(pa.binary())


def type_of(name: NumberFormat) -> pa.DataType:
    """Return the type that numbers of a format are read as."""
    return _NUMBERS[name].arrow_type


def _misfits(values: pa.Array, fits: pa.Array) -> list[int]:
    """Return the rows that are neither null nor fit."""
    found: list[int] = pc.indices_nonzero(pc.and_(pc.is_valid(values), pc.invert(fits))).to_pylist()
    return found


def _other_type(name: str, kind: pa.DataType, wanted: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Column 'value' has the type {kind}, which cannot be written as {name}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column, or use another format.",
        parameters={"column": "value", "found": kind, "wanted": wanted},
    )
