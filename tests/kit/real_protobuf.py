"""Real schemas of Protobuf: those that packages of the test group ship as compiled modules.

The modules are read and not imported: an import makes the options of a schema known to the whole process, and a task of
Spark, which imports none of them, must read the schema as well.
"""

from __future__ import annotations

import ast
import base64
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from importlib.metadata import distribution
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import strategies as st

from kit.protobuf_schemas import SCALARS

# Google's types and APIs, telemetry, timetables, events of workflows, Spark's own plans, Confluent's types.
PACKAGES = (
    *("protobuf", "googleapis-common-protos", "google-cloud-audit-log", "opentelemetry-proto"),
    *("gtfs-realtime-bindings", "flyteidl", "protoc-gen-openapiv2", "pyspark", "confluent-kafka"),
)
_MODULE = re.compile(r"""AddSerializedFile\(\s*(b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")\s*\)""", re.DOTALL)
_FEW = 400
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
# Years 1 to 9999, as Timestamp allows, and as Python has them; 10,000 years, as Duration does.
_SECONDS = st.integers(-62_135_596_800, 253_402_300_799)
_INTERVALS = st.integers(-315_576_000_000_000_000, 315_576_000_000_000_000)


class RealMessage(NamedTuple):
    """A message of a real schema: its package, its file and its full name."""

    package: str
    file: str
    name: str


@cache
def _files(package: str) -> dict[str, descriptor_pb2.FileDescriptorProto]:
    found = {}
    for path in distribution(package).files or ():
        if path.name.endswith("_pb2.py"):
            for literal in _MODULE.findall(path.read_text()):
                file = descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(literal))
                found[file.name] = file
    return found


@cache
def _closure(package: str, name: str) -> tuple[descriptor_pb2.FileDescriptorProto, ...] | None:
    """Return a file after all files that it needs; None if one is missing, or is of an edition."""
    file = next((found for each in (package, *PACKAGES) if (found := _files(each).get(name)) is not None), None)
    if file is None or file.syntax == "editions":
        return None
    found = {}
    for imported in file.dependency:
        needed = _closure(package, imported)
        if needed is None:
            return None
        found.update({each.name: each for each in needed})
    return (*found.values(), file)


@cache
def messages_in(package: str) -> list[RealMessage]:
    """Return the messages of a package."""
    found = []

    def add(file: str, message: Any, path: str) -> None:
        full = f"{path}.{message.name}" if path else message.name
        if not message.options.map_entry:
            found.append(RealMessage(package, file, full))
        for each in message.nested_type:
            add(file, each, full)

    for name, file in _files(package).items():
        if _closure(package, name) is not None:
            for each in file.message_type:
                add(name, each, file.package)
    return found


@cache
def schema_of(package: str, file: str) -> str:
    """Return a file with what it needs, as a FileDescriptorSet in Base64."""
    made = descriptor_pb2.FileDescriptorSet(file=_closure(package, file))
    return base64.b64encode(made.SerializeToString()).decode()


@cache
def _pool(package: str, file: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in _closure(package, file) or ():
        pool.Add(each)
    return pool


def class_of(message: RealMessage) -> Any:
    """Return the class that Google's runtime has for a message."""
    return message_factory.GetMessageClass(_pool(message.package, message.file).FindMessageTypeByName(message.name))


def few_columns(message: RealMessage) -> bool:
    """Return whether a message has few parts as columns, so that it is read in a moment."""
    return _count_parts(class_of(message).DESCRIPTOR, (), _FEW) < _FEW


def _count_parts(descriptor: Any, within: tuple[str, ...], most: int) -> int:
    count = 0
    for each in descriptor.fields:
        count += 1
        if each.message_type is not None and each.message_type.full_name not in (*within, descriptor.full_name):
            count += _count_parts(each.message_type, (*within, descriptor.full_name), most - count)
        if count >= most:
            break
    return count


def has_group(descriptor: Any, within: tuple[str, ...] = ()) -> bool:
    """Return whether a message has a group of proto2 in it, which is refused."""
    if descriptor.full_name in within:
        return False
    within = (*within, descriptor.full_name)
    return any(
        each.type == each.TYPE_GROUP or (each.message_type is not None and has_group(each.message_type, within))
        for each in descriptor.fields
    )


@st.composite
def values_of(draw: st.DrawFn, made: Any, depth: int = 4) -> Any:
    """Messages of a class, nested up to a depth, with some of its fields and all that it requires."""
    message, descriptor = made(), made.DESCRIPTOR
    if descriptor.full_name == "google.protobuf.Timestamp":
        # A column has microseconds.
        return made(seconds=draw(_SECONDS), nanos=draw(st.integers(0, 999_999)) * 1000)
    if descriptor.full_name == "google.protobuf.Duration":
        number = draw(_INTERVALS)
        sign = -1 if number < 0 else 1
        return made(seconds=sign * (abs(number) // 1_000_000), nanos=sign * (abs(number) % 1_000_000) * 1000)
    fields = [each for each in descriptor.fields if depth > 0 or each.message_type is None or each.is_required]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda each: each.number)) if fields else []
    for field in (*(each for each in fields if each.is_required and each not in chosen), *chosen):
        _set(draw, message, field, depth)
    return message


def _set(draw: st.DrawFn, message: Any, field: Any, depth: int) -> None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        value = entry.fields_by_name["value"]
        for key in draw(st.lists(SCALARS[entry.fields_by_name["key"].type], min_size=1, max_size=2, unique=True)):
            if value.message_type is None:
                getattr(message, field.name)[key] = draw(_one(value))
            else:
                getattr(message, field.name)[key].CopyFrom(_inner(draw, value, depth))
    elif field.is_repeated:
        for _ in range(draw(st.integers(1, 2))):
            if entry is None:
                getattr(message, field.name).append(draw(_one(field)))
            else:
                getattr(message, field.name).add().CopyFrom(_inner(draw, field, depth))
    elif entry is None:
        setattr(message, field.name, draw(_one(field)))
    else:
        getattr(message, field.name).SetInParent()
        getattr(message, field.name).CopyFrom(_inner(draw, field, depth))


def _inner(draw: st.DrawFn, field: Any, depth: int) -> Any:
    return draw(values_of(message_factory.GetMessageClass(field.message_type), depth - 1))


def _one(field: Any) -> st.SearchStrategy[Any]:
    if field.enum_type is None:
        return SCALARS[field.type]
    numbers = [each.number for each in field.enum_type.values]
    # A number of a newer schema, too; the runtime has none in an enum of proto2.
    return st.sampled_from(numbers if field.enum_type.is_closed else [*numbers, max(numbers) + 1, -(1 << 31)])


def check_row(row: Any, message: Any, kind: pa.DataType, path: str) -> None:
    """Fail unless a row of a column has the values of a message. What its type has as bytes are messages."""
    assert (row is None) == (message is None), path
    if message is None:
        return
    assert list(row) == [each.name for each in kind], path
    assert {*row} == {each.name for each in message.DESCRIPTOR.fields}, path
    for field in message.DESCRIPTOR.fields:
        _check_field(row[field.name], message, field, kind.field(field.name).type, f"{path}.{field.name}")


def _check_field(found: Any, message: Any, field: Any, kind: pa.DataType, path: str) -> None:
    value = getattr(message, field.name)
    if field.has_presence and not message.HasField(field.name):
        assert found is None, path
    elif pa.types.is_map(kind):
        inner = field.message_type.fields_by_name["value"]
        pairs = [(int(key) if isinstance(key, Decimal) else key, each) for key, each in found]
        assert {key for key, _ in pairs} == set(value), path
        assert len(pairs) == len(value), path
        for key, each in pairs:
            _check_one(each, value[key], inner, kind.item_type, f"{path}[{key!r}]")
    elif field.is_repeated:
        assert len(found) == len(value), path
        for number, (each, wanted) in enumerate(zip(found, value, strict=True)):
            _check_one(each, wanted, field, kind.value_type, f"{path}[{number}]")
    else:
        _check_one(found, value, field, kind, path)


def _check_one(found: Any, value: Any, field: Any, kind: pa.DataType, path: str) -> None:
    if pa.types.is_struct(kind):
        check_row(found, value, kind, path)
        return
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        value = str(value) if named is None else named.name
    elif pa.types.is_timestamp(kind):
        found, value = (found - _EPOCH) // _MICROSECOND, value.seconds * 1_000_000 + value.nanos // 1000
    elif pa.types.is_duration(kind):
        found, value = found // _MICROSECOND, value.seconds * 1_000_000 + value.nanos // 1000
    elif field.message_type is not None and field.message_type.full_name in WRAPPERS:
        value = value.value
    elif field.message_type is not None:
        found = type(value).FromString(found)
    if pa.types.is_decimal(kind):
        value = Decimal(value)
    assert found == value, path


WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
