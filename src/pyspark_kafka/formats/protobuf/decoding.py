"""Values in Protobuf to Arrow: one message a value. Layer: formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.formats.avro.arrow_memory import byte_ranges, validity
from pyspark_kafka.formats.parts import concat_parts, split_by_size
from pyspark_kafka.formats.protobuf import _variant
from pyspark_kafka.formats.protobuf.descriptors import build_handler, column_type
from pyspark_kafka.formats.protobuf.map_items import fill_items, find_message_maps
from pyspark_kafka.formats.values import BadValue, DecodedValues, Reason, refuse_lost_times

if TYPE_CHECKING:
    from collections.abc import Callable

# Bytes that are read at a time: it bounds memory, and keeps offsets within 32 bits.
_MOST_BYTES = 64 << 20
# Values that are read at a time: one that is bad costs a whole chunk.
_CHUNK_ROWS = 2048


class ProtobufDecoder:
    """Reads values of one message as columns.

    A field that is not there has its default, or is null where the message knows whether it is there: fields marked
    optional, messages, members of a oneof. Unknown fields are skipped. An enum is its name, or its number as text where
    the schema has no name for it. A map has every entry, also those of one key; of an entry without a value, the value
    is the default, or an empty message.

    Runs on: executor; pure computation. Does not pickle.

    Attributes:
        arrow_type: what `decode` returns. uint32 is a 64-bit number, uint64 a decimal of 20 digits.
    """

    def __init__(self, descriptor: Any) -> None:
        """Read messages of a descriptor, as `descriptors.find_message` returns it.

        Raises:
            MissingDependencyError: without the package ptars.
        """
        self._handler = build_handler(descriptor)
        from google.protobuf import empty_pb2, message_factory  # noqa: PLC0415 - optional

        self._outline = _parser(empty_pb2.Empty)
        self._whole = _parser(message_factory.GetMessageClass(descriptor))
        self._names = [each.name for each in self._handler.schema()]
        self._read_type = pa.struct(list(self._handler.schema()))
        self.arrow_type: pa.DataType = column_type(self._read_type)
        self._is_final = str(self.arrow_type) == str(self._read_type)
        self._maps = find_message_maps(descriptor, self.arrow_type, lambda text: self._try(pa.array([text])))

    def decode(self, values: pa.Array, skipped: int = 0) -> DecodedValues:
        """Read an array of values.

        Args:
            values: of type binary or large_binary. A value of no bytes is a message with all fields at their defaults.
            skipped: bytes at the beginning of each value that are not part of it, such as the id of its schema.
        """
        bad: list[BadValue] = []
        columns = []
        for at, part in split_by_size(values, _MOST_BYTES):
            if skipped:
                bad += _too_short(part, skipped, at)
                # With its default, or a larger one, pyarrow 25 computes a negative size of its buffers.
                cut = pc.binary_slice(part, skipped, (1 << 31) - 1)
                # A value that is shorter than what is skipped is no message.
                part = pc.if_else(pc.less(pc.binary_length(part), skipped), None, cut) if bad else cut  # noqa: PLW2901
            part = part.cast(pa.binary())  # noqa: PLW2901
            columns += [
                self._decode_chunk(part.slice(start, _CHUNK_ROWS), at + start, bad)
                for start in range(0, len(part), _CHUNK_ROWS)
            ]
        column = concat_parts(columns, self.arrow_type)
        return refuse_lost_times(DecodedValues(column, sorted(bad, key=lambda each: each.row)))

    def _decode_chunk(self, values: pa.Array, start: int, bad: list[BadValue]) -> pa.Array:
        column = self._try(values)
        if column is None:
            # ptars refuses every value that is cut short, and a walk over the fields costs a tenth of reading them.
            ends, data = byte_ranges(values)
            cut = _variant.outline.find_cut_short(data, ends, 0, len(values), validity(values))
            if cut:
                values = self._without(values, cut, start, bad)
                column = self._try(values)
        # Google's parser says which values may be at fault: first those whose outline is wrong, which is found in a
        # third of the time; then those with a fault within; then any.
        for may_be_read in (self._outline, self._whole, _nothing):
            if column is not None:
                break
            wrong = [
                row
                for row, text in enumerate(values.to_pylist())
                if text is not None and not may_be_read(text) and self._try(values.slice(row, 1)) is None
            ]
            if wrong:
                values = self._without(values, wrong, start, bad)
                column = self._try(values)
        return pa.nulls(len(values), self.arrow_type) if column is None else column

    @staticmethod
    def _without(values: pa.Array, wrong: list[int], start: int, bad: list[BadValue]) -> pa.Array:
        """Note bad values, and return the others, with nulls in their place."""
        bad += [BadValue(start + row, Reason.DECODE_FAILED, "it is no message of its schema") for row in wrong]
        good = np.ones(len(values), bool)
        good[wrong] = False
        return pc.if_else(pa.array(good), values, pa.scalar(None, values.type))

    def _try(self, values: pa.Array) -> pa.Array | None:
        try:
            batch = self._handler.array_to_record_batch(values)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # noqa: BLE001 - a panic of Rust is no Exception
            return None
        if batch.num_columns == 0:
            # Of children alone, structs would have no length.
            return pa.array([None if each is None else {} for each in values.to_pylist()], self.arrow_type)
        mask = pc.is_null(values) if values.null_count else None
        column = pa.StructArray.from_arrays(batch.columns, fields=list(self._read_type), mask=mask)
        column = column if self._is_final else column.cast(self.arrow_type)
        return column if self._maps is None else fill_items(column, self._maps)


def _too_short(values: pa.Array, skipped: int, start: int) -> list[BadValue]:
    sizes = pc.binary_length(values)
    rows = pc.indices_nonzero(pc.less(sizes, skipped)).to_pylist()
    return [
        BadValue(start + row, Reason.INCOMPLETE_HEADER, f"it has {sizes[row]} bytes, fewer than {skipped}")
        for row in rows
    ]


def _parser(made: Any) -> Callable[[bytes], bool]:
    """Return a function that says whether Google's parser reads a value as a message of a class."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - optional

    parse_one = made.FromString

    def may_be_read(text: bytes) -> bool:
        try:
            parse_one(text)
        except (DecodeError, ValueError, RecursionError):
            return False
        return True

    return may_be_read


def _nothing(text: bytes) -> bool:
    del text
    return False
