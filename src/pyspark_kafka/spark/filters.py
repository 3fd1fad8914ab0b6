"""Spark's filters on the source's own columns, as filters on topic-partitions and offsets. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from pyspark_kafka.planning.filtering import NOTHING, RecordFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
# Columns that are never null, whatever a schema of the user's declares.
_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EVERYTHING = RecordFilter()

# A filter on records, and whether it is the whole of Spark's filter: if so, Spark need not evaluate that again.
_Meaning = tuple[RecordFilter, bool]


def translate_filters(filters: Sequence[spark.Filter]) -> tuple[RecordFilter, list[spark.Filter]]:
    """Return the filters as one on topic-partitions and offsets, and those that Spark must evaluate as well.

    A filter on `topic`, `partition` or `offset` is left to Spark where a range cannot express it (`offset <> 5`); one
    on `timestamp` always is, since records are not ordered by time.

    Runs on: driver; pure.
    """
    places: list[RecordFilter] = []
    left: list[spark.Filter] = []
    for pushed in filters:
        meaning = _meaning(pushed)
        if meaning is not None:
            places.append(meaning[0])
        if meaning is None or not meaning[1]:
            left.append(pushed)
    return reduce(and_, places, _EVERYTHING), left


def _meaning(pushed: spark.Filter) -> _Meaning | None:
    """Return a filter that lets at least the same records through; None if there is no narrower one than all."""
    if isinstance(pushed, spark.Not):
        return _negated(pushed.child)
    column = _column(pushed)
    if column not in _NEVER_NULL:
        return None
    if isinstance(pushed, spark.IsNotNull):
        return _EVERYTHING, True
    if isinstance(pushed, spark.IsNull):
        return NOTHING, True
    if isinstance(pushed, spark.In):
        # Null matches nothing: it is as if it were not in the list.
        return _one_of(column, [value for value in pushed.value if value is not None])
    for kind, translate in _COMPARISONS.items():
        if type(pushed) is kind:
            value = _value(pushed)
            return (NOTHING, True) if value is None else translate(column, value)
    return None


def _negated(child: spark.Filter) -> _Meaning | None:
    column = _column(child)
    if isinstance(child, spark.Not):
        return _meaning(child.child)
    if column not in _NEVER_NULL:
        return None
    if isinstance(child, spark.IsNull):
        return _EVERYTHING, True
    if isinstance(child, spark.IsNotNull):
        return NOTHING, True
    if isinstance(child, spark.In):
        return (NOTHING, True) if None in child.value else _none_of(column, list(child.value))
    if type(child) in _OPPOSITES:
        value = _value(child)
        # A comparison with null is neither true nor false, and neither is its opposite.
        return (NOTHING, True) if value is None else _COMPARISONS[_OPPOSITES[type(child)]](column, value)
    if isinstance(child, (spark.EqualTo, spark.EqualNullSafe)):
        if child.value is None:
            return (_EVERYTHING if isinstance(child, spark.EqualNullSafe) else NOTHING), True
        return _none_of(column, [child.value])
    return None


def _column(pushed: spark.Filter) -> str:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _value(pushed: spark.Filter) -> Any:
    return getattr(pushed, "value", None)


def _one_of(column: str, values: list[Any]) -> _Meaning | None:
    if not all(_fits(column, value) for value in values):
        return None
    if not values:
        return NOTHING, True
    if column == "topic":
        return RecordFilter(topics=frozenset(values)), True
    if column == "partition":
        return RecordFilter(partitions=frozenset(values)), True
    if column == "offset":
        adjacent = max(values) - min(values) + 1 == len(set(values))
        return RecordFilter(offset_from=min(values), offset_by=max(values) + 1), adjacent
    if column == "timestamp":
        return RecordFilter(not_before_ms=min(map(_ceiling_ms, values))), False
    return None


def _none_of(column: str, values: list[Any]) -> _Meaning | None:
    if not all(_fits(column, value) for value in values):
        return None
    if column == "topic":
        return RecordFilter(other_topics=frozenset(values)), True
    if column == "partition":
        return RecordFilter(other_partitions=frozenset(values)), True
    return None


def _at_least(column: str, value: Any) -> _Meaning | None:
    if not _fits(column, value):
        return None
    if column == "partition":
        return RecordFilter(partition_from=value), True
    if column == "offset":
        return RecordFilter(offset_from=value), True
    if column == "timestamp":
        return RecordFilter(not_before_ms=_ceiling_ms(value)), False
    return None


def _below(column: str, value: Any) -> _Meaning | None:
    if not _fits(column, value):
        return None
    if column == "partition":
        return RecordFilter(partition_by=value), True
    if column == "offset":
        return RecordFilter(offset_by=value), True
    return None


def _above(column: str, value: Any) -> _Meaning | None:
    if column == "timestamp" and _fits(column, value):
        # Records' times are whole milliseconds: the first one above it is the one after its own.
        return RecordFilter(not_before_ms=_floor_ms(value) + 1), False
    return _at_least(column, value + 1) if _is_whole_number(value) else None


def _up_to(column: str, value: Any) -> _Meaning | None:
    return _below(column, value + 1) if _is_whole_number(value) else None


def _fits(column: str, value: Any) -> bool:
    if column == "topic":
        return isinstance(value, str)
    if column == "timestamp":
        return isinstance(value, datetime) and value.tzinfo is not None
    return _is_whole_number(value)


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _floor_ms(value: datetime) -> int:
    return (value - _EPOCH) // _MILLISECOND


def _ceiling_ms(value: datetime) -> int:
    return -((_EPOCH - value) // _MILLISECOND)


_COMPARISONS: dict[type[spark.Filter], Callable[[str, Any], _Meaning | None]] = {
    spark.EqualTo: lambda column, value: _one_of(column, [value]),
    spark.EqualNullSafe: lambda column, value: _one_of(column, [value]),
    spark.GreaterThanOrEqual: _at_least,
    spark.GreaterThan: _above,
    spark.LessThan: _below,
    spark.LessThanOrEqual: _up_to,
}
_OPPOSITES: dict[type[spark.Filter], type[spark.Filter]] = {
    spark.LessThan: spark.GreaterThanOrEqual,
    spark.LessThanOrEqual: spark.GreaterThan,
    spark.GreaterThan: spark.LessThanOrEqual,
    spark.GreaterThanOrEqual: spark.LessThan,
}
