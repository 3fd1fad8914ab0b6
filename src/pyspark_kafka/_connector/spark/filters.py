"""PySpark's filters as filters of the connector API. Pure."""

from __future__ import annotations

from pyspark.sql import datasource as spark

from pyspark_kafka.connector import filters

_KINDS: dict[type[spark.Filter], type[filters.ColumnFilter]] = {
    spark.EqualTo: filters.EqualTo,
    spark.EqualNullSafe: filters.EqualNullSafe,
    spark.GreaterThan: filters.GreaterThan,
    spark.GreaterThanOrEqual: filters.GreaterThanOrEqual,
    spark.LessThan: filters.LessThan,
    spark.LessThanOrEqual: filters.LessThanOrEqual,
    spark.IsNull: filters.IsNull,
    spark.IsNotNull: filters.IsNotNull,
    spark.StringStartsWith: filters.StringStartsWith,
    spark.StringEndsWith: filters.StringEndsWith,
    spark.StringContains: filters.StringContains,
}


def connector_filter(pushed: spark.Filter) -> filters.Filter | None:
    """Return a filter of PySpark as one of the connector API; None if that has no such kind.

    Runs on: driver; pure.
    """
    if isinstance(pushed, spark.Not):
        child = connector_filter(pushed.child)
        return None if child is None else filters.Not(child)
    if type(pushed) is spark.In:
        return filters.In(tuple(pushed.attribute), tuple(pushed.value))
    kind = _KINDS.get(type(pushed))
    if kind is None:
        return None
    values = (pushed.value,) if issubclass(kind, filters.ValueFilter) else ()  # type: ignore[attr-defined]
    return kind(tuple(pushed.attribute), *values)  # type: ignore[attr-defined]
