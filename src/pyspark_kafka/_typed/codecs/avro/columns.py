"""The columns that values of a reader's schema become: a builder of the kernel, and how it ends as an Arrow array."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Reference,
    Union,
    invalid_schema,
)
from pyspark_kafka._typed.codecs.projection import no_such_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.codecs.avro.schema import Schema, Type

_TIMESTAMP = pa.timestamp("us", "UTC")
_LOCAL_TIMESTAMP = pa.timestamp("us")
_LOGICAL_TYPES = {
    "uuid": pa.string(),
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "local-timestamp-millis": _LOCAL_TIMESTAMP,
    "local-timestamp-micros": _LOCAL_TIMESTAMP,
}
_PRIMITIVE_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
# Records that are used again and again make columns much larger than the schema's text.
_MAX_PARTS = 20_000
# The unions that are one column of numbers, as in Spark's from_avro.
_NUMBERS = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """One column, and those below it.

    Attributes:
        type: of the reader's schema; a union with null is its other branch.
        arrow_type: what the array has.
        builder: the kernel's.
        children: fields of a record, members of a union, the items of an array, keys and values of a map.
        names: of a struct's fields.
        finish: makes the array; the builder is not used after it.
    """

    type: Type
    arrow_type: pa.DataType
    builder: Any
    finish: Callable[[], pa.Array]
    children: tuple[AvroColumn, ...] = ()
    names: tuple[str, ...] = ()
    symbols: tuple[str, ...] = field(default=())


def branches_of(schema: Schema, given: Type) -> tuple[Type, ...] | None:
    """Return the branches of a union without null; None for a type that is not a union.

    A union of int and long is one branch of long, one of float and double one of double.
    """
    found = schema.resolve(given)
    if not isinstance(found, Union):
        return None
    others = tuple(branch for branch in found.branches if schema.resolve(branch) != Primitive("null"))
    plain = frozenset(branch.name for branch in others if isinstance(branch, Primitive) and branch.logical is None)
    if len(others) == 2 and plain in _NUMBERS:
        # As it is: a number of nanoseconds has a unit, though no column has it.
        return tuple(branch for branch in others if schema.resolve(branch) == Primitive(_NUMBERS[plain]))
    return others


def build_column(
    schema: Schema, given: Type, wanted: pa.DataType | None = None, *, recursive_field_max_depth: int = 0
) -> AvroColumn:
    """Return an empty column for a type of the reader's schema.

    Args:
        schema: the reader's.
        given: the type.
        wanted: a type with the wanted fields of records, in their order; None: all.
        recursive_field_max_depth: how often a record may be within itself, if `wanted` does not say it: 1 leaves fields
            out that hold their own record, 2 has them once, and so on; 0 refuses such a schema. What is left out is
            the whole field of a record.

    Raises:
        SchemaError: a record holds itself, which no type of a column can; a field is wanted that there is not; or the
            column has more than 20,000 parts.

    Source: the option `recursiveFieldMaxDepth` of Spark's from_avro.
    """
    try:
        if recursive_field_max_depth > 1 and wanted is None:
            # Records that hold themselves in several fields multiply with every level.
            _Columns(schema, recursive_field_max_depth).count(given, ())
        column = _Columns(schema, recursive_field_max_depth).build(given, wanted, (), "value")
    except RecursionError as error:
        raise invalid_schema("its records are nested too deeply") from error
    if column is None:
        raise invalid_schema("all of it is a record that holds itself")
    return column


class _Columns:
    """Builds the columns of one schema."""

    def __init__(self, schema: Schema, max_depth: int) -> None:
        self._schema = schema
        self._max_depth = max_depth
        self._parts = 0

    def count(self, given: Type, within: tuple[str, ...]) -> None:
        """Raise if a column has too many parts, before any of them is built."""
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise invalid_schema(
                f"with recursiveFieldMaxDepth {self._max_depth} it has more than {_MAX_PARTS} parts as columns",
                "Set option 'recursiveFieldMaxDepth' to a smaller number, or name the fields to read with .schema().",
            )
        found = self._schema.resolve(given)
        if isinstance(found, Record):
            if within.count(found.name) < self._max_depth:
                for each in found.fields:
                    self.count(each.type, (*within, found.name))
        elif isinstance(found, (Array, Map)):
            self.count(found.items if isinstance(found, Array) else found.values, within)
        else:
            for branch in branches_of(self._schema, given) or ():
                self.count(branch, within)

    def build(self, given: Type, wanted: pa.DataType | None, within: tuple[str, ...], path: str) -> AvroColumn | None:
        """Return the column of a type within some records; None if it is left out, as a record that holds itself."""
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise invalid_schema(f"as columns it has more than {_MAX_PARTS} parts")
        branches = branches_of(self._schema, given)
        if branches is not None:
            if len(branches) == 1:
                return self.build(branches[0], wanted, within, path)
            if branches:
                return self._union(given, branches, wanted, within, path)
            given = Primitive("null")
        found = self._schema.resolve(given)
        if isinstance(found, Record):
            return self._record(found, wanted, within, path)
        if isinstance(found, Array):
            inner = wanted.value_type if wanted is not None and pa.types.is_list(wanted) else None
            items = self.build(found.items, inner, within, f"{path}[]")
            return None if items is None else _list(found, items)
        if isinstance(found, Map):
            inner = wanted.item_type if wanted is not None and pa.types.is_map(wanted) else None
            values = self.build(found.values, inner, within, f"{path}[]")
            return None if values is None else _map(found, values)
        if isinstance(found, Enum):
            return _enum(found)
        if isinstance(found, (Union, Reference)):
            raise invalid_schema("a union is directly in another, or a name stands for nothing")
        return _simple(found)

    def _record(
        self, found: Record, wanted: pa.DataType | None, within: tuple[str, ...], path: str
    ) -> AvroColumn | None:
        if wanted is not None and pa.types.is_struct(wanted):
            known = {each.name: each for each in found.fields}
            chosen = []
            for each in wanted:
                if each.name not in known:
                    raise no_such_field(f"{path}.{each.name}", each.type)
                chosen.append((known[each.name], each.type))
        else:
            if found.name in within and self._max_depth == 0:
                # The column may be one of keys, and the path begins with `value` nevertheless.
                place = path.removeprefix("value").lstrip(".")
                raise invalid_schema(
                    f"record '{found.name}' holds itself, in field '{place}', which the type of a column cannot",
                    "In a read, set option 'recursiveFieldMaxDepth' to the levels to read, of decode() argument "
                    "'recursive_field_max_depth': 1 leaves out the fields that hold their own record. Or leave the "
                    "field out of the schema.",
                )
            if within.count(found.name) >= max(self._max_depth, 1):
                return None
            chosen = [(each, None) for each in found.fields]
        inner = (*within, found.name)
        columns = [(each.name, self.build(each.type, kind, inner, f"{path}.{each.name}")) for each, kind in chosen]
        kept = [(name, column) for name, column in columns if column is not None]
        return _struct(found, tuple(column for _, column in kept), tuple(name for name, _ in kept))

    def _union(
        self, given: Type, branches: tuple[Type, ...], wanted: pa.DataType | None, within: tuple[str, ...], path: str
    ) -> AvroColumn | None:
        names = tuple(f"member{number}" for number in range(len(branches)))
        members = []
        for branch, name in zip(branches, names, strict=True):
            if wanted is None or not pa.types.is_struct(wanted):
                members.append(self.build(branch, None, within, f"{path}.{name}"))
            elif wanted.get_field_index(name) >= 0:
                members.append(self.build(branch, wanted.field(name).type, within, f"{path}.{name}"))
            else:
                # A value may be in an unwanted member: it is built, but not its deeper values.
                members.append(self._unwanted(branch, f"{path}.{name}"))
        kept = tuple(member for member in members if member is not None)
        return _struct(given, kept, names) if len(kept) == len(members) else None

    def _unwanted(self, branch: Type, path: str) -> AvroColumn | None:
        columns = _Columns(self._schema, 1)
        columns._parts = self._parts
        found = columns.build(branch, None, (), path)
        self._parts = columns._parts
        return found


def _simple(given: Primitive | Fixed) -> AvroColumn:
    reading = _variant.kernel.reading
    logical = given.logical
    if logical is not None and logical.name == "decimal":
        decimals = reading.DecimalBuilder(logical.precision)
        kind = pa.decimal128(logical.precision, logical.scale)
        return AvroColumn(given, kind, decimals, lambda: _from_buffers(kind, decimals, decimals.data()))
    if isinstance(given, Fixed):
        if logical is None:
            return _bytes(given, pa.binary())
        # The text of a UUID is made of its bytes when the column is complete.
        raw = reading.BytesBuilder()
        return AvroColumn(given, pa.string(), raw, lambda: _uuid_texts(_from_buffers(pa.binary(), raw, *raw.parts())))
    if given.name in ("bytes", "string"):
        return _bytes(given, _PRIMITIVE_TYPES[given.name])
    if given.name == "null":
        nulls = reading.NullBuilder()
        return AvroColumn(given, pa.null(), nulls, lambda: pa.nulls(nulls.rows()[0]))
    wanted = _PRIMITIVE_TYPES[given.name] if logical is None else _LOGICAL_TYPES[logical.name]
    if given.name == "boolean":
        flags = reading.IntBuilder()
        return AvroColumn(given, wanted, flags, lambda: _from_buffers(pa.int32(), flags, flags.data()).cast(pa.bool_()))
    # A time in milliseconds becomes one in microseconds, in twice the bits.
    wide = wanted.bit_width == 64
    builders = {"float": reading.FloatBuilder, "double": reading.DoubleBuilder}
    numbers = builders.get(given.name, reading.LongBuilder if wide else reading.IntBuilder)()
    return AvroColumn(given, wanted, numbers, lambda: _from_buffers(wanted, numbers, numbers.data()))


def _bytes(given: Type, kind: pa.DataType) -> AvroColumn:
    builder = _variant.kernel.reading.BytesBuilder()
    return AvroColumn(given, kind, builder, lambda: _from_buffers(kind, builder, *builder.parts()))


def _enum(given: Enum) -> AvroColumn:
    builder = _variant.kernel.reading.IntBuilder()
    symbols = pa.array(given.symbols, pa.string())

    def finish() -> pa.Array:
        return symbols.take(_from_buffers(pa.int32(), builder, builder.data()))

    return AvroColumn(given, pa.string(), builder, finish, symbols=given.symbols)


def _struct(given: Type, children: tuple[AvroColumn, ...], names: tuple[str, ...]) -> AvroColumn:
    builder = _variant.kernel.reading.StructBuilder([child.builder for child in children])
    fields = [pa.field(name, child.arrow_type) for name, child in zip(names, children, strict=True)]
    kind = pa.struct(fields)

    def finish() -> pa.Array:
        length, nulls, _ = builder.rows()
        arrays = [child.finish() for child in children]
        return pa.Array.from_buffers(kind, length, [_validity(builder)], nulls, children=arrays)

    return AvroColumn(given, kind, builder, finish, children, names)


def _list(given: Array, items: AvroColumn) -> AvroColumn:
    builder = _variant.kernel.reading.ListBuilder(items.builder)
    kind = pa.list_(pa.field("element", items.arrow_type))

    def finish() -> pa.Array:
        length, nulls, _ = builder.rows()
        buffers = [_validity(builder), pa.py_buffer(builder.starts())]
        return pa.Array.from_buffers(kind, length, buffers, nulls, children=[items.finish()])

    return AvroColumn(given, kind, builder, finish, (items,))


def _map(given: Map, values: AvroColumn) -> AvroColumn:
    keys = _bytes(Primitive("string"), pa.string())
    entries = _variant.kernel.reading.StructBuilder([keys.builder, values.builder])
    builder = _variant.kernel.reading.ListBuilder(entries)
    kind = pa.map_(pa.string(), pa.field("value", values.arrow_type))

    def finish() -> pa.Array:
        length, nulls, _ = builder.rows()
        pairs = pa.Array.from_buffers(
            kind.field(0).type, entries.rows()[0], [None], 0, children=[keys.finish(), values.finish()]
        )
        buffers = [_validity(builder), pa.py_buffer(builder.starts())]
        return pa.Array.from_buffers(kind, length, buffers, nulls, children=[pairs])

    entry = AvroColumn(given, kind.field(0).type, entries, lambda: pa.nulls(0), (keys, values), ("key", "value"))
    return AvroColumn(given, kind, builder, finish, (entry,))


def _from_buffers(kind: pa.DataType, builder: Any, *data: Any) -> pa.Array:
    length, nulls, _ = builder.rows()
    return pa.Array.from_buffers(kind, length, [_validity(builder), *(pa.py_buffer(part) for part in data)], nulls)


def _validity(builder: Any) -> pa.Buffer | None:
    """Return the bitmap of a column; None if no row is null."""
    length, nulls, flags = builder.rows()
    if not nulls:
        return None
    return pa.Array.from_buffers(pa.uint8(), length, [None, pa.py_buffer(flags)]).cast(pa.bool_()).buffers()[1]


def _uuid_texts(raw: pa.Array) -> pa.Array:
    import uuid  # noqa: PLC0415 - seldom needed

    return pa.array([None if each is None else str(uuid.UUID(bytes=each)) for each in raw.to_pylist()], pa.string())
