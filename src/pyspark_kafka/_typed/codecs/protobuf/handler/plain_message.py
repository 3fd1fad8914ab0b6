"""The part of a schema that ptars is given: the messages of a column, with names that it takes.

ptars reads all files of a message, and panics at what Google's compiler takes: two fields whose names are one in camel
case, names in JSON that are not text. It makes days and times of two messages that may have what those cannot.

Source: prost-reflect, which ptars reads schemas with: `CamelCaseFieldNameConflict`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Messages that ptars makes days and times of: a month without a day, 24:00, no day at all; ptars reads such a date as
# 1970-01-01.
_DATES = ("google.type.Date", "google.type.TimeOfDay")


@dataclass(frozen=True, slots=True)
class PlainMessage:
    """A message as ptars is given it.

    Attributes:
        descriptor: from its own pool.
        names: by the full name of a message whose fields have other names there: those by the fields' own names.
    """

    descriptor: Any
    names: dict[str, dict[str, str]]


def used_files(descriptor: Any) -> list[Any]:
    """Return the files that have a message, or one in it, or an enum of theirs; each after its imports."""
    return _Used(descriptor).files()


def plain_message(descriptor: Any) -> PlainMessage:
    """Return a message with what is in it, and without anything else of its files.

    Runs on: driver and executor, once a column.

    Args:
        descriptor: a message that is not within itself.

    Raises:
        UnicodeDecodeError: a name is not text.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 - optional

    pool, used, names = descriptor_pool.DescriptorPool(), _Used(descriptor), dict[str, dict[str, str]]()
    for file in used.files():
        copied = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copied)
        for each in ("service", "extension", "options", "public_dependency", "weak_dependency", "dependency"):
            copied.ClearField(each)
        copied.dependency.extend(sorted(used.imports[file.name]))
        _keep(copied.message_type, copied.enum_type, f".{copied.package}" if copied.package else "", used.names, names)
        pool.Add(copied)
    return PlainMessage(pool.FindMessageTypeByName(_renamed(f".{descriptor.full_name}")[1:]), names)


class _Used:
    """The messages and enums that a message has in it.

    Attributes:
        names: their full names, each after a dot.
        imports: by the name of a file of theirs: the names of the files that it needs.
    """

    def __init__(self, descriptor: Any) -> None:
        self.names: set[str] = set()
        self.imports: dict[str, set[str]] = {}
        self._files: dict[str, Any] = {}
        self._first = descriptor.file.name
        left = [descriptor]
        while left:
            message = left.pop()
            if f".{message.full_name}" in self.names:
                continue
            self.names.add(f".{message.full_name}")
            needed = self.imports.setdefault(message.file.name, set())
            self._files[message.file.name] = message.file
            for field in message.fields:
                for inner in (field.message_type, field.enum_type):
                    if inner is not None and inner.file.name != message.file.name:
                        needed.add(inner.file.name)
                if field.message_type is not None:
                    left.append(field.message_type)
                if field.enum_type is not None:
                    self.names.add(f".{field.enum_type.full_name}")
                    self._files[field.enum_type.file.name] = field.enum_type.file
                    self.imports.setdefault(field.enum_type.file.name, set())

    def files(self) -> list[Any]:
        """Return their files, each after its imports."""
        found: dict[str, Any] = {}

        def add_file(name: str) -> None:
            if name not in found:
                for each in sorted(self.imports[name]):
                    add_file(each)
                found[name] = self._files[name]

        add_file(self._first)
        return list(found.values())


def _keep(messages: Any, enums: Any, path: str, used: set[str], names: dict[str, dict[str, str]]) -> bool:
    """Leave what is used of the messages and enums of a file or message, and return whether there is any."""
    for number in reversed(range(len(messages))):
        if not _keep_message(messages[number], path, used, names):
            del messages[number]
    for number in reversed(range(len(enums))):
        each = enums[number]
        if f"{path}.{each.name}" not in used:
            del enums[number]
            continue
        has_aliases = each.options.allow_alias
        for name in ("options", "reserved_range", "reserved_name"):
            each.ClearField(name)
        if has_aliases:
            each.options.allow_alias = True
        for value in each.value:
            value.ClearField("options")
    return bool(len(messages) or len(enums))


def _keep_message(message: Any, path: str, used: set[str], names: dict[str, dict[str, str]]) -> bool:
    full = f"{path}.{message.name}"
    has_inner = _keep(message.nested_type, message.enum_type, full, used, names)
    is_entry = message.options.map_entry
    for name in ("options", "extension", "extension_range", "reserved_range", "reserved_name"):
        message.ClearField(name)
    message.name = _renamed(full).rpartition(".")[2]
    if full not in used:
        # Others stand in it.
        for name in ("field", "oneof_decl"):
            message.ClearField(name)
        return has_inner
    if is_entry:
        message.options.map_entry = True
    others = {} if is_entry else _other_names(message)
    if others:
        names[_renamed(full)[1:]] = others
    for field in message.field:
        is_packed = field.options.packed if field.options.HasField("packed") else None
        field.ClearField("options")
        if is_packed is not None:
            field.options.packed = is_packed
        # A field of a number that has a name of a type, even an empty one, is not valid.
        if field.HasField("type_name"):
            field.type_name = _renamed(field.type_name)
        field.name = others.get(field.name, field.name)
        field.json_name = field.name
    return True


def _other_names(message: Any) -> dict[str, str]:
    """Return other names for all of a message's fields, if two are one in camel case; else nothing."""
    given = [each.name for each in message.field]
    if len({each.replace("_", "").lower() for each in given}) == len(given):
        return {}
    taken = {each.name for part in (message.oneof_decl, message.nested_type, message.enum_type) for each in part}
    taken |= {value.name for each in message.enum_type for value in each.value}
    prefix = "f"
    while any(each.startswith(prefix) for each in taken):
        prefix += "f"
    return {each.name: f"{prefix}{each.number}" for each in message.field}


def _renamed(full: str) -> str:
    """Return the name of a message, with a dot before it; another name if ptars knows it as a day or a time."""
    for name in _DATES:
        if full == f".{name}" or full.startswith(f".{name}."):
            return f".{name}__{full[len(name) + 1 :]}"
    return full
