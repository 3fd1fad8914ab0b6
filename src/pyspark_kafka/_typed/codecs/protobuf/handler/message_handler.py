"""The border to ptars, which reads and writes messages: the types of their columns, and the names in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.projection import with_items

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.protobuf.handler.plain_message import PlainMessage

# A number in the one form that a read has for it.
_NUMBER = r"^(0|-?[1-9][0-9]{0,9})$"


class MessageHandler:
    """Reads and writes messages as columns; both as ptars has it, for a message that was checked.

    Runs on: executor, and driver for the types; pure computation. Does not pickle.

    Attributes:
        fields: the fields of the message as columns. An enum is a string.
    """

    def __init__(self, plain: PlainMessage, *, writes: bool = False) -> None:
        """Build a handler for a message.

        Args:
            plain: the message for ptars.
            writes: whether it writes messages, not reads them.

        Raises:
            ImportError: without the package ptars.
        """
        from ptars import HandlerPool, PtarsConfig  # noqa: PLC0415 - optional

        config = PtarsConfig(
            timestamp_unit="us",
            time_unit="us",
            duration_unit="us",
            # ptars writes numbers without a name only where it has numbers.
            enum_repr="int32" if writes else "string",
            list_value_name="element",
            # Without it, a message in a map whose entry has no value is a panic.
            map_value_nullable=True,
        )
        self._plain = plain
        self._handler = HandlerPool([plain.descriptor.file], config=config).get_for_message(plain.descriptor)
        given = pa.struct(list(self._handler.schema()))
        self.fields: list[pa.Field] = list(self._as_column(given, plain.descriptor))

    def read(self, values: pa.Array) -> list[pa.Array]:
        """Return an array for each field of the message; nulls are empty messages."""
        columns: list[pa.Array] = self._handler.array_to_record_batch(values).columns
        if not self._plain.names:
            return columns
        return [_relabeled(column, field.type) for column, field in zip(columns, self.fields, strict=True)]

    def writer(self, kind: pa.DataType) -> StructWriter:
        """Return the writer for structs of a type, which has some of the fields with their types."""
        return StructWriter(self._handler, _plan(kind, self._plain.descriptor, self._plain.names))

    def _as_column(self, kind: pa.DataType, message: Any) -> pa.DataType:
        """Return a type with the fields' own names, and with strings for enums."""
        own = {other: name for name, other in self._plain.names.get(message.full_name, {}).items()}
        fields = []
        for each in kind:
            item, inner = _item_of(each.type, message.fields_by_name[each.name])
            if inner.enum_type is not None:
                item = pa.string()
            elif _has_fields(item, inner):
                item = self._as_column(item, inner.message_type)
            if pa.types.is_map(each.type):
                item = pa.map_(each.type.key_type, each.type.item_field.with_type(item))
            elif pa.types.is_list(each.type):
                item = pa.list_(each.type.value_field.with_type(item))
            fields.append(pa.field(own.get(each.name, each.name), item, each.nullable))
        return pa.struct(fields)


class StructWriter:
    """Writes structs as messages.

    Runs on: executor; pure computation. Does not pickle.
    """

    def __init__(self, handler: Any, plan: _Change | None) -> None:
        self._handler = handler
        self._plan = plan

    def write(self, column: pa.Array) -> pa.Array:
        """Return a binary array. A text of an enum is one of its names, or a number; a null is an empty message."""
        names = [each.name for each in column.type]
        if not names:
            return pa.array([b""] * len(column), pa.binary())
        children = column.flatten()
        if self._plan is not None:
            names = list(self._plan.names or names)
            children = [_applied(each, self._plan.parts.get(at)) for at, each in enumerate(children)]
        return self._handler.record_batch_to_array(pa.RecordBatch.from_arrays(children, names=names))


@dataclass(frozen=True, slots=True)
class _Change:
    """The change of a column's part before ptars writes it.

    Attributes:
        parts: its parts: a struct's fields by their places; the items of a list or a map, by 0.
        names: for a struct, the changed names of its fields; None: their own.
        enum: for an enum, its names and their numbers.
    """

    parts: dict[int, _Change]
    names: tuple[str, ...] | None = None
    enum: tuple[pa.Array, pa.Array] | None = None


def _plan(kind: pa.DataType, message: Any, names: dict[str, dict[str, str]]) -> _Change | None:
    """Return the change of a struct; None without one."""
    others = names.get(message.full_name, {})
    parts = {}
    for place, each in enumerate(kind):
        field = message.fields_by_name[others.get(each.name, each.name)]
        item, inner = _item_of(each.type, field)
        if inner.enum_type is not None:
            found: _Change | None = _Change({}, enum=enum_numbers(inner.enum_type))
        else:
            found = _plan(item, inner.message_type, names) if _has_fields(item, inner) else None
        if found is not None:
            parts[place] = found if item is each.type else _Change({0: found})
    if not parts and not others:
        return None
    return _Change(parts, tuple(others[each.name] for each in kind) if others else None)


def _applied(column: pa.Array, part: _Change | None) -> pa.Array:
    if part is None:
        return column
    kind = column.type
    if part.enum is not None:
        return _numbers(column, *part.enum)
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return column
        children = [_applied(each, part.parts.get(at)) for at, each in enumerate(column.flatten())]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, names=part.names or [each.name for each in kind], mask=mask)
    if pa.types.is_list(kind):
        items = _applied(column.values, part.parts[0])
        return with_items(column, pa.list_(pa.field(kind.value_field.name, items.type)), items)
    items = _applied(column.items, part.parts[0])
    wanted = pa.map_(kind.key_type, pa.field("value", items.type))
    pairs = pa.StructArray.from_arrays([column.keys, items], fields=list(wanted.field(0).type))
    return with_items(column, wanted, pairs)


def enum_numbers(enum: Any) -> tuple[pa.Array, pa.Array]:
    """Return the names of an enum, and their numbers."""
    values = enum.values_by_name
    return pa.array(list(values), pa.string()), pa.array([each.number for each in values.values()], pa.int32())


def find_unnamed(texts: pa.Array, names: pa.Array) -> pa.Array | None:
    """Return a mask of texts that are neither a name nor a possible number of an enum; None without one."""
    known = pc.is_in(texts, value_set=names)
    if texts.null_count:
        known = pc.or_(known, pc.is_null(texts))
    if pc.all(known).as_py():
        return None
    wrong = pc.and_(pc.invert(known), pc.is_null(_parsed(texts)))
    return wrong if pc.any(wrong).as_py() else None


def _numbers(texts: pa.Array, names: pa.Array, numbers: pa.Array) -> pa.Array:
    found = numbers.take(pc.index_in(texts, value_set=names))
    return pc.coalesce(found, _parsed(texts)) if found.null_count > texts.null_count else found


def _parsed(texts: pa.Array) -> pa.Array:
    """Return the numbers that texts are, null for others."""
    number = pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, None).cast(pa.int64())
    in_range = pc.and_(pc.greater_equal(number, -(1 << 31)), pc.less(number, 1 << 31))
    return pc.if_else(in_range, number, None).cast(pa.int32())


def _relabeled(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as a type that has other names of fields."""
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return column
        children = [_relabeled(column.field(at), each.type) for at, each in enumerate(kind)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_list(kind):
        return with_items(column, kind, _relabeled(column.values, kind.value_type))
    if pa.types.is_map(kind):
        pairs = [column.keys, _relabeled(column.items, kind.item_type)]
        return with_items(column, kind, pa.StructArray.from_arrays(pairs, fields=list(kind.field(0).type)))
    return column


def _item_of(kind: pa.DataType, field: Any) -> tuple[pa.DataType, Any]:
    """Return the item type of a list or a map, and its field; else both as they are."""
    if pa.types.is_map(kind):
        return kind.item_type, field.message_type.fields_by_name["value"]
    return (kind.value_type, field) if pa.types.is_list(kind) else (kind, field)


def _has_fields(kind: pa.DataType, field: Any) -> bool:
    return field.message_type is not None and bool(pa.types.is_struct(kind))
