"""Resolution of a writer's schema to a reader's schema: a tree of the kernel's steps.

Built once for a pair of schemas.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.avro.columns import branches_of
from pyspark_kafka._typed.codecs.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    invalid_schema,
)
from pyspark_kafka._typed.codecs.zigzag import put_zigzag
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.avro.columns import AvroColumn
    from pyspark_kafka._typed.codecs.avro.schema import Field, Type

# Unions and records that are used again and again make a tree much larger than the schemas' texts.
_MAX_STEPS = 100_000
_INT32 = -(1 << 31), (1 << 31) - 1
_INT64 = -(1 << 63), (1 << 63) - 1
_DAY_MS = 86_400_000
# The likeness of two types, the best first. Unlike types may resolve, too: a number that is widened, and
# records, whose names need not be the same.
_SAME_NAME, _SAME_ALIAS, _SAME_LAST_NAME, _SAME_LAST_ALIAS, _UNLIKE = range(5)
# What a number becomes in microseconds.
_SCALES = {"time-millis": 1000, "timestamp-millis": 1000, "local-timestamp-millis": 1000}
_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def build_step(writer: Schema, reader: Schema, column: AvroColumn) -> Any:
    """Return the step that reads values of the writer's schema into a column of the reader's.

    Raises:
        SchemaError: no value of the writer's schema could be read with the reader's; or the two together have more than
            100,000 steps, or are nested too deeply.

    Source: Avro 1.12, "Schema Resolution".
    """
    resolution = _Resolution(writer, reader)
    try:
        step = resolution.step(writer.root, reader.root, column, "")
    except RecursionError as error:
        raise invalid_schema("its records are nested too deeply") from error
    # A branch that could not be built is an error of its values; not one that came too late.
    resolution.check_size()
    return step


def _mismatch(path: str, found: str, wanted: str) -> SchemaError:
    return SchemaError(
        f"The writer's Avro schema cannot be read with the reader's at {path or 'its top'}: the writer has {found}, "
        f"the reader wants {wanted}.",
        condition="SCHEMA_RESOLUTION_FAILED",
        hint="Use a compatible reader's schema: new fields have a default, and types are only widened.",
        parameters={"path": path, "writer": found, "reader": wanted},
    )


class _Resolution:
    """One pair of schemas."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        # How many arrays and maps are around.
        self._around = 0
        self._writer = writer
        self._reader = reader
        self._skipped: dict[str, Any] = {}
        self._leasts: dict[str, int] = {}
        self._empty_parts: dict[str, int] = {}
        self._steps = 0

    def check_size(self) -> None:
        """Raise if there are too many steps."""
        if self._steps > _MAX_STEPS:
            raise invalid_schema(f"to read it takes more than {_MAX_STEPS} steps")

    def step(self, written: Type, wanted: Type, column: AvroColumn, path: str) -> Any:
        """Return the step for one type of the writer into a column."""
        self._steps += 1
        self.check_size()
        found, target = self._writer.resolve(written), self._reader.resolve(wanted)
        if isinstance(found, Union):
            branches = [self._branch(branch, wanted, column, path) for branch in found.branches]
            if all(branch is None for branch in branches):
                raise _mismatch(path, _name(found), _name(target))
            return _variant.kernel.reading.ReadUnion(branches)
        if isinstance(target, Union):
            return self._into_union(found, target, column, path)
        return self._plain(found, target, column, path)

    def _branch(self, written: Type, wanted: Type, column: AvroColumn, path: str) -> Any:
        try:
            return self.step(written, wanted, column, path)
        except SchemaError:
            # An error only of a value that has this branch.
            return None

    def _into_union(self, found: Type, target: Union, column: AvroColumn, path: str) -> Any:
        if found == Primitive("null"):
            if not any(self._reader.resolve(branch) == found for branch in target.branches):
                raise _mismatch(path, "null", _name(target))
            return _variant.kernel.reading.ReadNull(column.builder)
        branches = branches_of(self._reader, target) or ()
        if len(branches) == 1:
            return self.step(found, branches[0], column, path)
        number, step = self._first_match(found, branches, column, path)
        return _variant.kernel.reading.ReadMember(column.builder, step, number)

    def _first_match(self, found: Type, branches: tuple[Type, ...], column: AvroColumn, path: str) -> tuple[int, Any]:
        # The same type is taken before one that it could be promoted to, as Java does.
        ranks = [_likeness(found, self._reader.resolve(branch)) for branch in branches]
        order = sorted(range(len(branches)), key=ranks.__getitem__)
        best = min(ranks, default=_UNLIKE)
        if best <= _SAME_ALIAS:
            # Another type might take its values, too, and change their meaning: a record whose fields all have
            # defaults, a string the bytes of a decimal of another scale. A name in another namespace may be the name
            # of another type, and is only tried first.
            order = [number for number in order if ranks[number] == best]
        for number in order:
            step = self._branch(found, branches[number], column.children[number], path)
            if step is not None:
                return number, step
        wanted = " or ".join(_name(self._reader.resolve(branch)) for branch in branches)
        raise _mismatch(path, _name(found), wanted or "null")

    def _plain(self, found: Type, target: Type, column: AvroColumn, path: str) -> Any:
        reading = _variant.kernel.reading
        if isinstance(found, Record) and isinstance(target, Record):
            return self._record(found, target, column, path)
        if isinstance(found, Array) and isinstance(target, Array):
            min_size, inner = self._min_size(found.items), column.children[0]
            items = self._item(found.items, target.items, inner, path)
            return reading.ReadItems(column.builder, items, min_size, _cells(inner))
        if isinstance(found, Map) and isinstance(target, Map):
            entry = column.children[0]
            keys, values = entry.children
            key = reading.ReadBytes(keys.builder, text=True)
            min_size = 1 + self._min_size(found.values)
            value = self._item(found.values, target.values, values, path)
            pair = reading.ReadRecord(entry.builder, [key, value])
            return reading.ReadItems(column.builder, pair, min_size, _cells(entry))
        if isinstance(found, Enum) and isinstance(target, Enum):
            return _enum_step(found, target, column, path)
        if isinstance(found, Fixed) and isinstance(target, Fixed):
            if found.size != target.size or _likeness(found, target) == _UNLIKE:
                raise _mismatch(
                    path, f"{_name(found)} of {found.size} bytes", f"{_name(target)} of {target.size} bytes"
                )
            _check_scales(found, target, path)
            if target.logical is not None and target.logical.name == "decimal":
                return reading.ReadDecimal(column.builder, found.size)
            return reading.ReadFixed(column.builder, found.size)
        if isinstance(found, Primitive) and isinstance(target, Primitive):
            return _primitive_step(found, target, column, path)
        raise _mismatch(path, _name(found), _name(target))

    def _item(self, written: Type, wanted: Type, column: AvroColumn, path: str) -> Any:
        self._around += 1
        try:
            return self.step(written, wanted, column, f"{path}[]")
        finally:
            self._around -= 1

    def _record(self, found: Record, target: Record, column: AvroColumn, path: str) -> Any:
        places = dict(zip(column.names, column.children, strict=True))
        names = {each.name for each in found.fields}
        # A reader's field is the writer's field with its name, else with one of its aliases.
        wanted: dict[str, Field] = {}
        missing: list[Field] = []
        for each in target.fields:
            if each.name not in places:
                # Nobody wants it.
                continue
            source = next((name for name in (each.name, *each.aliases) if name in names and name not in wanted), None)
            if source is None:
                missing.append(each)
            else:
                wanted[source] = each
        steps = []
        for each in found.fields:
            reader_field = wanted.get(each.name)
            if reader_field is None:
                steps.append(self._skip(each.type))
                continue
            place = places[reader_field.name]
            steps.append(self.step(each.type, reader_field.type, place, _within(path, reader_field.name)))
        for each in missing:
            if not each.has_default:
                raise _mismatch(_within(path, each.name), "no such field", f"{_name(each.type)} without a default")
            steps.append(self._default(each, places[each.name], _within(path, each.name)))
        return _variant.kernel.reading.ReadRecord(column.builder, steps)

    def _default(self, each: Field, column: AvroColumn, path: str) -> Any:
        encoded = bytearray()
        try:
            _encode_default(self._reader, each.type, each.default, encoded)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise _mismatch(
                path, "no such field", f"{_name(each.type)}, whose default does not fit its type"
            ) from error
        # The default is a value of the reader's own schema.
        step = _Resolution(self._reader, self._reader).step(each.type, each.type, column, path)
        return _variant.kernel.reading.ReadConstant(step, bytes(encoded), counted=self._around > 0)

    def _skip(self, given: Type) -> Any:
        """Return the step that skips a value."""
        reading, found = _variant.kernel.reading, self._writer.resolve(given)
        if isinstance(found, Record):
            if found.name not in self._skipped:
                if self._min_size(found) == 0 and self._count_empty(found) > _MAX_STEPS:
                    raise invalid_schema(f"record '{found.name}' has more than {_MAX_STEPS} parts without a byte")
                self._skipped[found.name] = nested = reading.SkipNested()
                nested.set(reading.ReadRecord(None, [self._skip(each.type) for each in found.fields]))
            return self._skipped[found.name]
        if isinstance(found, Array):
            return reading.ReadItems(None, self._skip(found.items), self._min_size(found.items), 0)
        if isinstance(found, Map):
            pair = reading.ReadRecord(None, [reading.SkipBytes(), self._skip(found.values)])
            return reading.ReadItems(None, pair, 1 + self._min_size(found.values), 0)
        if isinstance(found, Union):
            return reading.ReadUnion([self._skip(branch) for branch in found.branches])
        if isinstance(found, Fixed):
            return reading.SkipFixed(found.size)
        if isinstance(found, Enum):
            return reading.ReadLong(None, 0, len(found.symbols) - 1, 1)
        name = found.name
        if name in ("bytes", "string"):
            return reading.SkipBytes()
        if name in ("int", "long"):
            return reading.ReadLong(None, *(_INT32 if name == "int" else _INT64), 1)
        return reading.SkipFixed({"null": 0, "boolean": 1, "float": 4, "double": 8}[name])

    def _min_size(self, given: Type) -> int:
        """Return the minimum of bytes in a value of the writer's type."""
        found = self._writer.resolve(given)
        if isinstance(found, Record):
            if found.name not in self._leasts:
                # Of a record that is directly within itself there is no value: any number is right.
                self._leasts[found.name] = 0
                # Bounded: the sum for nested records grows without end.
                self._leasts[found.name] = min(1 << 20, sum(self._min_size(each.type) for each in found.fields))
            return self._leasts[found.name]
        if isinstance(found, Fixed):
            return found.size
        if isinstance(found, Primitive):
            return {"null": 0, "float": 4, "double": 8}.get(found.name, 1)
        return 1

    def _count_empty(self, given: Type) -> int:
        """Return the number of parts in a value without bytes: no value is too short for them."""
        found = self._writer.resolve(given)
        if not isinstance(found, Record):
            return 1
        if found.name not in self._empty_parts:
            self._empty_parts[found.name] = 0
            self._empty_parts[found.name] = 1 + sum(self._count_empty(each.type) for each in found.fields)
        return self._empty_parts[found.name]


def _primitive_step(found: Primitive, target: Primitive, column: AvroColumn, path: str) -> Any:
    reading, builder = _variant.kernel.reading, column.builder
    if found.name != target.name and target.name not in _PROMOTIONS.get(found.name, ()):
        raise _mismatch(path, _name(found), _name(target))
    _check_scales(found, target, path)
    if target.logical is not None and target.logical.name == "decimal":
        return reading.ReadDecimal(builder, -1)
    if found.name in ("int", "long"):
        _check_units(found, target, path)
        minimum, maximum = _INT32 if found.name == "int" else _INT64
        # Without a unit of its own the writer's number is in the reader's unit.
        unit = (found.logical or target.logical) if target.logical is not None else None
        scale = _SCALES.get(unit.name, 1) if unit is not None else 1
        if unit is not None and unit.name.startswith("time-"):
            minimum, maximum = 0, _DAY_MS * 1000 // scale - 1
        if scale > 1:
            # What passes 64 bits in microseconds is a bad value.
            minimum, maximum = max(minimum, -(_INT64[1] // scale)), min(maximum, _INT64[1] // scale)
        return reading.ReadLong(builder, minimum, maximum, scale)
    if found.name in ("float", "double"):
        return reading.ReadFloat(builder, wide=found.name == "double")
    if found.name in ("bytes", "string"):
        return reading.ReadBytes(builder, text=target.name == "string")
    if found.name == "boolean":
        return reading.ReadBoolean(builder)
    return reading.ReadNull(builder)


def _enum_step(found: Enum, target: Enum, column: AvroColumn, path: str) -> Any:
    if _likeness(found, target) == _UNLIKE:
        raise _mismatch(path, _name(found), _name(target))
    default = -1 if target.default is None else target.symbols.index(target.default)
    known = {symbol: number for number, symbol in enumerate(target.symbols)}
    numbers = array("i", [known.get(symbol, default) for symbol in found.symbols])
    if not found.symbols or all(number < 0 for number in numbers):
        raise _mismatch(path, f"{_name(found)} without a symbol of the reader", _name(target))
    return _variant.kernel.reading.ReadEnum(column.builder, numbers)


def _check_scales(found: Primitive | Fixed, target: Primitive | Fixed, path: str) -> None:
    # Numbers of another scale would be read as if they were of this one, also where both are bytes.
    if found.scale is not None and target.scale is not None and found.scale != target.scale:
        raise _mismatch(path, f"a decimal of scale {found.scale}", f"one of scale {target.scale}")


def _check_units(found: Primitive, target: Primitive, path: str) -> None:
    # A number of days or nanoseconds would be read as if it were one of microseconds.
    written, wanted = _unit(found), _unit(target)
    if not written or not wanted or written == wanted:
        return
    if found.nanos or target.nanos or written.rpartition("-")[0] != wanted.rpartition("-")[0]:
        raise _mismatch(path, f"{found.name} ({written})", f"{target.name} ({wanted})")


def _unit(given: Primitive) -> str:
    return given.nanos if given.logical is None else given.logical.name


def _encode_default(schema: Schema, given: Type, value: Any, out: bytearray) -> None:
    """Append the value that a default stands for, in Avro's encoding; whatever does not fit raises."""
    found = schema.resolve(given)
    if isinstance(found, Union):
        # The specification takes the first branch; newer writers also use one that fits.
        for number, branch in enumerate(found.branches):
            attempt = bytearray()
            try:
                _encode_default(schema, branch, value, attempt)
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
                continue
            put_zigzag(number, out)
            out += attempt
            return
        raise ValueError("no branch")
    if isinstance(found, Record):
        for each in found.fields:
            inner = value[each.name] if each.name in value or not each.has_default else each.default
            _encode_default(schema, each.type, inner, out)
    elif isinstance(found, Array):
        if not isinstance(value, list):
            raise TypeError("not a list")
        if value:
            put_zigzag(len(value), out)
        for item in value:
            _encode_default(schema, found.items, item, out)
        put_zigzag(0, out)
    elif isinstance(found, Map):
        if value:
            put_zigzag(len(value), out)
        for key, item in value.items():
            _put_bytes(key.encode(), out)
            _encode_default(schema, found.values, item, out)
        put_zigzag(0, out)
    elif isinstance(found, Enum):
        put_zigzag(found.symbols.index(value), out)
    elif isinstance(found, Fixed):
        raw = value.encode("latin-1")
        if len(raw) != found.size:
            raise ValueError("another size")
        out += raw
    elif isinstance(found, Primitive):
        _encode_primitive(found.name, value, out)


def _encode_primitive(name: str, value: Any, out: bytearray) -> None:
    if name == "null":
        if value is not None:
            raise TypeError("not null")
    elif name == "boolean":
        out.append({False: 0, True: 1}[value] if isinstance(value, bool) else _refuse())
    elif name in ("int", "long"):
        minimum, maximum = _INT32 if name == "int" else _INT64
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise TypeError("not such a number")
        put_zigzag(value, out)
    elif name in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError("not a number")
        out += struct.pack("<f" if name == "float" else "<d", float(value))
    else:
        if not isinstance(value, str):
            raise TypeError("not a text")
        # Bytes are written as the characters with their numbers.
        _put_bytes(value.encode("latin-1" if name == "bytes" else "utf-8"), out)


def _refuse() -> int:
    raise TypeError("not a boolean")


def _put_bytes(value: bytes, out: bytearray) -> None:
    put_zigzag(len(value), out)
    out += value


def _cells(column: AvroColumn) -> int:
    """Return the number of cells in a column's row, without the items of arrays and maps."""
    return 1 + (sum(map(_cells, column.children)) if pa.types.is_struct(column.arrow_type) else 0)


def _likeness(found: Type, target: Type) -> int:
    """Return the likeness of a writer's and a reader's type: `_SAME_NAME` for the same."""
    if type(found) is not type(target):
        return _UNLIKE
    if isinstance(found, Primitive) and isinstance(target, Primitive):
        return _SAME_NAME if found.name == target.name else _UNLIKE
    if not isinstance(found, (Record, Enum, Fixed)) or not isinstance(target, (Record, Enum, Fixed)):
        return _SAME_NAME
    name, wanted = found.name, target.name
    namespace = wanted.rpartition(".")[0]
    aliases = {_within(namespace, alias) if "." not in alias else alias for alias in target.aliases}
    if name == wanted:
        return _SAME_NAME
    if name in aliases:
        return _SAME_ALIAS
    if _last(name) == _last(wanted):
        return _SAME_LAST_NAME
    return _SAME_LAST_ALIAS if _last(name) in target.aliases else _UNLIKE


def _name(given: Type) -> str:
    if isinstance(given, Union):
        return "a union"
    if isinstance(given, Primitive):
        return given.name if given.logical is None else f"{given.name} ({given.logical.name})"
    if isinstance(given, (Array, Map)):
        return type(given).__name__.lower()
    return f"{type(given).__name__.lower()} '{given.name}'"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
