"""Values of any origin decoded and encoded, without Kafka: `formats.decode` and `formats.encode`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from pyspark_kafka._typed.codecs.column_format import TypedFormat
from pyspark_kafka._typed.typed.value_plans import not_valid, plan_encoding, plan_values
from pyspark_kafka.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
    from pyspark_kafka._typed.codecs.values import BadValue

ValueFormat: TypeAlias = TypedFormat
Framing: TypeAlias = Literal["none", "confluent", "confluentHeader", "confluentDual", "glue"]
OpenParts: TypeAlias = Literal["error", "text"]
OnBad: TypeAlias = Literal["raise", "null"]


def decode(
    values: pa.Array | pa.ChunkedArray,
    value_format: ValueFormat,
    *,
    schema: str | bytes | pa.DataType | StructType | None = None,
    framing: Framing | None = None,
    message: str | None = None,
    registry: Mapping[str, Any] | None = None,
    subject: str | None = None,
    schema_version: int | None = None,
    recursive_field_max_depth: int | None = None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    open_parts: OpenParts | None = None,
    headers: pa.Array | None = None,
    is_key: bool = False,
    on_bad: OnBad = "raise",
) -> DecodedColumn:
    """Return values as a column of their own type.

    ```python
    from pyspark_kafka.formats import decode

    decoded = decode(table["value"], "json", schema="id BIGINT, name STRING", on_bad="null")
    decoded.column, decoded.bad
    ```

    Arguments have the meaning of the source's options `valueFormat`, `valueSchema`, `valueFraming`, `valueMessage`,
    `valueSubject`, `valueSchemaVersion`, `recursiveFieldMaxDepth`, `timestampFormat`, `dateFormat` and `openParts`, and
    errors name these.

    Runs on: any process; needs neither Kafka nor Spark. Blocks on the registry, if there is one, and on the compiler of
    Protobuf, if the schema is the text of a `.proto` file. Each call plans again: pass many values in one
    array. `decode_udf` plans once.

    Args:
        values: of type binary, large_binary or string. A null value is a null row, and not bad.
        value_format: what they are.
        schema: what they are read as: columns as in SQL (JSON only), Spark's schema or its JSON (JSON only), a JSON
            Schema, a schema of Avro, the text of a `.proto` file, a FileDescriptorSet as bytes or Base64, or
            `file:PATH`. None: the schema of the registry.
        framing: what stands before each value; None: `confluent` with a registry, else `none`.
        message: the full name of the message, of Protobuf.
        registry: the options `schema.registry.*`; None: no registry. The latest version of a subject is fetched at
            most every 5 s.
        subject: the subject of the schema, if the registry has it.
        schema_version: its version; None: the latest.
        recursive_field_max_depth: how many levels of a record of Avro that holds itself are read; None: such a schema
            is an error.
        timestamp_format: the pattern of JSON fields with type TIMESTAMP; None: as without the option.
        date_format: the pattern of JSON fields with type DATE.
        open_parts: what parts of a JSON Schema without a type of a column are; None: an error.
        headers: the headers of the records, with the wire formats `confluentHeader` and `confluentDual`.
        is_key: whether they are keys, with these wire formats.
        on_bad: the handling of unreadable values. `raise`: an error. `null`: their rows are null, and `bad`
            names them.

    Returns:
        `column`, a row for each value; `bad`, each with `row`, `reason` and `message`; `schema_ids`, text, None without
        a wire format.

    Raises:
        RecordError: a value cannot be read, and `on_bad` is `raise`; or the column would pass 2 GiB of text or bytes.
        SchemaError: the schema cannot be used, or does not exist.
        OptionError: an argument is not valid.
        RegistryError: the registry does not respond, or refuses the login; no value is at fault.
        MissingDependencyError: without the packages of the format or of the registry.
    """
    check_on_bad(on_bad)
    plan = plan_values(
        value_format,
        schema=schema,
        framing=framing,
        message=message,
        registry=registry,
        subject=subject,
        schema_version=schema_version,
        recursive_field_max_depth=recursive_field_max_depth,
        timestamp_format=timestamp_format,
        date_format=date_format,
        open_parts=open_parts,
    )
    decoded = plan.decoder(is_key=is_key).decode(as_bytes(values), headers)
    if decoded.bad and on_bad == "raise":
        first = decoded.bad[0]
        raise bad_value(first, f"Row {first.row}", value_format, len(decoded.bad))
    return decoded


def encode(
    column: pa.Array | pa.ChunkedArray,
    value_format: ValueFormat,
    *,
    schema: str | bytes | None = None,
    framing: Framing | None = None,
    schema_id: int | str | None = None,
    message: str | None = None,
    registry: Mapping[str, Any] | None = None,
    subject: str | None = None,
    schema_version: int | None = None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    open_parts: OpenParts | None = None,
) -> pa.Array:
    """Return a column as values of a format.

    Runs on: as `decode`.

    Args:
        column: structs; text or numbers for formats without a schema. A null row is a null value, a tombstone.
        value_format: what they become.
        schema: what they are written as: a schema of Avro, a JSON Schema, the text of a `.proto` file, a
            FileDescriptorSet as bytes or Base64, or `file:PATH`. None: the schema of the registry; of JSON: the type of
            the column.
        framing: what stands before each value; None: `confluent` if there is an id, else `none`. `confluentHeader`
            and `confluentDual` are refused: they put ids into headers.
        schema_id: the id to write before each value; None: the id in the registry.
        message: the full name of the message, of Protobuf.
        registry: the options `schema.registry.*`; None: no registry. Nothing is registered there.
        subject: the subject of the schema.
        schema_version: its version; None: the latest.
        timestamp_format: see `decode`.
        date_format: see `decode`.
        open_parts: see `decode`.

    Returns:
        A binary array with a row for each of the column.

    Raises:
        RecordError: a value does not fit; it names row and field. Or all together pass 2 GiB.
        SchemaError: the type of the column does not fit the schema, or the schema cannot be used or has no id.
        OptionError: an argument is not valid.
        RegistryError: the registry does not respond, or refuses the login.
        MissingDependencyError: without the packages of the format or of the registry.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plan = plan_encoding(
        value_format,
        schema=schema,
        framing=framing,
        schema_id=schema_id,
        message=message,
        registry=registry,
        subject=subject,
        schema_version=schema_version,
        timestamp_format=timestamp_format,
        date_format=date_format,
        open_parts=open_parts,
    )
    return plan.encoder(array.type).encode(array)


def as_bytes(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values as an array of bytes.

    Raises:
        OptionError: they are neither bytes nor text.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    if pa.types.is_large_string(array.type):
        return array.cast(pa.large_binary())
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return array
    raise not_valid("values", str(array.type), "binary or text")


def check_on_bad(on_bad: str) -> None:
    """Raise unless it is a way to treat bad values.

    Raises:
        OptionError: it is none.
    """
    if on_bad not in ("raise", "null"):
        raise not_valid("on_bad", on_bad, "'raise' or 'null'")


def bad_value(bad: BadValue, where: str, value_format: str, count: int) -> RecordError:
    """Build the error for an unreadable value.

    Args:
        bad: the first such value.
        where: which one it is, as the beginning of a sentence.
        value_format: what it was to be.
        count: how many there are in the array.
    """
    more = f" {count - 1} more of the same array cannot be read either." if count > 1 else ""
    return RecordError(
        f"{where} cannot be read as {value_format}: {bad.reason.value}: {bad.message}.{more} Nothing was decoded.",
        condition="VALUE_NOT_DECODABLE",
        hint="Check format, wire format and schema; set on_bad='null' to have such values as null, and named.",
        parameters={"row": bad.row, "reason": bad.reason.value},
    )
