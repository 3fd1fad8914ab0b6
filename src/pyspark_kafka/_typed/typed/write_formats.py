"""Plans a write of typed keys and values: the schemas, checked against the columns and the registry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA, ColumnFormat
from pyspark_kafka._typed.codecs.projection import missing_field
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.typed.given_schema import read_given_columns, read_given_schema
from pyspark_kafka._typed.typed.read_formats import default_subject, find_schema
from pyspark_kafka._typed.typed.registered_text import encodable, registrable
from pyspark_kafka.errors import OptionError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.options import FormatOptions, TypedWriteOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaRegistry


@dataclass(frozen=True, slots=True)
class WriteFormats:
    """The key and value formats of a write. Plain data that pickles.

    Attributes:
        key: the format of the keys; None: bytes as they are.
        value: the format of the values.
    """

    key: ColumnFormat | None = None
    value: ColumnFormat | None = None

    def registered(self) -> dict[str, RegisteredSchema]:
        """Return the schemas of `key` and `value` that come from a registry, for later writes."""
        found = {"key": self.key, "value": self.value}
        schemas = {side: None if column is None else column.schema for side, column in found.items()}
        return {side: schema for side, schema in schemas.items() if schema is not None and schema.schema_id is not None}


def typed_columns(options: TypedWriteOptions | None) -> frozenset[str]:
    """Return the encoded columns: `key`, `value`, both or none."""
    if options is None:
        return frozenset()
    return frozenset(side for side in ("key", "value") if getattr(options, side).format != "binary")


def plan_write(
    options: TypedWriteOptions,
    columns: Mapping[str, pa.DataType],
    topic: str | None,
    registry: SchemaRegistry | None,
    known: Mapping[str, RegisteredSchema] = MappingProxyType({}),
) -> WriteFormats:
    """Return the formats of keys and values, after all checks that need no row.

    A schema is the user's, or a version of its subject. The user's must be in the subject, so that it has an id; with
    `autoRegisterSchemas` it is registered, if it is compatible. Without a schema on either side, an Avro schema is made
    of the column and registered; JSON without a registry needs none. Nothing is registered before every column fits.

    Runs on: driver; blocks on the registry and on the file system.

    Args:
        options: of the write.
        columns: the types of the columns `key` and `value`.
        topic: names the subjects `<topic>-key` and `<topic>-value`; None: each row has its own topic.
        registry: has the schemas.
        known: schemas that the query has written with, by side: they are not looked up again.

    Raises:
        SchemaError: a column does not fit its schema: the text has the path; or the schema is not in its subject, is
            not compatible, or is of another format.
        OptionError: the file of a schema cannot be read, or a subject is not known.
        RegistryError: the registry does not respond.
        MissingDependencyError: the package of a format is not there.
    """
    found = [
        _Side(side, options, columns[side], topic, registry).find(known.get(side))
        for side in ("key", "value")
        if side in typed_columns(options)
    ]
    return WriteFormats(**{each.side: each.finish(registry) for each in found})


@dataclass(frozen=True, slots=True)
class _Found:
    """A column that fits its schema.

    Attributes:
        side: `key` or `value`.
        column: its format; without an id, if the schema is not registered yet.
        subject: where it is to be registered; empty if it has an id, or needs none.
        sent: the schema as the registry takes it.
    """

    side: str
    column: ColumnFormat
    subject: str = ""
    sent: RegisteredSchema | None = None

    def finish(self, registry: SchemaRegistry | None) -> ColumnFormat:
        """Return the format with its id, after the schema is registered if it must be."""
        schema, sent = self.column.schema, self.sent
        if not self.subject or registry is None or schema is None or sent is None:
            return self.column
        faults = registry.incompatibilities(self.subject, sent)
        if faults:
            raise SchemaError(
                f"The schema of the {self.side}s may not become the next version of subject '{self.subject}': "
                f"{'; '.join(faults)}. Nothing was registered for it, and nothing was written.",
                condition="SCHEMA_INCOMPATIBLE",
                hint="Change the schema so that it is compatible, or the compatibility of the subject, or set another "
                f"subject with '{self.side}Subject'.",
                parameters={"subject": self.subject},
            )
        schema_id = registry.register(self.subject, sent)
        return replace(self.column, schema=replace(schema, schema_id=schema_id, subject=self.subject))


class _Side:
    """Finds the schema of keys or of values."""

    def __init__(
        self,
        side: str,
        options: TypedWriteOptions,
        kind: pa.DataType,
        topic: str | None,
        registry: SchemaRegistry | None,
    ) -> None:
        self._side = side
        self._options: FormatOptions = getattr(options, side)
        self._registry_options = options.registry
        self._registers = options.auto_register_schemas
        self._given_kind = kind
        self._kind = writable_type(kind)
        self._topic = topic
        self._registry = registry

    def find(self, known: RegisteredSchema | None) -> _Found:
        """Return the column with its schema; sends a request unless the schema is known."""
        given = self._options
        if given.format not in WITH_SCHEMA:
            return _Found(self._side, self._checked(None))
        own = read_given_schema(self._side, given)
        if known is not None:
            return _Found(self._side, self._checked(known))
        if own is not None:
            return self._find_own(own)
        if given.schema is not None:
            self._check_columns()
            if self._registry is None:
                return _Found(self._side, self._checked(None))
        if self._registry is None:
            return _Found(self._side, self._checked(None))
        return self._find_subject(self._registry)

    def _find_own(self, own: RegisteredSchema) -> _Found:
        """Find the user's schema in its subject."""
        column = self._checked(encodable(own))
        if self._registry is None:
            return _Found(self._side, column)
        subject, sent = self._subject(), registrable(own)
        schema_id = self._registry.find_id(subject, sent)
        if schema_id is not None:
            schema = replace(encodable(own), schema_id=schema_id, subject=subject)
            return _Found(self._side, replace(column, schema=schema))
        if not self._registers:
            raise SchemaError(
                f"The schema of option '{self._side}Schema' is not in subject '{subject}' of the registry. Nothing was "
                "written.",
                condition="SCHEMA_NOT_REGISTERED",
                hint=f"Register it with POST /subjects/{quote(subject, safe='')}/versions, or set "
                f"'autoRegisterSchemas' to true; or remove '{self._side}Schema' to write with the schema that the "
                "subject has.",
                parameters={"subject": subject},
            )
        return _Found(self._side, column, subject, sent)

    def _find_subject(self, registry: SchemaRegistry) -> _Found:
        """Find the subject's version; derive a schema if there is no subject and it may be registered."""
        subject = self._subject()
        try:
            schema = find_schema(self._side, self._options, subject, lambda: registry)
        except SchemaError as error:
            derives = self._registers and self._options.format == "avro" and self._options.schema_version is None
            if error.condition != "SCHEMA_NOT_FOUND" or not derives:
                raise
            made = self._derived()
            return _Found(self._side, self._checked(made), subject, made)
        return _Found(self._side, self._checked(encodable(schema)))

    def _derived(self) -> RegisteredSchema:
        from pyspark_kafka._typed.codecs.avro.derivation import derive_schema  # noqa: PLC0415 - of one case

        return RegisteredSchema("AVRO", derive_schema(self._kind, self._topic or "topic", self._side))

    def _subject(self) -> str:
        if self._options.subject is not None:
            return self._options.subject
        if self._topic is None:
            raise OptionError(
                f"Option '{self._side}Subject' must be set if each row names its topic: the topic's name does not say "
                "which schema of the registry it is. Nothing was written.",
                condition="OPTION_MISSING",
                hint=f"Set '{self._side}Subject' to the subject of the schema, or set 'topic'.",
                parameters={"option": f"{self._side}Subject"},
            )
        return default_subject(self._side, self._topic, self._registry_options)

    def _check_columns(self) -> None:
        """Compare the column with a schema that names columns, as in SQL."""
        from pyspark_kafka._typed.typed.column_formats import columns_of_text  # noqa: PLC0415 - of one case

        option = f"{self._side}Schema"
        if self._registry is not None:
            raise OptionError(
                f"Option '{option}' names columns, which a registry cannot have. Nothing was written.",
                condition="OPTION_CONFLICT",
                hint=f"Set '{option}' to a JSON Schema, or remove it to write with the schema of the subject; or "
                "remove the options of the registry.",
                parameters={"option": option},
            )
        wanted = read_given_columns(option, self._options.schema or "", columns_of_text)
        try:
            _compare(self._kind, wanted, "")
        except SchemaError as error:
            raise self._located(error, None) from error

    def _checked(self, schema: RegisteredSchema | None) -> ColumnFormat:
        """Return the format of the column, whose type fits the schema."""
        framing = self._options.framing or ("none" if self._registry is None else "confluent")
        if self._options.format not in WITH_SCHEMA:
            framing = "none"
        documents = None
        if self._options.open_parts == "text" and self._options.format == "json":
            from pyspark_kafka._typed.typed.column_formats import open_documents  # noqa: PLC0415 - of one case

            try:
                documents = open_documents(schema)
            except SchemaError as error:
                raise self._located(error, schema) from error
        column = ColumnFormat(
            self._options.format,  # type: ignore[arg-type] # only typed sides are written
            framing,
            self._kind,
            schema,
            self._options.message,
            self._options.timestamp_format,
            self._options.date_format,
            documents,
        )
        # The id may not be known yet.
        unframed = framing if schema is not None and schema.schema_id is not None else "none"
        try:
            ColumnEncoder(replace(column, framing=unframed), is_key=self._side == "key")
        except SchemaError as error:
            raise self._located(error, schema) from error
        return column

    def _located(self, error: SchemaError, schema: RegisteredSchema | None) -> SchemaError:
        """Return the error with the column and the schema that do not fit."""
        named = ""
        if schema is not None and schema.subject is not None:
            version = "" if schema.version is None else f", version {schema.version}"
            named = f" with the schema of subject '{schema.subject}'{version}"
        located = error.located(
            f"Nothing was written, as column '{self._side}' of the DataFrame cannot be written in "
            f"{self._options.format}{named}"
        )
        assert isinstance(located, SchemaError)  # noqa: S101 - of the same class
        return located


def writable_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with all parts nullable, which Spark does not promise of every batch; and without large ones."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, writable_type(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", writable_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(writable_type(kind.key_type), pa.field("value", writable_type(kind.item_type)))
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _compare(found: pa.DataType, wanted: pa.DataType, path: str) -> None:
    """Raise unless a column is what the columns of a schema say: numbers may be narrower, fields in another order."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        fields = {each.name: each.type for each in wanted}
        for each in found:
            inner = f"{path}.{each.name}" if path else each.name
            if each.name not in fields:
                raise _no_fit(inner, "a field of the schema, which has no such field", each.type)
            _compare(each.type, fields.pop(each.name), inner)
        for name in fields:
            raise missing_field(f"{path}.{name}" if path else name, "the schema", found)
    elif pa.types.is_list(found) and pa.types.is_list(wanted):
        _compare(found.value_type, wanted.value_type, f"{path}[]")
    elif pa.types.is_map(found) and pa.types.is_map(wanted):
        _compare(found.key_type, wanted.key_type, f"{path}[key]")
        _compare(found.item_type, wanted.item_type, f"{path}[]")
    elif not (found == wanted or _is_narrower(found, wanted)):
        raise _no_fit(path, str(wanted), found)


def _is_narrower(found: pa.DataType, wanted: pa.DataType) -> bool:
    for is_kind in (pa.types.is_signed_integer, pa.types.is_floating):
        if is_kind(found) and is_kind(wanted):
            return bool(found.bit_width <= wanted.bit_width)
    return False


def _no_fit(path: str, wanted: str, found: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Column '{path or 'value'}' has the type {found}, which cannot be written as {wanted}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column, or change the schema.",
        parameters={"column": path or "value", "wanted": wanted, "found": found},
    )
