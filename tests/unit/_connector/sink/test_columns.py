"""Which columns of a DataFrame a sink takes, and what a user reads when they do not fit."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.texts import said
from pyspark_kafka._connector.sink.columns import Column, SinkColumns, find_sink_columns
from pyspark_kafka.errors import SchemaError

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
VALUE = Column("value", pa.binary(), "binary")
TOPIC = Column("topic", pa.string(), "string")
HINT = (
    "Hint: Select the columns topic (string), key and value (string or binary), partition (int), headers "
    '(array<struct<key:string,value:binary>>), e.g. df.selectExpr("CAST(id AS STRING) AS key", '
    '"to_json(struct(*)) AS value"), and name the topic with .option("topic", …).'
)


def test_columns_are_found_in_any_order_among_others() -> None:
    columns = [
        Column("other", pa.null(), "map<string,int>"),
        Column("headers", HEADERS, "array<struct<key:string,value:binary>>"),
        Column("partition", pa.int32(), "int"),
        VALUE,
        TOPIC,
        Column("key", pa.large_string(), "string"),
    ]
    assert find_sink_columns(columns, topic_option=None) == SinkColumns(value=3, key=5, topic=4, partition=2, headers=1)


def test_the_value_alone_is_enough_where_the_option_names_the_topic() -> None:
    assert find_sink_columns([VALUE], topic_option="t") == SinkColumns(value=0)


def test_topic_option_takes_precedence_over_the_column_which_is_not_checked() -> None:
    columns = [VALUE, Column("topic", pa.int32(), "int")]
    assert find_sink_columns(columns, topic_option="t") == SinkColumns(value=0)


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_keys_and_values_are_text_or_bytes_of_any_width(data_type: pa.DataType) -> None:
    columns = [Column("key", data_type, "x"), Column("value", data_type, "x")]
    assert find_sink_columns(columns, topic_option="t") == SinkColumns(value=1, key=0)


@pytest.mark.parametrize(
    ("columns", "problems", "found"),
    [
        (
            [TOPIC, Column("id", pa.null(), "bigint")],
            "the required column 'value' is missing",
            "topic string, id bigint",
        ),
        (
            [VALUE],
            "no topic is given: there is neither the option 'topic' nor a column 'topic'",
            "value binary",
        ),
        (
            [],
            (
                "the required column 'value' is missing; no topic is given: there is neither the option 'topic' nor a "
                "column 'topic'"
            ),
            "none",
        ),
        # Names are matched with their case.
        (
            [TOPIC, Column("Value", pa.null(), "binary")],
            "the required column 'value' is missing",
            "topic string, Value binary",
        ),
        (
            [
                TOPIC,
                Column("value", pa.int64(), "bigint"),
                Column("partition", pa.int64(), "bigint"),
                Column("key", pa.list_(pa.int8()), "array<tinyint>"),
            ],
            (
                "column 'key' is array<tinyint> and must be string or binary; column 'value' is bigint and must be "
                "string or binary; column 'partition' is bigint and must be int"
            ),
            "topic string, value bigint, partition bigint, key array<tinyint>",
        ),
        (
            [Column("topic", pa.binary(), "binary"), VALUE],
            "column 'topic' is binary and must be string",
            "topic binary, value binary",
        ),
    ],
)
def test_columns_that_do_not_fit_are_all_named_with_their_types(
    columns: list[Column], problems: str, found: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        find_sink_columns(columns, topic_option=None)
    assert said(caught.value) == (
        f"[SCHEMA_MISMATCH.SINK] The DataFrame cannot be written to Kafka: {problems}. Its columns: {found}. Nothing "
        f"was written. {HINT}"
    )


@pytest.mark.parametrize(
    "data_type",
    [
        pa.map_(pa.string(), pa.binary()),
        pa.list_(pa.string()),
        pa.list_(pa.struct([("key", pa.string())])),
        pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])),
        pa.list_(pa.struct([("value", pa.binary()), ("key", pa.string())])),
    ],
)
def test_headers_of_another_shape_are_refused(data_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"column 'headers' is x and must be array<struct<key:string,value:binary>>"):
        find_sink_columns([VALUE, Column("headers", data_type, "x")], topic_option="t")


def test_typed_columns_are_of_any_type_and_must_be_there() -> None:
    row = Column("value", pa.struct([("a", pa.int64())]), "struct<a:bigint>")
    assert find_sink_columns([row], topic_option="t", typed={"value"}) == SinkColumns(value=0)
    with pytest.raises(SchemaError, match="column 'value' is struct<a:bigint> and must be string or binary"):
        find_sink_columns([row], topic_option="t", typed=set())
    with pytest.raises(SchemaError, match="the column 'key' is missing, for which there is the option 'keyFormat'"):
        find_sink_columns([row], topic_option="t", typed={"key", "value"})
    # What PySpark has no Arrow type for is null.
    other = Column("value", pa.null(), "struct<a:interval>")
    with pytest.raises(SchemaError, match=r"column .value. is struct<a:interval>, or has parts of a type, that has"):
        find_sink_columns([other], topic_option="t", typed={"value"})
    assert not SinkColumns(value=0).is_typed
