"""Keys and values as typed columns: the Arrow batches of a typed read."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyspark_kafka._connector.source.executor.bad_records import BadRecord, BadRecords
from pyspark_kafka._connector.source.executor.columns import BatchAssembler
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.wire_format import HEADER_FRAMINGS
from pyspark_kafka._typed.typed.read_formats import spread_corrupt
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
    from pyspark_kafka._typed.codecs.column_format import ColumnFormat
    from pyspark_kafka._typed.typed.read_formats import ReadFormats
    from pyspark_kafka.records import Decoded

# Keys are read first: if both are bad, the error names the key.
_COLUMNS = ("key", "value")
_PLURALS = {"key": "keys", "value": "values"}
# The number of decoders that a worker keeps: a worker runs tasks of several queries.
_MAX_DECODERS = 16


class TypedBatches:
    """The decoders of one reader, and its count of bad records.

    A column that the read does not have is not decoded and not checked: its records are good in every mode. With
    the corrupt column, in mode PERMISSIVE, both are always decoded.

    Runs on: executor, one for a reader; used in one thread at a time.

    Args:
        schema: the exact Arrow schema of the batches.
        formats: the formats of keys and values.
        decoders: decoders by column that replace the decoders of the formats; for tests.

    Raises:
        MissingDependencyError: a format needs a package that this machine lacks.
        SchemaError: a schema cannot be used.
    """

    def __init__(
        self, schema: pa.Schema, formats: ReadFormats, decoders: dict[str, ColumnDecoder] | None = None
    ) -> None:
        self.schema = schema
        typed = {"key": formats.key, "value": formats.value}
        names = set(schema.names)
        corrupt = formats.corrupt_column
        self.corrupt_column = corrupt if formats.mode == "PERMISSIVE" and corrupt in names else None
        needed: dict[str, ColumnFormat] = {
            name: column
            for name in _COLUMNS
            if (column := typed[name]) is not None
            and (self.corrupt_column is not None or not names.isdisjoint({name, f"{name}_schema_id"}))
        }
        self._decoders = {
            name: _decoder((os.getpid(), threading.get_ident()), column, formats.registry, is_key=name == "key")
            for name, column in needed.items()
            if decoders is None
        }
        self._decoders.update(decoders or {})
        self._needs_headers = any(column.framing in HEADER_FRAMINGS for column in needed.values())
        made = {*needed, *(f"{name}_schema_id" for name in needed), self.corrupt_column}
        self.plain_schema = pa.schema([field for field in schema if field.name not in made])
        # The decoded parts of each record besides the unchanged columns; offsets are for coordinates.
        self.raw_columns = tuple(
            name
            for name, is_needed in (
                ("key", "key" in needed or self.corrupt_column is not None),
                ("value", "value" in needed or self.corrupt_column is not None),
                ("offset", True),
                ("headers", self._needs_headers),
            )
            if is_needed
        )
        self._drops = formats.mode == "DROPMALFORMED"
        self.bad_records = BadRecords(
            formats.mode, formats.max_corrupt_ratio, {name: column.format for name, column in needed.items()}
        )

    def assembler(self, topic_partition: TopicPartition) -> TypedBatchAssembler:
        """Return the assembler of a topic-partition."""
        return TypedBatchAssembler(topic_partition, self)

    def read(
        self, records: pa.RecordBatch, topic_partition: TopicPartition
    ) -> tuple[dict[str, pa.Array], pa.Array | None]:
        """Return the typed columns by name, and the rows to keep; None: all.

        Raises:
            RecordError: a record is bad in mode FAILFAST, or too many are.
            RegistryError: a schema cannot be looked up. Its text, and the text of any other error of a decoder, names
                the topic-partition and the offsets.
        """
        offsets = records.column("offset")
        columns: dict[str, pa.Array] = {}
        bad: dict[int, BadRecord] = {}
        headers = records.column("headers") if self._needs_headers else None
        for name, decoder in self._decoders.items():
            found = _decode(decoder, name, records.column(name), headers, topic_partition, offsets)
            columns[name] = found.column
            columns[f"{name}_schema_id"] = found.schema_ids
            for each in found.bad:
                if each.row not in bad:
                    schema_id = None if found.schema_ids is None else found.schema_ids[each.row].as_py()
                    bad[each.row] = BadRecord(each.row, name, each.reason.value, each.message, schema_id)
        in_order = [bad[row] for row in sorted(bad)] if bad else []
        self.bad_records.count_records(topic_partition, len(offsets), in_order, lambda row: int(offsets[row].as_py()))
        if self.corrupt_column is not None:
            columns[self.corrupt_column] = self._corrupt(records, in_order)
        return columns, _all_but(in_order, len(offsets)) if in_order and self._drops else None

    def finish(self) -> None:
        """Check the records of a reader that has read all; `close` follows.

        Raises:
            RecordError: too many are bad.
        """
        self.bad_records.judge_ratio()

    def close(self) -> None:
        """Log the dropped records."""
        self.bad_records.log()

    def _corrupt(self, records: pa.RecordBatch, bad: Sequence[BadRecord]) -> pa.Array:
        wanted = self.schema.field(self.corrupt_column).type
        rows = records.num_rows
        if not bad:
            return pa.nulls(rows, wanted)
        numbers = [each.row for each in bad]
        where = pa.array(numbers)
        made = {
            "column": pa.array([each.column for each in bad], pa.string()),
            "reason": pa.array([each.reason for each in bad], pa.string()),
            "message": pa.array([each.message for each in bad], pa.string()),
            "schemaId": pa.array([each.schema_id for each in bad], pa.string()),
            "rawKey": records.column("key").take(where),
            "rawValue": records.column("value").take(where),
        }
        return spread_corrupt(numbers, made, rows, wanted)


class TypedBatchAssembler:
    """Puts decoded records together as `BatchAssembler` does, with typed keys and values.

    Runs on: executor, one for each topic-partition of a reader.

    Shape: batches of exactly the schema of the read. In mode DROPMALFORMED they may have no rows.
    """

    def __init__(self, topic_partition: TopicPartition, batches: TypedBatches) -> None:
        self._topic_partition = topic_partition
        self._batches = batches
        self._plain = BatchAssembler(topic_partition, batches.plain_schema)
        self.decoded_columns = (
            *self._plain.decoded_columns,
            *(name for name in batches.raw_columns if name not in self._plain.decoded_columns),
        )

    def assemble(self, decoded: Decoded) -> pa.RecordBatch:
        """Return one batch with a row for each good record, and for each bad record that the mode keeps.

        Raises:
            RecordError, RegistryError: as `TypedBatches.read`.
        """
        plain = self._plain.assemble(decoded)
        made, kept = self._batches.read(decoded.batch, self._topic_partition)
        schema = self._batches.schema
        columns = [
            _as_type(made[field.name], field.type) if field.name in made else plain.column(field.name)
            for field in schema
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        return batch if kept is None else batch.filter(kept)


@lru_cache(maxsize=_MAX_DECODERS)
def _decoder(
    user: tuple[int, int],  # noqa: ARG001 - what a decoder holds survives no fork, and is for one thread
    column: ColumnFormat,
    registry: RegistryOptions | None,
    *,
    is_key: bool,
) -> ColumnDecoder:
    if registry is None:
        return ColumnDecoder(column, None, is_key=is_key)
    from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - optional packages

    return ColumnDecoder(column, open_registry(registry), is_key=is_key)


def _decode(
    decoder: ColumnDecoder,
    name: str,
    values: pa.Array,
    headers: pa.Array | None,
    topic_partition: TopicPartition,
    offsets: pa.Array,
) -> DecodedColumn:
    try:
        return decoder.decode(values, headers)
    except ConnectorError as error:
        raise error.located(
            f"Reading the {_PLURALS[name]} of {topic_partition}, offsets {offsets[0]} to {offsets[-1]}"
        ) from error


def _all_but(bad: Sequence[BadRecord], rows: int) -> pa.Array:
    kept = np.ones(rows, bool)
    kept[[each.row for each in bad]] = False
    return pa.array(kept)


def _as_type(column: pa.Array, wanted: pa.DataType) -> Any:
    return column if column.type.equals(wanted) else column.cast(wanted)
