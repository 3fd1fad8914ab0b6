"""Arrow columns to values in Avro."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.avro.arrow_memory import byte_ranges, fixed_values, validity
from pyspark_kafka._typed.codecs.avro.columns import branches_of
from pyspark_kafka._typed.codecs.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Union
from pyspark_kafka._typed.codecs.projection import missing_field
from pyspark_kafka.errors import RecordError, SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.avro.schema import Schema, Type

_BOUNDS = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_DAY_US = 86_400_000_000
# Why a value does not fit, by the kernel's codes.
_REASONS = {
    _variant.kernel.writing.IS_NULL: "it is null, and the schema has no null there",
    _variant.kernel.writing.OUT_OF_RANGE: "the number is out of the range of the schema's type",
    _variant.kernel.writing.INEXACT: "the time has parts of a millisecond, and the schema has none",
    _variant.kernel.writing.BAD_SYMBOL: "the text is not a symbol of the schema's enum",
    _variant.kernel.writing.BAD_SIZE: "it has not as many bytes as the schema's fixed",
    _variant.kernel.writing.MEMBERS: "not exactly one of the members of the union is there",
    _variant.kernel.writing.TOO_LARGE: "the values of the batch together pass 2 GiB",
}


class AvroEncoder:
    """Encodes columns with one schema.

    Runs on: executor; pure computation.
    """

    def __init__(self, schema: Schema) -> None:
        """Encode with a schema."""
        self._schema = schema

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Encode a column, a value for each row.

        Args:
            column: of any type that the schema's fits: a struct for a record, and so on.
            prefix: what stands before each value, such as the id of the schema.

        Returns:
            A binary array. A row that is null is null: a tombstone, unless the schema is a union with null.

        Raises:
            SchemaError: a type of the column does not fit the schema.
            RecordError: a value does not fit; it names the row, unless it is a decimal or a UUID within a list. Nothing
                is encoded then.
        """
        step = _step(self._schema, self._schema.root, column, "")
        # Null is a value of a union that has it; for any other type it is not a value.
        valid = None if _has_null(self._schema) else validity(column)
        made, ends, row, code, path = _variant.kernel.writing.encode_rows(
            step, len(column), prefix, valid, len(column) * len(prefix) + column.nbytes
        )
        if row >= 0:
            raise _bad_row(row, path, _REASONS[code])
        written = pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(ends), pa.py_buffer(made)])
        return written if valid is None else pc.if_else(pc.is_valid(column), written, None)


def _has_null(schema: Schema) -> bool:
    root = schema.root
    return isinstance(root, Union) and any(schema.resolve(each) == Primitive("null") for each in root.branches)


def _bad_row(row: int | None, path: str, reason: str) -> RecordError:
    place = "A row" if row is None else f"Row {row}"
    return RecordError(
        f"{place} of the batch cannot be written in Avro: field '{path or 'value'}': {reason}. "
        "Nothing of the batch was encoded.",
        condition="VALUE_NOT_ENCODABLE",
        hint="Correct the column, or use a schema that has a place for such values.",
        parameters={"row": row, "field": path or "value", "reason": reason},
    )


def _no_fit(path: str, wanted: str, found: pa.DataType) -> SchemaError:
    return SchemaError(
        f"Column '{path or 'value'}' has the type {found}, which cannot be written as Avro's {wanted}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column, or change the schema.",
        parameters={"column": path or "value", "wanted": wanted, "found": found},
    )


def _step(schema: Schema, given: Type, column: pa.Array, path: str) -> Any:
    """Return the step that writes a column as a type of the schema."""
    found = schema.resolve(given)
    if isinstance(found, Union):
        step = _union_step(schema, found, column, path)
    elif isinstance(found, Record):
        step = _record_step(schema, found, column, path)
    elif isinstance(found, Array):
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise _no_fit(path, "array", column.type)
        offsets, start, count = _item_offsets(column)
        items = _step(schema, found.items, column.values.slice(start, count), f"{path}[]")
        step = _variant.kernel.writing.WriteItems(offsets, items)
    elif isinstance(found, Map):
        if not pa.types.is_map(column.type) or not _is_text(column.type.key_type):
            raise _no_fit(path, "map", column.type)
        offsets, start, count = _item_offsets(column)
        key = _step(schema, Primitive("string"), column.keys.slice(start, count), f"{path}[key]")
        item = _step(schema, found.values, column.items.slice(start, count), f"{path}[]")
        pair = _variant.kernel.writing.WriteRecord([key, item])
        pair.set(path, None)
        step = _variant.kernel.writing.WriteItems(offsets, pair)
    elif isinstance(found, Enum):
        step = _enum_step(found, column, path)
    elif isinstance(found, Fixed):
        step = _fixed_step(found, column, path)
    elif isinstance(found, Primitive):
        step = _primitive_step(found, column, path)
    else:
        raise _no_fit(path, "schema, whose name stands for nothing", column.type)
    step.set(path, validity(column))
    return step


def _union_step(schema: Schema, found: Union, column: pa.Array, path: str) -> Any:
    writing = _variant.kernel.writing
    null_branch = next((n for n, one in enumerate(found.branches) if schema.resolve(one) == Primitive("null")), -1)
    others = [(number, branch) for number, branch in enumerate(found.branches) if number != null_branch]
    if not others:
        return writing.WriteNullable(_step(schema, Primitive("null"), column, path), null_branch, -1)
    merged = branches_of(schema, found) or ()
    if len(merged) == 1:
        # Of a union of int and long, the wider takes all.
        number, branch = others[-1] if schema.resolve(others[-1][1]) == merged[0] else others[0]
        if pa.types.is_null(column.type):
            return writing.WriteNullable(writing.WriteNull(), null_branch, -1)
        return writing.WriteNullable(_step(schema, branch, column, path), null_branch, number)
    names = [f"member{number}" for number in range(len(others))]
    # By name: in another order, a text would be written as the symbol of an enum, or the other way round.
    if not pa.types.is_struct(column.type) or sorted(each.name for each in column.type) != sorted(names):
        wanted = f"union of {len(others)} types, which is a struct with the fields {names[0]} to {names[-1]}"
        raise _no_fit(path, wanted, column.type)
    members = [
        _step(schema, branch, column.field(name), f"{path}.{name}" if path else name)
        for name, (_, branch) in zip(names, others, strict=True)
    ]
    return writing.WriteMembers(members, array("q", [number for number, _ in others]), null_branch)


def _record_step(schema: Schema, found: Record, column: pa.Array, path: str) -> Any:
    if not pa.types.is_struct(column.type):
        raise _no_fit(path, f"record '{found.name}'", column.type)
    names = [each.name for each in found.fields]
    given = [column.type.field(number).name for number in range(column.type.num_fields)]
    surplus = sorted(set(given) - set(names))
    if surplus:
        raise _no_fit(
            f"{path}.{surplus[0]}" if path else surplus[0],
            f"record '{found.name}', which has no such field",
            column.type.field(given.index(surplus[0])).type,
        )
    steps = []
    for each in found.fields:
        inner = f"{path}.{each.name}" if path else each.name
        if each.name not in given:
            raise missing_field(inner, f"Avro's record '{found.name}'", column.type)
        if given.count(each.name) != 1:
            raise _no_fit(inner, f"record '{found.name}', which has the field once", column.type)
        steps.append(_step(schema, each.type, column.field(given.index(each.name)), inner))
    return _variant.kernel.writing.WriteRecord(steps)


def _enum_step(found: Enum, column: pa.Array, path: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        raise _no_fit(path, f"enum '{found.name}'", column.type)
    numbers = pc.index_in(column.cast(pa.string()), value_set=pa.array(found.symbols, pa.string()))
    return _variant.kernel.writing.WriteEnum(fixed_values(numbers.fill_null(-1), "i", 4))


def _fixed_step(found: Fixed, column: pa.Array, path: str) -> Any:
    if found.logical is not None and found.logical.name == "decimal":
        return _decimal_step(found, found.size, column, path)
    if found.logical is not None and found.logical.name == "uuid" and pa.types.is_string(column.type):
        column = _uuid_bytes(column, path)
    if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == found.size:
        return _variant.kernel.writing.WriteFixed(fixed_values(column, "B", found.size), found.size)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise _no_fit(path, f"fixed '{found.name}' of {found.size} bytes", column.type)
    return _bytes_step(column, found.size)


def _primitive_step(found: Primitive, column: pa.Array, path: str) -> Any:
    writing, kind, name = _variant.kernel.writing, column.type, found.name
    if name == "null":
        if not pa.types.is_null(kind):
            raise _no_fit(path, "null", kind)
        return writing.WriteNull()
    if found.logical is not None and found.logical.name == "decimal":
        return _decimal_step(found, -1, column, path)
    if name in ("int", "long"):
        return _number_step(found, column, path)
    if name == "boolean" and pa.types.is_boolean(kind):
        return writing.WriteBoolean(fixed_values(column.cast(pa.uint8()), "B", 1))
    if name in ("float", "double") and (
        pa.types.is_floating(kind) and kind.bit_width <= (32 if name == "float" else 64)
    ):
        size = 4 if name == "float" else 8
        return writing.WriteFixed(
            fixed_values(column.cast(pa.float32() if size == 4 else pa.float64()), "B", size), size
        )
    if (name == "string" and _is_text(kind)) or (
        name == "bytes" and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
    ):
        if found.logical is not None and found.logical.name == "uuid":
            _check_uuids(column, path)
        return _bytes_step(column, -1)
    raise _no_fit(path, name, kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _number_step(found: Primitive, column: pa.Array, path: str) -> Any:
    kind, logical = column.type, found.logical
    minimum, maximum = _BOUNDS[found.name]
    divisor = 1
    if logical is not None and logical.name.startswith("time-"):
        # What a column of Spark has of a read: microseconds, whatever the unit of the schema is.
        if not (pa.types.is_time(kind) or pa.types.is_int64(kind)):
            raise _no_fit(path, f"{found.name} ({logical.name}), which is a bigint of microseconds", kind)
        numbers = (column.cast(pa.time64("us")) if pa.types.is_time(kind) else column).cast(pa.int64())
        divisor = 1000 if logical.name == "time-millis" else 1
        minimum, maximum = 0, _DAY_US // divisor - 1
    elif logical is None or not pa.types.is_temporal(kind):
        if not pa.types.is_integer(kind) or kind == pa.uint64():
            raise _no_fit(path, found.name, kind)
        numbers = column.cast(pa.int64())
    elif logical.name == "date" and pa.types.is_date(kind):
        numbers = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    elif "timestamp" in logical.name and pa.types.is_timestamp(kind):
        # A time in a zone is an instant; one without is not.
        if (kind.tz is None) is not logical.name.startswith("local"):
            raise _no_fit(path, f"{found.name} ({logical.name})", kind)
        numbers = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        divisor = 1000 if logical.name.endswith("millis") else 1
    else:
        raise _no_fit(path, f"{found.name} ({logical.name})", kind)
    return _variant.kernel.writing.WriteLong(fixed_values(numbers, "q", 8), minimum, maximum, divisor)


def _decimal_step(found: Primitive | Fixed, size: int, column: pa.Array, path: str) -> Any:
    logical = found.logical
    if logical is None or not pa.types.is_decimal(column.type):
        raise _no_fit(path, "decimal", column.type)
    try:
        numbers = column.cast(pa.decimal128(logical.precision, logical.scale))
    except pa.ArrowInvalid as error:
        reason = f"the number has more digits than the schema's decimal({logical.precision}, {logical.scale})"
        raise _bad_row(None, path, reason) from error
    return _variant.kernel.writing.WriteDecimal(fixed_values(numbers, "B", 16), size)


def _bytes_step(column: pa.Array, size: int) -> Any:
    return _variant.kernel.writing.WriteBytes(*byte_ranges(column), size)


def _uuid_bytes(column: pa.Array, path: str) -> pa.Array:
    import uuid  # noqa: PLC0415 - seldom needed

    try:
        raw = [None if text is None else uuid.UUID(text).bytes for text in column.to_pylist()]
    except ValueError as error:
        raise _bad_row(None, path, "the text is not a UUID") from error
    return pa.array(raw, pa.binary(16))


def _check_uuids(column: pa.Array, path: str) -> None:
    """Refuse texts that are not UUIDs of RFC 9562, in the form that readers expect."""
    if pc.any(pc.invert(pc.match_substring_regex(column, _UUID))).as_py():
        raise _bad_row(None, path, "the text is not a UUID")


def _item_offsets(column: pa.Array) -> tuple[Any, int, int]:
    """Return the start of each row's items among the items of all these rows; their first item, and their number.

    A column that is a part of another column has items of the other column before and after its own in memory.
    """
    ends = column.offsets.cast(pa.int64())
    if not len(ends):
        return fixed_values(pa.array([0], pa.int64()), "q", 8), 0, 0
    start, end = ends[0].as_py(), ends[-1].as_py()
    return fixed_values(pc.subtract(ends, start), "q", 8), start, end - start
