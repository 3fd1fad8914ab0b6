"""Plans of array functions and UDFs, from their arguments."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from pyspark_kafka._client.options import FormatOptions, parse_batch_read_options
from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA, ColumnFormat, TypedFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.typed.column_formats import open_documents
from pyspark_kafka._typed.typed.spark_json import type_json
from pyspark_kafka.errors import OptionError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
    from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder

# Options that a read must have, and that mean nothing here.
_NO_TOPIC = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "none"}
# The JSON Schema of all documents, for an id without its schema.
_ANY_DOCUMENT = "{}"


@dataclass(frozen=True, slots=True)
class ValuePlan:
    """The format of values, and the registry of their schemas. Plain data that pickles.

    Attributes:
        column: the format and the schema.
        registry: the registry of writer schemas; None: none.
    """

    column: ColumnFormat
    registry: RegistryOptions | None

    def decoder(self, *, is_key: bool) -> ColumnDecoder:
        """Return the decoder, for one thread."""
        from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder  # noqa: PLC0415 - not for encoding

        registry = None
        if self.registry is not None and self.column.framing != "none":
            from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - mostly there is none

            registry = open_registry(self.registry)
        return ColumnDecoder(self.column, registry, is_key=is_key)

    def encoder(self, kind: pa.DataType) -> ColumnEncoder:
        """Return the encoder for columns of a type.

        Raises:
            SchemaError: the type does not fit the schema.
        """
        from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder  # noqa: PLC0415 - not for decoding
        from pyspark_kafka._typed.typed.write_formats import writable_type  # noqa: PLC0415 - not for decoding

        return ColumnEncoder(replace(self.column, arrow_type=writable_type(kind)))


def plan_values(
    value_format: str,
    *,
    schema: str | bytes | pa.DataType | StructType | None,
    framing: str | None,
    message: str | None,
    registry: Mapping[str, Any] | None,
    subject: str | None,
    schema_version: int | None,
    recursive_field_max_depth: int | None = None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    open_parts: str | None = None,
) -> ValuePlan:
    """Plan how values are decoded; see `decode`."""
    from pyspark_kafka._typed.typed.read_formats import plan_read  # noqa: PLC0415 - not for encoding

    given = {
        "Schema": schema_text(schema),
        "Framing": framing,
        "Message": message,
        "Subject": subject,
        "SchemaVersion": schema_version,
    }
    beside = {
        "recursiveFieldMaxDepth": recursive_field_max_depth,
        "timestampFormat": timestamp_format,
        "dateFormat": date_format,
        "openParts": open_parts,
    }
    named = {**{f"value{name}": value for name, value in given.items()}, **beside}
    options = {name: str(value) for name, value in named.items() if value is not None}
    check_format(value_format)
    if registry is not None and schema is None and subject is None:
        raise _no_subject()
    raw = {**_NO_TOPIC, "valueFormat": value_format, **options, **(registry or {})}
    typed = parse_batch_read_options(raw).typed
    formats = plan_read(typed, None) if typed is not None else None
    if formats is None or formats.value is None:
        raise not_valid("value_format", value_format, "one with a type")
    return ValuePlan(formats.value, formats.registry)


def plan_encoding(
    value_format: str,
    *,
    schema: str | bytes | None,
    framing: str | None,
    schema_id: int | str | None,
    message: str | None,
    registry: Mapping[str, Any] | None,
    subject: str | None,
    schema_version: int | None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    open_parts: str | None = None,
) -> ValuePlan:
    """Plan how values are encoded; see `encode`. The type of the column is not known yet: it is null."""
    check_format(value_format)
    if framing in ("confluentHeader", "confluentDual"):
        raise not_valid("framing", framing, "one that stands before values, as 'confluent'; the sink writes headers")
    if framing not in (None, "none", "confluent", "glue"):
        raise not_valid("framing", framing, "'none', 'confluent' or 'glue'")
    reached = _registry_options(registry) if registry is not None else None
    found = None
    if value_format in WITH_SCHEMA:
        options = FormatOptions(
            value_format,  # type: ignore[arg-type] # it was compared
            schema=schema_text(schema),
            subject=subject,
            schema_version=schema_version,
            message=message,
        )
        found = _schema_to_write(options, reached, schema_id, framing)
    if framing is None:
        framing = "none" if found is None or found.schema_id is None else _default_framing(reached, found.schema_id)
    if value_format != "json" and (timestamp_format, date_format) != (None, None):
        raise not_valid("value_format", value_format, "'json' with timestamp_format or date_format")
    if open_parts not in (None, "error", "text") or (value_format != "json" and open_parts is not None):
        raise not_valid("open_parts", open_parts, "'error' or 'text', with 'json'")
    documents = open_documents(found) if open_parts == "text" else None
    column = ColumnFormat(
        value_format,  # type: ignore[arg-type] # it was compared
        framing,
        pa.null(),
        found,
        message,
        timestamp_format,
        date_format,
        documents,
    )
    return ValuePlan(column, None)


def _default_framing(registry: RegistryOptions | None, schema_id: int | str) -> str:
    is_glue = registry is not None and not registry.urls
    return "glue" if is_glue or isinstance(schema_id, str) else "confluent"


def _schema_to_write(
    options: FormatOptions, registry: RegistryOptions | None, schema_id: int | str | None, framing: str | None
) -> RegisteredSchema | None:
    """Return the schema that values are written with, with the id to write; None for JSON without either."""
    from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - mostly there is none
    from pyspark_kafka._typed.typed.given_schema import KINDS, read_given_schema  # noqa: PLC0415 - not for decoding
    from pyspark_kafka._typed.typed.read_formats import find_schema  # noqa: PLC0415 - not for decoding
    from pyspark_kafka._typed.typed.registered_text import encodable, registrable  # noqa: PLC0415 - not for decoding

    asks = registry is not None and (options.schema is None or (schema_id is None and framing != "none"))
    if asks and options.subject is None:
        raise _no_subject()
    found = read_given_schema("value", options)
    if found is None and options.schema is not None:
        raise not_valid("schema", "columns", "a JSON Schema, or left out: the column says what its columns are")
    if found is None and registry is not None:
        found = find_schema("value", options, None, lambda: open_registry(registry))
    if found is None and options.format != "json":
        raise OptionError(
            f"Argument 'schema' must be set with {options.format}, or 'registry' and 'subject'. Nothing was done.",
            condition="OPTION_MISSING",
            hint="Set it to the schema, or to file:PATH.",
        )
    if schema_id is not None:
        found = replace(found or RegisteredSchema(KINDS[options.format], _ANY_DOCUMENT), schema_id=schema_id)
    elif found is not None and found.schema_id is None and asks and registry is not None:
        known = open_registry(registry).find_id(str(options.subject), registrable(found))
        if known is None:
            raise SchemaError(
                f"Subject '{options.subject}' of the registry does not have the given schema. Nothing was encoded.",
                condition="SCHEMA_NOT_FOUND",
                hint="Register the schema, or leave argument 'schema' out to use the registry's.",
                parameters={"subject": options.subject},
            )
        found = replace(found, schema_id=known)
    return None if found is None else encodable(found)


def _registry_options(given: Mapping[str, Any]) -> RegistryOptions:
    raw = {**_NO_TOPIC, "valueFormat": "json", "valueSubject": "none", **given}
    typed = parse_batch_read_options(raw).typed
    if typed is None or typed.registry is None:
        raise not_valid("registry", sorted(given), "options of the registry, such as 'schema.registry.url'")
    return typed.registry


def schema_text(schema: object) -> str | None:
    """Return a schema as the options of a read have it.

    Raises:
        OptionError: it is of another type.
    """
    if schema is None or isinstance(schema, str):
        return schema
    if isinstance(schema, bytes):
        return base64.b64encode(schema).decode()
    if isinstance(schema, pa.Schema):
        schema = pa.struct(list(schema))
    if isinstance(schema, pa.DataType):
        return json.dumps(type_json(schema))
    if hasattr(schema, "jsonValue"):
        return json.dumps(schema.jsonValue())
    raise not_valid("schema", type(schema).__name__, "text, bytes, a type of Arrow or a schema of Spark")


def check_format(value_format: str) -> None:
    """Raise unless it is a format of values.

    Raises:
        OptionError: it is none.
    """
    known = get_args(TypedFormat)
    if value_format not in known:
        raise not_valid("value_format", value_format, f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}")


def _no_subject() -> OptionError:
    return OptionError(
        "Argument 'subject' must be set with a registry: no topic says which of its schemas it is. Nothing was done.",
        condition="OPTION_MISSING",
        hint='Set subject="orders-value", as the writers of the topic name it.',
    )


def not_valid(name: str, found: object, expected: str) -> OptionError:
    """Build the error of an argument."""
    return OptionError(
        f"Argument '{name}' is {found!r}, and must be {expected}. Nothing was done.",
        condition="OPTION_INVALID",
        parameters={"argument": name},
    )
