"""The columns that pass through a query unchanged. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka._ops.lineage.values import DatasetColumn

# What a record has; the sink's columns `topic` and `partition` only say where it goes.
_OF_RECORDS = ("key", "value", "headers")


def straight_paths(read: Sequence[DatasetColumn], written: Sequence[DatasetColumn]) -> dict[str, str]:
    """Return for each written column the read column that it is a copy of, by name.

    Args:
        read: the columns of the read.
        written: the columns of the write, of a query that changes no value and no name.
    """
    known = set(_leaves(read))
    return {name: name for name in _leaves(each for each in written if each.name in _OF_RECORDS) if name in known}


def _leaves(columns: Iterable[DatasetColumn], prefix: str = "") -> list[str]:
    found: list[str] = []
    for column in columns:
        name = f"{prefix}{column.name}"
        # A map or an array is one column: its parts have no names of their own.
        found += _leaves(column.fields, f"{name}.") if column.type == "struct" and column.fields else [name]
    return found
