"""The columns of a read: all of them, the columns that a query wants, and the formats of keys and values.

Runs on the driver, in each process that plans: at `load()`, and again when the query is planned or started.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pyspark_kafka._client.options import StreamReadOptions
from pyspark_kafka._connector.source.executor.columns import check_asked_columns, source_schema
from pyspark_kafka.errors import CheckpointError, SchemaError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka._client.options import BatchReadOptions, TypedReadOptions
    from pyspark_kafka._typed.typed.read_formats import ReadFormats
    from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema, ReaderSchemasFile

_LOG = logging.getLogger(__name__)

_SIDES = ("key", "value")
# The number of attempts: if another process has written the versions first, the second attempt reads them.
_MAX_ATTEMPTS = 5


class ReadColumns(NamedTuple):
    """The columns of a read.

    Attributes:
        schema: of every batch.
        formats: the formats of keys and values; None if all of its columns are bytes.
        versions: the versions to write to the checkpoint after it was found to belong to the query; None: nothing.
    """

    schema: pa.Schema
    formats: ReadFormats | None = None
    versions: PendingReaderSchemas | None = None


@dataclass(frozen=True, slots=True)
class PendingReaderSchemas:
    """The schema versions of a query that its checkpoint does not have yet. Plain data that pickles.

    Attributes:
        file: the file that keeps them.
        found: the versions by column.
    """

    file: ReaderSchemasFile
    found: Mapping[str, ReaderSchema]

    def keep(self) -> None:
        """Write them to the checkpoint, next to the versions of other subjects.

        Raises:
            CheckpointError: it cannot be read or written.
        """
        for _ in range(_MAX_ATTEMPTS):
            if _keep(self.file, self.file.read(), self.found):
                return
        raise self.file.changing()


def plan_columns(
    options: BatchReadOptions | StreamReadOptions,
    asked: pa.Schema | None = None,
    *,
    starts: bool = False,
    directory: str | None = None,
) -> ReadColumns:
    """Return the requested columns of a read, or all.

    Keys and values whose schema is in the registry are read with one version of it. With the option
    `checkpointLocation`, this version is written to the checkpoint when the query starts, and used from then on,
    unless an option names another version; each subject has its own version. A start that is refused here writes
    nothing. A start with a used checkpoint, which may belong to another query, does not write here either: the stream
    writes `versions` later.

    Runs on: driver; blocks on the registry and on the checkpoint, if keys or values have a format; otherwise it does
    not block.

    Args:
        options: of the read.
        asked: the columns that the query reads, in its order; a struct may have a part of its fields.
        starts: whether a query starts; otherwise only its columns are needed.
        directory: the directory of the versions; None: below the option `checkpointLocation`, if it is set.

    Raises:
        SchemaError: a column does not exist, is requested twice, or has another type; or a schema cannot be used.
        RegistryError: the registry could not be reached.
        CheckpointError: the checkpoint cannot be read or written, or the version in it has another schema now.
        MissingDependencyError: a format needs a package that this machine lacks.
    """
    if options.typed is None:
        if asked is None:
            return ReadColumns(source_schema(include_headers=options.include_headers))
        check_asked_columns(asked, source_schema(include_headers=options.include_headers))
        return ReadColumns(asked)
    from pyspark_kafka._typed.typed.read_formats import plan_read  # noqa: PLC0415 - most reads are of bytes

    file = _file(options, directory)
    topic = options.subscription.only_topic
    for _ in range(_MAX_ATTEMPTS):
        recorded = None if file is None else file.read()
        formats = plan_read(_with_versions(options.typed, recorded or {}, topic), topic)
        found = reader_schemas(formats)
        if file is not None:
            _check_same(recorded or {}, found, file)
        columns = _typed_columns(options, options.typed, formats, asked)
        if file is None or not starts:
            return columns
        if directory is None and (recorded or file.is_used()):
            return (
                columns
                if _merged(recorded, found) == recorded
                else columns._replace(versions=PendingReaderSchemas(file, found))
            )
        # Several processes start a query: the first one decides, and the others read its versions.
        if _keep(file, recorded, found):
            return columns
    assert file is not None  # noqa: S101 - nothing is tried again without one
    raise file.changing()


def _typed_columns(
    options: BatchReadOptions | StreamReadOptions,
    typed: TypedReadOptions,
    formats: ReadFormats,
    asked: pa.Schema | None,
) -> ReadColumns:
    full = source_schema(include_headers=options.include_headers, typed=formats.read_fields())
    if asked is None:
        return ReadColumns(full, formats)
    sides = {name for name in _SIDES if getattr(formats, name) is not None}
    check_asked_columns(asked, full, sides)
    made = {*sides, *(f"{name}_schema_id" for name in sides), formats.corrupt_column}
    if made.isdisjoint(asked.names):
        return ReadColumns(asked)
    return ReadColumns(asked, _narrowed(formats, asked, made, typed))


def _narrowed(
    formats: ReadFormats, asked: pa.Schema, made: Collection[str | None], typed: TypedReadOptions
) -> ReadFormats:
    required = [path for field in asked if field.name in made for path in _required(field, field.name)]
    if required:
        raise SchemaError(
            f"The schema given to the reader does not fit: {listed(required)} must not be null in it, but every part "
            "of a typed key or value may be. Nothing was read.",
            condition="SCHEMA_MISMATCH.SOURCE",
            hint="Remove NOT NULL from these fields, and leave rows with nulls out after load().",
            parameters={"columns": ", ".join(required)},
        )
    try:
        return formats.narrow(asked)
    except SchemaError as error:
        side = error.parameters.get("column", "").partition(".")[0].removesuffix("[]")
        if side in reader_schemas(formats) and getattr(typed, side).schema_version is None:
            error.change_hint(
                f"{error.hint} If you set none, the registry has another schema since load(): load again, or set "
                f"'{side}SchemaVersion'."
            )
        raise


def _required(field: pa.Field, path: str) -> list[str]:
    """Return the parts of a column that are declared as not nullable."""
    found = [] if field.nullable else [f"'{path}'"]
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [(each, f"{path}.{each.name}") for each in kind]
    elif pa.types.is_map(kind):
        # The keys of a map are never null.
        inner = [(kind.item_field, f"{path}[]")]
    elif pa.types.is_list(kind):
        inner = [(kind.value_field, f"{path}[]")]
    else:
        inner = []
    return found + [each for part, at in inner for each in _required(part, at)]


def _merged(recorded: Mapping[str, ReaderSchema] | None, found: Mapping[str, ReaderSchema]) -> dict[str, ReaderSchema]:
    """Return the new content of the file: other subjects keep their versions, because this start may be a mistake."""
    from pyspark_kafka.checkpoint.reader_schemas import schema_key  # noqa: PLC0415 - as above

    return {**(recorded or {}), **{schema_key(name, schema.subject): schema for name, schema in found.items()}}


def _keep(
    file: ReaderSchemasFile, recorded: Mapping[str, ReaderSchema] | None, found: Mapping[str, ReaderSchema]
) -> bool:
    """Write the versions that a query starts with; return False if another process wrote its own first."""
    from pyspark_kafka.checkpoint.reader_schemas import schema_key  # noqa: PLC0415 - as above

    known, merged = recorded or {}, _merged(recorded, found)
    if merged == known:
        return True
    for name, schema in found.items():
        former = known.get(schema_key(name, schema.subject))
        others = sorted(each.subject for key, each in known.items() if key == schema_key(name, each.subject))
        if former is not None and former.version != schema.version:
            _LOG.warning(
                "The query reads %ss with version %d of subject '%s' from now on, and not with version %d as before: "
                "an option names it. The version is kept in %s.",
                *(name, schema.version, schema.subject, former.version, file.shown),
            )
        elif former is None and others:
            _LOG.warning(
                "The query reads %ss with version %d of subject '%s' from now on; the checkpoint has versions of other "
                "subjects: %s. The version is kept in %s.",
                *(name, schema.version, schema.subject, listed([f"'{each}'" for each in others]), file.shown),
            )
    if recorded is None:
        return file.create(merged)
    file.replace(merged)
    return True


def _file(options: BatchReadOptions | StreamReadOptions, directory: str | None) -> ReaderSchemasFile | None:
    if directory is not None:
        location, within = directory, ""
    elif isinstance(options, StreamReadOptions) and options.checkpoint_location is not None:
        location, within = options.checkpoint_location, f"sources/{options.source_index}"
    else:
        return None
    from pyspark_kafka.checkpoint.files import CheckpointFiles  # noqa: PLC0415 - as above
    from pyspark_kafka.checkpoint.reader_schemas import ReaderSchemasFile  # noqa: PLC0415 - as above

    return ReaderSchemasFile(CheckpointFiles(location), within)


def _with_versions(
    typed: TypedReadOptions, recorded: Mapping[str, ReaderSchema], topic: str | None
) -> TypedReadOptions:
    """Return the options with the recorded versions, where the options name no version."""
    if not recorded:
        return typed
    from pyspark_kafka._typed.typed.read_formats import default_subject  # noqa: PLC0415 - as above
    from pyspark_kafka.checkpoint.reader_schemas import schema_key  # noqa: PLC0415 - as above

    for name in _SIDES:
        side = getattr(typed, name)
        if side is None or side.schema is not None or side.schema_version is not None:
            continue
        subject = side.subject or (topic and default_subject(name, topic, typed.registry))
        known = recorded.get(schema_key(name, subject)) if subject else None
        if known is not None:
            typed = replace(typed, **{name: replace(side, schema_version=known.version)})
    return typed


def reader_schemas(formats: ReadFormats) -> dict[str, ReaderSchema]:
    """Return the reader schemas of keys and values from the registry, by column; pure."""
    from pyspark_kafka.checkpoint.reader_schemas import ReaderSchema  # noqa: PLC0415 - as above

    found = {}
    for name in _SIDES:
        column = getattr(formats, name)
        schema = None if column is None else column.schema
        if schema is not None and schema.subject is not None and schema.version is not None:
            found[name] = ReaderSchema(schema.subject, schema.version, str(schema.schema_id))
    return found


def _check_same(
    recorded: Mapping[str, ReaderSchema], found: Mapping[str, ReaderSchema], file: ReaderSchemasFile
) -> None:
    from pyspark_kafka.checkpoint.reader_schemas import schema_key  # noqa: PLC0415 - as above

    for name, now in found.items():
        known = recorded.get(schema_key(name, now.subject))
        if known is None or now.version != known.version:
            continue
        if now.schema_id != known.schema_id:
            raise CheckpointError(
                f"The query reads {name}s with version {known.version} of subject '{known.subject}', which had the id "
                f"{known.schema_id} when the query began; the registry has the id {now.schema_id} for it: it is "
                f"another registry, or the subject was recreated. The former id is in {file.shown}. Nothing was read.",
                condition="READER_SCHEMA_CHANGED",
                hint=f"Set the options to the registry of the query; or set '{name}SchemaVersion' to the version to "
                "read with, and remove the file.",
                parameters={"subject": known.subject, "version": known.version, "recorded": known.schema_id},
            )
