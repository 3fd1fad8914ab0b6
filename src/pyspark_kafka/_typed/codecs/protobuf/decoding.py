"""Values in Protobuf to Arrow: one message a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.bounds import FREE_CELLS, TOO_MANY_CELLS
from pyspark_kafka._typed.codecs.parts import concat_parts, split_by_size
from pyspark_kafka._typed.codecs.protobuf import _variant
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler, column_type
from pyspark_kafka._typed.codecs.protobuf.map_items import fill_items, find_message_maps
from pyspark_kafka._typed.codecs.protobuf.outline import build_walk, check_values, find_too_many
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason, refuse_lost_times

# Bytes that are read at a time: it bounds memory, and keeps offsets within 32 bits.
_MAX_BYTES = 64 << 20
# Values that are read at a time: one that is bad costs a whole chunk.
_CHUNK_ROWS = 2048
_NO_MESSAGE = "it is not a message of its schema"
_TOO_DEEP = f"it is nested more than {_variant.outline.MAX_DEPTH} deep"


class ProtobufDecoder:
    """Reads values of one message as columns.

    A field that is not there has its default, or is null where the message knows whether it is there: fields marked
    optional, messages, members of a oneof. Unknown fields are skipped. An enum is its name, or its number as text where
    the schema has no name for it. A map has every entry, also several of one key; of an entry without a value, the
    value is the default, or an empty message. Of a oneof that has several members the last member counts. A message
    that occurs twice is merged. A message within itself is its bytes.

    Runs on: executor; pure computation. Does not pickle.

    Attributes:
        arrow_type: what `decode` returns. uint32 is a 64-bit number, uint64 a decimal of 20 digits.
    """

    def __init__(self, descriptor: Any, whole: Any = None) -> None:
        """Read messages of a descriptor, as `descriptors.find_message` returns it.

        Args:
            descriptor: the message.
            whole: the message with the fields that are not to be read, if there are some.

        Raises:
            MissingDependencyError: without the package ptars.
        """
        self._handler = build_handler(descriptor, whole)
        from google.protobuf import message_factory  # noqa: PLC0415 - optional

        self._may_be_read = _parser(message_factory.GetMessageClass(descriptor))
        self._read_type = pa.struct(self._handler.fields)
        self.arrow_type: pa.DataType = column_type(self._read_type)
        self._is_final = str(self.arrow_type) == str(self._read_type)
        self._walk = build_walk(descriptor, self._read_type, whole)
        self._maps = find_message_maps(descriptor, self.arrow_type, lambda text: self._try(pa.array([text])))

    def decode(self, values: pa.Array, skipped: int = 0) -> DecodedValues:
        """Read an array of values.

        Args:
            values: of type binary or large_binary. A value of no bytes is a message with all fields at their defaults.
            skipped: bytes at the beginning of each value that are not part of it, such as the id of its schema.
        """
        unmerged, bad = self._check(values, skipped)
        good = np.ones(len(values), bool)
        good[[each.row for each in bad]] = False
        columns = []
        for at, part in split_by_size(values, _MAX_BYTES):
            if skipped:
                # With its default, or a larger one, pyarrow 25 computes a negative size of its buffers.
                part = pc.binary_slice(part, skipped, (1 << 31) - 1)  # noqa: PLW2901
            part = part.cast(pa.binary())  # noqa: PLW2901
            if bad:
                part = pc.if_else(pa.array(good[at : at + len(part)]), part, None)  # noqa: PLW2901
            for start in range(at, at + len(part), _CHUNK_ROWS):
                chunk = part.slice(start - at, _CHUNK_ROWS)
                if unmerged is not None:
                    chunk = self._merged(chunk, unmerged[start : start + len(chunk)])
                columns.append(self._decode_chunk(chunk, start, bad))
        column = concat_parts(columns, self.arrow_type)
        return refuse_lost_times(DecodedValues(column, sorted(bad, key=lambda each: each.row)))

    def _check(self, values: pa.Array, skipped: int) -> tuple[Any, list[BadValue]]:
        """Return the values to merge, and the values that are bad even if the library would accept them."""
        found = check_values(self._walk, values, skipped)
        if found.are_good and found.all_cells <= FREE_CELLS:
            return None, []
        outline = _variant.outline
        sizes = np.asarray(pc.binary_length(values).fill_null(0)).astype(np.int64)
        cells = found.cells
        bad = [
            BadValue(row, Reason.INCOMPLETE_HEADER, f"it has {sizes[row]} bytes, fewer than {skipped}")
            for row in np.nonzero(found.verdicts == outline.TOO_SHORT)[0].tolist()
        ]
        for code, message in ((outline.BAD, _NO_MESSAGE), (outline.TOO_DEEP, _TOO_DEEP)):
            rows = np.nonzero(found.verdicts == code)[0].tolist()
            bad += [BadValue(row, Reason.DECODE_FAILED, message) for row in rows]
            cells[rows] = 0
        large = find_too_many(cells, np.maximum(sizes - skipped, 0))
        bad += [BadValue(row, Reason.DECODE_FAILED, TOO_MANY_CELLS) for row in large]
        unmerged = found.verdicts == outline.UNMERGED
        return (unmerged if unmerged.any() else None), bad

    def _merged(self, values: pa.Array, chosen: Any) -> pa.Array:
        if not chosen.any():
            return values
        return pa.array(
            [
                self._walk.merged(text) if text is not None and is_chosen else text
                for text, is_chosen in zip(values.to_pylist(), chosen, strict=True)
            ],
            pa.binary(),
        )

    def _decode_chunk(self, values: pa.Array, start: int, bad: list[BadValue]) -> pa.Array:
        column = self._try(values)
        # Google's parser says which values may be at fault, in a third of the time; then any.
        for may_be_read in (self._may_be_read, _nothing):
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
        """Record bad values, and return the others, with nulls in their place."""
        bad += [BadValue(start + row, Reason.DECODE_FAILED, _NO_MESSAGE) for row in wrong]
        good = np.ones(len(values), bool)
        good[wrong] = False
        return pc.if_else(pa.array(good), values, pa.scalar(None, values.type))

    def _try(self, values: pa.Array) -> pa.Array | None:
        try:
            columns = self._handler.read(values)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # noqa: BLE001 - a panic of Rust is not an Exception
            return None
        if not columns:
            # Of children alone, structs would have no length.
            return pa.array([None if each is None else {} for each in values.to_pylist()], self.arrow_type)
        mask = pc.is_null(values) if values.null_count else None
        column = pa.StructArray.from_arrays(columns, fields=list(self._read_type), mask=mask)
        column = column if self._is_final else column.cast(self.arrow_type)
        return column if self._maps is None else fill_items(column, self._maps)


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
