"""A column of keys or values that is read with a schema: its type, and what decodes it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.typed.arrow_types import spark_has
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import FormatOptions
    from pyspark_kafka._typed.codecs.column_format import TypedFormat
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema


def plain_column(name: TypedFormat) -> ColumnFormat:
    """Return the column of keys or values that are one text or number each, without a schema."""
    if name in ("string", "uuid"):
        return ColumnFormat(name, "none", pa.string())
    from pyspark_kafka._typed.codecs.plain.kafka_values import type_of  # noqa: PLC0415 - of few topics

    return ColumnFormat(name, "none", type_of(name))  # type: ignore[arg-type] # no other is left


def columns_of_text(text: str) -> pa.StructType:
    """Return the columns that a text names, as in SQL or in the JSON of Spark's schema.

    Raises:
        SchemaError: it does not.
    """
    if text.lstrip().startswith("{"):
        from pyspark_kafka._typed.typed.spark_schema.schema_json import parse_schema_json  # noqa: PLC0415 - one of two

        return parse_schema_json(text)
    from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl  # noqa: PLC0415 - one of two

    return parse_ddl(text)


def json_column(
    side: str, options: FormatOptions, columns: pa.DataType, schema: RegisteredSchema | None
) -> ColumnFormat:
    """Return the column of JSON documents.

    Args:
        side: `key` or `value`, for errors.
        options: what they are.
        columns: what they are read as.
        schema: the JSON Schema that says so; None if the columns are named.

    Raises:
        SchemaError: they are not a struct, or have a map whose keys are not texts.
        OptionError: a pattern of times cannot be used.
    """
    from pyspark_kafka._typed.codecs.json.document_parts import has_parts  # noqa: PLC0415 - of one format

    if not pa.types.is_struct(columns):
        raise _no_column(side, f"a document is read as a struct, and the schema is one of {spark_has(columns)}")
    path = _other_keys(columns, side)
    if path:
        raise _no_column(side, f"the keys of map '{path}' are not strings; keys in JSON are strings")
    if options.timestamp_format is not None or options.date_format is not None:
        from pyspark_kafka._typed.codecs.json.time_patterns import time_patterns  # noqa: PLC0415 - of few options

        time_patterns(options.timestamp_format, options.date_format)
    return ColumnFormat(
        "json",
        options.framing or "none",
        spark_has(columns),
        schema,
        timestamp_format=options.timestamp_format,
        date_format=options.date_format,
        documents=columns if has_parts(columns) else None,
    )


def open_documents(schema: RegisteredSchema | None) -> pa.DataType | None:
    """Return the type of documents whose open parts are written from their texts; None if there are none.

    Runs on: driver.

    Raises:
        SchemaError: the schema cannot be used.
    """
    if schema is None:
        return None
    from pyspark_kafka._typed.codecs.json.document_parts import has_parts  # noqa: PLC0415 - of one format
    from pyspark_kafka._typed.codecs.json.schemas.json_schema import parse_json_schema  # noqa: PLC0415 - as above

    documents = parse_json_schema(schema.text, schema.references, open_parts=True)
    return documents if has_parts(documents) else None


def column_of_schema(
    side: str, options: FormatOptions, schema: RegisteredSchema, recursive_field_max_depth: int = 0
) -> ColumnFormat:
    """Return the column of keys or values that are read with a schema.

    Runs on: driver, once a column; of Protobuf it may start a compiler, which runs for a second.

    Args:
        side: `key` or `value`, for errors.
        options: what they are.
        schema: as the registry or the option has it.
        recursive_field_max_depth: of Avro, see `build_column`. Tasks know it by the type of the column.

    Returns:
        The column; the schema of Protobuf in it is a FileDescriptorSet.

    Raises:
        SchemaError: the schema cannot be used, or is not a column.
        MissingDependencyError: without the packages of the format.
    """
    if options.format == "json":
        from pyspark_kafka._typed.codecs.json.schemas.json_schema import parse_json_schema  # noqa: PLC0415 - of one format

        documents = parse_json_schema(schema.text, schema.references, open_parts=options.open_parts == "text")
        return json_column(side, options, documents, schema)
    if options.format == "avro":
        from pyspark_kafka._typed.codecs.avro.by_schema import read_schema  # noqa: PLC0415 - of one format
        from pyspark_kafka._typed.codecs.avro.columns import build_column  # noqa: PLC0415 - of one format

        parsed = read_schema(schema)
        column = build_column(parsed, parsed.root, recursive_field_max_depth=recursive_field_max_depth)
        kind = column.arrow_type
        return ColumnFormat("avro", options.framing or "none", spark_has(kind), schema)
    return _protobuf_column(options, schema)


def _protobuf_column(options: FormatOptions, schema: RegisteredSchema) -> ColumnFormat:
    from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder  # noqa: PLC0415 - of one format
    from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message  # noqa: PLC0415 - of one format
    from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set  # noqa: PLC0415 - of one format

    file_set = read_file_set(schema)
    descriptor = find_message(file_set, options.message)
    kind = spark_has(ProtobufDecoder(descriptor).arrow_type)
    # Compiled once: tasks need no compiler for the reader's schema.
    compiled = replace(schema, text=base64.b64encode(file_set).decode(), references=())
    return ColumnFormat("protobuf", options.framing or "none", kind, compiled, descriptor.full_name)


def _other_keys(given: pa.DataType, path: str) -> str | None:
    """Return the path of the first map whose keys are not strings; None if there is none."""
    if pa.types.is_struct(given):
        inner = [(each.type, f"{path}.{each.name}") for each in given]
    elif pa.types.is_list(given):
        inner = [(given.value_type, f"{path}[]")]
    elif pa.types.is_map(given):
        if not pa.types.is_string(given.key_type):
            return path
        inner = [(given.item_type, f"{path}[]")]
    else:
        inner = []
    return next((found for kind, at in inner if (found := _other_keys(kind, at))), None)


def _no_column(side: str, reason: str) -> SchemaError:
    return SchemaError(
        f"The schema of the {side}s cannot be used: {reason}. Nothing was read.",
        condition="SCHEMA_INVALID",
        hint=f"Set '{side}Schema' to columns that can be read, such as id BIGINT, name STRING, m MAP<STRING, INT>.",
        parameters={"reason": reason},
    )
