"""Batch reads as PySpark sees them: what travels to executors, what is closed."""

from __future__ import annotations

import pickle
from collections.abc import Generator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition as SparkInputPartition

from kit.number_source import EVENTS, NumberBatch, NumberReaderFactory, Numbers, NumberStream, values
from pyspark_kafka._connector.source.input_partition import KafkaPartitionReaderFactory
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._connector.spark.readers import BatchReaderAdapter, SparkPartition, read_partition
from pyspark_kafka._connector.spark.stream_readers import stream_reader
from pyspark_kafka._connector.spark.table_source import as_data_source
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.errors import ContractError


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def test_a_reader_is_driven_to_its_end_and_closed_once() -> None:
    assert values(read_partition(NumberReaderFactory(), SparkPartition(Numbers(3)))) == [1, 2, 3]
    assert EVENTS == ["create", "next", "next", "next", "next", "close"]


def test_a_reader_is_closed_when_the_task_ends_early() -> None:
    running = read_partition(NumberReaderFactory(), SparkPartition(Numbers(3)))
    assert isinstance(running, Generator)
    assert next(running).num_rows == 1
    running.close()
    assert EVENTS == ["create", "next", "close"]


def test_a_reader_that_fails_is_closed_and_its_error_is_raised_after_its_rows() -> None:
    running = read_partition(NumberReaderFactory(), SparkPartition(Numbers(1, fails=True)))
    assert next(running).num_rows == 1
    with pytest.raises(ValueError, match="the reader failed"):
        next(running)
    assert EVENTS[-1] == "close"
    assert EVENTS.count("close") == 1


def test_nothing_is_made_before_the_first_row_is_asked_for() -> None:
    read_partition(NumberReaderFactory(), SparkPartition(Numbers(3)))
    assert EVENTS == []


def test_a_read_without_partitions_gives_no_rows() -> None:
    # What Spark plans itself then.
    assert values(read_partition(NumberReaderFactory(), SparkInputPartition(None))) == []
    # Before PySpark 4.2.
    assert values(read_partition(NumberReaderFactory(), None)) == []
    assert EVENTS == []


def test_executors_get_the_factory_alone_of_a_batch_reader() -> None:
    adapter = BatchReaderAdapter(NumberBatch())
    planned = adapter.partitions()
    # A batch with a lambda in it cannot be pickled, so this fails when more travels than should.
    copy, partitions = pickle.loads(pickle.dumps((adapter, planned)))  # noqa: S301 - our own bytes
    assert values(copy.read(partitions[0])) == [1, 2]
    with pytest.raises(RuntimeError, match=r"partitions\(\) was called on an executor's copy"):
        copy.partitions()


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_rows_of_another_schema_are_refused_where_they_are_checked(kind: str) -> None:
    schema = pa.schema([("n", pa.string())])
    batch, stream = BatchReaderAdapter(NumberBatch(), schema), stream_reader(NumberStream(), schema)
    adapter: Any = batch if kind == "batch" else stream
    copy = pickle.loads(pickle.dumps(adapter))  # noqa: S301 - our own bytes
    with pytest.raises(ContractError, match=r"NumberReader.get\(\) returned rows of another schema"):
        list(copy.read(SparkPartition(Numbers(1))))
    assert EVENTS[-1] == "close"


def test_table_of_the_user_is_checked_and_kafka_is_not() -> None:
    options = {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t"}
    kafka = KafkaDataSource(options)
    assert isinstance(kafka.streamReader(kafka.schema())._factory, KafkaPartitionReaderFactory)  # type: ignore[attr-defined]
    other = as_data_source(KafkaTable())(options)
    assert isinstance(other.streamReader(kafka.schema())._factory, CheckedReaderFactory)  # type: ignore[attr-defined]
