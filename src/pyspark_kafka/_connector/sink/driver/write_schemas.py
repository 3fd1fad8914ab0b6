"""The schemas that a query writes with: planned when it starts, and the same in every micro-batch.

Spark builds a writer for every micro-batch, often in another process than the one before. A registry's response is
kept in the checkpoint, so that a query writes with one schema until its options or its columns are changed, and so that
the request is sent once, not once a micro-batch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka._typed.typed.given_schema import read_schema_text
from pyspark_kafka._typed.typed.write_formats import plan_write, typed_columns
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyspark_kafka._client.options import FormatOptions, TypedWriteOptions, WriteOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaRegistry
    from pyspark_kafka._typed.typed.write_formats import WriteFormats

_LOG = logging.getLogger(__name__)

NAME = "sink/schemas"
_VERSION = 1
# Of one process's queries, by checkpoint, query id and fingerprint; with the time of the plan.
_PLANNED: dict[tuple[str | None, str | None, str], tuple[float, WriteFormats]] = {}
_MAX_PLANNED = 100
# Of a plan that no file confirms, and that all queries with the same options share, as none of them has an id.
_KEPT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class PlannedFormats:
    """The formats of a write's typed columns.

    Attributes:
        formats: of keys and values.
        schemas: the schemas to write to the checkpoint once nothing can refuse the write any more; None: nothing.
    """

    formats: WriteFormats
    schemas: PendingSchemas | None = None


@dataclass(frozen=True, slots=True)
class PendingSchemas:
    """The schemas that a query writes with from now on, before the checkpoint has them. Plain data that pickles.

    Attributes:
        file: where they belong.
        fingerprint: of what was planned.
        before: the schemas that the file has, by side.
        schemas: the schemas that the file is to have.
    """

    file: WriteSchemasFile
    fingerprint: str
    before: Mapping[str, RegisteredSchema]
    schemas: Mapping[str, RegisteredSchema]

    def keep(self) -> None:
        """Write the file, and log which schemas are other ones than before.

        Raises:
            CheckpointError: it cannot be written.
        """
        for side, schema in self.schemas.items():
            old = self.before.get(side)
            if old is not None and old.schema_id != schema.schema_id:
                _LOG.warning(
                    "Options or columns of the query have changed: its %ss are written with schema %s from now, before "
                    "with schema %s.",
                    side,
                    schema.schema_id,
                    old.schema_id,
                )
        self.file.write(self.fingerprint, self.schemas)


def plan_formats(
    options: WriteOptions,
    typed: TypedWriteOptions,
    columns: Mapping[str, pa.DataType],
    *,
    streaming: bool,
    query_id: str | None = None,
) -> PlannedFormats:
    """Return the formats of a write's typed columns.

    Runs on: driver, once for a batch write and once for each micro-batch; blocks on the registry and on file systems.
    In a micro-batch, that is one read of a small file of the checkpoint, and the registry only if the file does not
    have the plan. Without a checkpoint, a process repeats the request once a plan is older than five minutes.

    Args:
        options: of the write.
        typed: the schemas of keys and values in them.
        columns: the types of the columns `key` and `value`.
        streaming: whether the write is one micro-batch of many.
        query_id: of the streaming query, if it is known: without a checkpoint, it has a plan of its own.

    Raises:
        SchemaError: a column does not fit its schema, or there is no schema; see `typed.write_formats.plan_write`.
        CheckpointError: what the checkpoint keeps cannot be read or written.
    """
    registry = _registry(typed)
    if not streaming or registry is None:
        return PlannedFormats(plan_write(typed, columns, options.topic, registry))
    schemas: PendingSchemas | None = None
    location, fingerprint = options.checkpoint_location, _fingerprint(options, typed, columns)
    key = (location, query_id if location is None else None, fingerprint)
    made, planned = _PLANNED.get(key, (0.0, None))
    if location is not None:
        record = WriteSchemasFile(CheckpointFiles(location))
        before, known = record.read()
        # The file decides: the checkpoint may be a new one in an old place.
        if planned is not None and before == fingerprint and planned.registered() == known:
            return PlannedFormats(planned)
        if before == fingerprint:
            planned = plan_write(typed, columns, options.topic, registry, known)
        else:
            planned = plan_write(typed, columns, options.topic, registry)
            schemas = PendingSchemas(record, fingerprint, known, planned.registered())
    elif planned is not None and (query_id is not None or time.monotonic() < made + _KEPT_SECONDS):
        return PlannedFormats(planned)
    else:
        planned = plan_write(typed, columns, options.topic, registry)
    _PLANNED.pop(key, None)
    while len(_PLANNED) >= _MAX_PLANNED:
        del _PLANNED[next(iter(_PLANNED))]
    _PLANNED[key] = time.monotonic(), planned
    return PlannedFormats(planned, schemas)


def _registry(typed: TypedWriteOptions) -> SchemaRegistry | None:
    if typed.registry is None:
        return None
    from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - many writes have none

    return open_registry(typed.registry)


def _fingerprint(options: WriteOptions, typed: TypedWriteOptions, columns: Mapping[str, pa.DataType]) -> str:
    """Return a hash of all that decides which schema is written: no secret, and no time of a request."""
    registry = typed.registry
    place = None if registry is None else [list(registry.urls), registry.region, registry.registry_name]
    sides = {
        side: [str(columns[side]), *_described(side, getattr(typed, side))] for side in sorted(typed_columns(typed))
    }
    text = json.dumps([options.topic, place, sides])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _described(side: str, given: FormatOptions) -> list[Any]:
    schema = None if given.schema is None else read_schema_text(f"{side}Schema", given.schema)
    return [given.format, given.framing, schema, given.subject, given.schema_version, given.message]


class WriteSchemasFile:
    """The file of a checkpoint that has the schemas of a registry that the query writes with.

    Runs on: driver; methods block on the file system.

    Args:
        files: the checkpoint.

    Raises:
        CheckpointError: by every method: the file cannot be read or written, or is malformed.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files

    def read(self) -> tuple[str, dict[str, RegisteredSchema]]:
        """Return the fingerprint of what was planned, and the schemas by side; empty ones if there is no file."""
        data = self._files.read(NAME)
        if data is None:
            return "", {}
        try:
            parsed = json.loads(data)
            if parsed["v"] != _VERSION:
                raise ValueError(f"its version is {parsed['v']}")  # noqa: TRY301 - one place says what is wrong
            schemas = {side: _schema(each) for side, each in parsed["schemas"].items()}
            return str(parsed["planned"]), schemas
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f"{NAME} of checkpoint {self._files.shown} is malformed: {error!r}. Nothing was written.",
                condition="CHECKPOINT_LOG_INVALID",
                hint="Restore the file from a copy; or remove it, and set 'valueSchemaVersion' to the version that the "
                "query has written with.",
                parameters={"location": self._files.shown, "name": NAME},
            ) from error

    def write(self, fingerprint: str, schemas: Mapping[str, RegisteredSchema]) -> None:
        """Replace the file: durable when it returns."""
        value = {
            "v": _VERSION,
            "planned": fingerprint,
            "schemas": {
                side: {
                    "kind": each.kind,
                    "text": each.text,
                    "references": [[other.name, other.text] for other in each.references],
                    "id": each.schema_id,
                    "subject": each.subject,
                    "version": each.version,
                }
                for side, each in schemas.items()
            },
        }
        # Escapes are ASCII: a text may have half of a surrogate pair, which UTF-8 cannot hold.
        self._files.replace(NAME, json.dumps(value, separators=(",", ":")).encode())


def _schema(parsed: Any) -> RegisteredSchema:
    kind, text, schema_id, version = parsed["kind"], parsed["text"], parsed["id"], parsed["version"]
    if kind not in ("AVRO", "JSON", "PROTOBUF") or not isinstance(text, str):
        raise ValueError("it has another kind of schema, or no text")
    if isinstance(schema_id, bool) or not isinstance(schema_id, (int, str)):
        raise TypeError("a schema has no id")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise TypeError("a version is not a number")
    subject = parsed["subject"]
    references = tuple(NamedSchema(str(name), str(other)) for name, other in parsed["references"])
    return RegisteredSchema(kind, text, references, schema_id, None if subject is None else str(subject), version)
