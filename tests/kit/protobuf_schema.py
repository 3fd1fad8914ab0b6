"""A message with a field of each kind, made without protoc."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, message_factory

from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message

Field = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "i": Field.TYPE_INT32,
    "l": Field.TYPE_SINT64,
    "u": Field.TYPE_UINT64,
    "w": Field.TYPE_UINT32,
    "f": Field.TYPE_FLOAT,
    "d": Field.TYPE_DOUBLE,
    "t": Field.TYPE_BOOL,
    "s": Field.TYPE_STRING,
    "b": Field.TYPE_BYTES,
}


def file_set() -> descriptor_pb2.FileDescriptorSet:
    """Return the schema: messages `kit.Other` and `kit.Everything`, without Google's files that it imports."""
    file = descriptor_pb2.FileDescriptorProto(name="kit.proto", package="kit", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other").field.add(name="x", number=1, type=Field.TYPE_DOUBLE, label=1)
    kinds = file.enum_type.add(name="Kind")
    kinds.value.add(name="NONE", number=0)
    kinds.value.add(name="SOME", number=1)
    message = file.message_type.add(name="Everything")
    for number, (name, kind) in enumerate(_KINDS.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=Field.LABEL_OPTIONAL)
    entry = message.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=Field.TYPE_INT32, label=1)
    for number, (name, label, type_name) in enumerate(
        [
            ("o", Field.LABEL_OPTIONAL, ".kit.Other"),
            ("at", Field.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
            ("os", Field.LABEL_REPEATED, ".kit.Other"),
            ("m", Field.LABEL_REPEATED, ".kit.Everything.MEntry"),
        ],
        20,
    ):
        message.field.add(name=name, number=number, type=Field.TYPE_MESSAGE, label=label, type_name=type_name)
    message.field.add(name="e", number=30, type=Field.TYPE_ENUM, label=1, type_name=".kit.Kind")
    message.field.add(name="n", number=31, type=Field.TYPE_INT64, label=Field.LABEL_REPEATED)
    message.oneof_decl.add(name="one")
    message.field.add(name="p", number=32, type=Field.TYPE_INT32, label=1, oneof_index=0)
    message.field.add(name="q", number=33, type=Field.TYPE_STRING, label=1, oneof_index=0)
    return descriptor_pb2.FileDescriptorSet(file=[file])


def everything() -> tuple[Any, Any]:
    """Return the descriptor of `kit.Everything`, and its class."""
    descriptor = find_message(file_set().SerializeToString(), "kit.Everything")
    return descriptor, message_factory.GetMessageClass(descriptor)
