"""The conversion between the bytes of a column and its type, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

NumberFormat: TypeAlias = Literal["short", "integer", "long", "float", "double"]
TypedFormat: TypeAlias = Literal[
    "string", "uuid", "short", "integer", "long", "float", "double", "json", "avro", "protobuf"
]
WITH_SCHEMA: frozenset[str] = frozenset({"json", "avro", "protobuf"})
"""Formats with schemas and wire formats. A value of any other format is one text or number."""


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The data that a task needs to read or write a column of keys or values. Plain data that pickles.

    Attributes:
        format: the format.
        framing: the wire format: `none`, `confluent`, `confluentHeader`, `confluentDual`, `glue`.
        arrow_type: the type of the column, which may have fewer fields than the schema.
        schema: the schema of readers and writers; None for JSON without a schema, which uses `arrow_type`.
        message: the full name of the message, of Protobuf.
        timestamp_format: the pattern of times, of JSON; None: RFC 3339 and similar forms.
        date_format: the pattern of dates.
        documents: the type that a JSON Schema has for documents, if a part of it is read or written as the text of the
            part, or is a decimal of Kafka Connect; see `codecs.json.document_parts`.
    """

    format: TypedFormat
    framing: str
    arrow_type: pa.DataType
    schema: RegisteredSchema | None = None
    message: str | None = None
    timestamp_format: str | None = None
    date_format: str | None = None
    documents: pa.DataType | None = None
