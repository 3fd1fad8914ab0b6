"""Whatever filters there are: what is read, and then filtered by what Spark is left with, is all that they let through.

The other side of the comparison reads everything and evaluates the filters as SQL does, with its three truth values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.spark.filters import connector_filter
from pyspark_kafka._connector.table.record_filters import translate_filters

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def column(self, name: str) -> Any:
        # Spark has the record's milliseconds as a time.
        return _EPOCH + timedelta(milliseconds=self.timestamp_ms) if name == "timestamp" else getattr(self, name)


values: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from("ab"),
    "partition": st.integers(-1, 3),
    "offset": st.integers(-1, 6),
    "timestamp": st.integers(-2_500, 4_500).map(
        lambda us: (_EPOCH + timedelta(microseconds=us)).astimezone(timezone(timedelta(hours=us % 5 - 2)))
    ),
}
comparisons: list[type[Any]] = [
    spark.EqualTo,
    spark.EqualNullSafe,
    spark.GreaterThan,
    spark.GreaterThanOrEqual,
    spark.LessThan,
    spark.LessThanOrEqual,
]


@st.composite
def filters(draw: st.DrawFn) -> spark.Filter:
    column = draw(st.sampled_from(["timestamp", *sorted(values)]))
    value = st.one_of(values[column], values[column], values[column], st.none())
    compared = st.builds(lambda kind, v: kind((column,), v), st.sampled_from(comparisons), value)
    made: spark.Filter = draw(
        st.one_of(
            compared,
            compared,
            compared,
            st.lists(value, max_size=4).map(lambda several: spark.In((column,), tuple(several))),
            st.sampled_from([spark.IsNull((column,)), spark.IsNotNull((column,))]),
        )
    )
    for _ in range(draw(st.integers(0, 2))):
        made = spark.Not(made)
    return made


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Records of some partitions, whose times go up and down."""
    rows = []
    for topic in "ab":
        for partition in range(3):
            times = draw(st.lists(st.integers(-2, 4), max_size=6))
            rows += [Row(topic, partition, offset, at) for offset, at in enumerate(times)]
    return rows


def truth(pushed: spark.Filter, row: Row) -> bool | None:
    if isinstance(pushed, spark.Not):
        inner = truth(pushed.child, row)
        return None if inner is None else not inner
    found = row.column(pushed.attribute[0])  # type: ignore[attr-defined]
    if isinstance(pushed, spark.IsNull):
        return False
    if isinstance(pushed, spark.IsNotNull):
        return True
    value: Any = pushed.value  # type: ignore[attr-defined]
    if isinstance(pushed, spark.In):
        return True if found in value else (None if None in value else False)
    if value is None:
        return False if isinstance(pushed, spark.EqualNullSafe) else None
    compare: dict[type[Any], Callable[[], bool]] = {
        spark.EqualTo: lambda: found == value,
        spark.EqualNullSafe: lambda: found == value,
        spark.GreaterThan: lambda: found > value,
        spark.GreaterThanOrEqual: lambda: found >= value,
        spark.LessThan: lambda: found < value,
        spark.LessThanOrEqual: lambda: found <= value,
    }
    return compare[type(pushed)]()


def evaluated(rows: Iterable[Row], pushed: Iterable[spark.Filter]) -> list[Row]:
    wanted = list(pushed)
    return [row for row in rows if all(truth(one, row) is True for one in wanted)]


@given(logs(), st.lists(st.lists(filters(), max_size=3), min_size=12, max_size=12))
def test_records_read_and_filtered_again_are_those_that_all_filters_let_through(
    rows: list[Row], queries: list[list[spark.Filter]]
) -> None:
    for pushed in queries:
        assert read_and_filtered(rows, pushed) == evaluated(rows, pushed)


def read_and_filtered(rows: list[Row], pushed: list[spark.Filter]) -> list[Row]:
    """Return the records that a query gets that has pushed filters down."""
    translated = [(each, connector_filter(each)) for each in pushed]
    wanted, not_kept = translate_filters([known for _, known in translated if known is not None])
    left = [each for each, known in translated if known is None or known in not_kept]
    read: list[Row] = []
    for topic_partition in sorted({TopicPartition(row.topic, row.partition) for row in rows}):
        log = [row for row in rows if (row.topic, row.partition) == (topic_partition.topic, topic_partition.partition)]
        if not wanted.takes(topic_partition):
            continue
        start = wanted.offset_from
        if wanted.seek_ms is not None:
            # As brokers look up a time: the first record of it or later, in the order of offsets.
            start = max(start, next((row.offset for row in log if row.timestamp_ms >= wanted.seek_ms), len(log)))
        read += [row for row in log if start <= row.offset < wanted.offset_by]
    return evaluated(read, left)
