"""A column of keys or values, read as another type: the one place where formats, wire formats and schemas meet."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from pyspark_kafka._typed.codecs.avro import by_schema as avro
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA
from pyspark_kafka._typed.codecs.framed import decode_framed
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.time_patterns import time_patterns
from pyspark_kafka._typed.codecs.parts import concat_parts
from pyspark_kafka._typed.codecs.plain.text import TextDecoder
from pyspark_kafka._typed.codecs.projection import check_projection, project
from pyspark_kafka._typed.codecs.protobuf import by_schema as protobuf
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.codecs.wire_format import have_id_header, read_wire_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.codecs.column_format import ColumnFormat, TypedFormat
    from pyspark_kafka._typed.codecs.framed import ValueDecoder
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaId, SchemaRegistry
    from pyspark_kafka._typed.codecs.values import DecodedValues
    from pyspark_kafka._typed.codecs.wire_format import FramedValues

# The number of kept decoders: more than the schemas of a topic, together about 1 MB.
_MAX_KEPT = 1000
_LOG = logging.getLogger(__name__)


class DecodedColumn(NamedTuple):
    """A column with a row for each value, the bad values in the order of their rows, and the ids of schemas.

    The row of a bad or missing value is null. An id is text, and null for a value without a readable id;
    without a wire format there are no ids. A value with an unknown schema has an id.
    """

    column: pa.Array
    bad: list[BadValue]
    schema_ids: pa.Array | None


class _FormatReader(Protocol):
    """The decoder of one format."""

    arrow_type: pa.DataType

    def plain(self, values: pa.Array) -> DecodedValues:
        """Read values that nothing stands before."""
        ...

    def framed(self, framed: FramedValues) -> DecodedValues:
        """Read values of the schemas whose ids stand before them."""
        ...


class ColumnDecoder:
    """Reads keys or values of a format as a column.

    Writer schemas are looked up by id, each once: at most 1,000 decoders are kept for the life of the object. Unknown
    ids are looked up again with the next array, and of one array at most 100 of them.

    - Avro: a value is read with its writer's schema, and resolved to the reader schema. Without a registry, or without
      a wire format, the reader schema is also the writer schema.
    - Protobuf: a value is read with the reader's message, fields by their numbers. Its own schema is only looked up to
      check that it is this message; without a registry, the reader schema decides that. The index
      or the name of the message follows the id: an index as AWS Glue or Confluent's serializers write it, or a name
      as Apicurio's serializers write it.
    - JSON and text: ids are reported, and not looked up.

    Runs on: executor, once a task; `decode` blocks on the registry. For one thread at a time. Does not pickle.

    Attributes:
        arrow_type: the type of the column.
    """

    def __init__(self, column: ColumnFormat, registry: SchemaRegistry | None, *, is_key: bool = False) -> None:
        """Read a column.

        Args:
            column: its format, and the result type, which may have fewer fields than its schema.
            registry: has the writer schemas.
            is_key: whether it has keys, for wire formats with headers.

        Raises:
            SchemaError: the schema cannot be used, or lacks a wanted field.
            MissingDependencyError: without the packages of the format.
        """
        self.arrow_type = column.arrow_type
        self._framing = column.framing
        self._is_key = is_key
        self._reader = _reader(column, registry)
        check_projection(self._reader.arrow_type, self.arrow_type)

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> DecodedColumn:
        """Read an array of values.

        Args:
            values: of type binary or large_binary.
            headers: the headers of the records, as the source returns them; for the wire formats `confluentHeader` and
                `confluentDual`.

        Raises:
            RegistryError: the registry does not respond; no value is at fault.
            RecordError: the column would pass 2 GiB of text or bytes.
        """
        if self._framing == "none":
            found = self._reader.plain(values)
            return DecodedColumn(project(found.column, self.arrow_type), found.bad, None)
        if self._framing == "confluentDual":
            return self._decode_dual(values, headers)
        return self._decode_framed(values, headers, self._framing)

    def _decode_framed(self, values: pa.Array, headers: pa.Array | None, framing: str) -> DecodedColumn:
        framed = read_wire_format(values, framing, headers, is_key=self._is_key)
        found = self._reader.framed(framed)
        return DecodedColumn(project(found.column, self.arrow_type), found.bad, framed.id_texts())

    def _decode_dual(self, values: pa.Array, headers: pa.Array | None) -> DecodedColumn:
        """Read values with the ids of their headers; without such a header, with the ids before the values."""
        if headers is None:
            raise ValueError("the framing confluentDual needs the headers of the records")
        in_header = have_id_header(headers, is_key=self._is_key)
        if in_header.all() or not in_header.any():
            # The usual topic, with one kind of ids only.
            return self._decode_framed(values, headers, "confluentHeader" if in_header.any() else "confluent")
        order, parts, bad = [], [], []
        for framing, chosen in (("confluentHeader", in_header), ("confluent", ~in_header)):
            rows = np.nonzero(chosen)[0]
            part = self._decode_framed(values.take(pa.array(rows)), headers.take(pa.array(rows)), framing)
            bad += [BadValue(int(rows[each.row]), each.reason, each.message) for each in part.bad]
            order.append(rows)
            parts.append(part)
        back = pa.array(np.argsort(np.concatenate(order)))
        column = concat_parts([each.column for each in parts], self.arrow_type).take(back)
        ids = pa.concat_arrays([each.schema_ids for each in parts]).take(back)
        return DecodedColumn(column, sorted(bad, key=lambda each: each.row), ids)


def _reader(column: ColumnFormat, registry: SchemaRegistry | None) -> _FormatReader:
    if column.format not in WITH_SCHEMA:
        return _OneDecoder(_plain_decoder(column.format))
    if column.format == "json":
        times = time_patterns(column.timestamp_format, column.date_format)
        return _OneDecoder(JsonDecoder(column.arrow_type, times, column.documents))
    if column.schema is None:
        raise ValueError(f"a column in {column.format} has no schema")
    if column.format == "avro":
        return _AvroReader(column.schema, column.arrow_type, registry)
    return _ProtobufReader(column.schema, column.message, column.arrow_type, registry)


def _plain_decoder(name: TypedFormat) -> ValueDecoder:
    if name == "string":
        return TextDecoder()
    from pyspark_kafka._typed.codecs.plain.kafka_values import NumberDecoder, UuidDecoder  # noqa: PLC0415 - of few topics

    return UuidDecoder() if name == "uuid" else NumberDecoder(name)  # type: ignore[arg-type] # no other is left


class _OneDecoder:
    """Reads all values in the same way, for any schema."""

    def __init__(self, decoder: ValueDecoder) -> None:
        self._decoder = decoder
        self.arrow_type = decoder.arrow_type

    def plain(self, values: pa.Array) -> DecodedValues:
        """Read values that nothing stands before."""
        return self._decoder.decode(values)

    def framed(self, framed: FramedValues) -> DecodedValues:
        """Read values after ids, which are not looked up."""
        if framed.bad:
            return decode_framed(_of_one_schema(framed), self.arrow_type, lambda _: self._decoder, _is_known)
        return self._decoder.decode(framed.values, framed.skipped)


class _AvroReader:
    """Reads values with their writer schemas."""

    def __init__(self, given: RegisteredSchema, wanted: pa.DataType, registry: SchemaRegistry | None) -> None:
        self._schema = avro.read_schema(given)
        self._wanted = wanted
        self._given = given
        self._own = AvroDecoder(self._schema, wanted=wanted)
        self._registry = registry
        self._kept: dict[SchemaId, ValueDecoder | UnknownSchemaError] = {}
        self.arrow_type = self._own.arrow_type

    def plain(self, values: pa.Array) -> DecodedValues:
        """Read values of the reader schema."""
        return self._own.decode(values)

    def framed(self, framed: FramedValues) -> DecodedValues:
        """Read values, each with its writer schema."""
        if self._registry is None:
            return decode_framed(_of_one_schema(framed), self.arrow_type, lambda _: self._own, _is_known)
        return decode_framed(framed, self.arrow_type, self._decoder_of, self._is_known)

    def _decoder_of(self, schema_id: SchemaId) -> ValueDecoder:
        found = self._kept.get(schema_id)
        if found is None:
            found = _kept_outcome(
                lambda: avro.build_decoder(_asked(self._registry, schema_id), self._schema, self._wanted)
            )
            if len(self._kept) >= _MAX_KEPT:
                # The oldest one: equal ids mostly follow each other.
                del self._kept[next(iter(self._kept))]
            self._kept[schema_id] = found
            if not isinstance(found, UnknownSchemaError):
                _warn_of_newer(schema_id, self._given)
        if isinstance(found, UnknownSchemaError):
            raise UnknownSchemaError(str(found), found.reason)
        return found

    def _is_known(self, schema_id: SchemaId) -> bool:
        return schema_id in self._kept or (self._registry is not None and self._registry.knows(schema_id))


class _ProtobufReader:
    """Reads values with the reader's message."""

    def __init__(
        self, given: RegisteredSchema, message: str | None, wanted: pa.DataType, registry: SchemaRegistry | None
    ) -> None:
        self._messages = protobuf.MessageDecoder(protobuf.read_message(given, message), wanted, registry)
        self.arrow_type = self._messages.arrow_type

    def plain(self, values: pa.Array) -> DecodedValues:
        """Read messages that nothing stands before."""
        return self._messages.decode_plain(values)

    def framed(self, framed: FramedValues) -> DecodedValues:
        """Read messages after the id of their schema."""
        return self._messages.decode(framed)


def _warn_of_newer(schema_id: SchemaId, reader: RegisteredSchema) -> None:
    """Log that the fields of a newer schema are left out: ids of registries increase."""
    known = reader.schema_id
    if reader.subject is not None and isinstance(schema_id, int) and isinstance(known, int) and schema_id > known:
        _LOG.warning(
            "Values have schema %d, which is newer than schema %d, version %s of subject '%s', that they are read with."
            " Fields that only the newer one has are left out. A query that is started again reads with the subject's "
            "newest schema, unless it is set which version it reads with.",
            schema_id,
            known,
            reader.version,
            reader.subject,
        )


def _is_known(_: SchemaId) -> bool:
    return True


def _asked(registry: SchemaRegistry | None, schema_id: SchemaId) -> RegisteredSchema:
    assert registry is not None  # noqa: S101 - asked only where there is one
    return registry.schema_by_id(schema_id)


def _kept_outcome(build: Callable[[], ValueDecoder]) -> ValueDecoder | UnknownSchemaError:
    """Return a decoder, or the lasting reason why there is none.

    Raises:
        UnknownSchemaError: the registry has no such schema, which may change.
    """
    try:
        return build()
    except UnknownSchemaError as error:
        if error.reason is Reason.SCHEMA_ID_NOT_FOUND:
            raise
        return error


def _of_one_schema(framed: FramedValues) -> FramedValues:
    """Return values as if all had one schema."""
    if not framed.ids:
        return framed
    return replace(framed, ids=framed.ids[:1], tails=[b""], places=np.minimum(framed.places, 0))
