"""Columns as in SQL, without Spark; `test_ddl_like_spark.py` compares them with what Spark's own parser reads."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl
from pyspark_kafka.errors import SchemaError

NAMED = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "INTEGER": pa.int32(),
    "BigInt": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "string collate UNICODE_CI": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
    "decimal": pa.decimal128(10, 0),
    "dec(7)": pa.decimal128(7, 0),
    "numeric( 38 , 38 )": pa.decimal128(38, 38),
}


@pytest.mark.parametrize("name", NAMED)
def test_type_is_read_by_its_name(name: str) -> None:
    assert parse_ddl(f"a {name}") == pa.struct([("a", NAMED[name])])


def test_columns_nest() -> None:
    text = "id BIGINT, tags ARRAY<STRING>, m MAP<STRING,INT>, s STRUCT<a: INT, b: ARRAY<MAP<STRING,ARRAY<DATE>>>>"
    found = parse_ddl(text)
    dates = pa.list_(pa.field("element", pa.date32()))
    maps = pa.list_(pa.field("element", pa.map_(pa.string(), dates)))
    assert [(each.name, each.type) for each in found] == [
        ("id", pa.int64()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("a", pa.int32()), ("b", maps)])),
    ]
    assert str(found.field("tags").type) == "list<element: string>"


@pytest.mark.parametrize(
    "text",
    [
        "a INT, `b c` STRING",
        "a: INT, `b c`: STRING",
        "STRUCT<a: INT, `b c` STRING>",
        " a int not null comment 'it''s \\' x, y INT' , `b c` string null comment \"\" ",
        "a INT -- the first, b INT\n, /* b INT */ `b c` STRING",
    ],
)
def test_columns_may_be_written_in_several_ways(text: str) -> None:
    assert parse_ddl(text) == pa.struct([("a", pa.int32()), ("b c", pa.string())])


def test_all_columns_are_nullable() -> None:
    found = parse_ddl("a INT NOT NULL, s STRUCT<b: INT NOT NULL>")
    assert found.field("a").nullable
    assert found.field("s").type.field("b").nullable


def test_names_may_be_words_of_sql_and_have_any_characters() -> None:
    found = parse_ddl("select INT, array STRING, not INT, `a``b.c-d` INT, `größe` INT, 1st INT")
    assert found.names == ["select", "array", "not", "a`b.c-d", "größe", "1st"]


def test_a_struct_may_have_no_field() -> None:
    assert parse_ddl("s STRUCT<>") == pa.struct([("s", pa.struct([]))])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the name of a column is expected where the end of the text is"),
        ("a", "the name of a type is expected where the end of the text is"),
        ("a INT,", "the name of a column is expected where the end"),
        ("a INT b INT", "a comma or the end is expected where 'b' at character 7 is"),
        ("a INT)", "a comma or the end is expected where ')'"),
        ("a STRINGS", "the name of a type is expected where 'STRINGS' at character 3 is"),
        ("a `int`", "the name of a type is expected where '`int`'"),
        ("a ARRAY", "'<' is expected where the end of the text is"),
        ("a ARRAY<INT", "'>' is expected where the end of the text is"),
        ("a MAP<INT>", "',' is expected where '>' at character 10 is"),
        ("a INT NOT", "'NULL' is expected where the end"),
        ("a INT COMMENT x", "the text of a COMMENT in quotation marks is expected where 'x'"),
        ("a DECIMAL(x)", "a whole number is expected where 'x'"),
        ("a DECIMAL(39)", "there is no DECIMAL(39,0)"),
        ("a DECIMAL(5,6)", "there is no DECIMAL(5,6)"),
        ("a DECIMAL(0)", "there is no DECIMAL(0,0)"),
        ("12 INT", "the name of a column is expected where '12'"),
        ("1L INT", "the name of a column is expected where '1L'"),
        ("`` INT", "the name of a column is expected where '``'"),
        ("a INT /* b", "nothing is known that begins with '/' at character 7"),
        ("a INT; b", "nothing is known that begins with ';'"),
        ("größe INT", "nothing is known that begins with 'ö' at character 3"),
        ("a `b", "nothing is known that begins with '`'"),
        ("a VARCHAR(10)", "a column cannot be read as VARCHAR; write STRING"),
        ("a INTERVAL DAY TO SECOND", "a column cannot be read as INTERVAL"),
        ("a VARIANT", "a column cannot be read as VARIANT"),
        ("a TIME(6)", "a column cannot be read as TIME"),
        ("a INT, a INT", "column 'a' stands there twice"),
        ("s STRUCT<a: INT, a: INT>", "column 'a' stands there twice"),
        ("a " + "ARRAY<" * 70 + "INT" + ">" * 70, "it nests more than 64 types"),
        ("a INT," * 200_000, "it has 1200000 characters, more than 1048576"),
        (",".join(f"c{number} INT" for number in range(10_001)), "it has more than 10000 columns"),
    ],
    ids=lambda text: text[:30],
)
def test_text_that_names_no_columns_is_refused_with_the_place(text: str, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_ddl(text)
    assert caught.value.condition == "SCHEMA_INVALID"
    assert f"The list of columns cannot be used: {expected}" in str(caught.value)
    assert "Nothing was read." in str(caught.value)


PARTS = [
    "a",
    "INT",
    "struct",
    "<",
    ">",
    ",",
    ":",
    "(",
    ")",
    "`",
    "'",
    '"',
    "1",
    " ",
    "array",
    "map",
    "not",
    "null",
    "--",
]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text(max_size=40))
def test_any_text_is_columns_or_an_error(text: str) -> None:
    try:
        assert pa.types.is_struct(parse_ddl(text))
    except SchemaError as error:
        assert error.condition == "SCHEMA_INVALID"  # noqa: PT017 - both outcomes are right
