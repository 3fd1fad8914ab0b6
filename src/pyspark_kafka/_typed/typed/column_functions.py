"""Functions for `mapInArrow` over one column: `formats.decode_column`, `formats.encode_column`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.wire_format import HEADER_FRAMINGS
from pyspark_kafka._typed.typed.read_formats import CORRUPT_TYPE, spread_corrupt
from pyspark_kafka._typed.typed.spark_json import field_json, type_json
from pyspark_kafka._typed.typed.value_plans import plan_encoding, plan_values
from pyspark_kafka._typed.typed.values import as_bytes, bad_value, check_on_bad
from pyspark_kafka.errors import OptionError, RecordError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql.types import StructType

    from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
    from pyspark_kafka._typed.typed.value_plans import ValuePlan
    from pyspark_kafka._typed.typed.values import Framing, OnBad, OpenParts, ValueFormat

_BYTES = ("binary", "string")
# The types of the other column, key or value. `void` has no bytes to lose.
_KEPT = (*_BYTES, "void")


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """A function for `mapInArrow` that decodes a column; `decode_column` builds it. Pickles.

    Attributes:
        name: the column of values.
        into: the column of decoded values.
        plan: the format and schema of the values.
        on_bad: the treatment of unreadable values.
        corrupt_column: the column that describes unreadable values; None for no such column.
        is_key: whether they are keys.
    """

    name: str
    into: str
    plan: ValuePlan
    on_bad: OnBad = "raise"
    corrupt_column: str | None = None
    is_key: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each batch with the decoded column.

        Runs on: executor, once a task; blocks where the registry does.

        Raises:
            RecordError: a value cannot be read, and `on_bad` is `raise`.
            RegistryError: the registry does not answer; no value is at fault.
            SchemaError: see `output_schema`.
            OptionError: see `output_schema`.
        """
        decoder = self.plan.decoder(is_key=self.is_key)
        for batch in batches:
            self._check_corrupt({each.name: each.type for each in batch.schema}, type_json)
            headers = batch.column("headers") if self.plan.column.framing in HEADER_FRAMINGS else None
            decoded = decoder.decode(as_bytes(batch.column(self.name)), headers)
            if decoded.bad and self.on_bad == "raise":
                first = decoded.bad[0]
                raise bad_value(first, _place(batch, first.row), self.plan.column.format, len(decoded.bad))
            result = _with_column(batch, self.into, decoded.column)
            if self.corrupt_column is not None:
                corrupt = self._corrupt(batch, decoded)
                if self.corrupt_column in batch.schema.names:
                    corrupt = pc.coalesce(batch.column(self.corrupt_column).cast(CORRUPT_TYPE), corrupt)
                result = _with_column(result, self.corrupt_column, corrupt)
            yield result

    def output_schema(self, schema: StructType) -> StructType:
        """Return the second argument of `mapInArrow`.

        Runs on: driver, or the client of Spark Connect.

        Args:
            schema: the schema of the DataFrame, `df.schema`.

        Raises:
            SchemaError: the column is missing, or neither bytes nor text; or with `corrupt_column` the other of `key`
                and `value` is neither.
            OptionError: a column with the name of `corrupt_column` has another type.
        """
        needed: dict[str, tuple[str, ...]] = {self.name: _BYTES}
        if self.plan.column.framing in HEADER_FRAMINGS:
            needed["headers"] = ()
        changed = {self.into: self.plan.column.arrow_type}
        if self.corrupt_column is not None:
            changed[self.corrupt_column] = CORRUPT_TYPE
        result = _changed_schema(schema, needed, changed)
        self._check_corrupt({each["name"]: each["type"] for each in schema.jsonValue()["fields"]}, lambda given: given)
        return result

    @property
    def _sides(self) -> tuple[str, str]:
        """Return the side of the values, key or value, and the other side."""
        return ("key", "value") if self.is_key else ("value", "key")

    def _check_corrupt(self, types: Mapping[str, Any], spark_type: Callable[[Any], Any]) -> None:
        """Refuse columns with bytes that the corrupt column would lose.

        Args:
            types: the existing columns.
            spark_type: returns a type as Spark's JSON has it.
        """
        if self.corrupt_column is None:
            return
        side, other = self._sides
        found = None if other not in types or other == self.name else spark_type(types[other])
        if found is not None and found not in _KEPT:
            shown = found if isinstance(found, str) else found["type"]
            raise SchemaError(
                f"Column '{other}' is {shown}, not binary or string: column '{self.corrupt_column}' would lose its "
                f"bytes where a {side} cannot be read. Nothing was read.",
                condition="SCHEMA_COLUMN_MISMATCH",
                hint=f"If column '{other}' is decoded before, decode it into another column (into=...), so that its "
                "bytes stay; else cast or rename it.",
                parameters={"column": other, "found": shown},
            )
        if self.corrupt_column in types and not _is_corrupt(spark_type(types[self.corrupt_column])):
            raise OptionError(
                f"Argument 'corrupt_column' is {self.corrupt_column!r}, which is a column of another type. Nothing "
                "was read.",
                condition="OPTION_CONFLICT",
                hint="Choose another name. Only the corrupt column of another decode_column, or of a typed read, is "
                "reused and filled.",
            )

    def _corrupt(self, batch: pa.RecordBatch, decoded: DecodedColumn) -> pa.Array:
        """Return the corrupt column of a typed read: null in readable rows."""
        bad = decoded.bad
        if not bad:
            return pa.nulls(batch.num_rows, CORRUPT_TYPE)
        rows = pa.array([each.row for each in bad], pa.int64())
        ids = pa.nulls(len(bad), pa.string()) if decoded.schema_ids is None else decoded.schema_ids.take(rows)
        side, other = self._sides
        raw = {side: _raw(batch, self.name, rows), other: _raw(batch, other, rows)}
        columns = {
            "column": pa.array([side] * len(bad), pa.string()),
            "reason": pa.array([each.reason.value for each in bad], pa.string()),
            "message": pa.array([each.message for each in bad], pa.string()),
            "schemaId": ids,
            "rawKey": raw["key"],
            "rawValue": raw["value"],
        }
        return spread_corrupt([each.row for each in bad], columns, batch.num_rows, CORRUPT_TYPE)


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """A function for `mapInArrow` that encodes a column; `encode_column` builds it. Pickles.

    Attributes:
        name: the column to encode.
        into: the column of values.
        plan: the format and schema of the encoded values.
    """

    name: str
    into: str
    plan: ValuePlan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each batch with the encoded column.

        Runs on: executor, once a task; pure computation.

        Raises:
            RecordError: a value does not fit; it names the row.
            SchemaError: the type of the column does not fit the schema.
        """
        encoder = None
        for batch in batches:
            column = batch.column(self.name)
            if encoder is None:
                encoder = self.plan.encoder(column.type)
            try:
                encoded = encoder.encode(column)
            except RecordError as error:
                row = error.parameters.get("row", "")
                raise (error.located(_place(batch, int(row))) if row.isdigit() else error) from error
            yield _with_column(batch, self.into, encoded)

    def output_schema(self, schema: StructType) -> StructType:
        """Return the second argument of `mapInArrow`; see `ColumnDecoding.output_schema`."""
        return _changed_schema(schema, {self.name: ()}, {self.into: pa.binary()})


def decode_column(  # noqa: D417
    name: str,
    value_format: ValueFormat,
    *,
    into: str | None = None,
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
    is_key: bool = False,
    on_bad: OnBad = "raise",
    corrupt_column: str | None = None,
) -> ColumnDecoding:
    """Return a function for `mapInArrow` that decodes a column, from any source.

    ```python
    from pyspark_kafka.formats import decode_column

    decoding = decode_column("value", "json", schema="id BIGINT, name STRING")
    df.mapInArrow(decoding, decoding.output_schema(df.schema)).select("value.*")
    ```

    Works for batch and streaming DataFrames, on classic Spark and on Spark Connect; this package must be installed
    where executors run.

    Runs on: driver, or the client of Spark Connect; looks the schema up, once. The function runs in tasks.

    For the other arguments see `decode`.

    Args:
        name: the column of values, binary or string.
        value_format: the format of the values.
        into: the column of decoded values; None: `name`, which is replaced.
        framing: see `decode`; `confluentHeader` and `confluentDual` need a column `headers`.
        is_key: whether they are keys: for the wire format `confluentHeader`, and for `corrupt_column`.
        on_bad: the treatment of unreadable values. `raise`: the task fails; the error names topic, partition and offset
            if the DataFrame has these columns, else the row of its batch. `null`: they are null.
        corrupt_column: with `null`, the column of unreadable values, as in a typed read in mode PERMISSIVE: for
            `pyspark_kafka.dead_letters`. It also has the bytes of the other of `key` and `value`, if the DataFrame has
            that column, which must be binary or string. An existing corrupt column, of an earlier decoding or a typed
            read, is kept, and filled where it is null. To decode key and value, decode the first one into a separate
            column (`into`), so that its bytes are available to the second decoding.

    Raises:
        SchemaError: the schema cannot be used, or does not exist.
        OptionError: an argument is not valid.
        RegistryError: the registry does not answer, or refuses the login.
        MissingDependencyError: without the packages of the format or of the registry.
    """
    check_on_bad(on_bad)
    if corrupt_column is not None and (on_bad != "null" or corrupt_column in (name, into)):
        raise OptionError(
            f"Argument 'corrupt_column' is {corrupt_column!r}: there is such a column with on_bad='null' only, and "
            "under a name of its own. Nothing was done.",
            condition="OPTION_CONFLICT",
            hint="Set on_bad='null' and another name, or remove corrupt_column.",
        )
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
    # Raises here if the schema cannot be used, not in each task.
    plan.decoder(is_key=is_key)
    return ColumnDecoding(name, into or name, plan, on_bad, corrupt_column, is_key)


def encode_column(  # noqa: D417
    name: str,
    value_format: ValueFormat,
    *,
    into: str | None = None,
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
) -> ColumnEncoding:
    """Return a function for `mapInArrow` that encodes a column of structs as values.

    The reverse of `decode_column`: for sinks that take bytes, and for rows with values of several formats, such as good
    rows and dead letters.

    For the other arguments see `encode`.

    Args:
        name: the column to encode.
        value_format: the format of the encoded values.
        into: the column of encoded values; None: `name`, which is replaced.

    Raises:
        SchemaError: the schema cannot be used, or does not exist.
        OptionError: an argument is not valid.
        RegistryError: the registry does not answer, or refuses the login.
        MissingDependencyError: without the packages of the format or of the registry.
    """
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
    return ColumnEncoding(name, into or name, plan)


def _with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    if at < 0:
        return batch.append_column(pa.field(name, column.type), column)
    return batch.set_column(at, pa.field(name, column.type), column)


def _place(batch: pa.RecordBatch, row: int) -> str:
    names = ("topic", "partition", "offset")
    if any(name not in batch.schema.names for name in names):
        return f"Row {row} of an Arrow batch"
    topic, partition, offset = (batch.column(name)[row].as_py() for name in names)
    return f"The record at offset {offset} of {topic}-{partition}"


def _raw(batch: pa.RecordBatch, name: str, rows: pa.Array) -> pa.Array:
    at = batch.schema.get_field_index(name)
    if at < 0 or pa.types.is_null(batch.schema.types[at]):
        return pa.nulls(len(rows), pa.binary())
    return as_bytes(batch.column(at).take(rows)).cast(pa.binary())


def _is_corrupt(found: Any) -> bool:
    """Whether a type, as Spark's JSON has it, is the type of corrupt columns, but for what may be null."""
    if not isinstance(found, dict) or found["type"] != "struct":
        return False
    expected = {each.name: type_json(each.type) for each in CORRUPT_TYPE}
    return [(each["name"], each["type"]) for each in found["fields"]] == list(expected.items())


def _changed_schema(
    schema: StructType, needed: Mapping[str, tuple[str, ...]], changed: Mapping[str, pa.DataType]
) -> StructType:
    found = schema.jsonValue()
    types = {each["name"]: each["type"] for each in found["fields"]}
    for name, expected in needed.items():
        if name not in types or (expected and types[name] not in expected):
            is_there = f"is {types[name]}, not binary or string" if name in types else "is missing"
            raise SchemaError(
                f"Column '{name}' {is_there}. The columns of the DataFrame: {', '.join(types) or 'none'}. Nothing was "
                "read.",
                condition="SCHEMA_COLUMN_MISMATCH",
                hint="Name a column of the DataFrame, or cast it.",
                parameters={"column": name, "found": types.get(name)},
            )
    for name, arrow_type in changed.items():
        described = field_json(name, arrow_type)
        if name in types:
            found["fields"] = [described if each["name"] == name else each for each in found["fields"]]
        else:
            found["fields"].append(described)
    return type(schema).fromJson(found)
