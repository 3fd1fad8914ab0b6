"""Values in Protobuf, each a message of some schema, as one column.

Protobuf needs no schema of the writer to read a value: fields are found by their numbers. The writer's schema only says
which message a value is, and whether its fields are written as the reader reads them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.framed import find_schemas
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message, find_message_at, is_repeated, sorted_messages
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message
from pyspark_kafka._typed.codecs.protobuf.message_index import (
    MessageIndexError,
    UnsignedIndexError,
    read_glue_index,
    read_message_index,
    read_message_name,
)
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaId, SchemaRegistry
    from pyspark_kafka._typed.codecs.wire_format import FramedValues

    # Of indexes, or a name.
    Path = tuple[int, ...] | str

# The types that a field of the reader can be read from besides its own: they have the same bytes on the wire, and every
# value of theirs is one of its own. Bytes that are not text are found value by value.
_WIDENED = {
    "int32": ("bool", "enum"),
    "int64": ("bool", "enum", "int32", "uint32"),
    "uint32": ("bool",),
    "uint64": ("bool", "uint32"),
    "enum": ("int32",),
    "sint64": ("sint32",),
    "bytes": ("string",),
    "string": ("bytes",),
}
_MAX_DEPTH = 64
# Files of schemas, and verdicts on messages.
_MAX_KEPT = 1000


def read_message(given: RegisteredSchema, name: str | None) -> Any:
    """Return the descriptor of a schema's message.

    Args:
        given: the schema.
        name: the full name of the message; None: the first.

    Raises:
        SchemaError: it is not a schema of Protobuf, or has no such message.
    """
    return find_message(read_file_set(given), name)


class MessageDecoder:
    """Reads messages with the reader's descriptor; the writer's schema of each may be another one.

    Runs on: executor; as often blocking as the registry is. Does not pickle.

    Attributes:
        arrow_type: what `decode` returns.
    """

    def __init__(self, descriptor: Any, wanted: pa.DataType, registry: SchemaRegistry | None) -> None:
        """Read messages of a descriptor.

        Args:
            descriptor: the reader's message.
            wanted: a type with the wanted fields; the others are skipped.
            registry: has the schemas of ids. None: values are messages of the reader's own file, whatever their id.

        Raises:
            MissingDependencyError: without the package ptars.
        """
        self._file = descriptor.file
        self._descriptor = narrow_message(descriptor, wanted)
        self._registry = registry
        self._decoder = ProtobufDecoder(self._descriptor, descriptor)
        self.arrow_type: pa.DataType = self._decoder.arrow_type
        # By id: the file of the schema, or why it is none; and by id and path: None if the message is as the reader's,
        # else why not.
        self._files: dict[SchemaId, Any] = {}
        self._faults: dict[tuple[SchemaId, Path], str | None] = {}

    def decode_plain(self, values: pa.Array) -> DecodedValues:
        """Read messages of the reader's descriptor that nothing stands before."""
        return self._decoder.decode(values)

    def decode(self, framed: FramedValues) -> DecodedValues:
        """Read messages, behind whose id stands which message of the schema they are."""
        bad = list(framed.bad)
        places = framed.places
        # Names are of top-level messages.
        skipped, paths = _read_paths(framed, bad, may_have_names=self._descriptor.containing_type is None)
        wrong = np.zeros(len(places), bool)
        named = replace(framed, places=np.where(paths.places >= 0, places, -1))
        for schema_id, of_schema, file in find_schemas(named, self._file_of, self._is_known, bad):
            for at, rows in _by_path(paths.places, of_schema):
                fault = self._check(schema_id, paths.distinct[at], file, framed.framing)
                if fault is not None:
                    message = f"its schema {schema_id} {fault}"
                    bad += [BadValue(row, Reason.RESOLUTION_FAILED, message) for row in rows.tolist()]
        wrong[[each.row for each in bad]] = True
        values = framed.values
        if not isinstance(skipped, int):
            texts = values.to_pylist()
            values = pa.array(
                [
                    None if text is None or lost else text[start:]
                    for text, start, lost in zip(texts, skipped, wrong, strict=True)
                ],
                pa.large_binary(),
            )
            skipped = 0
        elif wrong.any():
            values = pc.if_else(pa.array(~wrong), values, None)
        found = self._decoder.decode(values, skipped)
        return DecodedValues(found.column, sorted([*bad, *found.bad], key=lambda each: each.row))

    def _is_known(self, schema_id: SchemaId) -> bool:
        return self._registry is None or schema_id in self._files or self._registry.knows(schema_id)

    def _file_of(self, schema_id: SchemaId) -> Any:
        """Return the file of a schema.

        Raises:
            UnknownSchemaError: there is none, or it is none of Protobuf.
        """
        if self._registry is None:
            return self._file
        file = self._files.get(schema_id)
        if file is None:
            file = _read_file(self._registry.schema_by_id(schema_id))
            if len(self._files) >= _MAX_KEPT:
                # The oldest: ids come in runs.
                del self._files[next(iter(self._files))]
            self._files[schema_id] = file
        if isinstance(file, str):
            raise UnknownSchemaError(file, Reason.RESOLUTION_FAILED)
        return file

    def _check(self, schema_id: SchemaId, path: Path, file: Any, framing: str) -> str | None:
        """Return the reason why a schema's message is not the reader's; None if it is."""
        key = (schema_id, path)
        if key not in self._faults:
            if len(self._faults) >= _MAX_KEPT:
                self._faults.clear()
            self._faults[key] = self._compare(path, file, framing)
        return self._faults[key]

    def _compare(self, path: Path, file: Any, framing: str) -> str | None:
        if isinstance(path, str):
            written = file.message_types_by_name.get(path)
        elif framing == "glue":
            written = dict(enumerate(sorted_messages(file))).get(path[0])
        else:
            written = find_message_at(file, path)
        if written is None:
            return "has no such message as the value names"
        if written.full_name != self._descriptor.full_name:
            return f"has message '{written.full_name}' where '{self._descriptor.full_name}' is read"
        fault = _misfit(written, self._descriptor, set())
        return None if fault is None else f"does not fit the reader's: {fault}"


def _read_file(given: RegisteredSchema) -> Any:
    """Return the file of a schema, or why it is none."""
    if given.kind != "PROTOBUF":
        return f"is a schema of {given.kind}, not of Protobuf"
    try:
        return find_message(read_file_set(given)).file
    except SchemaError as error:
        # A compiler that does not run is another error, which passes: the value may be good.
        return f"cannot be parsed: {error.parameters['reason']}"


class _Paths:
    """The message path of each row within its schema."""

    def __init__(self, distinct: list[Path], places: Any) -> None:
        self.distinct = distinct
        self.places = places


def _read_paths(framed: FramedValues, bad: list[BadValue], *, may_have_names: bool) -> tuple[int | list[int], _Paths]:
    """Return the start of each value after the indexes or the name of its message, and these."""
    if framed.framing == "confluentHeader":
        return _read_tails(framed, bad)
    at = framed.skipped
    present = np.asarray(framed.places) >= 0
    texts = framed.values.cast(pa.large_binary())
    usual = _path_of_all(texts, at, present, framed.framing, may_have_names=may_have_names)
    if usual is not None:
        return usual[1], _Paths([usual[0]], np.where(present, 0, -1))
    known: dict[Path, int] = {}
    places = np.full(len(present), -1, np.int32)
    starts = [0] * len(present)
    for row, text in enumerate(texts.to_pylist()):
        if not present[row]:
            continue
        try:
            path, starts[row] = _read_path(text, at, framed.framing, may_have_names=may_have_names)
        except MessageIndexError as error:
            bad.append(BadValue(row, *_fault(error)))
            continue
        places[row] = known.setdefault(path, len(known))
    return starts, _Paths(list(known), places)


def _path_of_all(values: pa.Array, at: int, present: Any, framing: str, *, may_have_names: bool) -> Any:
    """Return the path that all values have, as almost always, and where they begin; None if there is none."""
    if not present.any():
        return (0,), at
    first = values[int(present.argmax())].as_py()
    try:
        path, start = _read_path(first, at, framing, may_have_names=may_have_names)
    except MessageIndexError:
        return None
    same = np.asarray(pc.equal(pc.binary_slice(values, at, start), first[at:start]).fill_null(False))
    return (path, start) if (same | ~present).all() else None


def _read_path(value: bytes, at: int, framing: str, *, may_have_names: bool) -> tuple[Path, int]:
    if framing == "glue":
        place, start = read_glue_index(value, at)
        return (place,), start
    named = read_message_name(value, at) if may_have_names else None
    return read_message_index(value, at) if named is None else named


def _read_tails(framed: FramedValues, bad: list[BadValue]) -> tuple[int, _Paths]:
    """Read the indexes that stand in the headers of records."""
    known: dict[Path, int] = {}
    # One more, at the end: the place of rows without an id.
    path_of = np.full(len(framed.tails) + 1, -1, np.int32)
    faults: dict[int, tuple[Reason, str]] = {}
    for number, tail in enumerate(framed.tails):
        try:
            path, end = read_message_index(tail, 0)
            if end == len(tail):
                path_of[number] = known.setdefault(path, len(known))
            else:
                faults[number] = (Reason.INCOMPLETE_HEADER, "bytes follow the index of its message")
        except MessageIndexError as error:
            faults[number] = _fault(error)
    places = path_of[framed.places]
    faulty = np.nonzero((places < 0) & (framed.places >= 0))[0].tolist()
    bad += [BadValue(row, *faults[int(framed.places[row])]) for row in faulty]
    return framed.skipped, _Paths(list(known), places)


def _fault(error: MessageIndexError) -> tuple[Reason, str]:
    # Another wire format would not help.
    is_framed = isinstance(error, UnsignedIndexError)
    return Reason.DECODE_FAILED if is_framed else Reason.INCOMPLETE_HEADER, str(error)


def _by_path(places: Any, rows: Any) -> Iterator[tuple[int, Any]]:
    """Yield each message that some rows have, with those rows."""
    of_rows = places[rows]
    order = np.argsort(of_rows, kind="stable")
    found, starts = np.unique(of_rows[order], return_index=True)
    yield from zip(found.tolist(), np.split(rows[order], starts[1:]), strict=True)


def _misfit(written: Any, wanted: Any, seen: set[tuple[str, str]], depth: int = 0) -> str | None:
    """Return the field that the writer writes in a form that the reader would misread; None without one."""
    pair = (written.full_name, wanted.full_name)
    if pair in seen or depth > _MAX_DEPTH:
        return None
    seen.add(pair)
    numbers = {each.number: each for each in written.fields}
    for each in wanted.fields:
        other = numbers.get(each.number)
        if other is None:
            continue
        found, kind = _kind(other), _kind(each)
        # Of several values of a field that the reader has once the last would count, and numbers stand packed.
        if is_repeated(other) != is_repeated(each) or (found != kind and found not in _WIDENED.get(kind, ())):
            return f"field '{each.full_name}' is {_form(other)} where {_form(each)} is read"
        if each.message_type is not None:
            inner = _misfit(other.message_type, each.message_type, seen, depth + 1)
            if inner is not None:
                return inner
    return None


def _kind(field: Any) -> str:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - optional

    return str(descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _form(field: Any) -> str:
    return f"{'repeated ' if is_repeated(field) else ''}{_kind(field)}"
