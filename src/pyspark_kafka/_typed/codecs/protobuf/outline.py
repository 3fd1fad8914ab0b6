"""Verdicts on Protobuf values before they are read: bad, to be merged, or good, and their number of cells.

The library that reads leaves both members of a oneof, keeps the last part of some messages where all count, and bounds
neither groups nor columns: a value passes here first.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pyspark_kafka._typed.codecs.avro.arrow_memory import byte_ranges, validity
from pyspark_kafka._typed.codecs.bounds import CELLS_PER_BYTE, FREE_CELLS
from pyspark_kafka._typed.codecs.protobuf import _variant
from pyspark_kafka._typed.codecs.protobuf.descriptors import is_repeated

# Numbers of fields below it have a place each in a table.
_DENSE = 256
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_IS_REPEATED, _IS_MESSAGE, _IS_TEXT = 1, 2, 4


def build_walk(descriptor: Any, kind: pa.DataType, whole: Any = None) -> Any:
    """Return the walker over a message's values.

    Runs on: driver and executor, once a column. For one thread at a time.

    Args:
        descriptor: the message.
        kind: the type that it is read as: a field of it that is a struct has columns of its own, a message within
            itself has bytes.
        whole: the message with the fields that are left out; a field of a oneof ends the others though it is not read.
    """
    return _Tables(descriptor, kind, whole or descriptor).walk()


def build_form_walk(descriptor: Any) -> Any:
    """Return the walker over a message's values that checks their form."""
    return _Tables(descriptor, None, descriptor).walk()


class Checked(NamedTuple):
    """The results for values: a verdict on each, whether all are good, the cells of each value's items and of all."""

    verdicts: Any
    are_good: bool
    cells: Any
    all_cells: int


def check_values(walk: Any, values: pa.Array, skipped: int = 0) -> Checked:
    """Walk over values.

    Args:
        walk: of the message.
        values: of type binary or large_binary. The verdict on a null is good.
        skipped: bytes at the beginning of each value that are not part of it.
    """
    verdicts, cells = np.zeros(len(values), np.uint8), np.zeros(len(values), np.int64)
    if not len(values):
        return Checked(verdicts, True, cells, 0)
    ends, data = byte_ranges(values)
    others, total = walk.check(data, ends, skipped, validity(values), verdicts, cells)
    return Checked(verdicts, others == 0, cells, total)


def find_too_many(cells: Any, sizes: Any) -> list[int]:
    """Return the rows that have too many cells, in order.

    Together the others have at most 16 cells for each byte, and 4 million. A value that has more alone is always among
    them; if several have more together, those with the highest surplus are.

    Args:
        cells: of the items of each value, 64-bit.
        sizes: the bytes of each value, 64-bit; 0 where there is none.
    """
    surplus = np.maximum(cells - CELLS_PER_BYTE * sizes, 0)
    if surplus.sum() <= FREE_CELLS:
        return []
    # Of equal ones the first remain.
    order = np.argsort(surplus, kind="stable")
    kept = int(np.searchsorted(np.cumsum(surplus[order]), FREE_CELLS, side="right"))
    return sorted(order[kept:].tolist())


class _Tables:
    """The fields of a schema's messages, in the kernel's arrays."""

    def __init__(self, descriptor: Any, kind: pa.DataType | None, whole: Any) -> None:
        # By node: its fields by their numbers.
        self._nodes: list[dict[int, int]] = []
        self._forms: dict[str, int] = {}
        # Field 0 is none.
        self._fields: list[tuple[int, int, int, int, int, int]] = [(-1, 0, -1, -1, 0, 0)]
        self._oneofs = 0
        if kind is None:
            self._add_form(descriptor)
        else:
            self._add(descriptor, kind, whole)

    def walk(self) -> Any:
        """Return the kernel's object."""
        dense, sparse_numbers, sparse = array("i"), array("i"), array("i")
        places: tuple[array[int], ...] = (array("i"), array("i"), array("i"), array("i"))
        for every in self._nodes:
            fields = {number: field for number, field in every.items() if field}
            small = min(max(fields, default=-1) + 1, _DENSE)
            large = sorted(number for number in fields if number >= small)
            for into, number in zip(places, (len(dense), small, len(sparse), len(large)), strict=True):
                into.append(number)
            dense.extend(fields.get(number, 0) for number in range(small))
            sparse_numbers.extend(large)
            sparse.extend(fields[number] for number in large)
        columns = tuple(array("i", column) for column in zip(*self._fields, strict=True))
        seen = array("q", [-1]) * len(self._fields), array("q", [-1]) * self._oneofs, array("i", [0]) * self._oneofs
        return _variant.outline.FieldWalk(places, (dense, sparse_numbers, sparse), columns, seen)

    def _add(self, descriptor: Any, kind: pa.DataType, whole: Any) -> tuple[int, int]:
        """Add a message with columns, and return its node and the number of its columns."""
        node, cells, fields = len(self._nodes), 1, dict[int, int]()
        self._nodes.append(fields)
        types = {each.name: each.type for each in kind}
        oneofs = {each.name: self._oneofs + place for place, each in enumerate(_oneofs(whole))}
        self._oneofs += len(oneofs)
        for field in descriptor.fields:
            inner, own = field.message_type, types[field.name]
            width = 1
            child = -1
            if inner is not None:
                below = whole.fields_by_number[field.number].message_type
                if pa.types.is_map(own):
                    child, width = self._add(inner, own.field(0).type, below)
                else:
                    item = own.value_type if pa.types.is_list(own) else own
                    if pa.types.is_struct(item):
                        child, width = self._add(inner, item, below)
                    else:
                        child = self._add_form(below)
            repeated = is_repeated(field)
            cells += 1 if repeated else width
            oneof = None if field.containing_oneof is None else oneofs.get(field.containing_oneof.name)
            flags = _IS_REPEATED if repeated else 0
            flags |= _IS_MESSAGE if inner is not None else 0
            fields[field.number] = self._field(field, flags, child, -1 if oneof is None else oneof, width)
        for each in _oneofs(whole):
            for field in each.fields:
                if field.number not in fields:
                    # It is not read, and ends the other members.
                    fields[field.number] = self._field(field, 0, -1, oneofs[each.name], 0)
        return node, cells

    def _add_form(self, descriptor: Any) -> int:
        """Add a message that has no columns, and return its node."""
        found = self._forms.get(descriptor.full_name)
        if found is not None:
            return found
        first = node = self._forms[descriptor.full_name] = self._new_node()
        left = [(node, descriptor)]
        while left:
            node, message = left.pop()
            for field in message.fields:
                child = -1
                inner = field.message_type
                if inner is not None:
                    known = self._forms.get(inner.full_name)
                    if known is None:
                        known = self._forms[inner.full_name] = self._new_node()
                        left.append((known, inner))
                    child = known
                flags = _IS_TEXT if field.type == field.TYPE_STRING else 0
                self._nodes[node][field.number] = self._field(field, flags, child, -1, 0)
        return first

    def _new_node(self) -> int:
        self._nodes.append({})
        return len(self._nodes) - 1

    def _field(self, field: Any, flags: int, child: int, oneof: int, width: int) -> int:
        """Add a field, and return its number; 0 if it is of no interest, as most are."""
        wire, size = _wire(field)
        size = size if is_repeated(field) else 0
        if not flags and child < 0 and oneof < 0 and not size:
            return 0
        self._fields.append((wire, flags, child, oneof, width, size))
        return len(self._fields) - 1


def _oneofs(descriptor: Any) -> list[Any]:
    """Return the oneofs of a message, without oneofs of a single field that is marked optional."""
    return [each for each in descriptor.oneofs if len(each.fields) > 1]


def _wire(field: Any) -> tuple[int, int]:
    """Return the wire type of a field, and the bytes of an item in a packed list; 1 for varints, 0 if it has none."""
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FIXED64, field.TYPE_SFIXED64):
        return _FIXED64, 8
    if field.type in (field.TYPE_FLOAT, field.TYPE_FIXED32, field.TYPE_SFIXED32):
        return _FIXED32, 4
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE):
        return _DELIMITED, 0
    # A group is skipped.
    return (-1, 0) if field.type == field.TYPE_GROUP else (_VARINT, 1)
