"""The message of a schema, and the columns that it becomes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_kafka.errors import MissingDependencyError, SchemaError, listed
from pyspark_kafka.formats.protobuf.known_files import known_files
from pyspark_kafka.formats.protobuf.recursive_messages import unroll_message

_MAX_BYTES = 4 << 20
# Messages that are used repeatedly make columns much larger than their text; ptars ends the process by then.
_MAX_PARTS = 20_000
# 16 bytes each.
_MAX_NUMBERS = 1_000_000
# Messages that ptars makes days and times of. They may have what those cannot: a month without a day, 24:00, no day at
# all; ptars reads such a date as 1970-01-01.
_DATES = ("google.type.Date", "google.type.TimeOfDay")
# Arrow has types of 64 levels.
_MAX_DEPTH = 60
_SMALLER = (
    "Name a message with fewer fields or levels with 'valueMessage', or read the column as bytes, without a format."
)
# A text is compiled by then: what fails here was given as descriptors, or by name.
_FORM = (
    "Use the text of a .proto file that has a message, or the FileDescriptorSet that protoc --descriptor_set_out=FILE "
    "--include_imports writes."
)


def find_message(file_set: bytes, name: str | None = None) -> Any:
    """Return the descriptor of a message.

    Runs on: driver and executor, once a schema.

    Args:
        file_set: a serialized FileDescriptorSet, each file after its imports, as `protoc --descriptor_set_out
            --include_imports` writes it. Files that registries know may be left out, and files that only options need.
        name: the full name of the message; None: the first of the last file.

    Raises:
        SchemaError: it is not a FileDescriptorSet, a file does not fit, or there is no such message.
        MissingDependencyError: without the package protobuf.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_package("protobuf") from error
    if len(file_set) > _MAX_BYTES:
        raise _invalid(f"it has {len(file_set)} bytes, more than {_MAX_BYTES}")
    pool = descriptor_pool.DescriptorPool()
    last, missing = "", list[str]()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(file_set).file
        given = {each.name for each in files}
        imported = {path for each in files for path in each.dependency} - given
        known = known_files(imported, given) if imported else []
        # What only options need may be missing: a registry leaves it out.
        missing = sorted(imported - {each.name for each in known})
        stubs = [descriptor_pb2.FileDescriptorProto(name=path, syntax="proto3") for path in missing]
        for each in (*known, *stubs, *files):
            pool.Add(each)
            last = each.name
        if name is not None:
            return _named(pool, name, [each.name for each in files])
        messages = pool.FindFileByName(last).message_types_by_name if last else {}
    except SchemaError:
        raise
    except (TypeError, ValueError, RecursionError, UnicodeError) as error:
        lacks = f"it imports {listed(missing, lambda each: repr(each[:100]))}, which it lacks: " if missing else ""
        raise _invalid(f"{lacks}{str(error)[:300]}") from error
    except Exception as error:
        # DecodeError is an error of its own in protobuf.
        raise _invalid(f"{type(error).__name__}: {str(error)[:300]}") from error
    if not messages:
        raise _invalid(f"its last file, '{last}', has no message" if last else "it has no file")
    return next(iter(messages.values()))


def _named(pool: Any, name: str, files: list[str]) -> Any:
    """Return the message of a name.

    Raises:
        SchemaError: there is none; it names the messages of the last file, which is the schema itself.
    """
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        found = sorted_messages(pool.FindFileByName(files[-1])) if files else []
        names = [str(each.full_name) for each in found if not each.GetOptions().map_entry]
        raise _invalid(
            f"it has no message '{name[:200]}'",
            f"Name one of its messages: {listed(names, lambda each: each[:200])}." if names else _FORM,
        ) from None


def find_message_at(file: Any, path: tuple[int, ...]) -> Any:
    """Return the descriptor of a message by its index in its file, then of a message nested in it, and so on.

    Entries of maps are not counted, as Confluent's Java serializer does not. If there is no such message they are, as
    its Python serializer does. None if there is none then either.
    """
    found = _message_at(file, path, counts_entries=False)
    return _message_at(file, path, counts_entries=True) if found is None else found


def _message_at(file: Any, path: tuple[int, ...], *, counts_entries: bool) -> Any:
    messages, found = list(file.message_types_by_name.values()), None
    for index in path:
        if index >= len(messages):
            return None
        found = messages[index]
        messages = [each for each in found.nested_types if counts_entries or not each.GetOptions().map_entry]
    return found


def is_repeated(field: Any) -> bool:
    """Return whether a field has a list of values, or is a map."""
    # Older versions of protobuf have only the label.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def sorted_messages(file: Any) -> list[Any]:
    """Return all messages of a file, those within others and the entries of maps too, in the order of their full names.

    Source: the AWS Glue Schema Registry library, `MessageIndexFinder`.
    """
    found, left = [], list(file.message_types_by_name.values())
    while left:
        each = left.pop()
        found.append(each)
        left += each.nested_types
    return sorted(found, key=lambda each: str(each.full_name))


def build_handler(descriptor: Any) -> Any:
    """Return what converts messages of a descriptor.

    Raises:
        SchemaError: as columns the message has too many parts or levels, a group, or a name that is not text; or a file
            is of an edition, and not of proto2 or proto3.
        MissingDependencyError: without the package ptars.
    """
    _check_size(descriptor)
    try:
        _check_syntax(descriptor.file)
    except UnicodeDecodeError as error:
        raise _invalid("the name of a file in it is not UTF-8") from error
    try:
        from ptars import HandlerPool, PtarsConfig  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_package("ptars") from error
    config = PtarsConfig(
        timestamp_unit="us",
        time_unit="us",
        duration_unit="us",
        enum_repr="string",
        list_value_name="element",
        # Without it, a message in a map whose entry has no value is a panic.
        map_value_nullable=True,
    )
    try:
        unrolled = unroll_message(descriptor)
        if unrolled is not descriptor:
            # The same fields, in more messages.
            _check_size(unrolled)
        descriptor = _with_plain_dates(unrolled)
        return HandlerPool([descriptor.file], config=config).get_for_message(descriptor)
    except (KeyboardInterrupt, SystemExit, MemoryError, SchemaError):
        raise
    except BaseException as error:
        # A panic of Rust is not an Exception: names that are not UTF-8, among others.
        raise _invalid(f"message '{descriptor.full_name}' cannot be read as columns") from error


def _check_size(descriptor: Any) -> None:
    """Raise if a message has more fields than columns can have, counting its inner messages, or has a group."""
    parts = 0
    # By message: ptars has a table with a place for each number up to the largest.
    numbers: dict[str, int] = {}
    left = [(descriptor, frozenset((descriptor.full_name,)), 1)]
    while left:
        message, within, depth = left.pop()
        for each in message.fields:
            if each.type == each.TYPE_GROUP:
                # The library would skip it in values, and write it in the form of a message.
                raise _invalid(
                    f"field '{each.full_name}' is a group of proto2, which cannot be read or written",
                    "Read the column as bytes, without a format; or read and write with a schema that lacks the field, "
                    "or has a message in its place.",
                )
            parts += 1
            if each.number > numbers.get(message.full_name, 0):
                numbers[message.full_name] = each.number
            inner = each.message_type
            # A message within itself becomes bytes.
            if inner is not None and inner.full_name not in within:
                left.append((inner, within | {inner.full_name}, depth + (2 if _is_list(each) else 1)))
        if depth > _MAX_DEPTH:
            raise _invalid(f"message '{descriptor.full_name}' nests more than {_MAX_DEPTH} types", _SMALLER)
        if parts > _MAX_PARTS:
            raise _invalid(f"message '{descriptor.full_name}' has more than {_MAX_PARTS} parts", _SMALLER)
        if sum(numbers.values()) > _MAX_NUMBERS:
            raise _invalid(
                f"message '{message.full_name}' has field number {numbers.get(message.full_name, 0)}; the largest "
                f"numbers of all its messages may be {_MAX_NUMBERS} together",
                "Use smaller numbers, or read the column as bytes, without a format.",
            )


def _check_syntax(file: Any) -> None:
    """Raise if a file or one that it imports is of an edition: the library that decodes knows none, and panics."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    # Not by their names, which may be no text.
    left, known = [file], {id(file): file}
    while left:
        each = left.pop()
        copied = descriptor_pb2.FileDescriptorProto()
        each.CopyToProto(copied)
        if copied.syntax == "editions":
            raise _invalid(
                f"file {copied.name[:100]!r} is of an edition of Protobuf, and only proto2 and proto3 can be read",
                'Write it with syntax = "proto2" or "proto3", which may be the same on the wire; or read the column as '
                "bytes, without a format.",
            )
        left += [other for other in each.dependencies if id(other) not in known]
        known |= {id(other): other for other in each.dependencies}


def _with_plain_dates(descriptor: Any) -> Any:
    """Return a message in which Google's dates and times of day have names that ptars does not know: they are structs.

    Of a pool of its own; the message itself if its schema has none of them.
    """
    if not any(_has_message(descriptor.file.pool, name) for name in _DATES):
        return descriptor
    from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 - optional

    pool = descriptor_pool.DescriptorPool()
    added = set()

    def add(file: Any) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for each in file.dependencies:
            add(each)
        copied = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copied)
        _rename_dates(copied, f".{copied.package}" if copied.package else "")
        pool.Add(copied)

    add(descriptor.file)
    return pool.FindMessageTypeByName(_renamed(f".{descriptor.full_name}")[1:])


def _has_message(pool: Any, name: str) -> bool:
    try:
        pool.FindMessageTypeByName(name)
    except KeyError:
        return False
    return True


def _rename_dates(part: Any, path: str) -> None:
    """Rename the dates in a file or a message, and wherever something is of their type."""
    is_file = hasattr(part, "message_type")
    for each in (*(() if is_file else part.field), *part.extension):
        # A field of a number that has a name of a type, even an empty one, is not valid.
        for name in ("type_name", "extendee"):
            if each.HasField(name):
                setattr(each, name, _renamed(getattr(each, name)))
    for each in (method for service in (part.service if is_file else ()) for method in service.method):
        each.input_type, each.output_type = _renamed(each.input_type), _renamed(each.output_type)
    for each in part.message_type if is_file else part.nested_type:
        full = f"{path}.{each.name}"
        _rename_dates(each, full)
        each.name = _renamed(full).rpartition(".")[2]


def _renamed(full: str) -> str:
    """Return the name of a message, with a dot before it; another name if ptars knows it."""
    for name in _DATES:
        if full == f".{name}" or full.startswith(f".{name}."):
            return f".{name}__{full[len(name) + 1 :]}"
    return full


def _is_list(field: Any) -> bool:
    found = getattr(field, "is_repeated", None)
    # Older packages have the label alone, newer ones warn of it.
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def column_type(read: pa.DataType) -> pa.DataType:
    """Return the type of a column: all parts nullable, and numbers without a sign as wider ones, which Spark has."""
    if pa.types.is_struct(read):
        return pa.struct([pa.field(each.name, column_type(each.type)) for each in read])
    if pa.types.is_list(read):
        return pa.list_(pa.field(read.value_field.name, column_type(read.value_type)))
    if pa.types.is_map(read):
        return pa.map_(column_type(read.key_type), pa.field("value", column_type(read.item_type)))
    if read == pa.uint32():
        return pa.int64()
    return pa.decimal128(20, 0) if read == pa.uint64() else read


def missing_package(name: str) -> MissingDependencyError:
    """Build the error for a package that is not there."""
    return MissingDependencyError(
        f"Values in Protobuf need the Python package '{name}', which cannot be imported.",
        condition="MISSING_DEPENDENCY",
        hint='Install it on the driver and on the executors: pip install "pyspark-kafka[protobuf]".',
        parameters={"package": name},
    )


def _invalid(reason: str, hint: str = _FORM) -> SchemaError:
    return SchemaError(
        f"The Protobuf schema cannot be used: {reason}.",
        condition="SCHEMA_INVALID",
        hint=hint,
        parameters={"reason": reason},
    )
