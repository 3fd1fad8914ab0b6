"""Random messages of Protobuf: schemas, values, what readers should find, and schemas that they have evolved to.

Messages have oneofs, messages that they stand within themselves, and Google's wrappers of numbers and text.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from hypothesis import strategies as st

from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    Field.TYPE_INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Field.TYPE_SINT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Field.TYPE_SFIXED32: st.integers(-(1 << 31), (1 << 31) - 1),
    Field.TYPE_INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Field.TYPE_SINT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Field.TYPE_SFIXED64: st.integers(-(1 << 63), (1 << 63) - 1),
    Field.TYPE_UINT32: st.integers(0, (1 << 32) - 1),
    Field.TYPE_FIXED32: st.integers(0, (1 << 32) - 1),
    Field.TYPE_UINT64: st.integers(0, (1 << 64) - 1),
    Field.TYPE_FIXED64: st.integers(0, (1 << 64) - 1),
    Field.TYPE_BOOL: st.booleans(),
    # -0.0 is written as 0.0.
    Field.TYPE_FLOAT: st.floats(width=32, allow_nan=False).map(lambda number: number + 0.0),
    Field.TYPE_DOUBLE: st.floats(allow_nan=False).map(lambda number: number + 0.0),
    Field.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    Field.TYPE_BYTES: st.binary(max_size=5),
}
_UNSIGNED_WIDE = (Field.TYPE_UINT64, Field.TYPE_FIXED64)
_WRAPPERS = ("Int64Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue")
_KEYS = (Field.TYPE_STRING, Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_BOOL)
# Of readers: a type with the same bytes, for every number that fits both.
_WIDER = {
    Field.TYPE_INT32: Field.TYPE_INT64,
    Field.TYPE_UINT32: Field.TYPE_UINT64,
    Field.TYPE_SINT32: Field.TYPE_SINT64,
}


@st.composite
def files(draw: st.DrawFn) -> descriptor_pb2.FileDescriptorProto:
    """A file with the message `random.Root`, nested up to a depth."""
    file = descriptor_pb2.FileDescriptorProto(name="random.proto", package="random", syntax="proto3")
    file.dependency.append("google/protobuf/wrappers.proto")
    kind = file.enum_type.add(name="Kind")
    for number, name in ((0, "NONE"), (1, "SOME"), (-5, "LOW"), (1 << 30, "HIGH")):
        kind.value.add(name=name, number=number)
    _fill(draw, file.message_type.add(name="Root"), ".random.Root", 3)
    return file


def _fill(draw: st.DrawFn, message: Any, path: str, depth: int) -> None:
    numbers = draw(st.lists(st.sampled_from((1, 2, 3, 15, 16, 17, 2047, 2048, 65_535)), max_size=5, unique=True))
    chosen = []
    for each in numbers:
        name = f"f{each}"
        shape = draw(st.sampled_from(("plain", "plain", "optional", "repeated", "map", "oneof", "oneof")))
        kind, type_name = _any_type(draw, message, path, name, depth)
        if shape == "map":
            entry = message.nested_type.add(name=f"F{each}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=draw(st.sampled_from(_KEYS)), label=Field.LABEL_OPTIONAL)
            value = entry.field.add(name="value", number=2, type=kind, label=Field.LABEL_OPTIONAL)
            if type_name:
                value.type_name = type_name
            kind, type_name = Field.TYPE_MESSAGE, f"{path}.F{each}Entry"
        label = Field.LABEL_REPEATED if shape in ("map", "repeated") else Field.LABEL_OPTIONAL
        field = message.field.add(name=name, number=each, type=kind, label=label)
        if type_name:
            field.type_name = type_name
        if shape == "oneof":
            chosen.append(name)
        if shape == "optional" and kind != Field.TYPE_MESSAGE:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
    # Those of fields marked optional are the last.
    members = [each for each in message.field if each.name in chosen]
    if members:
        for each in message.field:
            if each.proto3_optional:
                each.oneof_index += 1
        for each in members:
            each.oneof_index = 0
        names = ["choice", *(each.name for each in message.oneof_decl)]
        del message.oneof_decl[:]
        for name in names:
            message.oneof_decl.add(name=name)


def _any_type(draw: st.DrawFn, message: Any, path: str, name: str, depth: int) -> tuple[int, str]:
    kinds = [*SCALARS, "enum"]
    kinds += ["wrapper", "wrapper", "around", "around", "around"]
    if depth > 0:
        kinds += ["message", "message", "message"]
    kind = draw(st.sampled_from(kinds))
    if kind == "enum":
        return Field.TYPE_ENUM, ".random.Kind"
    if kind == "wrapper":
        return Field.TYPE_MESSAGE, f".google.protobuf.{draw(st.sampled_from(_WRAPPERS))}"
    if kind == "around":
        # One that the field stands within.
        parts = path.split(".")[2:]
        return Field.TYPE_MESSAGE, ".".join(["", "random", *parts[: draw(st.integers(1, len(parts)))]])
    if kind == "message":
        inner = name.upper()
        _fill(draw, message.nested_type.add(name=inner), f"{path}.{inner}", depth - 1)
        return Field.TYPE_MESSAGE, f"{path}.{inner}"
    return int(kind), ""


def message_of(file: descriptor_pb2.FileDescriptorProto) -> tuple[Any, Any]:
    """Return the descriptor of `random.Root`, and its class."""
    descriptor = find_message(file_set(file), "random.Root")
    return descriptor, message_factory.GetMessageClass(descriptor)


def file_set(file: descriptor_pb2.FileDescriptorProto) -> bytes:
    """Return a serialized FileDescriptorSet of a file."""
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def messages_of(descriptor: Any, depth: int = 6) -> st.SearchStrategy[Any]:
    """Messages of a descriptor, nested up to a depth."""
    made = message_factory.GetMessageClass(descriptor)
    fields = {each.name: _values(each, depth) for each in descriptor.fields if depth > 0 or each.message_type is None}
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: made(**given))


def _values(field: Any, depth: int) -> st.SearchStrategy[Any]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        keys = SCALARS[entry.fields_by_name["key"].type]
        return st.dictionaries(keys, _one(entry.fields_by_name["value"], depth), max_size=2)
    return st.lists(_one(field, depth), max_size=3) if field.is_repeated else _one(field, depth)


def _one(field: Any, depth: int) -> st.SearchStrategy[Any]:
    if field.type == Field.TYPE_ENUM:
        # A number without a name too.
        return st.sampled_from((0, 1, -5, 1 << 30, 77))
    if field.message_type is None:
        return SCALARS[field.type]
    return st.deferred(lambda: messages_of(field.message_type, depth - 1))


def row_of(message: Any, around: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what a column has of a message, with maps as dictionaries, and a message within itself as it is."""
    around = (*around, message.DESCRIPTOR.full_name)
    return {field.name: _found(message, field, around) for field in message.DESCRIPTOR.fields}


def _found(message: Any, field: Any, around: tuple[str, ...]) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        inner = entry.fields_by_name["value"]
        return {key: _plain(inner, value[key], around) for key in value}
    return [_plain(field, each, around) for each in value] if field.is_repeated else _plain(field, value, around)


def _plain(field: Any, value: Any, around: tuple[str, ...]) -> Any:
    if field.type == Field.TYPE_ENUM:
        found = field.enum_type.values_by_number.get(value)
        return str(value) if found is None else found.name
    if field.type in _UNSIGNED_WIDE:
        return Decimal(value)
    if field.message_type is None or field.message_type.full_name in around:
        return value
    return value.value if _is_wrapper(field.message_type) else row_of(value, around)


def _is_wrapper(descriptor: Any) -> bool:
    return str(descriptor.full_name).startswith("google.protobuf.")


def in_dictionaries(value: Any, descriptor: Any, around: tuple[str, ...] = ()) -> Any:
    """Return a row of a column as `row_of` has it."""
    if value is None:
        return None
    around = (*around, descriptor.full_name)
    return {each.name: _without_pairs(value[each.name], each, around) for each in descriptor.fields}


def _without_pairs(value: Any, field: Any, around: tuple[str, ...]) -> Any:
    entry = field.message_type
    if value is None or entry is None:
        return value
    if entry.GetOptions().map_entry:
        inner = entry.fields_by_name["value"].message_type
        return {key: _unpacked(each, inner, around) for key, each in value}
    return [_unpacked(each, entry, around) for each in value] if field.is_repeated else _unpacked(value, entry, around)


def _unpacked(value: Any, descriptor: Any, around: tuple[str, ...]) -> Any:
    if descriptor is None or _is_wrapper(descriptor):
        return value
    if descriptor.full_name in around:
        return message_factory.GetMessageClass(descriptor).FromString(value)
    return in_dictionaries(value, descriptor, around)


@st.composite
def evolved(draw: st.DrawFn, file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """A reader's schema: fields gone, new, in another order, renamed; numbers wider."""
    found = descriptor_pb2.FileDescriptorProto()
    found.CopyFrom(file)
    for message in found.message_type:
        _evolve(draw, message)
    return found


def _evolve(draw: st.DrawFn, message: Any) -> None:
    kept = [each for each in message.field if each.HasField("oneof_index") or draw(st.integers(0, 4))]
    for each in kept:
        if draw(st.integers(0, 3)) == 0:
            each.type = _WIDER.get(each.type, each.type)
        if draw(st.integers(0, 3)) == 0 and not each.type_name and not each.proto3_optional:
            each.name = f"renamed_{each.name}"
    copies = [Field.FromString(each.SerializeToString()) for each in draw(st.permutations(kept))]
    del message.field[:]
    message.field.extend(copies)
    if draw(st.booleans()):
        message.field.add(name="new", number=100, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    for inner in message.nested_type:
        if not inner.options.map_entry:
            _evolve(draw, inner)


@st.composite
def broken(draw: st.DrawFn, raw: bytes) -> bytes:
    """Bytes that are cut short, or of which some are changed."""
    found = bytearray(raw)
    for _ in range(draw(st.integers(0, 3))):
        if found:
            found[draw(st.integers(0, len(found) - 1))] = draw(st.integers(0, 255))
    return bytes(found[: draw(st.integers(0, len(found)))]) + draw(st.binary(max_size=3))
