"""The message of a schema, and the columns that it becomes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_kafka._typed.codecs.protobuf.handler.message_handler import MessageHandler
from pyspark_kafka._typed.codecs.protobuf.handler.plain_message import plain_message, used_files
from pyspark_kafka._typed.codecs.protobuf.handler.recursive_messages import has_recursion, unroll_message
from pyspark_kafka._typed.codecs.protobuf.known_files import known_files
from pyspark_kafka.errors import MissingDependencyError, SchemaError, listed
from pyspark_kafka.version import install_command

_MAX_BYTES = 4 << 20
# Messages that are used repeatedly make columns much larger than their text; ptars ends the process by then.
_MAX_PARTS = 20_000
# 16 bytes each.
_MAX_NUMBERS = 1_000_000
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


def build_handler(descriptor: Any, whole: Any = None, *, writes: bool = False) -> MessageHandler:
    """Return the converter for messages of a descriptor.

    Args:
        descriptor: the message.
        whole: the message with the fields that are not to be read, if there are some.
        writes: whether it writes messages, not reads them.

    Raises:
        SchemaError: as columns the message has too many parts or levels, a group, or a name that is not text; or a file
            is of an edition, and not of proto2 or proto3.
        MissingDependencyError: without the package ptars.
    """
    try:
        unrolled = _unrolled(descriptor, descriptor if whole is None else whole)
        _check_syntax(unrolled)
        return MessageHandler(plain_message(unrolled), writes=writes)
    except ImportError as error:
        raise missing_package("ptars") from error
    except (KeyboardInterrupt, SystemExit, MemoryError, SchemaError):
        raise
    except BaseException as error:
        # A panic of Rust is not an Exception: names that are not UTF-8, among others.
        raise _invalid(f"message '{descriptor.full_name}' cannot be read as columns") from error


def _unrolled(descriptor: Any, whole: Any) -> Any:
    """Return a message in which no message is within itself, as `unroll_message` does.

    If that makes too many columns, messages that are within themselves are bytes wherever they stand; which of both is
    the same for all parts of a message.
    """
    fault = _find_fault(whole)
    if not has_recursion(whole):
        if fault is not None:
            raise fault
        return descriptor
    if fault is None:
        every = unroll_message(whole)
        # The same fields, in more messages.
        fault = _find_fault(every)
        if fault is None:
            return every if descriptor is whole else unroll_message(descriptor)
    folded = unroll_message(descriptor, is_folded=True)
    fault = _find_fault(folded)
    if fault is not None:
        raise fault
    return folded


def _find_fault(descriptor: Any) -> SchemaError | None:
    """Return the error of a message that has more fields than columns can have, counting its inner messages.

    Raises:
        SchemaError: it has a group.
    """
    parts, largest = 0, 0
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
                largest += each.number - numbers.get(message.full_name, 0)
                numbers[message.full_name] = each.number
            inner = each.message_type
            # A message within itself becomes bytes.
            if inner is not None and inner.full_name not in within:
                left.append((inner, within | {inner.full_name}, depth + (2 if _is_list(each) else 1)))
        if depth > _MAX_DEPTH:
            return _invalid(f"message '{descriptor.full_name}' nests more than {_MAX_DEPTH} types", _SMALLER)
        if parts > _MAX_PARTS:
            return _invalid(f"message '{descriptor.full_name}' has more than {_MAX_PARTS} parts", _SMALLER)
        if largest > _MAX_NUMBERS:
            return _invalid(
                f"message '{message.full_name}' has field number {numbers.get(message.full_name, 0)}; the largest "
                f"numbers of all its messages may be {_MAX_NUMBERS} together",
                "Use smaller numbers, or read the column as bytes, without a format.",
            )
    return None


def _check_syntax(descriptor: Any) -> None:
    """Raise if a file of a message is of an edition: the library that decodes knows none, and panics."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    for each in used_files(descriptor):
        copied = descriptor_pb2.FileDescriptorProto()
        each.CopyToProto(copied)
        if copied.syntax == "editions":
            raise _invalid(
                f"file {copied.name[:100]!r} is of an edition of Protobuf, and only proto2 and proto3 can be read",
                'Write it with syntax = "proto2" or "proto3", which may be the same on the wire; or read the column as '
                "bytes, without a format.",
            )


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
    """Build the error for a missing package."""
    return MissingDependencyError(
        f"Values in Protobuf need the Python package '{name}', which cannot be imported.",
        condition="MISSING_DEPENDENCY",
        hint=f"Install it on the driver and on the executors: {install_command('protobuf')}.",
        parameters={"package": name},
    )


def _invalid(reason: str, hint: str = _FORM) -> SchemaError:
    return SchemaError(
        f"The Protobuf schema cannot be used: {reason}.",
        condition="SCHEMA_INVALID",
        hint=hint,
        parameters={"reason": reason},
    )
