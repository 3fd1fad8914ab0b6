"""What is found in a batch is what arrow-json refuses when it reads a value alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.documents import SyntaxCheck
from pyspark_kafka._typed.codecs.json.refusals import RefusalSearch

TYPES = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(6, 2),
    pa.decimal128(38, 0),
    pa.decimal128(38, 38),
    pa.list_(pa.int32()),
    pa.map_(pa.string(), pa.int64()),
    pa.struct([("x", pa.int32()), ("y", pa.string())]),
    pa.list_(pa.struct([("x", pa.list_(pa.timestamp("us", "UTC")))])),
]
NUMBERS = [
    *("0", "-0", "1.5", "-1.5", "1e3", "1E400", "-1e400", "1e-400", "0.1e1", "127", "128", "127.9", "128.0", "-128.9"),
    *("-129", "32767.5", "32768", "2147483647", "2147483647.9", "2147483648", "-2147483648.9", "-2147483649", "1e10"),
    *("9223372036854775807", "9223372036854775808", "9223372036854775807.5", "-9223372036854775808", "1e19", "2e308"),
    *(
        "-9223372036854775809",
        "18446744073709551616",
        "1" + "0" * 40,
        "12345.678",
        "9999.999",
        "99999",
        "0." + "9" * 45,
    ),
]
TEXTS = [
    *(
        "",
        "x",
        "12",
        "+7",
        " 7",
        "1.5",
        "1e2",
        "1_0",
        "300",
        "99999999999",
        "9" * 40,
        ".5",
        "5.",
        "-",
        "1e",
        "9999.999",
    ),
    *(
        "12345.6",
        "NaN",
        "inf",
        "-Infinity",
        "true",
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "2026-01-02 03:04:05.123456789",
    ),
    *(
        "2026-13-01",
        "2026-02-30",
        "2026-01-02T03:04:05+01:00",
        "now",
        "24:00",
        "23:59:59",
        "23:59:59.5",
        "12345",
        "1e400",
    ),
    *("-2026-01-02", "+12026-01-02", "10000-01-01T00:00:00Z", "\u0662"),
]
OTHERS = [
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[1]",
    '["x"]',
    "[null]",
    '{"x":1}',
    '{"x":"a"}',
    '{"x":1.5,"y":2}',
    '[{"x":["q"]}]',
]
# What arrow-json's parser of decimals misreads, and what is near to it.
EXPONENTS = [
    *("0e5", "0e7", "0e8", "0e22", "0e37", "0e38", "0e40", "0.0e22", "0.000e7", "-0E-10", "0e-400", "0e65536", "0E+3"),
    *(
        "1e65536",
        "1e65537",
        "-7e65538",
        "1e-65537",
        "1e18446744073709551616",
        "1e99999999999999999999",
        "1e00000000001",
    ),
    *("123.456e131072", "1e-9999", "1e-99999999999999999999", "12e-40", "1e-40", "1e-38", "1e37", "1e-20", "0.1e-37"),
    *("12345.678e-3", "99999999999999999999999999999999999999e0", "0.12345678901234567890123456789012345678e-38"),
    *(
        "1" * 255,
        "1" * 256,
        "1" * 500,
        "0." + "1" * 255,
        "1" * 255 + ".5",
        "9" * 99,
        "9" * 100,
        "0." + "0" * 200 + "e1",
    ),
    *("0." + "1" * 50 + "e1", "0." + "0" * 500 + "1e501", "1" + "0" * 500 + "e-500", "0." + "1" * 5000 + "e1"),
]
VALUES = [
    *EXPONENTS,
    *(json.dumps(each) for each in EXPONENTS),
    *NUMBERS,
    *(json.dumps(each) for each in TEXTS),
    *OTHERS,
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_bad_values_of_a_batch_are_those_that_are_bad_alone(kind: pa.DataType) -> None:
    row_type = pa.struct([("a", kind), ("b", pa.int32())])
    texts = [b'{"a":%s,"b":1}' % each.encode() for each in VALUES]
    texts += [b'{"a":null,"b":"x"}', b'{"a":%s,"a":null}' % VALUES[-1].encode(), b'{"a":[{}],"a":null,"b":"x","b":3}']
    alone = [JsonDecoder(row_type).decode(pa.array([each], pa.binary())) for each in texts]
    together = JsonDecoder(row_type).decode(pa.array(texts, pa.binary()))
    expected: list[Any] = [(row, each.bad[0].reason, each.bad[0].message) for row, each in enumerate(alone) if each.bad]
    assert [(each.row, each.reason, each.message) for each in together.bad] == expected
    # As text: NaN is not equal to itself, and Python has no time of the last moment.
    expected_column = pa.concat_arrays([each.column for each in alone])
    assert together.column.to_string(window=1000) == expected_column.to_string(window=1000)
    assert together.column.null_count == len(together.bad)


def test_refused_values_are_named_by_their_first_bad_field_however_many_fields_are_bad() -> None:
    names = [f"f{number}" for number in range(12)]
    decoder = JsonDecoder(pa.struct([(name, pa.decimal128(6, 2) if name == "f7" else pa.int32()) for name in names]))
    texts = [json.dumps({name: 1, "f11": "x" if name != "f3" else 2} | {name: "x"}) for name in names]
    texts += ['{"f1": 1}', '{"f1": "x", "f7": "y"}']
    found = decoder.decode(pa.array(texts))
    expected = [(row, f"the value of field '{name}' has another type") for row, name in enumerate([*names, "", "f1"])]
    assert [(each.row, each.message) for each in found.bad] == [each for each in expected if each[0] != 12]
    assert found.column.is_valid().to_pylist() == [row == 12 for row in range(14)]


def test_search_asks_a_few_questions_for_each_refused_value() -> None:
    asked: list[int] = []

    def refusal(texts: Sequence[bytes | None], schema: pa.Schema) -> str | None:
        assert schema.field("w").type == pa.struct([("b", pa.int32())])
        asked.append(len(texts))
        return "refused" if b"bad" in texts else None

    search = RefusalSearch(pa.schema([("w", pa.struct([("a", pa.int32()), ("b", pa.int32())]))]), refusal)
    texts = [b"bad" if row in (5, 700) else b"good" for row in range(1024)]
    named = "Json error: whilst decoding field 'w': whilst decoding field 'b': no"
    assert search.find(texts, named) == {5: "b", 700: "b"}
    assert len(asked) < 60


def test_search_ends_if_each_value_is_good_alone() -> None:
    search = RefusalSearch(pa.schema([("w", pa.struct([("a", pa.int32())]))]), lambda *_: None)
    with pytest.raises(ValueError, match="together"):
        search.find([b"{}", b"{}"], "together")


def test_field_that_a_value_only_quotes_is_not_named() -> None:
    text = json.dumps({"d": "Json error: whilst decoding field 'w': whilst decoding field 'b': "})
    found = JsonDecoder(pa.struct([("d", pa.decimal128(6, 2)), ("b", pa.int32())])).decode(pa.array([text, "{}"]))
    assert [(each.row, each.message) for each in found.bad] == [(0, "the value of field 'd' has another type")]


def test_values_that_are_cut_short_are_malformed() -> None:
    whole = b'{"a":"\xc3\xa4{","b":1}'
    texts = [None, whole, whole + b" ", b"null", b"", *(whole[:end] for end in range(1, len(whole)))]
    assert sorted(SyntaxCheck().find_malformed(texts)) == list(range(4, len(texts)))
