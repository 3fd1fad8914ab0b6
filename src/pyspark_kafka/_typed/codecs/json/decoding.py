"""Values in JSON to Arrow: one document a value."""

from __future__ import annotations

import io
import re
import secrets
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.bounds import TOO_MANY_CELLS, cell_budget
from pyspark_kafka._typed.codecs.json.cells import cell_counter, may_have_many, widest_item
from pyspark_kafka._typed.codecs.json.decimals import find_suspects, has_decimals, rewrite_numbers
from pyspark_kafka._typed.codecs.json.document_parts import parts_to_read
from pyspark_kafka._typed.codecs.json.documents import (
    NOT_JSON,
    NOT_UTF8,
    TOO_DEEP,
    SyntaxCheck,
    find_lost_numbers,
    find_misread_decimal,
    is_utf8,
    load_document,
)
from pyspark_kafka._typed.codecs.json.refusals import RefusalSearch
from pyspark_kafka._typed.codecs.json.text_fields import TextFields
from pyspark_kafka._typed.codecs.json.time_patterns import NO_PATTERNS
from pyspark_kafka._typed.codecs.parts import concat_parts, split_by_size
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason, has_kind, refuse_lost_times, refuse_rows
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._typed.codecs.bounds import SizeBudget
    from pyspark_kafka._typed.codecs.json.document_parts import DocumentPart
    from pyspark_kafka._typed.codecs.json.time_patterns import TimePatterns

# Text that is read at a time: it bounds memory, and keeps offsets within 32 bits.
_MAX_TEXT = 64 << 20
# What is decoded at a time: more than the caches hold takes twice as long, and one bad value costs a whole chunk.
_CHUNK_ROWS = 1024
_CHUNK_BYTES = 1 << 20
# arrow-json reads an escaped surrogate pair beyond U+1FFFF as another character, so such pairs become UTF-8 before.
_LOST_PAIR = re.compile(rb"\\u[dD](?:8[4-9a-fA-F]|[9aAbB])")
_NUL = rb"\u0000"
# Any escape: a pair, or a backslash with what follows it, so that an escaped backslash begins no pair.
_ESCAPE = re.compile(rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)


class JsonDecoder:
    """Reads values in JSON as columns of a type.

    A value is one document of JSON to the letter (RFC 8259), an object or null: msgspec checks it before arrow-json
    reads it, which takes more. Numbers, texts and times are read as arrow-json reads them, which is lenient: 1.5
    becomes 1 where a whole number is wanted, and the text "12" becomes 12. Fields of structs that the type lacks are
    skipped, fields that a value lacks are null, and of a repeated name the last field counts. A map has every entry,
    also several of one key. Bytes are Base64 text. Times that have a pattern are text of it. A number out of range of
    its type is a bad value: `TYPE_MISMATCH`.

    Runs on: executor; pure computation.

    Attributes:
        arrow_type: what `decode` returns.
    """

    def __init__(
        self, arrow_type: pa.StructType, times: TimePatterns = NO_PATTERNS, documents: pa.DataType | None = None
    ) -> None:
        """Read values as structs of a type, whose fields are all nullable.

        Args:
            arrow_type: the type.
            times: how times and dates are written.
            documents: the type of a JSON Schema, with the parts that are read as their text, and Connect's decimals;
                None: there are none.

        Raises:
            SchemaError: a type that JSON cannot be read as.
            MissingDependencyError: without the packages arro3-io and msgspec.
        """
        self.arrow_type = _nullable(arrow_type)
        self._texts = TextFields(times)
        self._read_type = self._texts.read_type(self.arrow_type)
        self._has_floats = has_kind(self._read_type, pa.types.is_floating)
        self._has_decimals = has_decimals(self._read_type)
        self._has_texts = self._read_type != self.arrow_type
        # Nobody who writes values can know it: a value that holds this name could else stand for another's. The letter
        # begins no number and no literal: a list that a value leaves open would take a number as its next item.
        name = f"k{secrets.token_hex(8)}"
        self._between = f'}}\n{{"{name}":'.encode()
        self._schema = pa.schema([pa.field(name, self._read_type)])
        self._read_json = _reader()
        self._syntax = SyntaxCheck()
        self._parts = None if documents is None else parts_to_read(documents, self.arrow_type)
        self._widest = widest_item(self._read_type)
        self._count_cells = cell_counter(self._read_type)

    def decode(self, values: pa.Array, skipped: int = 0, budget: SizeBudget | None = None) -> DecodedValues:
        """Read an array of values.

        Args:
            values: of type binary, large_binary or string.
            skipped: bytes at the beginning of each value that are not part of it, such as the id of its schema.
            budget: the cells of the batch that the values are a part of; None: they are all of it.

        Returns:
            A struct for each value. A null value is a null struct, as is the document `null`.

        Raises:
            RecordError: the column would pass 2 GiB of text.
        """
        budget = cell_budget() if budget is None else budget
        bad: list[BadValue] = []
        columns = []
        for at, part in split_by_size(values, _MAX_TEXT):
            rows = _rows_of_chunk(part)
            for start in range(0, len(part), rows):
                chunk = part.slice(start, rows).cast(_binary(part.type))
                texts: list[bytes | None] = chunk.to_pylist()
                if skipped:
                    texts = [None if text is None else text[skipped:] for text in texts]
                if self._parts is not None:
                    texts = self._with_parts(self._parts, texts, at + start, bad)
                    chunk = pa.array(texts, pa.large_binary())
                suspects = _rewrite_numbers(texts, find_suspects(chunk)) if self._has_decimals else []
                columns.append(self._decode_chunk(texts, at + start, bad, suspects, budget))
        column = concat_parts(columns, self._read_type)
        if self._has_floats:
            column = _without_lost(column, values, skipped, bad)
        if self._has_texts:
            column = self._texts.read(column, self.arrow_type, bad)
        return refuse_lost_times(DecodedValues(column, sorted(bad, key=lambda each: each.row)))

    def _with_parts(
        self, parts: DocumentPart, texts: list[bytes | None], start: int, bad: list[BadValue]
    ) -> list[bytes | None]:
        """Change the parts of values that are well-formed, and note the others as bad values."""
        for row, fault in self._syntax.find_malformed(texts).items():
            bad.append(BadValue(start + row, Reason.DECODE_FAILED, fault))
            texts[row] = None
        changed: list[bytes | None] = []
        for row, text in enumerate(texts):
            try:
                changed.append(None if text is None else parts.rewrite(text))
            except (ValueError, RecursionError) as error:
                fault = NOT_UTF8 if isinstance(error, UnicodeDecodeError) else NOT_JSON
                fault = TOO_DEEP if isinstance(error, RecursionError) else fault
                bad.append(BadValue(start + row, Reason.DECODE_FAILED, fault))
                changed.append(None)
        return changed

    def _decode_chunk(
        self, texts: list[bytes | None], start: int, bad: list[BadValue], suspects: Sequence[int], budget: SizeBudget
    ) -> pa.Array:
        """Decode some values, and note bad values; suspects have texts that are misread as decimals."""

        def refuse(row: int, reason: Reason, message: str) -> None:
            bad.append(BadValue(start + row, reason, message))
            texts[row] = None

        for row, fault in self._syntax.find_malformed(texts).items():
            refuse(row, Reason.DECODE_FAILED, fault)
        for row in suspects:
            path = find_misread_decimal(texts[row] or b"null", self._read_type)
            if path is not None:
                refuse(row, Reason.TYPE_MISMATCH, _other_type(path or None))
        if self._widest:
            for row in self._beyond(texts, budget):
                refuse(row, Reason.DECODE_FAILED, TOO_MANY_CELLS)
        search = RefusalSearch(self._schema, self._refusal)
        while True:
            try:
                return self._parse(texts, self._schema)
            except ValueError as error:
                refused = search.find(texts, str(error))
            for row, path in refused.items():
                if is_utf8(texts[row] or b""):
                    refuse(row, Reason.TYPE_MISMATCH, _other_type(path))
                else:
                    refuse(row, Reason.DECODE_FAILED, NOT_UTF8)

    def _beyond(self, texts: list[bytes | None], budget: SizeBudget) -> list[int]:
        """Return the rows of values that have more cells than are left for them."""
        found = []
        for row, text in enumerate(texts):
            if text is None or self._count_cells is None or not may_have_many(text, self._widest):
                continue
            cells = self._count_cells(load_document(text, self._read_type))
            if not budget.take_excess(cells, len(text)):
                found.append(row)
        return found

    def _refusal(self, texts: Sequence[bytes | None], schema: pa.Schema) -> str | None:
        try:
            self._parse(texts, schema)
        except ValueError as error:
            return str(error)
        return None

    def _parse(self, texts: Sequence[bytes | None], schema: pa.Schema) -> pa.Array:
        """Decode all values or none, as the type of the only field of a schema.

        Each value stands in an object of its own: one that leaves a string, a list or an object open meets the quote of
        the next name, and is an error. So as many rows as values prove that each is at its own place.

        Raises:
            ValueError: a value is not valid.
        """
        if not texts:
            return pa.array([], schema[0].type)
        between = self._between.join([b"null" if text is None else text for text in texts])
        wrapped = b"".join((self._between[2:], between, b"}\n"))
        # A NUL in the text of an error makes arro3 abort the process: neither a byte 0, which JSON has nowhere, nor the
        # character, which is in strings only, may be in what it refuses.
        if b"\0" in wrapped:
            raise ValueError("a byte 0")
        # The search for one byte is many times as fast as one for two.
        if b"\\" in wrapped:
            if _LOST_PAIR.search(wrapped):
                wrapped = _ESCAPE.sub(_as_utf8, wrapped)
            if _NUL in wrapped:
                # With another character: if that is read, the text itself is.
                self._read(wrapped.replace(_NUL, rb"\u0001"), len(texts), schema)
        return self._read(wrapped, len(texts), schema)

    def _read(self, wrapped: bytes, count: int, schema: pa.Schema) -> pa.Array:
        try:
            stream = self._read_json(io.BytesIO(wrapped), schema, batch_size=count + 1)
            # All rows, or one more than there are values.
            batch = pa.RecordBatchReader.from_stream(stream).read_next_batch()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic of Rust is not an Exception.
            raise ValueError(str(error)) from error
        if batch.num_rows != count:
            raise ValueError(f"{batch.num_rows} documents in {count} values")
        return batch.column(0)


def _without_lost(column: pa.Array, values: pa.Array, skipped: int, bad: list[BadValue]) -> pa.Array:
    """Record values with a number beyond its type, and return the column with nulls in their place."""

    def text_of(row: int) -> bytes:
        text = values[row].as_py()
        return bytes((text.encode() if isinstance(text, str) else text)[skipped:])

    lost = find_lost_numbers(column, text_of)
    return refuse_rows(column, {row: _out_of_range(path) for row, path in lost.items()}, bad) if lost else column


def _other_type(path: str | None) -> str:
    return "a field has another type" if path is None else f"the value of field '{path}' has another type"


def _out_of_range(path: str) -> str:
    return f"the number of field '{path}' is out of range" if path else "a number is out of range"


def _rewrite_numbers(texts: list[bytes | None], rows: list[int]) -> list[int]:
    """Rewrite the numbers of some values; return the rows that have such numbers in texts."""
    left_rows = []
    for row in rows:
        texts[row], left = rewrite_numbers(texts[row] or b"")
        if left:
            left_rows.append(row)
    return left_rows


def _rows_of_chunk(values: pa.Array) -> int:
    size = pc.sum(pc.binary_length(values)).as_py() or 1
    return max(16, min(_CHUNK_ROWS, _CHUNK_BYTES * len(values) // size))


def _binary(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else pa.binary()


def _as_utf8(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        return escape[0]
    high, low = int(escape[1], 16), int(escape[2], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()


def _reader() -> Callable[..., Any]:
    try:
        import arro3.io  # noqa: PLC0415 - optional
        import msgspec  # noqa: F401, PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Values in JSON need the Python packages 'arro3-io' and 'msgspec', of which "
            f"'{error.name}' cannot be imported.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install them on the driver and on the executors: {install_command('json')}.",
            parameters={"package": error.name},
        ) from error
    found: Callable[..., Any] = arro3.io.read_json
    return found


def _nullable(given: pa.DataType) -> pa.DataType:
    """Return a type whose parts are all nullable: one missing value would else fail a batch."""
    if pa.types.is_struct(given):
        return pa.struct([pa.field(each.name, _nullable(each.type)) for each in given])
    if pa.types.is_list(given):
        return pa.list_(pa.field(given.value_field.name, _nullable(given.value_type)))
    if pa.types.is_map(given):
        return pa.map_(given.key_type, pa.field("value", _nullable(given.item_type)))
    return given
