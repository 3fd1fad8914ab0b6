"""The key and value formats of a read, planned once: the plan is plain data that tasks decode with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.typed.arrow_types import narrowed
from pyspark_kafka._typed.typed.column_formats import column_of_schema, columns_of_text, json_column, plain_column
from pyspark_kafka._typed.typed.given_schema import KINDS, kind_mismatch, read_given_columns, read_given_schema
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka._client.options import CorruptMode, FormatOptions, RegistryOptions, TypedReadOptions
    from pyspark_kafka._typed.codecs.column_format import ColumnFormat
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaRegistry

CORRUPT_TYPE = pa.struct(
    [
        pa.field("column", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("message", pa.string()),
        pa.field("schemaId", pa.string()),
        pa.field("rawKey", pa.binary()),
        pa.field("rawValue", pa.binary()),
    ]
)
"""The type of the column of mode PERMISSIVE: null in rows that were read."""


def spread_corrupt(bad_rows: Sequence[int], made: Mapping[str, pa.Array], rows: int, wanted: pa.DataType) -> pa.Array:
    """Return the column of mode PERMISSIVE: a struct in each bad row, null in all others; pure.

    Args:
        bad_rows: the bad rows, each once.
        made: the fields of the struct by name, a value for each bad row.
        rows: how many rows the column has.
        wanted: its type: `CORRUPT_TYPE`, or a part of its fields.
    """
    few = pa.StructArray.from_arrays([made[field.name] for field in wanted], fields=list(wanted))
    places = np.full(rows, -1, np.int64)
    places[list(bad_rows)] = np.arange(len(bad_rows))
    return few.take(pa.array(places, mask=places < 0))


@dataclass(frozen=True, slots=True)
class ReadFormats:
    """The key and value formats of a read. Plain data that pickles; equal plans read equally.

    Attributes:
        key: the format of keys; None: bytes.
        value: the format of values; None: bytes.
        registry: the registry of writer schemas; None: none.
        mode: the handling of unreadable keys and values.
        corrupt_column: the name of the corrupt column, in mode PERMISSIVE.
        include_schema_id: whether there are columns for schema ids.
        max_corrupt_ratio: the largest part of a task's records that may be bad; 1.0: all.
    """

    key: ColumnFormat | None = None
    value: ColumnFormat | None = None
    registry: RegistryOptions | None = None
    mode: CorruptMode = "FAILFAST"
    corrupt_column: str = "_corrupt_record"
    include_schema_id: bool = False
    max_corrupt_ratio: float = 1.0

    def read_fields(self) -> list[pa.Field]:
        """Return the columns that are made of keys and values: in the place of `key` and `value`, or after all others.

        In this order: `key`, `value`, `key_schema_id`, `value_schema_id`, the column of bad records. Only columns that
        the read has; all are nullable.
        """
        sides = {"key": self.key, "value": self.value}
        typed = {name: column for name, column in sides.items() if column is not None}
        fields = [pa.field(name, column.arrow_type) for name, column in typed.items()]
        if self.include_schema_id:
            framed = [name for name, column in typed.items() if column.framing != "none"]
            fields += [pa.field(f"{name}_schema_id", pa.string()) for name in framed]
        if self.mode == "PERMISSIVE":
            fields.append(pa.field(self.corrupt_column, CORRUPT_TYPE))
        return fields

    def narrow(self, asked: pa.Schema) -> ReadFormats:
        """Return the plan of a read with a part of the columns.

        Args:
            asked: the requested columns. `key` and `value` may have a part of their fields, in any order;
                one that is not there stays as it is.

        Raises:
            SchemaError: a field does not exist, is requested twice, or has another type.
        """
        return replace(self, key=_narrowed("key", self.key, asked), value=_narrowed("value", self.value, asked))


def plan_read(options: TypedReadOptions, topic: str | None, registry: SchemaRegistry | None = None) -> ReadFormats:
    """Plan what the keys and values of a read are.

    Runs on: driver, once where a read is planned. Blocks on the file system if an option names a file, on the registry
    if a schema comes from there, and on the compiler of Protobuf.

    Args:
        options: what the user wants, as `options` resolves it.
        topic: the single source topic, which names the subjects; None if there may be several.
        registry: the registry; None: from the options.

    Returns:
        The plan. A schema that was looked up has its subject, version and id.

    Raises:
        OptionError: a file of a schema cannot be read.
        SchemaError: a schema does not exist, is in another language, or cannot be read as columns.
        RegistryError: the registry does not respond, or refuses the login.
        MissingDependencyError: without the packages of a format or of the registry.
    """

    def ask() -> SchemaRegistry:
        if registry is not None:
            return registry
        from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - many reads have no registry

        if options.registry is None:
            raise ValueError("a schema is looked up without a registry")
        return open_registry(options.registry)

    def subject(side: str) -> str | None:
        return topic and default_subject(side, topic, options.registry)

    max_depth = options.recursive_field_max_depth
    return ReadFormats(
        key=_plan_side("key", options.key, subject("key"), ask, max_depth),
        value=_plan_side("value", options.value, subject("value"), ask, max_depth),
        registry=options.registry,
        mode=options.mode,
        corrupt_column=options.corrupt_column,
        include_schema_id=options.include_schema_id,
        max_corrupt_ratio=options.max_corrupt_ratio,
    )


def default_subject(side: str, topic: str, registry: RegistryOptions | None) -> str:
    """Return the subject of keys or values of a topic where no option names it.

    Source: Confluent's `TopicNameStrategy`; of Glue `AWSSchemaNamingStrategyDefaultImpl`, where it is a schema's name.
    """
    return topic if registry is not None and not registry.urls else f"{topic}-{side}"


def find_schema(
    side: str, options: FormatOptions, default: str | None, ask: Callable[[], SchemaRegistry]
) -> RegisteredSchema:
    """Return the schema that the registry has for keys or values.

    Runs on: driver; blocks on the registry.

    Args:
        side: `key` or `value`.
        options: what they are.
        default: the subject if the options do not name it.
        ask: a function that returns the registry.

    Raises:
        SchemaError: there is no such subject or version, or it is in another language.
        RegistryError: the registry does not respond, or refuses the login.
    """
    subject = options.subject or default
    if subject is None:
        raise ValueError(f"no subject of the {side}s is known")
    try:
        found = ask().schema_by_subject(subject, options.schema_version)
    except UnknownSchemaError as error:
        version = "" if options.schema_version is None else f", version {options.schema_version},"
        raise SchemaError(
            f"The registry has no schema for the {side}s: subject '{subject}'{version} {error}. Nothing was read or "
            "written.",
            condition="SCHEMA_NOT_FOUND",
            hint=f"Register the schema; or set '{side}Subject' to the subject that the writers of the topic use, or "
            f"'{side}Schema' to the schema itself.",
            parameters={"subject": subject, "version": options.schema_version or "latest"},
        ) from error
    found = replace(found, subject=found.subject or subject)
    if found.kind != KINDS[options.format]:
        raise kind_mismatch(side, options.format, found)
    return found


def _narrowed(name: str, column: ColumnFormat | None, asked: pa.Schema) -> ColumnFormat | None:
    if column is None or name not in asked.names:
        return column
    return replace(column, arrow_type=narrowed(column.arrow_type, asked.field(name).type, name))


def _plan_side(
    side: str, options: FormatOptions, default: str | None, ask: Callable[[], SchemaRegistry], max_depth: int
) -> ColumnFormat | None:
    if options.format == "binary":
        return None
    if options.format not in WITH_SCHEMA:
        return plain_column(options.format)
    schema = read_given_schema(side, options)
    if schema is None and options.schema is not None:
        columns = read_given_columns(f"{side}Schema", options.schema, columns_of_text)
        return json_column(side, options, columns, None)
    found = schema or find_schema(side, options, default, ask)
    try:
        return column_of_schema(side, options, found, max_depth)
    except SchemaError as error:
        # Values have schemas of their writers, too.
        raise error.located(f"The reader schema of the {side}s, {_origin(side, found)}") from error


def _origin(side: str, schema: RegisteredSchema) -> str:
    """Return the origin of a schema."""
    if schema.subject is None:
        return f"of option '{side}Schema'"
    return f"subject '{schema.subject}'" + ("" if schema.version is None else f", version {schema.version}")
