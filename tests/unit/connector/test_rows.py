"""Rows as Arrow batches: equal rows and mixed ones come to the same columns, and wrong ones are named."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from pyspark_kafka.connector.rows import batch_of_rows
from pyspark_kafka.errors import ContractError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


class Named(NamedTuple):
    id: int
    name: str | None


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a"), (2, None)],
        [{"id": 1, "name": "a"}, {"name": None, "id": 2}],
        [{"id": 1, "name": "a"}, {"id": 2}],
        [[1, "a"], (2, None)],
        [Named(1, "a"), Named(2, None)],
        [OrderedDict(name="a", id=1), {"id": 2}],
        [(1, "a"), {"id": 2}],
    ],
)
def test_rows_of_each_kind_are_the_same_columns(rows: list[Any]) -> None:
    batch = batch_of_rows(rows, SCHEMA, "owner", "rows")
    assert batch.schema == SCHEMA
    assert batch.to_pydict() == {"id": [1, 2], "name": ["a", None]}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, "a"), (2,)], "tuples of 2 values, and returned 1 values"),
        ([(1,), (2,)], "tuples of 2 values, and returned 1 values"),
        ([(1, "a", 3)], "tuples of 2 values, and returned 3 values"),
        ([{"id": 1, "other": "a"}], r"columns \['other'\]"),
        ([{"id": 1, "name": "a"}, {"id": 1, "name": "a", "other": 1}], r"columns \['other'\]"),
        ([1, 2], "must return dictionaries, or tuples"),
        ([(1, "a"), None], "must return dictionaries, or tuples"),
        ([(None, "a")], "a null in column 'id'"),
        ([{"name": "a"}], "a null in column 'id'"),
        ([("x", "a")], "for column 'id' of type int64"),
    ],
)
def test_wrong_row_is_named(rows: list[Any], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        batch_of_rows(rows, SCHEMA, "owner", "rows")
