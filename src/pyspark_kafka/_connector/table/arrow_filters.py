"""Filters of the connector API as conditions of Arrow. Pure."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.connector import filters
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COMPARISONS: dict[type[filters.Filter], Callable[[Any, Any], pc.Expression]] = {
    filters.EqualTo: lambda column, value: column == value,
    filters.GreaterThan: lambda column, value: column > value,
    filters.GreaterThanOrEqual: lambda column, value: column >= value,
    filters.LessThan: lambda column, value: column < value,
    filters.LessThanOrEqual: lambda column, value: column <= value,
    filters.StringStartsWith: lambda column, value: pc.starts_with(column, pattern=value.as_py()),
    filters.StringEndsWith: lambda column, value: pc.ends_with(column, pattern=value.as_py()),
    filters.StringContains: lambda column, value: pc.match_substring(column, pattern=value.as_py()),
}


def expression_of(wanted: Sequence[filters.Filter], schema: pa.Schema) -> pc.Expression | None:
    """Return the condition that a row passes all filters; None without a filter. Null is neither true nor false.

    Args:
        wanted: the filters.
        schema: the columns of the rows.

    Raises:
        SchemaError: a filter names a column that the rows do not have, or is of an unknown kind.
    """
    return reduce(and_, (_expression(each, schema) for each in wanted)) if wanted else None


def _expression(wanted: filters.Filter, schema: pa.Schema) -> pc.Expression:
    if isinstance(wanted, filters.Not):
        return ~_expression(wanted.child, schema)
    if not isinstance(wanted, filters.ColumnFilter):
        raise _refused(f"The filter {wanted!r} is of no known kind.")
    kind = _type_of(wanted.attribute, schema)
    column = pc.field(*wanted.attribute) if len(wanted.attribute) == 1 else pc.field(tuple(wanted.attribute))
    if isinstance(wanted, filters.IsNull):
        return column.is_null()
    if isinstance(wanted, filters.IsNotNull):
        return column.is_valid()
    if isinstance(wanted, filters.In):
        return _one_of(column, wanted.value, kind)
    if not isinstance(wanted, filters.ValueFilter):
        raise _refused(f"The filter {wanted!r} is of no known kind.")
    if wanted.value is None:
        return column.is_null() if isinstance(wanted, filters.EqualNullSafe) else _unknown()
    value = pa.scalar(wanted.value, kind)
    if isinstance(wanted, filters.EqualNullSafe):
        return column.is_valid() & (column == value)
    return _COMPARISONS[type(wanted)](column, value)


def _unknown() -> pc.Expression:
    """Return the truth value of a comparison with null."""
    return pc.scalar(pa.scalar(None, pa.bool_()))


def _one_of(column: pc.Expression, values: Sequence[Any], kind: pa.DataType) -> pc.Expression:
    """Return whether a column has one of the values, in SQL's logic, which Arrow's `isin` does not have."""
    found = column.isin(pa.array([value for value in values if value is not None], kind))
    if None in values:
        found = pc.if_else(found, found, _unknown())
    return pc.if_else(column.is_valid(), found, _unknown())


def _type_of(attribute: Sequence[str], schema: pa.Schema) -> pa.DataType:
    kind: Any = pa.struct(list(schema))
    for name in attribute:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            raise _refused(f"A filter names the column {'.'.join(attribute)!r}, which the read does not return.")
        kind = kind.field(name).type
    return kind


def _refused(sentence: str) -> SchemaError:
    return SchemaError(
        f"{sentence} Nothing was read.",
        condition="FILTER_NOT_SUPPORTED",
        hint="Use filters of pyspark_kafka.connector.filters, on columns that are returned.",
    )
