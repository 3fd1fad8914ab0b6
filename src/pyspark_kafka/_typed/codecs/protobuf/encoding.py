"""Arrow columns to values in Protobuf: one message a value.

ptars leaves out a column whose type is not exactly its field's type, so columns are cast to it, or refused, before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.projection import missing_field
from pyspark_kafka._typed.codecs.protobuf import _variant
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler, is_repeated
from pyspark_kafka._typed.codecs.protobuf.handler.message_handler import enum_numbers, find_unnamed
from pyspark_kafka._typed.codecs.protobuf.outline import build_form_walk, check_values
from pyspark_kafka.errors import RecordError, SchemaError

_UNSIGNED = (pa.uint32(), pa.uint64())
# A message that is read as the bytes in it, not as its own.
_BYTES_VALUE = "google.protobuf.BytesValue"


class ProtobufEncoder:
    """A writer of structs as messages. Missing fields are not set, nor null fields that may be absent.

    Lists and maps that are null are empty. -0.0 is written as 0.0 where a field is always there. A message within
    itself is a column of bytes, as it is read, and written as it is.

    Runs on: executor; pure computation. Does not pickle.
    """

    def __init__(self, descriptor: Any, arrow_type: pa.DataType) -> None:
        """Write structs of a type as messages of a descriptor.

        Raises:
            SchemaError: a column has no field, or another type than its field.
            MissingDependencyError: without the package ptars.
        """
        self._descriptor = descriptor
        handler = build_handler(descriptor, writes=True)
        fields = pa.struct(handler.fields)
        if not pa.types.is_struct(arrow_type):
            raise _no_fit("value", arrow_type, f"message {descriptor.full_name}")
        _check(arrow_type, fields, "", descriptor.full_name)
        _check_required(descriptor, arrow_type, "")
        self._type = _as_given(arrow_type, fields)
        self._writer = handler.writer(self._type)
        # By the name of a message that a column has as bytes.
        self._walks: dict[str, Any] = {}

    def encode(self, column: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Encode a column, a value for each row.

        Args:
            column: structs of the type.
            prefix: what stands before each value, such as the id of its schema.

        Returns:
            A binary array. A row that is null is null: a tombstone.

        Raises:
            RecordError: a value does not fit its field; it names the row. Nothing is encoded then.
        """
        _check_values(column, self._descriptor, "", self._walks)
        written = self._writer.write(self._cast(column))
        if prefix:
            written = pc.binary_join_element_wise(pa.scalar(prefix), written, pa.scalar(b""))
        return pc.if_else(pc.is_valid(column), written, None) if column.null_count else written

    def _cast(self, column: pa.Array) -> pa.Array:
        try:
            return column.cast(self._type)
        except pa.ArrowInvalid:
            # A cast looks at items of maps outside of a slice, too.
            column = _copied(column)
        try:
            return column.cast(self._type)
        except pa.ArrowInvalid as error:
            row = self._first_failing(column)
            path = _find_failing(_copied(column.slice(row, 1)), self._type, "")
            raise _bad_row(row, path, "a number or a time is out of the range of its field") from error

    def _first_failing(self, column: pa.Array) -> int:
        start, count = 0, len(column)
        while count > 1:
            half = count // 2
            try:
                _copied(column.slice(start, half)).cast(self._type)
                start, count = start + half, count - half
            except pa.ArrowInvalid:
                count = half
        return start


def _bad_row(row: int | None, path: str, reason: str) -> RecordError:
    place = "A row" if row is None else f"Row {row}"
    return RecordError(
        f"{place} of the batch cannot be written in Protobuf: field '{path}': {reason}. "
        "Nothing of the batch was encoded.",
        condition="VALUE_NOT_ENCODABLE",
        hint="Correct the column, or use a schema that has a place for such values.",
        parameters={"row": row, "field": path, "reason": reason},
    )


def _no_fit(path: str, found: pa.DataType, wanted: str) -> SchemaError:
    return SchemaError(
        f"Column '{path}' has the type {found}, which cannot be written as Protobuf's {wanted}.",
        condition="SCHEMA_COLUMN_MISMATCH",
        hint="Cast the column, or change the schema.",
        parameters={"column": path, "found": found, "wanted": wanted},
    )


def _check(given: pa.DataType, wanted: pa.DataType, path: str, message: str = "") -> None:
    """Raise unless values of one type can be written as another, without a change of what they say."""
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        names = [wanted.field(number).name for number in range(wanted.num_fields)]
        for number in range(given.num_fields):
            each = given.field(number)
            inner = f"{path}.{each.name}" if path else each.name
            if names.count(each.name) != 1:
                raise _no_fit(inner, each.type, f"message {message or path}, which has no such field")
            _check(each.type, wanted.field(each.name).type, inner)
        return
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        _check(given.key_type, wanted.key_type, f"{path}[key]")
        _check(given.item_type, wanted.item_type, f"{path}[]")
        return
    if pa.types.is_list(wanted) and pa.types.is_list(given):
        _check(given.value_type, wanted.value_type, f"{path}[]")
        return
    if not _same_kind(given, wanted):
        raise _no_fit(path, given, str(wanted))


def _same_kind(given: Any, wanted: Any) -> bool:
    if pa.types.is_integer(wanted):
        whole = pa.types.is_decimal(given) and given.scale == 0 and wanted in _UNSIGNED
        found = pa.types.is_integer(given) or whole
    elif pa.types.is_floating(wanted):
        found = pa.types.is_floating(given) and given.bit_width <= wanted.bit_width
    elif pa.types.is_string(wanted):
        found = pa.types.is_string(given) or pa.types.is_large_string(given)
    elif pa.types.is_binary(wanted):
        found = _is_binary(given)
    elif pa.types.is_timestamp(wanted):
        found = pa.types.is_timestamp(given) and (given.tz is None) is (wanted.tz is None)
    else:
        found = given == wanted or (pa.types.is_duration(given) and pa.types.is_duration(wanted))
    return bool(found)


def _as_given(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the types of the message for the fields that there are, all nullable."""
    if pa.types.is_struct(wanted):
        return pa.struct([pa.field(each.name, _as_given(each.type, wanted.field(each.name).type)) for each in given])
    if pa.types.is_map(wanted):
        return pa.map_(wanted.key_type, pa.field("value", _as_given(given.item_type, wanted.item_type)))
    if pa.types.is_list(wanted):
        return pa.list_(pa.field(wanted.value_field.name, _as_given(given.value_type, wanted.value_type)))
    return wanted


def _refuse(wrong: pa.Array, path: str, reason: str, nested: bool) -> None:
    if pc.any(wrong).as_py():
        raise _bad_row(None if nested else pc.index(wrong, pa.scalar(value=True)).as_py(), path, reason)


def _is_required(field: Any) -> bool:
    found = getattr(field, "is_required", None)
    # Older packages have the label alone, newer ones warn of it.
    return bool(field.label == field.LABEL_REQUIRED if found is None else found)


def _check_required(descriptor: Any, given: pa.DataType, path: str) -> None:
    """Raise if a struct lacks a field that its message requires."""
    names = {each.name: each.type for each in given}
    for field in descriptor.fields:
        inner = f"{path}.{field.name}" if path else field.name
        if field.name not in names:
            if _is_required(field):
                raise missing_field(inner, f"Protobuf's message {descriptor.full_name}", given)
            continue
        kind, below = names[field.name], field.message_type
        if below is not None and below.GetOptions().map_entry:
            below = below.fields_by_name["value"].message_type
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = kind.value_type if pa.types.is_list(kind) else kind.item_type
        if below is not None and pa.types.is_struct(kind):
            _check_required(below, kind, inner)


def _find_failing(column: pa.Array, wanted: pa.DataType, path: str) -> str:
    """Return the path of the first field of a column that cannot be cast to its type."""
    if pa.types.is_struct(wanted):
        names = [f"{path}.{each.name}" if path else each.name for each in wanted]
        parts = list(zip(column.flatten(), [each.type for each in wanted], names, strict=True))
    elif pa.types.is_map(wanted):
        pairs = _present(column)
        parts = [(pairs.keys, wanted.key_type, f"{path}[key]"), (pairs.items, wanted.item_type, f"{path}[]")]
    elif pa.types.is_list(wanted):
        parts = [(column.flatten(), wanted.value_type, f"{path}[]")]
    else:
        return path
    for part, kind, inner in parts:
        try:
            part.cast(kind)
        except pa.ArrowInvalid:
            return _find_failing(part, kind, inner)
    return path


def _present(column: pa.MapArray) -> pa.MapArray:
    """Return a map column without the rows before it and after it in memory, and without nulls."""
    return _copied(column).drop_null()


def _copied(column: pa.Array) -> pa.Array:
    return column.take(pa.array(range(len(column)), pa.int64()))


def _check_values(column: pa.Array, descriptor: Any, path: str, walks: dict[str, Any], *, nested: bool = False) -> None:
    """Raise for what ptars writes as something else, or leaves out.

    That is a text that is not a name of its enum, a null in a list or map, a null in a field that is required or always
    there, two members of a oneof, of which readers see the last, and bytes that are not a message, in place of one.
    """
    # Without the memory below a null struct.
    children = dict(zip([each.name for each in column.type], column.flatten(), strict=True))
    for field in descriptor.fields:
        if field.name in children and children[field.name].null_count:
            reason = "it is null, and required" if _is_required(field) else "it is null, and the field is not optional"
            if _is_required(field) or not (field.has_presence or is_repeated(field)):
                missing = pc.and_(pc.is_valid(column), pc.is_null(children[field.name]))
                _refuse(missing, f"{path}.{field.name}" if path else field.name, reason, nested)
    for oneof in descriptor.oneofs:
        members = [children[each.name] for each in oneof.fields if each.name in children]
        if len(members) > 1:
            there = pc.is_valid(members[0]).cast(pa.int32())
            for member in members[1:]:
                there = pc.add(there, pc.is_valid(member).cast(pa.int32()))
            place = f"{path}.{oneof.name}" if path else oneof.name
            _refuse(pc.greater(there, 1), place, "more than one member of the oneof is there", nested)
    for number in range(column.type.num_fields):
        name = column.type.field(number).name
        field = descriptor.fields_by_name.get(name)
        if field is None:
            continue
        inner, below = children[name], nested
        while pa.types.is_list(inner.type) or pa.types.is_map(inner.type):
            inner, below = (inner.flatten() if pa.types.is_list(inner.type) else _present(inner).items), True
            if inner.null_count:
                raise _bad_row(None, f"{path}.{name}" if path else name, "a list or map has a null")
        found = field.message_type
        if found is not None and found.GetOptions().map_entry:
            field = found.fields_by_name["value"]
            found = field.message_type
        place = f"{path}.{name}" if path else name
        if field.enum_type is not None:
            wrong = find_unnamed(inner.cast(pa.string()), enum_numbers(field.enum_type)[0])
            if wrong is not None:
                row = None if below else pc.index(wrong, pa.scalar(value=True)).as_py()
                reason = f"the text is not a name of the enum {field.enum_type.full_name}, nor a number of 32 bits"
                raise _bad_row(row, place, reason)
        elif found is not None and pa.types.is_struct(inner.type):
            _check_values(inner, found, place, walks, nested=below)
        elif found is not None and found.full_name != _BYTES_VALUE and _is_binary(inner.type):
            walk = walks.get(found.full_name)
            if walk is None:
                walk = walks[found.full_name] = build_form_walk(found)
            checked = check_values(walk, inner)
            if not checked.are_good:
                wrong = np.nonzero(checked.verdicts)[0].tolist()
                reason = f"its bytes are not a message {found.full_name}, or one nested more than "
                raise _bad_row(None if below else wrong[0], place, f"{reason}{_variant.outline.MAX_DEPTH} deep")


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
