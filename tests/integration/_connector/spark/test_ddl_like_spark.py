"""Columns as in SQL are read without a JVM: as Spark's own parser reads them, or refused with a reason of ours."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_kafka._connector.spark.compat import arrow_schema
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl
from pyspark_kafka._typed.typed.spark_schema.schema_json import parse_schema_json
from pyspark_kafka.errors import SchemaError

ALIKE = [
    "a INT",
    "a int, b string",
    "a: INT, b: STRING",
    "  a   INT  ,\n\tb STRING  ",
    "`a b` INT, `c``d` INT, `1.5` STRING, `größe` INT",
    "a TINYINT, b BYTE, c SMALLINT, d SHORT, e INTEGER, f BIGINT, g LONG",
    "a FLOAT, b REAL, c DOUBLE, d BOOLEAN, e BINARY, f DATE",
    "a TIMESTAMP, b TIMESTAMP_NTZ, c TIMESTAMP_LTZ, d VOID",
    "a DECIMAL, b DEC, c NUMERIC, d DECIMAL(5), e DEC(7,2), f NUMERIC( 38 , 38 )",
    "a ARRAY<INT>, b ARRAY<ARRAY<STRING>>, c array < map < string , int > >",
    "a MAP<STRING, INT>, b MAP<STRING, MAP<INT, ARRAY<DATE>>>",
    "a STRUCT<b: INT, c: STRING>, d STRUCT<e INT, f STRUCT<g: INT>>, h STRUCT<>",
    "STRUCT<a: INT, b: STRUCT<c: STRING>>",
    "struct<a int>",
    "a INT NOT NULL, b STRING NOT NULL COMMENT 'the b', c INT COMMENT \"it's\"",
    "a STRUCT<b: INT NOT NULL COMMENT 'x, y>'> COMMENT 'it\\'s'",
    "a INT COMMENT 'one''two'",
    "a INT -- a comment, b INT\n, c INT /* d INT */",
    "select INT, from STRING, table INT, array INT, map INT, struct INT, comment INT, null INT, not INT",
    "int INT, decimal DECIMAL, string STRING, timestamp TIMESTAMP",
    "_a INT, a1 INT, 1a INT, A INT",
    "a STRING COLLATE UNICODE_CI",
]
# Neither takes them.
REFUSED = [
    "a",
    "a INT,",
    ", a INT",
    "a INT b INT",
    "a INT)",
    "a STRINGS",
    "a ARRAY",
    "a ARRAY<INT",
    "a ARRAY<INT, INT>",
    "a MAP<INT>",
    "a STRUCT<b>",
    "a INT NOT",
    "a INT COMMENT x",
    "a DECIMAL(x)",
    "a DECIMAL(39, 2)",
    "a DECIMAL(5, 6)",
    "1 INT",
    "1L INT",
    "a-b INT",
    "a `INT`x",
    "a INT; b INT",
    "a INT(5)",
]
# Types of Spark that no format is read as, two columns of one name, one without a name.
OURS = [
    "a VARCHAR(10)", "a CHAR(10)", "a INTERVAL DAY TO SECOND", "a INTERVAL YEAR TO MONTH", "a VARIANT", "a INT, a INT",
    "`` INT",
]  # fmt: skip


WORDS = (
    *("BOOLEAN", "TINYINT", "smallint", "int", "BigInt", "float", "DOUBLE", "date", "timestamp", "TIMESTAMP_NTZ"),
    *("string", "binary", "decimal", "decimal(9,3)"),
)
NAMES = ("a", "B_1", "`x y`", "`q``r`", "struct", "_", "9z", "`ö`", "not", "`a.b`")


def random_type(chosen: Random, depth: int) -> str:
    kind = chosen.choice(("word", "word", "array", "map", "struct")) if depth else "word"
    if kind == "array":
        return f"ARRAY<{random_type(chosen, depth - 1)}>"
    if kind == "map":
        return f"map< {random_type(chosen, 0)} ,{random_type(chosen, depth - 1)}>"
    if kind == "struct":
        return f"Struct<{random_columns(chosen, depth - 1, chosen.choice((': ', ' ', ':')))}>"
    return chosen.choice(WORDS)


def random_columns(chosen: Random, depth: int, between: str) -> str:
    after = ("", "", " NOT NULL", " COMMENT 'x,\\'>'", ' not null comment "y"')
    names = chosen.sample(NAMES, chosen.randint(1, 4))
    columns = [f"{name}{between}{random_type(chosen, depth)}{chosen.choice(after)}" for name in names]
    return chosen.choice((",", ", ", " ,\n")).join(columns)


def nullable(given: DataType) -> DataType:
    """Return a type of Spark whose parts are all nullable, and whose strings have no collation."""
    if isinstance(given, StructType):
        made = StructType()
        for each in given:
            made.add(each.name, nullable(each.dataType))
        return made
    if isinstance(given, ArrayType):
        return ArrayType(nullable(given.elementType))
    if isinstance(given, MapType):
        return MapType(nullable(given.keyType), nullable(given.valueType))
    return given


def spark_reads(text: str) -> StructType | None:
    try:
        found = DataType.fromDDL(text)
    except PySparkException:
        return None
    assert isinstance(found, StructType)
    return found


def we_read(text: str) -> pa.DataType | None:
    try:
        return parse_ddl(text)
    except SchemaError:
        return None


def test_columns_are_those_that_spark_reads(spark: SparkSession) -> None:
    assert spark is not None
    differing = {}
    for text in ALIKE:
        found = spark_reads(text)
        assert found is not None, text
        expected = pa.struct(list(arrow_schema(nullable(found))))
        if str(we_read(text)) != str(expected) or str(parse_schema_json(found.json())) != str(expected):
            differing[text] = (we_read(text), expected)
    assert differing == {}


def test_random_columns_are_those_that_spark_reads(spark: SparkSession) -> None:
    assert spark is not None
    chosen = Random(16)
    differing = {}
    for _ in range(300):
        text = random_columns(chosen, 3, " ")
        found, ours = spark_reads(text), we_read(text)
        assert found is not None, text
        expected = pa.struct(list(arrow_schema(nullable(found))))
        if str(ours) != str(expected):
            differing[text] = (ours, expected)
    assert differing == {}


def test_texts_that_spark_refuses_are_refused(spark: SparkSession) -> None:
    assert spark is not None
    assert {text: (spark_reads(text), we_read(text)) for text in REFUSED} == dict.fromkeys(REFUSED, (None, None))


def test_columns_that_cannot_be_read_are_refused_though_spark_has_them(spark: SparkSession) -> None:
    assert spark is not None
    assert [text for text in OURS if spark_reads(text) is None or we_read(text) is not None] == []
