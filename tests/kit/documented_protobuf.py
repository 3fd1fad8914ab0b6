"""A message whose fields have types of Protobuf that docs/typed-formats.md names."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2

_KINDS = descriptor_pb2.FieldDescriptorProto


def protobuf_file_set(*given: str) -> bytes:
    """Return a FileDescriptorSet with message `M`, whose fields `f0` and so on have the types that the page names.

    A type may stand after `optional`, `repeated` or `oneof`, which is the oneof `o`. `Enum` and `Node` are types of its
    own: an enum, and a message within itself.
    """
    files = ["any", "duration", "timestamp", "wrappers"]
    made = descriptor_pb2.FileDescriptorProto(
        name="a.proto", syntax="proto3", dependency=[f"google/protobuf/{each}.proto" for each in files]
    )
    for number, name in ((0, "NONE"), (1, "SOME"), (-5, "LOW")):
        (made.enum_type[0] if made.enum_type else made.enum_type.add(name="Enum")).value.add(name=name, number=number)
    node = made.message_type.add(name="Node")
    node.field.add(name="name", number=1, label=1, type=_KINDS.TYPE_STRING)
    node.field.add(name="next", number=2, label=1, type=_KINDS.TYPE_MESSAGE, type_name=".Node")
    message = made.message_type.add(name="M")
    for place, each in enumerate(given):
        field = message.field.add(name=f"f{place}", number=place + 1, label=_KINDS.LABEL_OPTIONAL)
        label, _, kind = each.rpartition(" ") if not each.startswith("map<") else ("", "", each)
        if label == "repeated":
            field.label = _KINDS.LABEL_REPEATED
        elif label == "oneof":
            if not message.oneof_decl:
                message.oneof_decl.add(name="o")
            field.oneof_index = 0
        if pair := re.fullmatch(r"map<(\w+), ([\w.]+)>", kind):
            entry = message.nested_type.add(name=f"F{place}Entry")
            entry.options.map_entry = True
            for number, (name, one) in enumerate(zip(("key", "value"), pair.groups(), strict=True), 1):
                _set_type(entry.field.add(name=name, number=number, label=_KINDS.LABEL_OPTIONAL), one)
            field.label, field.type, field.type_name = _KINDS.LABEL_REPEATED, _KINDS.TYPE_MESSAGE, f".M.F{place}Entry"
        else:
            _set_type(field, kind)
    for field in message.field:
        if given[field.number - 1].startswith("optional ") and field.type != _KINDS.TYPE_MESSAGE:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
    return bytes(descriptor_pb2.FileDescriptorSet(file=[made]).SerializeToString())


def _set_type(field: Any, kind: str) -> None:
    if kind in ("Enum", "Node") or kind.startswith("google."):
        field.type = _KINDS.TYPE_ENUM if kind == "Enum" else _KINDS.TYPE_MESSAGE
        field.type_name = f".{kind}"
    else:
        field.type = _KINDS.Type.Value(f"TYPE_{kind.upper()}")
