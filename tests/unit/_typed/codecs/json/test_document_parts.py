"""Parts of documents whose text is changed before a read, or after a write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.document_parts import (
    JSON_TEXT,
    DocumentPart,
    connect_decimal,
    has_parts,
    is_json,
    merged,
    parts_to_read,
    parts_to_write,
)

MONEY = connect_decimal(2)
DOCUMENTS = pa.struct(
    [
        ("x", JSON_TEXT),
        ("d", MONEY),
        ("l", pa.list_(pa.struct([("x", JSON_TEXT)]))),
        ("m", pa.map_(pa.string(), JSON_TEXT)),
        ("plain", pa.int64()),
    ]
)
COLUMN = pa.struct(
    [
        ("x", pa.string()),
        ("d", pa.decimal128(38, 2)),
        ("l", pa.list_(pa.struct([("x", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.string())),
    ]
)


def read(text: str, documents: pa.DataType = DOCUMENTS, wanted: pa.DataType = COLUMN) -> str:
    parts = parts_to_read(documents, wanted)
    assert parts is not None
    return parts.rewrite(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x": {"a" : [1, 2]} , "y":01}'.replace("01", "1"), '{"x":"{\\"a\\" : [1, 2]}","y":1}'),
        ('{"x":"s\\n\\u00e4"}', '{"x":"\\"s\\\\n\\\\u00e4\\""}'),
        ('{"x":null,"plain":1e400}', '{"x":null,"plain":1e400}'),
        ('{"\\u0078":1}', '{"x":"1"}'),
        ('{"x":1,"x":2}', '{"x":"2"}'),
        ('{"l":[{"x":[]},null,5,{}]}', '{"l":[{"x":"[]"},null,5,{}]}'),
        ('{"m": {"k":1, "k" : "v" , "ä":{}} }', '{"m":{"k":"1","k" : "\\"v\\"","ä":"{}"}}'),
        ('{"m":{}}', '{"m":{}}'),
        # Of another form than the schema: arrow-json refuses them.
        ('{"l":{"x":1}}', '{"l":{"x":1}}'),
        ('{"m":[1]}', '{"m":[1]}'),
        ("null", "null"),
    ],
)
def test_text_of_a_part_becomes_a_string(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12.34", "12.34"),
        ('"1234"', "-26588.24"),
        ('"AfQ="', "5.00"),
        ('"/w=="', "-0.01"),
        ('"SztMqFqGxHoJiiJAAAAAAA=="', "{}"),
        ('"SztMqFqGxHoJiiI//////w=="', "999999999999999999999999999999999999.99"),
        ('"1.5"', "{}"),
        ('"123"', "{}"),
        ('""', "{}"),
        ("null", "null"),
    ],
)
def test_decimal_of_connect_becomes_a_number(value: str, expected: str) -> None:
    assert read(f'{{"d":{value}}}') == f'{{"d":{expected}}}'


def test_part_that_is_not_wanted_stays_as_it_is() -> None:
    assert parts_to_read(DOCUMENTS, pa.struct([("plain", pa.int64())])) is None
    assert read('{"x":1,"m":{"k":1}}', wanted=pa.struct([COLUMN.field("m")])) == '{"x":1,"m":{"k":"1"}}'


def test_bytes_that_are_not_utf8_are_refused() -> None:
    parts = parts_to_read(DOCUMENTS, COLUMN)
    assert parts is not None
    for text in (b'{"x":"\xff"}', b'{"m":{"k":"\xff"}}'):
        with pytest.raises(UnicodeDecodeError):
            parts.rewrite(text)


def test_string_becomes_the_text_that_it_holds() -> None:
    parts = parts_to_write(DOCUMENTS, COLUMN)
    assert parts is not None
    written = rb'{"x":"{\"a\" : 1}","d":1.50,"l":[{"x":"[]"},{}],"m":{"k":"\"v\"","n":null}}'
    assert parts.rewrite(written) == rb'{"x":{"a" : 1},"d":1.50,"l":[{"x":[]},{}],"m":{"k":"v","n":null}}'


def test_column_that_is_no_string_is_written_as_it_is() -> None:
    assert parts_to_write(pa.struct([("x", JSON_TEXT)]), pa.struct([("x", pa.int64())])) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [(' {"a":1} ', True), ("1" * 5000, True), ('"\\ud800"', True), ("", False), ("1 2", False), ("{", False)]
    + [(text, False) for text in ("NaN", "[1,]", "01", "'a'", "[" * 100_000, '"\n"', "\ufeff1")],
)
def test_text_is_one_value_of_json_or_not(text: str, *, expected: bool) -> None:
    assert is_json(text) is expected


NULLS = DocumentPart(nulls=("a", 'b"'), members={"s": DocumentPart(nulls=("c",))})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{"a":null,"b\\"":null}'),
        ('{"a":1,"s":{}}', '{"a":1,"s":{"c":null},"b\\"":null}'),
        ('{"s":null}', '{"s":null,"a":null,"b\\"":null}'),
    ],
)
def test_members_that_are_missing_are_null(text: str, expected: str) -> None:
    assert NULLS.rewrite(text.encode()).decode() == expected


def test_parts_are_merged() -> None:
    found = merged(parts_to_write(DOCUMENTS, COLUMN), DocumentPart(nulls=("x",), members={"l": DocumentPart()}))
    assert found is not None
    assert found.rewrite(b'{"l":[{"x":"1"}]}') == b'{"l":[{"x":1}],"x":null}'
    assert merged(None, NULLS) is NULLS
    assert merged(None, None) is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(DOCUMENTS, True), (pa.list_(MONEY), True), (pa.map_(pa.string(), JSON_TEXT), True), (COLUMN, False)],
)
def test_type_has_parts_or_not(kind: Any, *, expected: bool) -> None:
    assert has_parts(kind) is expected
