"""Aggregates in parts: types, nulls, NaN, texts and overflow as in Spark, whatever the parts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.steps.partial_aggregates import FUNCTIONS, Aggregates, aggregate
from pyspark_kafka.errors import RecordError, SchemaError

NAN, INF = float("nan"), float("inf")


def results(kind: pa.DataType, groups: list[list[list[Any]]], *functions: str) -> pa.Table:
    """Return the aggregates of a column "x", of groups whose values come in several parts."""
    schema = pa.schema([("x", kind)])
    found = Aggregates(tuple(aggregate(each, each, "x", schema) for each in functions))
    tables = []
    for number, parts in enumerate(groups):
        for values in parts:
            given = [Decimal(value) if pa.types.is_decimal(kind) and value is not None else value for value in values]
            rows = pa.RecordBatch.from_arrays([pa.array(given, kind)], schema=schema)
            numbers = pa.array([number] * len(values), pa.int64())
            table = pa.table([numbers, *found.of_rows(rows)], ["number", *found.names])
            tables.append(found.merged(table, ["number"]))
    kept = found.merged(pa.concat_tables(tables), ["number"])
    assert kept.schema.types == [pa.int64(), *(field.type for field in found.fields)]
    assert kept.column("number").to_pylist() == list(range(len(groups)))
    return pa.table(found.results(kept), schema=pa.schema([each.field for each in found.aggregates]))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_whole_numbers_have_bigint_sums_and_double_averages(kind: Any) -> None:
    found = results(kind, [[[100, None], [100, 1]], [[None], [None]], [[-5]]], *FUNCTIONS[:-1])
    assert found.schema.types == [pa.int64(), pa.int64(), kind, kind, pa.float64()]
    assert found.to_pylist() == [
        {"count": 3, "sum": 201, "min": 1, "max": 100, "avg": 67.0},
        {"count": 0, "sum": None, "min": None, "max": None, "avg": None},
        {"count": 1, "sum": -5, "min": -5, "max": -5, "avg": -5.0},
    ]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_the_greatest_number(kind: Any) -> None:
    groups: list[list[list[Any]]] = [
        [[1.5, NAN], [INF]],
        [[NAN, NAN]],
        [[-INF, 0.25], [None]],
        [[-1.5], [-2.5]],
        [[None, None]],
    ]
    found = results(kind, groups, "min", "max", "sum", "count")
    assert found.schema.types == [kind, kind, pa.float64(), pa.int64()]
    assert str(found.to_pylist()) == str(
        [
            {"min": 1.5, "max": NAN, "sum": NAN, "count": 3},
            {"min": NAN, "max": NAN, "sum": NAN, "count": 2},
            {"min": -INF, "max": 0.25, "sum": -INF, "count": 2},
            {"min": -2.5, "max": -1.5, "sum": -4.0, "count": 2},
            {"min": None, "max": None, "sum": None, "count": 0},
        ]
    )


@pytest.mark.parametrize(
    ("kind", "less", "greater"),
    [
        (pa.string(), "a", "é"),
        (pa.string(), "", "a"),
        (pa.binary(), b"a\x7f", b"a\x80"),
        (pa.bool_(), False, True),
        (pa.date32(), dt.date(1960, 1, 1), dt.date(2020, 1, 1)),
        (pa.timestamp("us"), dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        (pa.decimal128(10, 2), Decimal("-1.50"), Decimal("0.25")),
    ],
)
def test_least_and_greatest_value_are_those_of_any_part(kind: Any, less: Any, greater: Any) -> None:
    groups: list[list[list[Any]]] = [[[greater, None], [less, greater]], [[less], [None]], [[None]]]
    found = results(kind, groups, "min", "max", "count")
    assert found.schema.types == [kind, kind, pa.int64()]
    assert [list(row.values()) for row in found.to_pylist()] == [[less, greater, 3], [less, less, 1], [None, None, 0]]


def test_decimals_have_the_digits_of_spark() -> None:
    found = results(pa.decimal128(10, 2), [[["1.00", "1.00"], ["0.00"]], [[None]], [["-1.00", "-1.00", "0.00"]]],
                    "sum", "avg")  # fmt: skip
    assert found.schema.types == [pa.decimal128(20, 2), pa.decimal128(14, 6)]
    assert found.column("sum").to_pylist() == [Decimal("2.00"), None, Decimal("-2.00")]
    assert found.column("avg").to_pylist() == [Decimal("0.666667"), None, Decimal("-0.666667")]
    large = results(pa.decimal128(38, 4), [[["1.0000", "2.0000"]]], "sum", "avg")
    assert large.schema.types == [pa.decimal128(38, 4), pa.decimal128(38, 8)]


MAX, MIN = 2**63 - 1, -(2**63)


@pytest.mark.parametrize("parts", [[[MAX - 1, 1]], [[MAX, MIN], [MAX, 0]], [[MIN + 1, -1], [0]], [[MAX, 1, -1]]])
def test_sum_up_to_the_ends_of_a_bigint_is_exact(parts: list[list[int]]) -> None:
    assert results(pa.int64(), [parts], "sum").column("sum").to_pylist() == [sum(map(sum, parts))]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (pa.int64(), [[MAX, 1]]),
        (pa.int64(), [[MAX], [1]]),
        (pa.int64(), [[MIN], [-1]]),
        (pa.decimal128(38, 0), [["9" * 38], ["1"]]),
        (pa.decimal128(38, 0), [["-" + "9" * 38, "-1"]]),
    ],
)
def test_sum_out_of_range_is_an_error(kind: Any, parts: list[list[Any]]) -> None:
    with pytest.raises(RecordError, match="The sum of column 'x' is outside the range of") as raised:
        results(kind, [[[0]], parts] if kind == pa.int64() else [parts], "sum")
    assert raised.value.condition == "SUM_OUT_OF_RANGE"


def test_average_of_bigints_does_not_overflow() -> None:
    assert results(pa.int64(), [[[MAX, MAX]]], "avg").column("avg").to_pylist() == [float(MAX)]


def test_rows_are_counted_by_a_star() -> None:
    schema = pa.schema([("x", pa.int64())])
    found = Aggregates((aggregate("n", "count", "*", schema), aggregate("x", "count", "x", schema)))
    rows = pa.RecordBatch.from_arrays([pa.array([None, 1, None], pa.int64())], schema=schema)
    kept = found.merged(pa.table([pa.array([0, 0, 1]), *found.of_rows(rows)], ["g", *found.names]), ["g"])
    assert [column.to_pylist() for column in found.results(kept)] == [[2, 1], [1, 0]]


def test_parts_that_aggregates_share_are_kept_once() -> None:
    schema = pa.schema([("x", pa.float64()), ("n", pa.int32())])
    pairs = [("sum", "x"), ("avg", "x"), ("mean", "x"), ("count", "x"), ("avg", "n"), ("sum", "n"), ("count", "*")]
    found = Aggregates(tuple(aggregate(f"{number}", *each, schema) for number, each in enumerate(pairs)))
    assert found.names == ["rows", "sum(x)", "count(x)", "total(n)", "count(n)", "sum(n)"]


@pytest.mark.parametrize(
    ("function", "column", "text"),
    [
        ("median", "n", "there is no aggregate 'median'; the aggregates are count, sum, min, max, avg, mean"),
        ("sum", "*", "sum needs a column"),
        ("sum", "m", "there is no column 'm'; the columns are n, text, list, big"),
        ("sum", "text", "sum does not take column 'text', which has type string"),
        ("avg", "big", "avg does not take column 'big', which has type uint64"),
        ("max", "list", "max does not take column 'list'"),
    ],
)
def test_aggregate_that_cannot_be_computed_is_refused(function: str, column: str, text: str) -> None:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int8())), ("big", pa.uint64())])
    with pytest.raises(SchemaError) as raised:
        aggregate("name", function, column, schema)
    assert raised.value.condition == "AGGREGATE_INVALID"
    assert f"'name': {text}" in str(raised.value)
    assert aggregate("name", "count", "list", schema).field == pa.field("name", pa.int64())
