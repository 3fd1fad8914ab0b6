"""Items of maps whose entries have no value: in a message map such an item is an empty message.

ptars reads them as nulls. Source: "Maps" of protobuf.dev: an entry is a message, and its fields may be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_kafka._typed.codecs.projection import with_items

# The number of the value in an entry.
_VALUE = 2


@dataclass(frozen=True, slots=True)
class MessageMaps:
    """The places of message maps in a type.

    Attributes:
        parts: the parts with message maps: a struct's fields by their places; the items of a list or a map, by 0.
        empty: for a message map, returns an array with an empty message, read at the first call; else None.
    """

    parts: dict[int, MessageMaps]
    empty: Callable[[], pa.Array] | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """A field on the way from a message to one in it."""

    number: int
    place: int
    is_map: bool


def find_message_maps(descriptor: Any, kind: pa.DataType, read: Callable[[bytes], pa.Array]) -> MessageMaps | None:
    """Return the places of message maps in a message; None without one.

    Args:
        descriptor: the message.
        kind: the type of its column.
        read: returns the column of a single value.
    """
    return _find(descriptor, kind, read, ())


def fill_items(column: pa.Array, maps: MessageMaps) -> pa.Array:
    """Return a column with empty messages in place of null map items."""
    kind = column.type
    if pa.types.is_struct(kind):
        fields = [column.field(place) for place in range(kind.num_fields)]
        filled = [fill_items(each, maps.parts[at]) if at in maps.parts else each for at, each in enumerate(fields)]
        if all(new is old for new, old in zip(filled, fields, strict=True)):
            return column
        return pa.StructArray.from_arrays(
            filled, fields=list(kind), mask=column.is_null() if column.null_count else None
        )
    before = column.values if pa.types.is_list(kind) else column.items
    items = before
    if maps.empty is not None and items.null_count:
        rows = np.where(np.asarray(items.is_valid()), np.arange(len(items)), len(items))
        items = pa.concat_arrays([items, maps.empty()]).take(pa.array(rows))
    if 0 in maps.parts:
        items = fill_items(items, maps.parts[0])
    if items is before:
        return column
    if pa.types.is_map(kind):
        items = pa.StructArray.from_arrays([column.keys, items], fields=list(kind.field(0).type))
    return with_items(column, kind, items)


def _find(
    descriptor: Any, kind: pa.DataType, read: Callable[[bytes], pa.Array], way: tuple[_Step, ...]
) -> MessageMaps | None:
    parts = {}
    for place, each in enumerate(kind):
        field = descriptor.fields_by_name[each.name]
        message, inner = field.message_type, each.type
        if message is None:
            continue
        is_map = message.GetOptions().map_entry
        if is_map:
            message = message.fields_by_name["value"].message_type
            if message is None:
                continue
        step = (*way, _Step(field.number, place, is_map))
        nested = pa.types.is_map(inner) or pa.types.is_list(inner)
        item = (inner.item_type if is_map else inner.value_type) if nested else inner
        below = _find(message, item, read, step) if pa.types.is_struct(item) else None
        if is_map:
            parts[place] = MessageMaps({} if below is None else {0: below}, cache(partial(_empty, read, step)))
        elif below is not None:
            parts[place] = MessageMaps({0: below}) if nested else below
    return MessageMaps(parts) if parts else None


def _empty(read: Callable[[bytes], pa.Array], way: tuple[_Step, ...]) -> pa.Array:
    return _reach(read(_text(way)), way)


def _text(way: tuple[_Step, ...]) -> bytes:
    """Return a message with an empty one at the end of a way."""
    text = b""
    for step in reversed(way):
        text = _delimited(step.number, _delimited(_VALUE, text) if step.is_map else text)
    return text


def _reach(column: pa.Array, way: tuple[_Step, ...]) -> pa.Array:
    for step in way:
        column = column.field(step.place)
        if pa.types.is_map(column.type):
            column = column.items
        elif pa.types.is_list(column.type):
            column = column.values
    return column


def _delimited(number: int, text: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
