"""Numbers of JSON that are read as decimals, in the forms that arrow-json misreads."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.decimals import find_suspects, rewrite_numbers
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e65536", None),
        ("-7e65538", None),
        ("123.456e131072", None),
        ("1e99999999999999999999", None),
        ("1e-65537", Decimal("0.00")),
        ("1e-99999999999999999999", Decimal("0.00")),
        ("0e22", Decimal("0.00")),
        ("0e41", Decimal("0.00")),
        ("0e99999", Decimal("0.00")),
        ("1" * 255, None),
        ("0." + "1" * 50 + "e1", Decimal("1.11")),
        ("0." + "1" * 5000 + "e1", Decimal("1.11")),
        ("0." + "0" * 500 + "1e501", Decimal("1.00")),
        ("1" + "0" * 500 + "e-500", Decimal("1.00")),
        ('"1e65537"', None),
        ('"0.' + "1" * 5000 + 'e1"', None),
        ('"0.' + "1" * 5000 + '\\u00651"', None),
        ('"' + "\\u0031" * 255 + '"', None),
        ('"1\\u004565537"', None),
        ('"1E+3"', Decimal("1000.00")),
        ('"0E-10"', Decimal("0.00")),
        ("1e-41", Decimal("0.00")),
        ('"1e-41"', None),
        ('"0e22"', None),
        ('"0e0"', None),
    ],
    ids=lambda each: str(each)[:12],
)
def test_a_decimal_is_its_number_or_bad(text: str, expected: Decimal | None) -> None:
    decoder = JsonDecoder(parse_ddl("a DECIMAL(9,2), m MAP<STRING, DECIMAL(9,2)>"))
    values = ['{"a": 1}', f'{{"a": {text}}}', f'{{"m": {{"k": {text}, "k": 1}}}}', None]
    found = decoder.decode(pa.array(values).cast(pa.binary()).slice(1))
    assert [each.row for each in found.bad] == ([0, 1] if expected is None else [])
    if expected is not None:
        row = {"a": None, "m": [("k", expected), ("k", Decimal("1.00"))]}
        assert found.column.to_pylist() == [{"a": expected, "m": None}, row, None]


def test_numbers_in_texts_and_other_columns_stay_what_they_are_beside_a_decimal() -> None:
    decoder = JsonDecoder(parse_ddl("s STRING, d DOUBLE, i BIGINT, q DECIMAL(9,2)"))
    text = '{"s": "1e65537 0e22 \\" 0e22", "d": 0.%s12e20, "i": 1e3, "q": 1, "x": 1e77777}' % ("0" * 38)
    row = {"s": '1e65537 0e22 " 0e22', "d": 1.2e-19, "i": 1000, "q": Decimal("1.00")}
    found = decoder.decode(pa.array([text, f'{{"d": {"3" * 200}, "s": "0e22"}}']))
    assert found.bad == []
    assert found.column.to_pylist() == [row, {"s": "0e22", "d": float("3" * 200), "i": None, "q": None}]


def test_a_number_that_is_no_json_is_not_made_one() -> None:
    for text in (b'{"a":01e99999}', b'{"a":--1e99999}', b'{"a":1.e99999}', b'{"a":+1e99999}', b'{"a":1e9e99999}'):
        assert not JsonDecoder(parse_ddl("a DECIMAL(9,2)")).decode(pa.array([text])).column.is_valid()[0].as_py()


def test_values_with_plain_numbers_are_not_looked_at() -> None:
    values = pa.array([b'{"a":1.5,"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7"}', None, b'{"a":1e5}', b"1" * 120])
    assert find_suspects(values.slice(0, 2)) == []
    assert find_suspects(values) == [2, 3]
    assert find_suspects(values.slice(2, 1)) == [0]
    assert rewrite_numbers(b'{"a":1e5,"b":"1e5","c":0e5}') == (b'{"a":1e5,"b":"1e5","c":0}', False)
