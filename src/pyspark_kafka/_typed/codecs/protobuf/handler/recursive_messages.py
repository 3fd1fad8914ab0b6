"""A message that has itself in it, with bytes in that place: the same on the wire, and a column can have it.

The library that reads and writes leaves out what it has no type for.

Source: "Encoding" of protobuf.dev, "Length-Delimited Records": bytes and messages are written in one way.
"""

from __future__ import annotations

from typing import Any

from pyspark_kafka._typed.codecs.protobuf.known_files import imports_first


def unroll_message(descriptor: Any, *, is_folded: bool = False) -> Any:
    """Return a message that is the same on the wire, and in which no message is within itself.

    A field with a message that it stands within, at any depth, has bytes. The caller has bounded the number of fields.

    Runs on: driver and executor, once a schema.

    Args:
        descriptor: the message.
        is_folded: whether each field with a message that is within itself has bytes, also the first one.

    Returns:
        A descriptor from its own pool; the message itself if nothing in it is within itself.
    """
    unending = _find_unending(descriptor)
    if descriptor.full_name not in unending:
        return descriptor
    return _Unrolling(unending, _find_cyclic(descriptor, unending) if is_folded else set()).unroll(descriptor)


def has_recursion(descriptor: Any) -> bool:
    """Return whether a message has one within itself somewhere in it, or is one."""
    return descriptor.full_name in _find_unending(descriptor)


def _find_unending(descriptor: Any) -> set[str]:
    """Return the names of the messages that have one within itself somewhere in them, or are one."""
    children: dict[str, set[str]] = {}
    parents: dict[str, set[str]] = {}
    left = [descriptor]
    while left:
        message = left.pop()
        if message.full_name in children:
            continue
        inner = [each.message_type for each in message.fields if each.message_type is not None]
        children[message.full_name] = {each.full_name for each in inner}
        for each in inner:
            parents.setdefault(each.full_name, set()).add(message.full_name)
        left += inner
    # Messages without inner messages end; then messages whose inner messages all end.
    ending = [name for name, found in children.items() if not found]
    while ending:
        name = ending.pop()
        for parent in parents.get(name, ()):
            children[parent].discard(name)
            if not children[parent]:
                ending.append(parent)
        del children[name]
    return set(children)


def _find_cyclic(descriptor: Any, unending: set[str]) -> set[str]:
    """Return the names of messages that are within themselves, and of messages with such a message in them."""
    children: dict[str, set[str]] = {}
    left = [descriptor]
    while left:
        message = left.pop()
        if message.full_name not in children:
            inner = [each.message_type for each in message.fields if each.message_type is not None]
            children[message.full_name] = {each.full_name for each in inner} & unending
            left += [each for each in inner if each.full_name in unending]
    found = set()
    for name, first in children.items():
        reached, more = set[str](), [*first]
        while more:
            each = more.pop()
            if each not in reached:
                reached.add(each)
                more += children[each]
        if name in reached:
            found.add(name)
    return found


class _Unrolling:
    """Copies messages into the files that they are of, one copy for each set of messages that they stand within.

    The messages that are folded are bytes, and count as none that others stand within.
    """

    def __init__(self, unending: set[str], folded: set[str]) -> None:
        self._unending = unending
        self._folded = folded
        # By the name of a file.
        self._added: dict[str, list[Any]] = {}
        self._names: dict[tuple[str, frozenset[str]], str] = {}

    def unroll(self, descriptor: Any) -> Any:
        from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 - optional

        name = self._copy(descriptor, frozenset())
        pool = descriptor_pool.DescriptorPool()
        for file in imports_first(descriptor.file, set()):
            copied = descriptor_pb2.FileDescriptorProto()
            file.CopyToProto(copied)
            copied.message_type.extend(self._added.get(file.name, ()))
            pool.Add(copied)
        return pool.FindMessageTypeByName(name)

    def _copy(self, message: Any, around: frozenset[str]) -> str:
        """Add a copy of a message, and return its full name."""
        key = (message.full_name, around)
        if key in self._names:
            return self._names[key]
        package = message.file.package
        number = len(self._names)
        copied = _without_nested(message)
        while True:
            copied.name = f"{message.name}__{number}"
            self._names[key] = f"{package}.{copied.name}" if package else copied.name
            if not _has_symbol(message.file.pool, self._names[key]):
                break
            number += 1
        self._fill(message, copied, f".{self._names[key]}", around if self._folded else around | {message.full_name})
        self._added.setdefault(message.file.name, []).append(copied)
        return self._names[key]

    def _fill(self, message: Any, copied: Any, path: str, around: frozenset[str]) -> None:
        for field in copied.field:
            inner = message.fields_by_number[field.number].message_type
            if inner is None:
                continue
            if inner.GetOptions().map_entry:
                entry = copied.nested_type.add()
                entry.CopyFrom(_without_nested(inner))
                field.type_name = f"{path}.{inner.name}"
                self._fill(inner, entry, field.type_name, around)
            elif inner.full_name in around or inner.full_name in self._folded:
                self._make_bytes(field, copied, is_open=_is_proto3(message.file))
            elif inner.full_name in self._unending:
                field.type_name = f".{self._copy(inner, around)}"

    @staticmethod
    def _make_bytes(field: Any, message: Any, *, is_open: bool) -> None:
        field.type = field.TYPE_BYTES
        field.ClearField("type_name")
        field.ClearField("options")
        in_entry = message.options.map_entry
        if is_open and field.label == field.LABEL_OPTIONAL and not field.HasField("oneof_index") and not in_entry:
            # As a message, it knows whether it is there.
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            names = {each.name for each in (*message.field, *message.oneof_decl)}
            name = f"_{field.name}"
            while name in names:
                name = f"_{name}"
            message.oneof_decl.add(name=name)


def _without_nested(message: Any) -> Any:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    copied = descriptor_pb2.DescriptorProto()
    message.CopyToProto(copied)
    for name in ("nested_type", "enum_type", "extension", "extension_range", "reserved_range", "reserved_name"):
        copied.ClearField(name)
    return copied


def _is_proto3(file: Any) -> bool:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    copied = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(copied)
    return bool(copied.syntax == "proto3")


def _has_symbol(pool: Any, name: str) -> bool:
    try:
        pool.FindFileContainingSymbol(name)
    except KeyError:
        return False
    return True
