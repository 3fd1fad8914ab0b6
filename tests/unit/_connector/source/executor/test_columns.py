"""The columns that a user may ask for, and batches put together in their order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.record_batches import batch, plain_batch, record
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.source.executor.columns import (
    SOURCE_SCHEMA,
    BatchAssembler,
    check_asked_columns,
    sample_times,
    source_schema,
)
from pyspark_kafka.errors import SchemaError
from pyspark_kafka.records import decode

WITHOUT_HEADERS = "key, value, topic, partition, offset, timestamp, timestampType"
FULL = [(field.name, field.type) for field in SOURCE_SCHEMA]


@pytest.mark.parametrize(
    "asked", [[], FULL, FULL[::-1], FULL[3:4], [("timestamp", pa.timestamp("ns", tz="Europe/Berlin"))]]
)
def test_any_subset_in_any_order_is_accepted(asked: list[tuple[str, pa.DataType]]) -> None:
    check_asked_columns(pa.schema(asked), source_schema(include_headers=True))


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ([("nothing", pa.string())], "there is no column 'nothing'"),
        ([("Value", pa.binary())], "there is no column 'Value'"),
        ([("value", pa.string())], "column 'value' is binary, not string"),
        ([("offset", pa.int32())], "column 'offset' is int64, not int32"),
        ([("timestamp", pa.timestamp("us"))], "column 'timestamp' is timestamp[us, tz=UTC], not timestamp[us]"),
        (
            [("headers", SOURCE_SCHEMA.field("headers").type)],
            "column 'headers' needs option 'includeHeaders' set to true",
        ),
        ([("key", pa.binary()), ("key", pa.binary())], "column 'key' is asked for twice"),
        (
            [("x", pa.int8()), ("partition", pa.int64()), ("x", pa.int8())],
            (
                "there is no column 'x'; column 'partition' is int32, not int64; there is no column 'x'; "
                "column 'x' is asked for twice"
            ),
        ),
    ],
)
def test_every_column_that_does_not_fit_is_named(asked: list[tuple[str, pa.DataType]], problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_asked_columns(pa.schema(asked), source_schema(include_headers=False))
    assert said(caught.value) == (
        f"[SCHEMA_MISMATCH.SOURCE] The schema given to the reader does not fit: {problem}. The source has the columns "
        f"{WITHOUT_HEADERS}. Hint: Name a subset of these columns with their own types, in any order, or set no schema."
    )


@pytest.mark.parametrize(
    "element",
    [
        pa.struct([("key", pa.string())]),
        pa.struct([("key", pa.binary()), ("value", pa.binary())]),
        pa.struct([("value", pa.binary()), ("key", pa.string())]),
        pa.string(),
    ],
)
def test_headers_of_another_shape_are_refused(element: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column 'headers' is list<"):
        check_asked_columns(pa.schema([("headers", pa.list_(element))]), source_schema(include_headers=True))


def assembled(names: list[str], data: bytes) -> pa.RecordBatch:
    schema = pa.schema([SOURCE_SCHEMA.field(name) for name in names])
    assembler = BatchAssembler(TopicPartition("orders", 7), schema)
    return assembler.assemble(decode(data, start_offset=0, columns=assembler.decoded_columns))


@pytest.mark.parametrize(
    "names",
    [["value"], ["topic", "value", "partition"], ["headers", "timestamp", "offset", "key"], SOURCE_SCHEMA.names],
)
def test_a_batch_has_exactly_the_schema_asked_for(names: list[str]) -> None:
    found = assembled(names, batch([record(0, b"v", key=b"k", headers=[(b"h", None)])]))
    assert found.schema.equals(pa.schema([SOURCE_SCHEMA.field(name) for name in names]), check_metadata=True)
    found.validate(full=True)
    expected = {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 7,
        "offset": 0,
        "timestampType": 0,
        "headers": [{"key": "h", "value": None}],
    }
    row = found.to_pylist()[0]
    row.pop("timestamp", None)
    assert row == {name: expected[name] for name in names if name != "timestamp"}


@pytest.mark.parametrize("names", [[], ["topic"], ["partition", "topic"]])
def test_a_batch_without_columns_of_the_records_has_their_rows(names: list[str]) -> None:
    found = assembled(names, plain_batch(0, 12))
    assert found.num_rows == 12
    assert found.schema.names == names
    for name, constant in (("topic", "orders"), ("partition", 7)):
        if name in names:
            assert found.column(name).to_pylist() == [constant] * 12


def test_batches_of_one_reader_grow_and_shrink() -> None:
    assembler = BatchAssembler(TopicPartition("t", 1), pa.schema([SOURCE_SCHEMA.field("partition")]))
    for rows in (3, 1, 10, 2):
        decoded = decode(plain_batch(0, rows), start_offset=0, columns=())
        assert assembler.assemble(decoded).column("partition").to_pylist() == [1] * rows


@pytest.mark.parametrize(
    ("rows", "sampled"), [(1, [0]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 4]), (1_000, [0, 333, 666, 999])]
)
@pytest.mark.parametrize("skipped", [0, 3])
def test_sampled_times_are_of_evenly_spaced_rows(rows: int, sampled: list[int], skipped: int) -> None:
    column = pa.array([number * 1_500 for number in range(skipped + rows)], pa.timestamp("us", tz="UTC"))
    assert sample_times(column.slice(skipped)) == tuple((skipped + row) * 1.5 for row in sampled)
