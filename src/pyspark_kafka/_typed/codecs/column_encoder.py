"""Encodes columns of keys or values to the bytes of records: the format, and the wire format before each value."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA
from pyspark_kafka._typed.codecs.plain.text import find_bad_text, has_text
from pyspark_kafka._typed.codecs.wire_format import KEY_HEADER, VALUE_HEADER, confluent_prefix
from pyspark_kafka.errors import RecordError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._typed.codecs.column_format import ColumnFormat, TypedFormat
    from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder
    from pyspark_kafka._typed.codecs.json.schemas.schema_fit import JsonSchemaFit

# The size of a column's part: it limits the memory of an encoder, and keeps offsets within 32 bits.
_PIECE_BYTES = 32 << 20
# The names of formats in texts, if they differ from the option.
_NAMES: dict[TypedFormat, str] = {"string": "text", "json": "JSON", "avro": "Avro", "protobuf": "Protobuf"}
# AWS Glue: the version of the wire format, without compression.
_GLUE_MAGIC = b"\x03\x00"
# Confluent's header: a GUID follows.
_HEADER_MAGIC = b"\x01"


class _ValueEncoder(Protocol):
    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Encode a column, a value for each row."""
        ...


class ColumnEncoder:
    """Encodes a column of keys or values. A null row has no value: it is a tombstone.

    Runs on: driver, to check that the column's type fits its schema, and executor, once a task; pure computation. Does
    not pickle; the format does.

    Args:
        column: the format, the type of the column, and the schema with the id to write.
        is_key: whether it is the column of keys, which have a header of their own.

    Attributes:
        header: name and value of the header for each record with a value; None with a wire format without headers.

    Raises:
        SchemaError: the type of the column does not fit the schema, or the format; or the wire format needs an id that
            the schema does not have.
        MissingDependencyError: the package of the format is not installed.
    """

    def __init__(self, column: ColumnFormat, *, is_key: bool = False) -> None:
        self._name = _NAMES.get(column.format, column.format)
        self._type = column.arrow_type
        self._has_text = has_text(column.arrow_type)
        self._encoder, index = _build_encoder(column)
        self._prefix, in_header = _frame(column, index)
        self.header = (KEY_HEADER if is_key else VALUE_HEADER, in_header) if in_header else None

    def encode(self, array: pa.Array) -> pa.Array:
        """Return a binary array with a value for each row; null for a null row.

        Args:
            array: of the column's type, or with large strings and bytes instead of small ones.

        Raises:
            RecordError: a value does not fit, or a text is not UTF-8; its parameters name the row, the field and the
                reason. Nothing is encoded then. Also if the values together pass 2 GiB; use `encode_pieces` for them.
        """
        pieces = [piece for _, piece in self.encode_pieces(array)]
        if len(pieces) == 1:
            return pieces[0]
        if sum(piece.nbytes for piece in pieces) > (1 << 31):
            raise _error(self._name, None, "value", "the values of the batch together pass 2 GiB")
        return pa.concat_arrays(pieces) if pieces else pa.array([], pa.binary())

    def encode_pieces(self, array: pa.Array) -> Iterator[tuple[int, pa.Array]]:
        """Yield the values in parts, each with the row that it begins at; see `encode`."""
        if array.type != self._type:
            array = array.cast(self._type)
        count = max(1, -(-array.nbytes // _PIECE_BYTES))
        rows = max(1, -(-len(array) // count))
        for start in range(0, max(1, len(array)), rows):
            piece = array.slice(start, rows)
            try:
                self._check_text(piece)
                written = self._encode(piece, self._prefix)
            except RecordError as error:
                raise self._located(error, piece, start) from error
            if piece.null_count and written.null_count < piece.null_count:
                # The null of a union in Avro is a value; a null in Kafka is not a value.
                written = pc.if_else(pc.is_valid(piece), written, None)
            yield start, written

    def _check_text(self, piece: pa.Array) -> None:
        """Refuse text that encoders would write unchanged and readers cannot read."""
        found = find_bad_text(piece) if self._has_text else None
        if found is not None:
            raise _error(
                self._name,
                *found,
                "the text is not UTF-8",
                "Repair the text, for example with Spark's make_valid_utf8(), or keep bytes that are not text in a "
                "column of type binary.",
            )

    def _encode(self, piece: pa.Array, prefix: bytes = b"") -> pa.Array:
        try:
            return self._encoder.encode(piece, prefix)
        except pa.ArrowInvalid as error:
            # Its text may contain the value.
            raise _error(self._name, None, "value", "a value does not fit the type that the schema has") from error

    def _located(self, error: RecordError, piece: pa.Array, start: int) -> RecordError:
        """Return the error with the row, which some encoders do not know for a value in a list."""
        row = error.parameters.get("row", "")
        found = int(row) if row.isdigit() else self._first_failing(piece)
        reason = error.parameters.get("reason", "it does not fit")
        return _error(self._name, start + found, error.parameters.get("field", "value"), reason, error.hint)

    def _first_failing(self, piece: pa.Array) -> int:
        start, count = 0, len(piece)
        while count > 1:
            half = count // 2
            try:
                self._encode(piece.slice(start, half))
                start, count = start + half, count - half
            except RecordError:
                count = half
        return start


class _TextEncoder:
    """Writes text as it is, in UTF-8."""

    def __init__(self, kind: pa.DataType) -> None:
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise SchemaError(
                f"Column 'value' has the type {kind}, which cannot be written as text.",
                condition="SCHEMA_COLUMN_MISMATCH",
                hint="Cast the column to string, or use another format.",
                parameters={"column": "value", "found": kind, "wanted": "string"},
            )

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Return the bytes of the text."""
        written = column.cast(pa.binary())
        return pc.binary_join_element_wise(pa.scalar(prefix), written, pa.scalar(b"")) if prefix else written


class _CheckedJsonEncoder:
    """Writes JSON, and refuses nulls that a JSON Schema does not allow."""

    def __init__(self, encoder: JsonEncoder, fit: JsonSchemaFit) -> None:
        self._encoder = encoder
        self._fit = fit

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Return the values."""
        return self._encoder.encode(column, prefix, self._fit.check_nulls(column))


def _build_encoder(column: ColumnFormat) -> tuple[_ValueEncoder, bytes]:
    """Return the encoder of a column, and the bytes between the schema id and each value."""
    if column.format not in WITH_SCHEMA:
        return _plain_encoder(column.format, column.arrow_type), b""
    if column.format == "json":
        from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder  # noqa: PLC0415 - each format has its own package
        from pyspark_kafka._typed.codecs.json.time_patterns import time_patterns  # noqa: PLC0415 - as above

        times = time_patterns(column.timestamp_format, column.date_format)
        plain = JsonEncoder(column.arrow_type, times, column.documents)
        if column.schema is None:
            return plain, b""
        from pyspark_kafka._typed.codecs.json.schemas.schema_fit import JsonSchemaFit  # noqa: PLC0415 - as above

        fit = JsonSchemaFit(column.schema.text, column.arrow_type, column.documents, column.schema.references)
        return _CheckedJsonEncoder(plain, fit), b""
    if column.schema is None:
        raise SchemaError(
            f"Values in {_NAMES[column.format]} cannot be written without a schema.",
            condition="SCHEMA_INVALID",
            hint="Set the schema, or the registry that has it.",
        )
    if column.format == "avro":
        from pyspark_kafka._typed.codecs.avro.by_schema import read_schema  # noqa: PLC0415 - as above
        from pyspark_kafka._typed.codecs.avro.encoding import AvroEncoder  # noqa: PLC0415 - as above

        encoder = AvroEncoder(read_schema(column.schema))
        # It checks the types when it encodes: an empty array is enough to find a column that does not fit.
        encoder.encode(pa.array([], column.arrow_type))
        return encoder, b""
    from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message  # noqa: PLC0415 - as above
    from pyspark_kafka._typed.codecs.protobuf.descriptors import sorted_messages  # noqa: PLC0415 - as above
    from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder  # noqa: PLC0415 - as above
    from pyspark_kafka._typed.codecs.protobuf.message_index import (  # noqa: PLC0415 - as above
        write_glue_index,
        write_message_index,
    )

    descriptor = read_message(column.schema, column.message)
    if column.framing == "glue":
        place = [each.full_name for each in sorted_messages(descriptor.file)].index(descriptor.full_name)
        return ProtobufEncoder(descriptor, column.arrow_type), write_glue_index(place)
    return ProtobufEncoder(descriptor, column.arrow_type), write_message_index(_path(descriptor))


def _plain_encoder(name: TypedFormat, kind: pa.DataType) -> _ValueEncoder:
    if name == "string":
        return _TextEncoder(kind)
    from pyspark_kafka._typed.codecs.plain.kafka_values import NumberEncoder, UuidEncoder  # noqa: PLC0415 - of few topics

    return UuidEncoder(kind) if name == "uuid" else NumberEncoder(name, kind)  # type: ignore[arg-type] # no other is left


def _path(descriptor: Any) -> tuple[int, ...]:
    """Return the index of a message in its file, or in its outer message; see `find_message_at`."""
    path = []
    while descriptor is not None:
        around = descriptor.containing_type
        siblings = descriptor.file.message_types_by_name.values() if around is None else around.nested_types
        names = [each.name for each in siblings if not each.GetOptions().map_entry]
        path.append(names.index(descriptor.name))
        descriptor = around
    return tuple(reversed(path))


def _frame(column: ColumnFormat, index: bytes) -> tuple[bytes, bytes]:
    """Return the bytes before each value, and the value of its header."""
    framing = column.framing
    if framing == "none":
        return b"", b""
    schema_id = None if column.schema is None else column.schema.schema_id
    if framing == "confluent" and isinstance(schema_id, int):
        return confluent_prefix(schema_id) + index, b""
    if framing == "confluentHeader" and isinstance(schema_id, int):
        # Readers of headers accept it too, for a registry that does not return the GUID of a schema.
        return b"", confluent_prefix(schema_id) + index
    if framing in ("confluentHeader", "glue") and isinstance(schema_id, str):
        raw = _uuid(schema_id)
        if raw is not None:
            return (_GLUE_MAGIC + raw + index, b"") if framing == "glue" else (b"", _HEADER_MAGIC + raw + index)
    wanted = "a number" if framing == "confluent" else "a UUID" if framing == "glue" else "a number or a UUID"
    raise SchemaError(
        f"Wire format {framing} needs {wanted} as the id of the schema, and the schema has "
        f"{'none' if schema_id is None else repr(schema_id)}.",
        condition="SCHEMA_ID_MISSING",
        hint="Set the registry that has the schema, or wire format none.",
        parameters={"framing": framing, "schema_id": schema_id},
    )


def _uuid(text: str) -> bytes | None:
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        return None


def _error(name: str, row: int | None, field: str, reason: str, hint: str = "") -> RecordError:
    place = "The batch" if row is None else f"Row {row} of the batch"
    return RecordError(
        f"{place} cannot be written in {name}: field '{field}': {reason}. Nothing of the batch was encoded.",
        condition="VALUE_NOT_ENCODABLE",
        hint=hint,
        parameters={"row": row, "field": field, "reason": reason, "format": name},
    )
