"""Values in JSON to columns: types, and what is wrong with values."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.document_parts import JSON_TEXT
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

A = pa.struct([("a", pa.int64()), ("s", pa.string())])


def rows(kind: pa.DataType, *texts: bytes | None) -> Any:
    found = JsonDecoder(kind).decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    assert found.column.type == kind
    return found.column.to_pylist()


def test_base64_of_digits_is_a_number_to_a_decimal() -> None:
    """As docs/guides/debezium.md warns."""
    assert rows(pa.struct([("q", pa.decimal128(9, 2))]), b'{"q":"1234"}') == [{"q": Decimal(1234)}]


def test_documents_are_bad_as_without_parts_that_are_read_as_text() -> None:
    kind = pa.struct([("x", pa.string()), ("a", pa.int64())])
    texts = [b'{"x":[1}', b'{"x":"\xff"}', b'{"x":{},"a":"z"}', b"[]", b'{"x":{"y":1},"a":1}', None]
    decoder = JsonDecoder(kind, documents=pa.struct([("x", JSON_TEXT), ("a", pa.int64())]))
    found = decoder.decode(pa.array([b"--" + each if each else None for each in texts], pa.binary()), 2)
    assert found.bad == [
        BadValue(0, Reason.DECODE_FAILED, "it is not JSON: fault at byte 7"),
        BadValue(1, Reason.DECODE_FAILED, "it is not UTF-8"),
        BadValue(2, Reason.TYPE_MISMATCH, "the value of field 'a' has another type"),
        BadValue(3, Reason.DECODE_FAILED, "it is not a JSON object"),
    ]
    assert found.column.to_pylist() == [None, None, None, None, {"x": '{"y":1}', "a": 1}, None]


def test_fields_are_read_skipped_and_null() -> None:
    texts = b'{"a":1,"other":{"x":[1]}}', None, b"null", b' {"s":"\xc3\xa4\\n","a":null} '
    assert rows(A, *texts) == [{"a": 1, "s": None}, None, None, {"a": None, "s": "ä\n"}]


def test_escaped_characters_beyond_the_first_planes_are_themselves() -> None:
    text = rb'{"s":"\ud840\udc00 \uD83D\uDE00 \uDBFF\uDFFF \\ud840\\udc00"}'
    assert rows(A, text) == [{"a": None, "s": "\U00020000 \U0001f600 \U0010ffff \\ud840\\udc00"}]


def test_types_have_their_forms() -> None:
    kind = pa.struct(
        [
            ("t", pa.timestamp("us", "UTC")),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("l", pa.list_(pa.struct([("x", pa.float64())]))),
            ("b", pa.binary()),
            ("n", pa.struct([("b", pa.binary())])),
        ]
    )
    text = b'{"t":"2026-01-02T03:04:05+01:00","m":{"k":1},"l":[{"x":1.5},null],"b":"AP8=","n":{"b":""}}'
    at = dt.datetime(2026, 1, 2, 2, 4, 5, tzinfo=dt.timezone.utc)
    expected = {"t": at, "m": [("k", 1)], "l": [{"x": 1.5}, None], "b": b"\0\xff", "n": {"b": b""}}
    assert rows(kind, text) == [expected]


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        (b"", Reason.DECODE_FAILED, "it ends in the middle of a document"),
        (b'{"a":', Reason.DECODE_FAILED, "it ends in the middle of a document"),
        (b'{"s":"', Reason.DECODE_FAILED, "it ends in the middle of a document"),
        (b'{"a":1}{"a":2}', Reason.DECODE_FAILED, "it is not JSON: fault at byte 8"),
        (b'{"a":1}}', Reason.DECODE_FAILED, "it is not JSON: fault at byte 8"),
        (b"[1]", Reason.DECODE_FAILED, "it is not a JSON object"),
        (b'"secret"', Reason.DECODE_FAILED, "it is not a JSON object"),
        (b'{"s":"\xff"}', Reason.DECODE_FAILED, "it is not UTF-8"),
        (b'\xef\xbb\xbf{"a":1}', Reason.DECODE_FAILED, "it begins with a byte order mark"),
        (b'{"q":' + b"[" * 100_000, Reason.DECODE_FAILED, "it is nested too deeply"),
        (b'{"a":"secret"}', Reason.TYPE_MISMATCH, "the value of field 'a' has another type"),
        (b'{"s":1}', Reason.TYPE_MISMATCH, "the value of field 's' has another type"),
        (b'{"a":9223372036854775808}', Reason.TYPE_MISMATCH, "the value of field 'a' has another type"),
    ],
)
def test_a_bad_value_is_null_and_says_why(text: bytes, reason: Reason, message: str) -> None:
    good = b'{"a":1,"s":"x"}'
    found = JsonDecoder(A).decode(pa.array([good, text, good], pa.binary()))
    assert found.column.to_pylist() == [{"a": 1, "s": "x"}, None, {"a": 1, "s": "x"}]
    assert found.bad == [BadValue(1, reason, message)]


def test_values_that_complete_each_other_are_bad_each() -> None:
    texts = [b'{"s":"', b'{",":1}', b'{":1}', b'{"s":"1"}{"s":"2"}{"s":"3"}']
    found = JsonDecoder(A).decode(pa.array(texts, pa.binary()))
    assert [each.row for each in found.bad] == [0, 2, 3]
    assert found.column.to_pylist() == [None, {"a": None, "s": None}, None, None]


@pytest.mark.parametrize("digits", ["1234567890123456", "12345678901234e6", "abcdef1234567890"])
def test_values_do_not_change_places_whatever_name_stands_between_them(
    digits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: digits)
    decoder = JsonDecoder(A)
    # The first two would be one row, the last one two.
    texts = [b'{"x":["', b'"]}', b'{"a":2}', b'{"a":9}}{"b":null']
    # Without the check of each document that comes first.
    with pytest.raises(ValueError, match="xpect"):
        decoder._parse(list(texts), decoder._schema)
    found = decoder.decode(pa.array(texts, pa.binary()))
    assert found.column.to_pylist() == [None, None, {"a": 2, "s": None}, None]
    assert [each.row for each in found.bad] == [0, 1, 3]


def test_bad_bytes_are_found_in_every_field() -> None:
    kind = pa.struct([("b", pa.binary()), ("n", pa.struct([("b", pa.binary())]))])
    texts = [b'{"b":"AP8="}', b'{"b":"!"}', b'{"n":{"b":"x"}}']
    found = JsonDecoder(kind).decode(pa.array(texts, pa.binary()))
    assert [(each.row, each.message) for each in found.bad] == [
        (1, "the value of field 'b' is not Base64"),
        (2, "the value of field 'n.b' is not Base64"),
    ]
    assert found.column.to_pylist() == [{"b": b"\0\xff", "n": None}, None, None]


def test_bad_values_of_a_large_batch_keep_the_others_in_place() -> None:
    texts = [b'{"a":%d}' % row for row in range(1000)]
    for row in (0, 500, 999):
        texts[row] = b'{"a":"x"}'
    texts[3] = b"{"
    found = JsonDecoder(A).decode(pa.array([b"id" + text for text in texts], pa.binary()), skipped=2)
    assert [(each.row, each.reason) for each in found.bad] == [
        (0, Reason.TYPE_MISMATCH),
        (3, Reason.DECODE_FAILED),
        (500, Reason.TYPE_MISMATCH),
        (999, Reason.TYPE_MISMATCH),
    ]
    bad = {each.row for each in found.bad}
    assert found.column.to_pylist() == [None if row in bad else {"a": row, "s": None} for row in range(1000)]


def test_text_beyond_one_call_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka._typed.codecs.json.decoding._MAX_TEXT", 20)
    texts = [b'{"a":%d}' % row for row in range(9)] + [b'{"s":"%s"}' % (b"x" * 50)]
    assert rows(A, *texts) == [*({"a": row, "s": None} for row in range(9)), {"a": None, "s": "x" * 50}]


def test_empty_arrays_decode_to_no_rows() -> None:
    assert rows(A) == []


def test_bytes_in_lists_and_maps_are_read_and_name_their_row() -> None:
    kind = pa.struct([("l", pa.list_(pa.binary())), ("m", pa.map_(pa.string(), pa.struct([("b", pa.binary())])))])
    texts = [
        b'{"l":["QQ==",null]}',
        b'{"l":null,"m":{"k":{"b":"QUI="},"n":null}}',
        b'{"m":{"k":{"b":"?"}}}',
        b'{"l":[]}',
    ]
    found = JsonDecoder(kind).decode(pa.array([b"{}", *texts]).slice(1))
    assert found.column.to_pylist() == [
        {"l": [b"A", None], "m": None},
        {"l": None, "m": [("k", {"b": b"AB"}), ("n", None)]},
        None,
        {"l": [], "m": None},
    ]
    assert found.bad == [BadValue(2, Reason.TYPE_MISMATCH, "the value of field 'm.b' is not Base64")]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    with pytest.raises(MissingDependencyError, match=re.escape(install_command("json"))):
        JsonDecoder(A)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"a":1\0}', "it is not JSON: fault at byte 6"),
        (b'\0{"a":1}', "it is not JSON: fault at byte 0"),
        (b'{"s":"\0"}', "it is not JSON: fault at byte 6"),
        (rb'{"a":"\u0000"}', "the value of field 'a' has another type"),
        (rb'{"a":[1,"\u0000"]}', "the value of field 'a' has another type"),
        (rb'{"a":"1\u0000", "s":"\u0000"}', "the value of field 'a' has another type"),
    ],
)
def test_a_nul_is_bad_where_it_has_no_place_and_ends_no_process(value: bytes, message: str) -> None:
    decoder = JsonDecoder(pa.struct([("a", pa.int64()), ("s", pa.string())]))
    good = rb'{"a":7,"s":"\u0000 \\u0000","other\u0000":1}'
    found = decoder.decode(pa.array([good, value, good], pa.binary()))
    row = {"a": 7, "s": "\0 \\u0000"}
    assert found.column.to_pylist() == [row, None, row]
    assert [(each.row, each.message) for each in found.bad] == [(1, message)]


# arrow-json reads most of these.
NO_JSON = {
    "name of half a surrogate pair": (rb'{"a":1,"\ud800":2}', "it has half a surrogate pair"),
    "comma too few": (b'{"a":1 "s":"x"}', "it is not JSON: fault at byte 7"),
    "comma too many": (b'{"a":1,"s":"x",}', "it is not JSON: fault at byte 15"),
    "comma first": (b'{,"a":1}', "it is not JSON: fault at byte 1"),
    "line break in a text": (b'{"a":1,"s":"x\ny"}', "it is not JSON: fault at byte 13"),
    "zero before a number": (b'{"a":01}', "it is not JSON: fault at byte 6"),
    "point behind a number": (b'{"a":5.}', "it is not JSON: fault at byte 7"),
    "odd number in a field that is skipped": (b'{"a":1,"q":01.2.3}', "it is not JSON: fault at byte 12"),
    "members behind the object": (b'{"a":1},"s":"x"', "it is not JSON: fault at byte 8"),
    "object behind the object": (b'{"a":1},"q":{}', "it is not JSON: fault at byte 8"),
    "text behind the object": (b'{"a":1}"s":"x"', "it is not JSON: fault at byte 8"),
    "member behind null": (b'null,"a":1', "it is not JSON: fault at byte 5"),
    "comma behind null": (b"null,", "it is not JSON: fault at byte 5"),
    "half a surrogate pair": (rb'{"a":1,"q":"\ud800"}', "it has half a surrogate pair"),
}


@pytest.mark.parametrize(("text", "message"), NO_JSON.values(), ids=NO_JSON)
@pytest.mark.parametrize("beside", [b'{"a":1}', b'{"a":', b'{"a":"secret"}', b'{"a":1}}', b'{"s":"\xff"}'])
def test_a_value_that_is_no_json_is_bad_alone_and_beside_others(text: bytes, message: str, beside: bytes) -> None:
    decoder = JsonDecoder(A)
    given = [beside, text, None, beside, text]
    # The second time with a decoder that has seen them.
    for _ in range(2):
        found = decoder.decode(pa.array(given, pa.binary()))
        assert found.column.is_valid().to_pylist() == [each is beside == b'{"a":1}' for each in given]
        assert [(each.row, each.message) for each in found.bad if each.row in (1, 4)] == [(1, message), (4, message)]


def test_values_that_are_not_json_are_parsed_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = JsonDecoder(A)
    asked: list[int] = []
    parse = decoder._parse

    def count(texts: list[bytes | None], schema: pa.Schema) -> pa.Array:
        asked.append(len(texts))
        return parse(texts, schema)

    monkeypatch.setattr(decoder, "_parse", count)
    found = decoder.decode(pa.array([b'{"a":1}}', b'{"a":1}', b"null,"] * 333, pa.binary()))
    assert asked == [999]
    assert [each.row for each in found.bad] == [row for row in range(999) if row % 3 != 1]


def test_a_fault_in_bytes_that_are_no_utf8_is_named_alike_whatever_stands_beside_it() -> None:
    texts = [b'{"s":"\xff"', b'["\xff"]', b'{"s":"\xff"}']
    for beside in (b'{"a":1}', b'{"a":"x"}', b'{"s":1}'):
        found = JsonDecoder(A).decode(pa.array([beside, *texts, beside], pa.binary()))
        assert [each.message for each in found.bad if 0 < each.row < 4] == ["it is not UTF-8"] * 3


def test_number_beyond_its_type_is_a_bad_record_and_the_word_infinity_is_none() -> None:
    kind = parse_ddl("d DOUBLE, f FLOAT, s STRUCT<f: FLOAT>, l ARRAY<DOUBLE>, m MAP<STRING, STRUCT<d: DOUBLE>>")
    texts = [
        b'{"d": 1e308, "f": 3.4e38, "l": [-1e308]}',
        b'{"d": 1e400}',
        b'{"f": 1e39}',
        b'{"s": {"f": -1e39}}',
        None,
        b'{"l": [1, 1E400]}',
        b'{"m": {"a": {"d": 1}, "b": {"d": 1' + b"0" * 400 + b"}}}",
        b'{"d": "1e400"}',
        b'{"d": "Infinity", "f": "-Infinity"}',
        b'{"d": "Infinity", "f": 1e39}',
        b'{"d": 1e400,, "f": 1}',
        b'{"d": 1}',
    ]
    found = JsonDecoder(kind).decode(pa.array(texts))
    found.column.validate(full=True)
    assert [(each.row, each.reason.value, each.message) for each in found.bad if each.row != 10] == [
        (1, "TYPE_MISMATCH", "the number of field 'd' is out of range"),
        (2, "TYPE_MISMATCH", "the number of field 'f' is out of range"),
        (3, "TYPE_MISMATCH", "the number of field 's.f' is out of range"),
        (5, "TYPE_MISMATCH", "the number of field 'l' is out of range"),
        (6, "TYPE_MISMATCH", "the number of field 'm.d' is out of range"),
        (7, "TYPE_MISMATCH", "the number of field 'd' is out of range"),
        (9, "TYPE_MISMATCH", "the number of field 'f' is out of range"),
    ]
    assert [row for row, there in enumerate(found.column.is_valid().to_pylist()) if there] == [0, 8, 11]
    assert found.column[8].as_py()["d"] == math.inf
    # Alone as beside others.
    alone = [row for row, each in enumerate(texts) if JsonDecoder(kind).decode(pa.array([each], pa.binary())).bad]
    assert alone == [1, 2, 3, 5, 6, 7, 9, 10]


def test_number_beyond_its_type_is_bad_beside_a_decimal() -> None:
    texts = [
        '{"f": 1e39, "q": 1}',
        '{"d": 1e400}',
        '{"d": 1e65537}',
        '{"d": "Infinity", "q": 1}',
        '{"d": %s}' % ("9" * 500),
    ]
    found = JsonDecoder(parse_ddl("f FLOAT, d DOUBLE, q DECIMAL(9,2)")).decode(pa.array(texts))
    assert [each.row for each in found.bad] == [0, 1, 2, 4]


def test_number_beyond_its_type_is_bad_under_each_key_of_a_map() -> None:
    texts = ['{"m": {"a": 1e400, "a": 1}}', '{"m": {"a": 1, "a": -1e400}}', '{"m": {"a": "Infinity", "a": 1}}']
    found = JsonDecoder(parse_ddl("m MAP<STRING, DOUBLE>")).decode(pa.array(texts))
    assert [(each.row, each.message) for each in found.bad] == [
        (row, "the number of field 'm' is out of range") for row in (0, 1)
    ]


def test_number_beyond_its_type_is_found_behind_a_prefix_and_in_text() -> None:
    decoder = JsonDecoder(parse_ddl("d DOUBLE"))
    raw = pa.array([None, b'12345{"d": 1e400}', b'12345{"d": 1}'], pa.large_binary()).slice(1)
    assert [each.row for each in decoder.decode(raw, skipped=5).bad] == [0]
    assert [each.row for each in decoder.decode(pa.array(['{"d": 1}', '{"d": "Infinity"}', '{"d": -1e400}'])).bad] == [
        2
    ]


@pytest.mark.parametrize("name", ['q"', "back\\slash", "tab\there", "é", "a.b", ""])
def test_a_field_of_any_name_is_bad_without_spoiling_others(name: str) -> None:
    kind = pa.struct([(name, pa.int32()), ("a", pa.int32())])
    texts = [json.dumps(each) for each in ({name: 1, "a": 2}, {name: "x"}, {name: 3}, {name: 4, "a": "x"})]
    decoder = JsonDecoder(kind)
    for _ in range(2):
        found = decoder.decode(pa.array(texts))
        assert found.column.to_pylist() == [{name: 1, "a": 2}, None, {name: 3, "a": None}, None]
        assert [each.message for each in found.bad] == [
            f"the value of field '{each}' has another type" for each in (name, "a")
        ]
