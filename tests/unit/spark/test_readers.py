"""Sources as PySpark sees them: what travels to executors, what is translated, what is closed."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition as SparkInputPartition
from pyspark.sql.datasource_internal import ReadLimitRegistry
from pyspark.sql.streaming import datasource as spark_limits

from pyspark_kafka.connector import (
    Batch,
    CompositeReadLimit,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.errors import ContractError, OptionError
from pyspark_kafka.source.input_partition import KafkaPartitionReaderFactory
from pyspark_kafka.spark.compat import from_spark_limit, to_spark_limit
from pyspark_kafka.spark.data_source import KafkaDataSource
from pyspark_kafka.spark.readers import BatchReaderAdapter, SparkPartition, StreamReaderAdapter, read_partition
from pyspark_kafka.spark.table_source import as_data_source
from pyspark_kafka.table.kafka_table import KafkaTable


@dataclass(frozen=True)
class Numbers(InputPartition):
    """A task that yields `count` batches of one row, and fails after them if it `fails`."""

    count: int
    fails: bool = False


# What readers did, by name: the factory is copied, so it cannot keep it itself.
EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


class NumberReader(PartitionReader):
    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.at = 0

    def next(self) -> bool:
        EVENTS.append("next")
        self.at += 1
        if self.at > self.numbers.count and self.numbers.fails:
            raise ValueError("the reader failed")
        return self.at <= self.numbers.count

    def get(self) -> pa.RecordBatch:
        return pa.record_batch({"n": pa.array([self.at])})

    def close(self) -> None:
        EVENTS.append("close")


@dataclass(frozen=True)
class NumberReaderFactory(PartitionReaderFactory):
    def createReader(self, partition: InputPartition) -> PartitionReader:  # noqa: N802 - Spark's contract
        assert isinstance(partition, Numbers)
        EVENTS.append("create")
        return NumberReader(partition)


@dataclass(frozen=True, order=True)
class Position(Offset):
    at: int

    def json(self) -> str:
        return json.dumps({"t": {"0": self.at}})


class NumberStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """Keeps what it was asked."""

    def __init__(self, limit: ReadLimit | None = None) -> None:
        self.asked: list[Any] = []
        self.limit = limit or ReadMaxRows(5)
        self.never_pickled = lambda: None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's contract
        return Position(3)

    def deserializeOffset(self, json: str) -> Offset:  # noqa: N802 - Spark's contract
        return Position(_parse(json))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's contract
        self.asked.append((start, limit))
        return Position(9)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's contract
        return self.limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's contract
        self.asked.append("prepare")

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # noqa: N802 - Spark's contract
        self.asked.append((start, end))
        return [Numbers(1), Numbers(2)]

    def createReaderFactory(self) -> PartitionReaderFactory:  # noqa: N802 - Spark's contract
        return NumberReaderFactory()

    def commit(self, end: Offset) -> None:
        self.asked.append(("commit", end))

    def stop(self) -> None:
        self.asked.append("stop")


def _parse(text: str) -> int:
    at: int = json.loads(text)["t"]["0"]
    return at


class NumberBatch(Batch):
    def __init__(self) -> None:
        self.never_pickled = lambda: None

    def planInputPartitions(self) -> Sequence[InputPartition]:  # noqa: N802 - Spark's contract
        return [Numbers(2)]

    def createReaderFactory(self) -> PartitionReaderFactory:  # noqa: N802 - Spark's contract
        return NumberReaderFactory()


def values(batches: Any) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


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
    assert EVENTS == []


def test_executors_get_the_factory_alone_of_a_batch_reader() -> None:
    adapter = BatchReaderAdapter(NumberBatch())
    planned = adapter.partitions()
    # A batch with a lambda in it cannot be pickled, so this fails when more travels than should.
    copy, partitions = pickle.loads(pickle.dumps((adapter, planned)))  # noqa: S301 - our own bytes
    assert values(copy.read(partitions[0])) == [1, 2]
    with pytest.raises(RuntimeError, match=r"partitions\(\) was called on an executor's copy"):
        copy.partitions()


def test_executors_get_the_factory_alone_of_a_stream_reader() -> None:
    adapter = StreamReaderAdapter(NumberStream())
    planned = adapter.partitions({"t": {"0": 3}}, {"t": {"0": 9}})
    copy, partitions = pickle.loads(pickle.dumps((adapter, list(planned))))  # noqa: S301 - our own bytes
    assert [values(copy.read(partition)) for partition in partitions] == [[1], [1, 2]]
    for planning in (copy.initialOffset, copy.getDefaultReadLimit, copy.prepareForTriggerAvailableNow):
        with pytest.raises(RuntimeError, match="executor's copy of the reader"):
            planning()
    # Spark stops copies, too.
    copy.stop()


def test_a_stream_is_asked_in_its_own_values_and_answers_in_sparks() -> None:
    stream = NumberStream()
    adapter = StreamReaderAdapter(stream)
    assert adapter.initialOffset() == {"t": {"0": 3}}
    assert adapter.latestOffset({"t": {"0": 4}}, spark_limits.ReadMaxRows(7)) == {"t": {"0": 9}}
    limit = adapter.getDefaultReadLimit()
    assert isinstance(limit, spark_limits.ReadMaxRows)
    assert limit.max_rows == 5
    adapter.prepareForTriggerAvailableNow()
    assert adapter.reportLatestOffset() is None
    adapter.partitions({"t": {"0": 4}}, {"t": {"0": 9}})
    adapter.commit({"t": {"0": 9}})
    adapter.stop()
    assert stream.asked == [
        (Position(4), ReadMaxRows(7)),
        "prepare",
        (Position(4), Position(9)),
        ("commit", Position(9)),
        "stop",
    ]


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_rows_of_another_schema_are_refused_where_they_are_checked(kind: str) -> None:
    schema = pa.schema([("n", pa.string())])
    batch, stream = BatchReaderAdapter(NumberBatch(), schema), StreamReaderAdapter(NumberStream(), schema)
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


def test_stream_that_goes_backwards_is_refused() -> None:
    adapter = StreamReaderAdapter(NumberStream())
    text = r'NumberStream.latestOffset\(\) must not go backwards: it returned \{"t": \{"0": 9\}\} after .*10.*Nothing'
    with pytest.raises(ContractError, match=text):
        adapter.latestOffset({"t": {"0": 10}}, spark_limits.ReadAllAvailable())


def test_limits_keep_their_meaning_both_ways() -> None:
    assert from_spark_limit(spark_limits.ReadAllAvailable()) == ReadAllAvailable()
    assert from_spark_limit(to_spark_limit(ReadMaxRows(9))) == ReadMaxRows(9)
    assert from_spark_limit(to_spark_limit(ReadMinRows(9))) == ReadMinRows(9)
    assert isinstance(to_spark_limit(ReadAllAvailable()), spark_limits.ReadAllAvailable)


@pytest.mark.parametrize(
    "default",
    [
        ReadAllAvailable(),
        ReadMaxRows(9),
        ReadMaxFiles(9),
        ReadMinRows(9, 60_000),
        CompositeReadLimit((ReadMinRows(9, 60_000), ReadMaxRows(20))),
        CompositeReadLimit((ReadMaxRows(20), ReadMinRows(9, 60_000))),
    ],
)
def test_a_sources_own_limit_comes_back_whole_through_sparks_wire(default: ReadLimit) -> None:
    stream = NumberStream(default)
    adapter = StreamReaderAdapter(stream)
    limit = adapter.getDefaultReadLimit()
    # As Spark's runner sends it to the JVM and the JVM sends it back.
    sent: Any = limit
    wire = json.dumps(asdict(sent) | {"_type": type(limit).__name__})
    adapter.latestOffset({"t": {"0": 1}}, ReadLimitRegistry().get(json.loads(wire)))
    # What a once trigger asks for.
    adapter.latestOffset({"t": {"0": 1}}, spark_limits.ReadAllAvailable())
    assert stream.asked == [(Position(1), default), (Position(1), ReadAllAvailable())]


def test_limits_that_are_unknown_are_refused() -> None:
    class Foreign(spark_limits.ReadLimit):
        pass

    with pytest.raises(NotImplementedError, match="is unknown to this source"):
        from_spark_limit(Foreign())
    with pytest.raises(NotImplementedError, match="is unknown to this source"):
        from_spark_limit(Foreign(), ReadMaxRows(5))
    for limit in (ReadLimit(), CompositeReadLimit(())):
        with pytest.raises(NotImplementedError, match="no counterpart"):
            to_spark_limit(limit)


def test_a_stream_reader_that_cannot_be_built_raises_the_reason_at_its_first_call() -> None:
    source = KafkaDataSource({"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t", "endingOffsets": "latest"})
    reader = source.streamReader(source.schema())
    # What PySpark looks at before it asks anything.
    assert isinstance(reader, spark_limits.SupportsTriggerAvailableNow)
    assert len(inspect.signature(reader.latestOffset).parameters) == 2
    calls: list[Callable[[], object]] = [
        reader.initialOffset,
        reader.getDefaultReadLimit,
        reader.reportLatestOffset,
        reader.prepareForTriggerAvailableNow,
        lambda: reader.latestOffset({}, spark_limits.ReadAllAvailable()),
        lambda: reader.partitions({}, {}),
        lambda: reader.read(SparkPartition(Numbers(1))),
    ]
    for call in calls:
        with pytest.raises(OptionError, match="'endingOffsets' has no meaning in a streaming read"):
            call()
    reader.stop()
