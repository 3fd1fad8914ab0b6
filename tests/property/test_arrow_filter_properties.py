"""Filters as conditions of Arrow let the same rows through as the filters say of themselves."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._connector.table.arrow_filters import expression_of
from pyspark_kafka.connector import filters

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("nested", pa.struct([("b", pa.binary())])),
    ]
)
_COLUMNS: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("n",): st.integers(-2, 2),
    ("text",): st.sampled_from(["", "a", "ab", "ba", "%"]),
    ("at",): st.integers(-1, 1).map(lambda ms: _EPOCH + timedelta(milliseconds=ms)),
    ("nested", "b"): st.sampled_from([b"", b"a", b"ab"]),
}
_COMPARED: list[type[Any]] = [
    filters.EqualTo,
    filters.EqualNullSafe,
    filters.GreaterThan,
    filters.GreaterThanOrEqual,
    filters.LessThan,
    filters.LessThanOrEqual,
]
_OF_TEXT: list[type[Any]] = [filters.StringStartsWith, filters.StringEndsWith, filters.StringContains]


@st.composite
def conditions(draw: st.DrawFn) -> filters.Filter:
    column = draw(st.sampled_from(sorted(_COLUMNS)))
    value = st.one_of(_COLUMNS[column], _COLUMNS[column], st.none())
    found: filters.Filter = draw(
        st.one_of(
            st.builds(lambda kind, v: kind(column, v), st.sampled_from(_COMPARED), value),
            st.lists(value, max_size=3).map(lambda several: filters.In(column, tuple(several))),
            st.sampled_from([filters.IsNull(column), filters.IsNotNull(column)]),
            st.builds(lambda kind, v: kind(("text",), v), st.sampled_from(_OF_TEXT), st.one_of(value, st.none()))
            if column == ("text",)
            else st.just(filters.IsNull(column)),
        )
    )
    return filters.Not(found) if draw(st.booleans()) else found


rows = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), _COLUMNS["n",]),
        "text": st.one_of(st.none(), _COLUMNS["text",]),
        "at": st.one_of(st.none(), _COLUMNS["at",]),
        "nested": st.one_of(st.none(), st.fixed_dictionaries({"b": st.one_of(st.none(), _COLUMNS["nested", "b"])})),
    }
)


@given(wanted=st.lists(conditions(), min_size=1, max_size=3), data=st.lists(rows, max_size=8))
def test_condition_keeps_the_rows_of_which_all_filters_are_true(
    wanted: list[filters.Filter], data: list[dict[str, Any]]
) -> None:
    batch = pa.RecordBatch.from_pylist(data, _SCHEMA)
    expected = [row for row in data if all(each.evaluate(row) is True for each in wanted)]
    assert batch.filter(expression_of(wanted, _SCHEMA)).to_pylist() == expected
