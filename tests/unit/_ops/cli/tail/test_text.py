"""A record as a line, and as JSON."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp
from pyspark_kafka._ops.cli.tail.text import part_text, time_text, to_json, to_line
from pyspark_kafka._ops.operations.tail.request import parse_start
from pyspark_kafka._ops.operations.tail.shown import BadPart, ShownPart, ShownRecord

AT_MS = 1_767_225_600_007
WHERE = TopicPartition("orders", 3)


def test_line_has_time_place_key_value_and_headers() -> None:
    headers = (("trace", ShownPart(b"1", 1)), ("none", None))
    record = ShownRecord(WHERE, 12, AT_MS, key=None, value=ShownPart(b'{"a":1}', 7), headers=headers, more_headers=2)
    assert to_line(record, utc=True).plain == (
        '2026-01-01T00:00:00.007Z  orders-3  12  null  {"a":1}  [trace=1, none=null, … 2 more]'
    )


def test_line_of_a_bad_value_says_why() -> None:
    record = ShownRecord(
        WHERE, 12, None, value=ShownPart(b"\x00", 1), bad=BadPart("value", "DECODE_FAILED", "it\nends")
    )
    assert to_line(record, utc=True).plain == (
        "no time  orders-3  12  null  \\x00  bad value: DECODE_FAILED: it\\nends"
    )


@given(st.binary(), st.text(), st.binary())
def test_line_cannot_drive_a_terminal(key: bytes, name: str, value: bytes) -> None:
    record = ShownRecord(
        WHERE,
        1,
        AT_MS,
        key=ShownPart(key, len(key)),
        value=ShownPart(value, len(value) + 5),
        headers=((name, ShownPart(value, len(value))),),
        bad=BadPart("value", name, name),
    )
    assert to_line(record, utc=True).plain.isprintable()


@pytest.mark.parametrize("data", [b"\x1b]0;evil\x07", b"\r\n", b"\xc2\x9b31m", "\u202e".encode(), b"\xff\x1b"])
def test_sequences_that_terminals_obey_are_escaped(data: bytes) -> None:
    shown = part_text(ShownPart(data, len(data)))
    assert shown.isprintable()
    assert shown.startswith("\\")


def test_cut_part_says_how_much_there_is() -> None:
    assert part_text(ShownPart(b"abc", 104_857_600)) == "abc… (3 of 104,857,600 bytes)"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "UTC"])
def test_shown_time_is_read_as_the_same_time(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for utc in (True, False):
            assert parse_start(time_text(AT_MS, utc=utc), 0) == AtTimestamp(AT_MS)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("time_ms", [1 << 62, -(1 << 62), 253_402_300_800_000])
def test_time_that_python_does_not_have_is_a_number(time_ms: int) -> None:
    assert time_text(time_ms, utc=True) == f"{time_ms} ms since 1970"


def test_json_marks_bytes_that_are_no_text_and_what_was_cut() -> None:
    record = ShownRecord(
        WHERE, 12, AT_MS, key=ShownPart(b"\xff\xfe", 2), value=ShownPart(b"ab", 9), headers=(("h\x1b", None),)
    )
    text = json.dumps(to_json(record, utc=True))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {
        "topic": "orders",
        "partition": 3,
        "offset": 12,
        "timestamp_ms": AT_MS,
        "timestamp": "2026-01-01T00:00:00.007Z",
        "timestamp_type": "CreateTime",
        "key": "//4=",
        "key_encoding": "base64",
        "value": "ab",
        "value_encoding": "utf-8",
        "value_bytes": 9,
        "value_cut": True,
        "headers": [{"name": "h\x1b", "value": None}],
    }


def test_json_of_a_typed_value_is_the_value_unless_it_is_cut() -> None:
    whole = ShownRecord(WHERE, 1, None, value=ShownPart(b'{"a":[1]}', 9, is_json=True), bad=BadPart("key", "R", "m"))
    told = to_json(whole, utc=True)
    assert (told["value"], told["value_encoding"]) == ({"a": [1]}, "json")
    assert told["bad"] == {"column": "key", "reason": "R", "message": "m"}
    cut = ShownRecord(WHERE, 1, None, value=ShownPart(b'{"a":', 9, is_json=True))
    assert to_json(cut, utc=True)["value"] == '{"a":'
