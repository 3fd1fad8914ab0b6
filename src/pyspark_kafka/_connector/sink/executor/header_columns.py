"""Headers of this package after the headers of rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def header_type(headers: pa.Array[Any] | None) -> pa.StructType:
    """Return the type of one header: as in the column, or struct<key: string, value: binary> if there is none."""
    return pa.struct([("key", pa.string()), ("value", pa.binary())]) if headers is None else headers.type.value_type


def append_headers(headers: pa.Array[Any] | None, ours: Any, owners: Any, counts: Any) -> pa.Array[Any]:
    """Return each row's headers, with our headers after them.

    Shape: list<struct<key, value>> without nulls.

    Args:
        headers: the rows' own: list<struct<key, value>>, null for none; None if no row has any.
        ours: structs, row after row.
        owners: the row of each of them, as int64, ascending.
        counts: how many of them each row has, as int32.
    """
    if headers is None:
        return pa.ListArray.from_arrays(_ends(counts), ours)
    # A stable sort by row puts a row's own headers first.
    places = pa.concat_arrays([pc.list_parent_indices(headers).cast(pa.int64()), owners])
    every = pa.concat_arrays([pc.list_flatten(headers), ours]).take(pc.array_sort_indices(places))
    own = pc.fill_null(pc.list_value_length(headers), 0).cast(pa.int32())
    return pa.ListArray.from_arrays(_ends(pc.add(own, counts)), every)


def append_constant_headers(
    headers: pa.Array[Any] | None, added: Sequence[tuple[str, bytes, pa.Array[Any]]]
) -> pa.Array[Any]:
    """Return each row's headers with some behind them that are the same in every row that has them.

    Args:
        headers: as in `append_headers`.
        added: name, value and the rows that get the header, as booleans.
    """
    element = header_type(headers)
    rows = len(added[0][2])
    owners = [pc.indices_nonzero(present).cast(pa.int64()) for _, _, present in added]
    keys = [pa.repeat(pa.scalar(name), len(at)) for (name, _, _), at in zip(added, owners, strict=True)]
    values = [pa.repeat(pa.scalar(value), len(at)) for (_, value, _), at in zip(added, owners, strict=True)]
    every = pa.concat_arrays(owners)
    order = pc.array_sort_indices(every)
    ours = pa.StructArray.from_arrays(
        [
            pa.concat_arrays(keys).cast(element.field("key").type).take(order),
            pa.concat_arrays(values).cast(element.field("value").type).take(order),
        ],
        fields=[element.field("key"), element.field("value")],
    )
    counts = pa.repeat(pa.scalar(0, pa.int32()), rows)
    for _, _, present in added:
        counts = pc.add(counts, present.cast(pa.int32()))
    return append_headers(headers, ours, every.take(order), counts)


def _ends(counts: Any) -> Any:
    """Return the offsets of lists with these numbers of elements."""
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts)])
