"""The JSON of Spark's schemas, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_kafka._connector.spark.compat import arrow_schema
from pyspark_kafka._typed.typed.spark_schema.schema_json import parse_schema_json
from pyspark_kafka.errors import SchemaError

SIMPLE = [
    BinaryType(), BooleanType(), ByteType(), DateType(), DecimalType(12, 3), DoubleType(), FloatType(), IntegerType(),
    LongType(), NullType(), ShortType(), StringType(), TimestampNTZType(), TimestampType(),
]  # fmt: skip


def struct(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def test_every_type_becomes_what_spark_makes_of_it() -> None:
    fields = [StructField(f"c{number}", kind) for number, kind in enumerate(SIMPLE)]
    inner = StructType(fields)
    nested = [
        StructField("s", inner),
        StructField("l", ArrayType(ArrayType(inner))),
        StructField("m", MapType(StringType(), MapType(LongType(), inner))),
    ]
    schema = StructType([*fields, *nested])
    found = parse_schema_json(schema.json())
    assert found == pa.struct(list(arrow_schema(schema)))
    assert str(found) == str(pa.struct(list(arrow_schema(schema))))


def test_all_columns_are_nullable() -> None:
    schema = StructType([StructField("a", ArrayType(LongType(), containsNull=False), nullable=False)])
    found = parse_schema_json(schema.json())
    assert found.field("a").nullable
    assert found.field("a").type.value_field.nullable


def test_words_beside_the_usual_ones_are_read() -> None:
    found = parse_schema_json(
        struct(
            {"name": "a", "type": "decimal"},
            {"name": "b", "type": "string collate UNICODE"},
            {"name": "c", "type": "null"},
        )
    )
    assert [each.type for each in found] == [pa.decimal128(10, 0), pa.string(), pa.null()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "Expecting property name"),
        ("[]", 'it is not {"type":"struct"'),
        ('{"type":"object"}', 'it is not {"type":"struct"'),
        (struct({"type": "long"}), "a field has no name"),
        (struct({"name": "a"}), "column 'a' has no type"),
        (struct({"name": "a", "type": "longs"}), "column 'a' has an unknown type"),
        (struct({"name": "a", "type": {"type": "array"}}), "column 'a[]' has no type"),
        (struct({"name": "a", "type": {"type": "set"}}), "column 'a' has an unknown type"),
        (struct({"name": "a", "type": "varchar(3)"}), "a column cannot be read as VARCHAR; write STRING, for"),
        (struct({"name": "a", "type": "interval day to second"}), "a column cannot be read as INTERVAL"),
        (struct({"name": "a", "type": {"type": "udt"}}), "a column cannot be read as UDT"),
        (struct({"name": "a", "type": "decimal(40,2)"}), "there is no DECIMAL(40,2)"),
        (struct({"name": "a", "type": "long"}, {"name": "a", "type": "long"}), "column 'a' stands there twice"),
        ('{"type":"struct","fields":[' * 30_000, "it nests more than 64 types"),
        (" " * 1_100_000, "it has 1100000 characters"),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_text_that_is_no_schema_is_refused(text: str, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema_json(text)
    assert caught.value.condition == "SCHEMA_INVALID"
    assert f"The JSON of Spark's schema cannot be used: {expected}" in str(caught.value)


def test_types_within_types_are_bounded() -> None:
    deep: Any = "long"
    for _ in range(70):
        deep = {"type": "array", "elementType": deep}
    with pytest.raises(SchemaError, match="it nests more than 64 types"):
        parse_schema_json(struct({"name": "a", "type": deep}))
    with pytest.raises(SchemaError, match="it has more than 10000 columns"):
        parse_schema_json(struct(*({"name": f"c{number}", "type": "long"} for number in range(10_001))))
