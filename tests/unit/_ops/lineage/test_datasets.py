"""Topics of options, and columns of schemas."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_kafka._ops.lineage.column_paths import straight_paths
from pyspark_kafka._ops.lineage.datasets import columns_of, read_datasets, write_datasets
from pyspark_kafka._ops.lineage.values import DatasetColumn, RegistrySubject
from pyspark_kafka.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "one:9092,two:9093"}
BYTES = (DatasetColumn("key", "binary"), DatasetColumn("value", "binary"))


def names(options: dict[str, str], topics: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    return [(each.namespace, each.topic) for each in read_datasets(SERVERS | options, BYTES, topics)]


def test_read_topics_are_those_of_the_subscription_at_the_first_server() -> None:
    assert names({"subscribe": "b, a"}) == [("kafka://one:9092", "a"), ("kafka://one:9092", "b")]
    assert names({"assign": '{"c":[0,1]}'}) == [("kafka://one:9092", "c")]
    assert names({"SUBSCRIBE": "a", "endingOffsets": "latest"}) == [("kafka://one:9092", "a")]


def test_read_topics_of_a_pattern_are_those_that_are_known() -> None:
    assert names({"subscribePattern": "o.*"}) == []
    assert names({"subscribePattern": "o.*"}, ("orders",)) == [("kafka://one:9092", "orders")]


def test_namespace_has_brackets_around_an_address_of_ipv6() -> None:
    (found,) = read_datasets({"kafka.bootstrap.servers": "[::1]:9092", "subscribe": "a"}, BYTES)
    assert found.namespace == "kafka://[::1]:9092"


def test_written_topic_is_that_of_the_option_before_those_of_rows() -> None:
    (found,) = write_datasets(SERVERS | {"topic": "out"}, BYTES, ("other",), streaming=False)
    assert (found.topic, found.columns) == ("out", BYTES)
    found_by_row = write_datasets(SERVERS, BYTES, ("b", "a", "b"), streaming=False)
    assert [each.topic for each in found_by_row] == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"valueFormat": "avro"}, [RegistrySubject("value", "orders-value")]),
        (
            {"valueFormat": "avro", "valueSubject": "order", "valueSchemaVersion": "4"},
            [RegistrySubject("value", "order", 4)],
        ),
        ({"keyFormat": "string", "valueFormat": "json"}, [RegistrySubject("value", "orders-value")]),
        ({"keyFormat": "long"}, []),
    ],
)
def test_subjects_are_those_of_typed_keys_and_values(options: dict[str, str], expected: list[RegistrySubject]) -> None:
    registry = {"schema.registry.url": "http://r"} if expected else {}
    (found,) = read_datasets(SERVERS | registry | {"subscribe": "orders"} | options, BYTES)
    assert list(found.subjects) == expected


def test_schema_of_the_user_has_a_subject_in_writes_only() -> None:
    typed = {"valueFormat": "json", "valueSchema": "id INT", "schema.registry.url": "http://r"}
    (read,) = read_datasets(SERVERS | typed | {"subscribe": "orders"}, BYTES)
    (written,) = write_datasets(SERVERS | typed | {"topic": "orders"}, BYTES, streaming=True)
    assert (read.subjects, written.subjects) == ((), (RegistrySubject("value", "orders-value"),))


def test_options_that_are_wrong_are_refused() -> None:
    with pytest.raises(OptionError):
        read_datasets({"subscribe": "a"}, BYTES)


def test_columns_have_sparks_types_and_the_parts_of_nested_ones() -> None:
    price = MapType(StringType(), StructType([StructField("cents", IntegerType())]))
    schema = StructType(
        [
            StructField("id", LongType()),
            StructField("tags", ArrayType(StringType())),
            StructField("prices", price),
            StructField("d", DecimalType(9, 2)),
        ]
    )
    found = columns_of(schema.jsonValue())
    assert found == (
        DatasetColumn("id", "long"),
        DatasetColumn("tags", "array", (DatasetColumn("_element", "string"),)),
        DatasetColumn(
            "prices",
            "map",
            (
                DatasetColumn("key", "string"),
                DatasetColumn("value", "struct", (DatasetColumn("cents", "integer"),)),
            ),
        ),
        DatasetColumn("d", "decimal(9,2)"),
    )


def test_straight_paths_are_of_the_parts_of_records_that_both_sides_have() -> None:
    key, topic, one = DatasetColumn("key", "binary"), DatasetColumn("topic", "string"), DatasetColumn("id", "integer")
    read = key, DatasetColumn("value", "struct", (one, DatasetColumn("gone", "integer"))), topic
    written = key, DatasetColumn("value", "struct", (one, DatasetColumn("added", "array"))), topic
    assert straight_paths(read, written) == {"key": "key", "value.id": "value.id"}
