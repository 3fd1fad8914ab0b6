"""What filters say of partitions, offsets and times, and what an engine must evaluate itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning.record_filter import NOTHING, RecordFilter
from pyspark_kafka._connector.table.record_filters import translate_filters
from pyspark_kafka.connector.filters import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

P, O, T, TS = ("partition",), ("offset",), ("topic",), ("timestamp",)  # noqa: E741 - a column, not a zero
EVERYTHING = RecordFilter()
AT = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=timezone.utc)
AT_MS = 1_700_000_000_500


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (EqualTo(P, 1), RecordFilter(partitions=frozenset({1}))),
        (EqualNullSafe(P, 1), RecordFilter(partitions=frozenset({1}))),
        (In(P, (1, 2, None)), RecordFilter(partitions=frozenset({1, 2}))),
        (Not(EqualTo(P, 1)), RecordFilter(other_partitions=frozenset({1}))),
        (Not(In(P, (1, 2))), RecordFilter(other_partitions=frozenset({1, 2}))),
        (GreaterThan(P, 1), RecordFilter(partition_from=2)),
        (GreaterThanOrEqual(P, 1), RecordFilter(partition_from=1)),
        (LessThan(P, 1), RecordFilter(partition_by=1)),
        (LessThanOrEqual(P, 1), RecordFilter(partition_by=2)),
        (EqualTo(T, "a"), RecordFilter(topics=frozenset({"a"}))),
        (In(T, ("a", "b")), RecordFilter(topics=frozenset({"a", "b"}))),
        (Not(EqualTo(T, "a")), RecordFilter(other_topics=frozenset({"a"}))),
        (EqualTo(O, 5), RecordFilter(offset_from=5, offset_by=6)),
        (In(O, (7, 5, 6)), RecordFilter(offset_from=5, offset_by=8)),
        (GreaterThan(O, 5), RecordFilter(offset_from=6)),
        (GreaterThanOrEqual(O, 5), RecordFilter(offset_from=5)),
        (LessThan(O, 5), RecordFilter(offset_by=5)),
        (LessThanOrEqual(O, 2**63 - 1), RecordFilter(offset_by=2**63)),
        (Not(GreaterThan(O, 5)), RecordFilter(offset_by=6)),
        (Not(GreaterThanOrEqual(O, 5)), RecordFilter(offset_by=5)),
        (Not(LessThan(O, 5)), RecordFilter(offset_from=5)),
        (Not(LessThanOrEqual(O, 5)), RecordFilter(offset_from=6)),
        (Not(Not(EqualTo(P, 1))), RecordFilter(partitions=frozenset({1}))),
        (IsNotNull(O), EVERYTHING),
        (IsNotNull(("timestampType",)), EVERYTHING),
        (Not(IsNull(O)), EVERYTHING),
        (Not(EqualNullSafe(P, None)), EVERYTHING),
        (IsNull(TS), NOTHING),
        (Not(IsNotNull(TS)), NOTHING),
        # A comparison with null is true of no row, and neither is its opposite.
        (EqualTo(P, None), NOTHING),
        (EqualNullSafe(P, None), NOTHING),
        (LessThan(O, None), NOTHING),
        (Not(LessThan(O, None)), NOTHING),
        (Not(EqualTo(T, None)), NOTHING),
        (In(P, (None,)), NOTHING),
        (Not(In(P, (1, None))), NOTHING),
    ],
)
def test_filters_that_ranges_express_are_taken_from_the_engine(pushed: Filter, expected: RecordFilter) -> None:
    assert translate_filters([pushed]) == (expected, [])


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (In(O, (5, 9)), RecordFilter(offset_from=5, offset_by=10)),
        (GreaterThanOrEqual(TS, AT), RecordFilter(not_before_ms=AT_MS)),
        (GreaterThan(TS, AT), RecordFilter(not_before_ms=AT_MS + 1)),
        (EqualTo(TS, AT), RecordFilter(not_before_ms=AT_MS)),
        (In(TS, (AT, AT - timedelta(seconds=1))), RecordFilter(not_before_ms=AT_MS - 1000)),
        (Not(LessThan(TS, AT)), RecordFilter(not_before_ms=AT_MS)),
        (Not(LessThanOrEqual(TS, AT)), RecordFilter(not_before_ms=AT_MS + 1)),
        # Between two milliseconds, where no record's time is.
        (GreaterThanOrEqual(TS, AT + timedelta(microseconds=1)), RecordFilter(not_before_ms=AT_MS + 1)),
        (GreaterThan(TS, AT + timedelta(microseconds=1)), RecordFilter(not_before_ms=AT_MS + 1)),
        (GreaterThan(TS, AT - timedelta(microseconds=1)), RecordFilter(not_before_ms=AT_MS)),
        # Before 1970, in the hour that an autumn has twice, and in any zone.
        (GreaterThan(TS, datetime(1969, 12, 31, 23, 59, 59, 999_500, timezone.utc)), RecordFilter(not_before_ms=0)),
        (
            GreaterThanOrEqual(TS, datetime(2023, 11, 5, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York"))),
            RecordFilter(not_before_ms=1_699_165_800_000),
        ),
    ],
)
def test_filters_that_ranges_express_in_part_are_left_to_the_engine_as_well(
    pushed: Filter, expected: RecordFilter
) -> None:
    assert translate_filters([pushed]) == (expected, [pushed])


@pytest.mark.parametrize(
    "pushed",
    [
        # The end of a time is not an offset: records are not ordered by time.
        LessThan(TS, AT),
        LessThanOrEqual(TS, AT),
        Not(GreaterThan(TS, AT)),
        Not(EqualTo(TS, AT)),
        Not(EqualTo(O, 5)),
        GreaterThan(T, "a"),
        StringStartsWith(T, "a"),
        Not(StringStartsWith(T, "a")),
        EqualTo(("timestampType",), 0),
        EqualTo(("value",), b"x"),
        IsNull(("key",)),
        Not(IsNull(("key",))),
        EqualTo(("headers", "key"), "h"),
        IsNotNull(("topic", "inner")),
        # Values of other types than an engine passes for these columns.
        EqualTo(P, True),
        GreaterThan(O, 1.5),
        GreaterThan(O, "1"),
        GreaterThan(TS, datetime(2023, 11, 14)),  # noqa: DTZ001 - without a zone it is not a point in time
        EqualTo(T, 5),
    ],
    ids=repr,
)
def test_filters_that_ranges_cannot_express_are_left_to_the_engine(pushed: Filter) -> None:
    found, left = translate_filters([pushed])
    assert found == EVERYTHING
    assert left == [pushed]


def test_filters_left_to_the_engine_are_the_objects_that_it_passed() -> None:
    one, other = LessThan(TS, AT), LessThan(TS, AT)
    _, left = translate_filters([one, EqualTo(P, 1), other])
    assert [id(pushed) for pushed in left] == [id(one), id(other)]


@pytest.mark.parametrize(
    "pushed",
    [
        [EqualTo(P, 1), EqualTo(P, 2)],
        [EqualTo(P, 1), Not(EqualTo(P, 1))],
        [GreaterThan(O, 5), LessThanOrEqual(O, 5)],
        [EqualTo(T, "t"), EqualTo(T, "u")],
        [EqualTo(O, -1)],
    ],
)
def test_a_contradiction_leaves_nothing_to_read(pushed: list[Any]) -> None:
    found, left = translate_filters(pushed)
    assert left == []
    assert not any(found.takes(TopicPartition(topic, number)) for topic in "tu" for number in range(4))
