"""Filters as conditions of Arrow: what is refused. Their meaning is in tests/property."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka._connector.table.arrow_filters import expression_of
from pyspark_kafka.connector import filters
from pyspark_kafka.errors import SchemaError

_SCHEMA = pa.schema([("n", pa.int64()), ("nested", pa.struct([("b", pa.binary())]))])


class Foreign(filters.Filter):
    def evaluate(self, row: object) -> bool | None:
        raise AssertionError(row)


def test_no_filter_is_no_condition() -> None:
    assert expression_of([], _SCHEMA) is None


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (filters.IsNull(("other",)), "the column 'other', which the read does not return"),
        (filters.IsNull(("nested", "c")), r"the column 'nested\.c', which the read does not return"),
        (filters.IsNull(("n", "c")), r"the column 'n\.c', which the read does not return"),
        (Foreign(), "of no known kind"),
        (filters.Not(Foreign()), "of no known kind"),
    ],
)
def test_filter_that_cannot_be_evaluated_is_refused(wanted: filters.Filter, text: str) -> None:
    with pytest.raises(SchemaError, match=text) as raised:
        expression_of([wanted], _SCHEMA)
    assert raised.value.condition == "FILTER_NOT_SUPPORTED"
