"""Headers behind those that rows have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._connector.sink.executor.header_columns import append_constant_headers

PRESENT = pa.array([True, False, True])


def headers(rows: list[Any], text: pa.DataType, raw: pa.DataType) -> pa.Array:
    return pa.array(rows, pa.list_(pa.struct([("key", text), ("value", raw)])))


def pairs(column: pa.Array) -> list[list[tuple[str, bytes | None]]]:
    assert column.null_count == 0
    return [[(each["key"], each["value"]) for each in row] for row in column.to_pylist()]


def test_rows_without_headers_get_those_that_are_theirs() -> None:
    found = append_constant_headers(None, [("k", b"1", pa.array([False, False, True])), ("v", b"2", PRESENT)])
    assert pairs(found) == [[("v", b"2")], [], [("k", b"1"), ("v", b"2")]]


@pytest.mark.parametrize(
    ("text", "raw"), [(pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())], ids=["small", "large"]
)
def test_headers_of_rows_stand_first(text: pa.DataType, raw: pa.DataType) -> None:
    own = headers(
        [[{"key": "a", "value": None}, {"key": "b", "value": b""}], [{"key": "c", "value": b"x"}], None], text, raw
    )
    found = append_constant_headers(own, [("v", b"2", PRESENT)])
    assert found.type.value_type == own.type.value_type
    assert pairs(found) == [[("a", None), ("b", b""), ("v", b"2")], [("c", b"x")], [("v", b"2")]]
    assert pairs(append_constant_headers(own.slice(1), [("v", b"2", PRESENT.slice(1))])) == [
        [("c", b"x")],
        [("v", b"2")],
    ]


def test_empty_batch_gets_no_constant_headers() -> None:
    assert pairs(append_constant_headers(None, [("v", b"2", pa.array([], pa.bool_()))])) == []
