"""The number of cells in a JSON value's items, before they are allocated. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pyspark_kafka._typed.codecs.bounds import CELLS_PER_BYTE
from pyspark_kafka._typed.codecs.json.documents import items_of

# `{},` in a list.
_MIN_ITEM_BYTES = 3


def widest_item(kind: pa.DataType) -> int:
    """Return the number of cells in the widest item of a list or map, at any depth; 0 if all have enough bytes."""
    widest = max((_width(each) for each in _item_types(kind)), default=0)
    return widest if widest > CELLS_PER_BYTE * _MIN_ITEM_BYTES else 0


def may_have_many(text: bytes, widest: int) -> bool:
    """Return whether a value may have more cells than its bytes allow: only structs are wide, and each has a brace."""
    return (text.count(b"{") + text.count(b"null")) * widest > CELLS_PER_BYTE * len(text)


def cell_counter(kind: pa.DataType) -> Callable[[Any], int] | None:
    """Return a counter of cells in a value's items, as far as it fits its type; None for a type without any."""
    if pa.types.is_struct(kind):
        found = ((each.name, cell_counter(each.type)) for each in kind)
        fields = [(name, count) for name, count in found if count is not None]

        def of_struct(value: Any) -> int:
            return sum(count(value[name]) for name, count in fields if name in value) if isinstance(value, dict) else 0

        return of_struct if fields else None
    if not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    of_list = bool(pa.types.is_list(kind))
    item = kind.value_type if of_list else kind.item_type
    width, inner = _width(item) + (not of_list), cell_counter(item)

    def of_items(value: Any) -> int:
        if of_list:
            items = value if isinstance(value, list) else []
        else:
            items = list(items_of(value)) if isinstance(value, dict) else []
        return len(items) * width + (0 if inner is None else sum(map(inner, items)))

    return of_items


def _width(kind: pa.DataType) -> int:
    """Return the number of cells in a row of a type, without items of lists and maps."""
    return 1 + (sum(_width(each.type) for each in kind) if pa.types.is_struct(kind) else 0)


def _item_types(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(kind):
        return [found for each in kind for found in _item_types(each.type)]
    if pa.types.is_list(kind):
        return [kind.value_type, *_item_types(kind.value_type)]
    return [kind.item_type, *_item_types(kind.item_type)] if pa.types.is_map(kind) else []
