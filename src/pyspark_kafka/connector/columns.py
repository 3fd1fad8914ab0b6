"""Columns of rows to be written that say which type they have in the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_TYPE_NAME = b"typeName"


def with_type_name(field: pa.Field, name: str) -> pa.Field:
    """Return a column that notes the name of its type in the engine, such as `bigint`, for `type_name`."""
    return field.with_metadata({**(field.metadata or {}), _TYPE_NAME: name.encode()})


def type_name(field: pa.Field) -> str:
    """Return the name of a column's type as users know it: in the engine, or in Arrow if the engine noted none."""
    noted = (field.metadata or {}).get(_TYPE_NAME)
    return str(field.type) if noted is None else noted.decode()
