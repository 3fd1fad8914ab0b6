"""Records as they are shown: cut, whatever they hold."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._ops.operations.tail.shown import BadPart, ShownPart, ShownRecord, json_text, shown_records
from pyspark_kafka._typed.typed.read_formats import CORRUPT_TYPE

WHERE = TopicPartition("t", 3)


def batch(**columns: list[Any]) -> pa.RecordBatch:
    rows = len(next(iter(columns.values())))
    given = {
        "key": [None] * rows,
        "value": [None] * rows,
        "topic": ["t"] * rows,
        "partition": [3] * rows,
        "offset": list(range(rows)),
        "timestamp": [0] * rows,
        "timestampType": [0] * rows,
        "headers": [None] * rows,
    } | columns
    return pa.RecordBatch.from_pydict(given, schema=SOURCE_SCHEMA)


def test_record_is_shown_with_all_its_parts() -> None:
    headers = [{"key": "a", "value": b"\xff"}, {"key": "b", "value": None}]
    records = batch(key=[b"k"], value=[b""], offset=[7], timestamp=[1_999_999], timestampType=[1], headers=[headers])
    assert list(shown_records(records, None, WHERE, 10)) == [
        ShownRecord(
            WHERE,
            7,
            1_999,
            is_append_time=True,
            key=ShownPart(b"k", 1),
            value=ShownPart(b"", 0),
            headers=(("a", ShownPart(b"\xff", 1)), ("b", None)),
        )
    ]


def test_rows_that_were_chosen_are_shown() -> None:
    records = batch(offset=[5, 6, 7])
    assert [each.offset for each in shown_records(records, [0, 2], WHERE, 10)] == [5, 7]


def test_large_parts_are_cut_with_their_size() -> None:
    headers = [{"key": "h" * 20, "value": b"x" * 20}] * 101
    (record,) = shown_records(batch(value=[b"v" * 1_000_000], headers=[headers]), None, WHERE, 4)
    assert record.value == ShownPart(b"vvvv", 1_000_000)
    assert record.value.is_cut
    assert (len(record.headers), record.more_headers) == (100, 1)
    assert record.headers[0] == ("hhhh …", ShownPart(b"xxxx", 20))


def test_bad_value_is_shown_as_bytes_with_its_reason() -> None:
    corrupt = {
        "column": "value",
        "reason": "DECODE_FAILED",
        "message": "it ends early",
        "schemaId": None,
        "rawKey": b"k",
        "rawValue": b"\x00\x01",
    }
    records = batch(key=[b"k", b"k"]).append_column("_corrupt", pa.array([corrupt, None], CORRUPT_TYPE))
    bad, good = shown_records(records, None, WHERE, 10, "_corrupt")
    assert (bad.key, bad.value) == (ShownPart(b"k", 1), ShownPart(b"\x00\x01", 2))
    assert bad.bad == BadPart("value", "DECODE_FAILED", "it ends early")
    assert (good.value, good.bad) == (None, None)


@pytest.mark.parametrize(
    ("content", "size", "text"),
    [
        (b"abc", 3, "abc"),
        ("é".encode(), 2, "é"),
        (b"ab\xc3", 9, "ab"),
        (b"ab\xc3", 3, None),
        (b"\xff\xc3", 9, None),
        (b"\xe2\x82", 9, ""),
    ],
)
def test_text_is_that_of_whole_characters(content: bytes, size: int, text: str | None) -> None:
    assert ShownPart(content, size).text() == text


@given(st.text(), st.integers(1, 20))
def test_text_that_is_cut_anywhere_is_its_beginning(text: str, max_bytes: int) -> None:
    data = text.encode()
    shown = ShownPart(data[:max_bytes], len(data)).text()
    assert shown is not None
    assert text.startswith(shown)
    assert len(data) - len(shown.encode()) <= max(0, len(data) - max_bytes) + 3


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (pa.scalar({"a": 1, "b": [None, 2.5]}), {"a": 1, "b": [None, 2.5]}),
        (pa.scalar([("k", 1)], pa.map_(pa.string(), pa.int32())), [["k", 1]]),
        (pa.scalar(float("nan")), "nan"),
        (pa.scalar(b"text"), "text"),
        (pa.scalar(b"\xff"), "/w=="),
        (pa.scalar(Decimal("1.50")), "1.50"),
        (pa.scalar(dt.date(2026, 1, 2)), "2026-01-02"),
        (pa.scalar(0, pa.timestamp("us", tz="UTC")), "1970-01-01T00:00:00+00:00"),
        (pa.scalar(dt.timedelta(seconds=90)), "0:01:30"),
    ],
)
def test_typed_value_is_json(scalar: Any, expected: Any) -> None:
    assert json.loads(json_text(scalar)) == expected


def test_time_that_python_does_not_have_is_no_error() -> None:
    assert "it cannot be shown" in json_text(pa.scalar(1 << 62, pa.timestamp("us", tz="UTC")))


def test_typed_value_is_cut_as_its_json() -> None:
    schema = SOURCE_SCHEMA.set(1, pa.field("value", pa.struct([pa.field("a", pa.string())])))
    records = batch(offset=[0])
    columns = [
        records.column(name) if name != "value" else pa.array([{"a": "x" * 50}], schema.field(1).type)
        for name in schema.names
    ]
    (record,) = shown_records(pa.RecordBatch.from_arrays(columns, schema=schema), None, WHERE, 8)
    assert record.value == ShownPart(b'{"a":"xx', 58, is_json=True)
