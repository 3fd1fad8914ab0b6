"""Values in Avro, each written with a schema of its own, as one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._typed.codecs.avro.schema import Schema
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema


def read_schema(given: RegisteredSchema) -> Schema:
    """Parse a schema with its references.

    Raises:
        SchemaError: it is not a schema of Avro.
    """
    return parse_schema(given.text, given.references)


def build_decoder(writer: RegisteredSchema, reader: Schema, wanted: pa.DataType) -> AvroDecoder:
    """Return the reader from a writer's schema to the wanted fields of the reader's.

    Raises:
        UnknownSchemaError: the one cannot be read as the other, or the writer's schema is none.
    """
    if writer.kind != "AVRO":
        raise UnknownSchemaError(f"is a schema of {writer.kind}, not of Avro", Reason.RESOLUTION_FAILED)
    try:
        written = read_schema(writer)
    except SchemaError as error:
        raise UnknownSchemaError(f"cannot be parsed: {error.parameters['reason']}", Reason.RESOLUTION_FAILED) from error
    try:
        return AvroDecoder(written, reader, wanted)
    except SchemaError as error:
        path = error.parameters.get("path")
        place = f" at '{path}'" if path else ""
        # Both are of schemas, and nothing of a value.
        said = [error.parameters[name] for name in ("writer", "reader") if name in error.parameters]
        why = f": it has {said[0]}, and the reader's is {said[1]}" if len(said) == 2 else ""
        raise UnknownSchemaError(f"does not fit the reader's{place}{why}", Reason.RESOLUTION_FAILED) from error
