"""Filters on the source's own columns, as filters on topic-partitions and offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import reduce
from operator import and_
from typing import Any

from pyspark_kafka._connector.planning.record_filter import NOTHING, RecordFilter
from pyspark_kafka.connector import filters

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
# Columns that are never null, whatever a schema of the user's declares.
_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EVERYTHING = RecordFilter()

# A filter on records, and whether it is the whole of the engine's filter: if so, that need not be evaluated again.
_Meaning = tuple[RecordFilter, bool]


def translate_filters(wanted: Sequence[filters.Filter]) -> tuple[RecordFilter, list[filters.Filter]]:
    """Return the filters as one on topic-partitions and offsets, and filters that the engine must evaluate as well.

    A filter on `topic`, `partition` or `offset` is left to the engine where a range cannot express it (`offset <> 5`);
    one on `timestamp` always is, since records are not ordered by time.

    Runs on: driver; pure.
    """
    places: list[RecordFilter] = []
    left: list[filters.Filter] = []
    for pushed in wanted:
        meaning = _meaning(pushed)
        if meaning is not None:
            places.append(meaning[0])
        if meaning is None or not meaning[1]:
            left.append(pushed)
    return reduce(and_, places, _EVERYTHING), left


def _meaning(pushed: filters.Filter) -> _Meaning | None:
    """Return a filter that lets at least the same records through; None if there is no narrower one than all."""
    if isinstance(pushed, filters.Not):
        return _negated(pushed.child)
    column = _column(pushed)
    if column not in _NEVER_NULL:
        return None
    if isinstance(pushed, filters.IsNotNull):
        return _EVERYTHING, True
    if isinstance(pushed, filters.IsNull):
        return NOTHING, True
    if isinstance(pushed, filters.In):
        # Null matches nothing: it is as if it were not in the list.
        return _one_of(column, [value for value in pushed.value if value is not None])
    for kind, translate in _COMPARISONS.items():
        if type(pushed) is kind:
            value = _value(pushed)
            return (NOTHING, True) if value is None else translate(column, value)
    return None


def _negated(child: filters.Filter) -> _Meaning | None:
    column = _column(child)
    if isinstance(child, filters.Not):
        return _meaning(child.child)
    if column not in _NEVER_NULL:
        return None
    if isinstance(child, filters.IsNull):
        return _EVERYTHING, True
    if isinstance(child, filters.IsNotNull):
        return NOTHING, True
    if isinstance(child, filters.In):
        return (NOTHING, True) if None in child.value else _none_of(column, list(child.value))
    if type(child) in _OPPOSITES:
        value = _value(child)
        # A comparison with null is neither true nor false, and neither is its opposite.
        return (NOTHING, True) if value is None else _COMPARISONS[_OPPOSITES[type(child)]](column, value)
    if isinstance(child, (filters.EqualTo, filters.EqualNullSafe)):
        if child.value is None:
            return (_EVERYTHING if isinstance(child, filters.EqualNullSafe) else NOTHING), True
        return _none_of(column, [child.value])
    return None


def _column(pushed: filters.Filter) -> str:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _value(pushed: filters.Filter) -> Any:
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


_COMPARISONS: dict[type[filters.Filter], Callable[[str, Any], _Meaning | None]] = {
    filters.EqualTo: lambda column, value: _one_of(column, [value]),
    filters.EqualNullSafe: lambda column, value: _one_of(column, [value]),
    filters.GreaterThanOrEqual: _at_least,
    filters.GreaterThan: _above,
    filters.LessThan: _below,
    filters.LessThanOrEqual: _up_to,
}
_OPPOSITES: dict[type[filters.Filter], type[filters.Filter]] = {
    filters.LessThan: filters.GreaterThanOrEqual,
    filters.LessThanOrEqual: filters.GreaterThan,
    filters.GreaterThan: filters.LessThanOrEqual,
    filters.GreaterThanOrEqual: filters.LessThan,
}
