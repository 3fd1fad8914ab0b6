"""Values decoded and encoded by functions on columns: `formats.decode_udf`, `formats.encode_udf`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from pyspark_kafka._connector.spark.compat import arrow_udf, spark_schema
from pyspark_kafka._typed.codecs.wire_format import HEADER_FRAMINGS
from pyspark_kafka._typed.typed.value_plans import not_valid, plan_encoding, plan_values
from pyspark_kafka._typed.typed.values import as_bytes, bad_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
    from pyspark_kafka._typed.typed.value_plans import ValuePlan
    from pyspark_kafka._typed.typed.values import Framing, OpenParts, ValueFormat

OnBadValue: TypeAlias = Literal["raise", "null", "explain"]

# The words of `_corrupt_record`, without what the row has in other columns.
_BAD = pa.struct([pa.field(name, pa.string()) for name in ("reason", "message", "schemaId")])


def decode_udf(  # noqa: D417
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
    is_key: bool = False,
    on_bad: OnBadValue = "raise",
) -> Callable[..., Column]:
    """Return a function that decodes a column of values, for `select`, other expressions and SQL.

    ```python
    from pyspark_kafka.formats import decode_udf

    decode_order = decode_udf("json", schema="id BIGINT, name STRING")
    df.select(decode_order("value").alias("order"))
    spark.udf.register("decode_order", decode_order)
    ```

    Works for batch and streaming DataFrames of any source, on classic Spark and on Spark Connect; this package
    must be installed where executors run.

    Runs on: driver, or the client of Spark Connect, where the schema is looked up, once. The function runs in tasks.

    For the other arguments see `decode`.

    Args:
        framing: see `decode`; with `confluentHeader` and `confluentDual` the function takes the column of headers as
            its second argument.
        is_key: whether they are keys, with these wire formats.
        on_bad: the handling of values that cannot be read. `raise`: the task fails. `null`: they are null. `explain`:
            the function returns a struct of `value` and `bad`, which is null where the value was read, and else has
            `reason`, `message` and `schemaId`.

    Raises:
        SchemaError: the schema cannot be used, or does not exist.
        OptionError: an argument is not valid.
        RegistryError: the registry does not respond, or refuses the login.
        MissingDependencyError: without the packages of the format or of the registry.
    """
    if on_bad not in ("raise", "null", "explain"):
        raise not_valid("on_bad", on_bad, "'raise', 'null' or 'explain'")
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
    decoding = ArrayDecoding(plan, on_bad, is_key)
    return _udf(f"decode_{value_format}", decoding, decoding.arrow_type)


def encode_udf(
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
) -> Callable[..., Column]:
    """Return a function that encodes a column as values, as `decode_udf`, the other way.

    A value that does not fit fails the task, with its row and field; so does a column whose type does not fit.

    For the other arguments see `encode`.

    Raises:
        SchemaError: the schema cannot be used, or does not exist.
        OptionError: an argument is not valid.
        RegistryError: the registry does not respond, or refuses the login.
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
    return _udf(f"encode_{value_format}", ArrayEncoding(plan), pa.binary())


@dataclass(frozen=True, slots=True)
class ArrayDecoding:
    """The decoder of `decode_udf` for a task's arrays. Pickles.

    Attributes:
        plan: the format of the values.
        on_bad: the handling of unreadable values.
        is_key: whether they are keys.
    """

    plan: ValuePlan
    on_bad: OnBadValue
    is_key: bool

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of resulting arrays."""
        value = self.plan.column.arrow_type
        return pa.struct([("value", value), ("bad", _BAD)]) if self.on_bad == "explain" else value

    def __call__(self, batches: Iterable[pa.Array | tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """Yield an array for each.

        Runs on: executor, once a task; blocks where the registry does.

        Raises:
            RecordError: a value cannot be read, and `on_bad` is `raise`.
            OptionError: the column is neither bytes nor text, or there is no column of headers where it is needed.
            RegistryError: the registry does not respond; no value is at fault.
        """
        decoder = self.plan.decoder(is_key=self.is_key)
        needs = 1 + (self.plan.column.framing in HEADER_FRAMINGS)
        for batch in batches:
            arguments = batch if isinstance(batch, tuple) else (batch,)
            if len(arguments) != needs:
                wanted = "values and headers" if needs > 1 else "values"
                raise not_valid("columns of the function", len(arguments), f"{needs}: {wanted}")
            decoded = decoder.decode(as_bytes(arguments[0]), *arguments[1:])
            if decoded.bad and self.on_bad == "raise":
                first = decoded.bad[0]
                place = f"Row {first.row} of an Arrow batch"
                raise bad_value(first, place, self.plan.column.format, len(decoded.bad))
            yield self._explained(decoded) if self.on_bad == "explain" else decoded.column

    def _explained(self, decoded: DecodedColumn) -> pa.Array:
        found: list[dict[str, Any] | None] = [None] * len(decoded.column)
        for each in decoded.bad:
            known = None if decoded.schema_ids is None else decoded.schema_ids[each.row].as_py()
            found[each.row] = {"reason": each.reason.value, "message": each.message, "schemaId": known}
        return pa.StructArray.from_arrays([decoded.column, pa.array(found, _BAD)], fields=list(self.arrow_type))


@dataclass(frozen=True, slots=True)
class ArrayEncoding:
    """The encoder of `encode_udf` for a task's arrays. Pickles.

    Attributes:
        plan: the format of the values.
    """

    plan: ValuePlan

    def __call__(self, batches: Iterable[pa.Array]) -> Iterator[pa.Array]:
        """Yield an array of values for each.

        Runs on: executor, once a task; pure computation.

        Raises:
            RecordError: a value does not fit; it names the row.
            SchemaError: the type of the column does not fit the schema.
        """
        encoder = None
        for batch in batches:
            if encoder is None:
                encoder = self.plan.encoder(batch.type)
            yield encoder.encode(batch)


def _udf(name: str, made: Callable[[Any], Iterator[pa.Array]], kind: pa.DataType) -> Callable[..., Column]:
    returned: DataType = spark_schema(pa.schema([pa.field("value", kind)]))["value"].dataType

    # PySpark wants a function, and looks at its arguments.
    def arrays(batches: Any) -> Any:
        return made(batches)

    arrays.__name__ = name
    # By which PySpark knows that it is called once a task.
    arrays.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    found: Callable[..., Column] = arrow_udf()(arrays, returnType=returned)
    return found
