"""Which records are shown."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._ops.operations.tail.match import RecordMatch

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
RAW = pa.struct([pa.field("rawKey", pa.binary()), pa.field("rawValue", pa.binary())])


def rows(match: RecordMatch, *, value_type: pa.DataType = pa.binary(), **columns: list[Any]) -> list[int] | None:  # noqa: B008
    count = len(next(iter(columns.values())))
    types = {"key": pa.binary(), "value": value_type, "headers": HEADERS, "bad": RAW}
    arrays = {name: pa.array(columns.get(name, [None] * count), kind) for name, kind in types.items()}
    found = match.rows(pa.RecordBatch.from_pydict(arrays), "bad")
    return None if found is None else found.tolist()


def test_match_without_conditions_takes_all() -> None:
    assert rows(RecordMatch(), key=[b"a", None]) is None


@pytest.mark.parametrize(("text", "expected"), [("b", [0, 1]), ("é", [2]), ("B", []), (".", [3])])
def test_text_is_found_in_key_or_value_as_it_stands(text: str, expected: list[int]) -> None:
    keys, values = [b"abc", None, None, b"."], [None, b"xbx", "né".encode(), b"\xff"]
    assert rows(RecordMatch(text=text), key=keys, value=values) == expected


def test_key_is_the_whole_key() -> None:
    assert rows(RecordMatch(key="a"), key=[b"a", b"ab", None, b""]) == [0]
    assert rows(RecordMatch(key=""), key=[b"a", None, b""]) == [2]


def test_headers_are_all_there() -> None:
    entries = [
        [{"key": "a", "value": b"1"}],
        [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}],
        None,
        [{"key": "a", "value": None}],
    ]
    assert rows(RecordMatch(headers=(("a", "1"),)), headers=entries) == [0, 1]
    assert rows(RecordMatch(headers=(("a", "1"), ("b", "2"))), headers=entries) == [1]


def test_conditions_hold_together() -> None:
    match = RecordMatch(text="x", key="k")
    assert rows(match, key=[b"k", b"k", b"j"], value=[b"x", b"y", b"x"]) == [0]


def test_typed_values_are_searched_as_json_and_bad_ones_as_bytes() -> None:
    kind = pa.struct([pa.field("name", pa.string())])
    values = [{"name": "ann"}, {"name": "bob"}, None]
    bad = [None, None, {"rawKey": None, "rawValue": b"\xffann"}]
    assert rows(RecordMatch(text='"name":"ann"'), value_type=kind, value=values, bad=bad) == [0]
    assert rows(RecordMatch(text="ann"), value_type=kind, value=values, bad=bad) == [0, 2]
