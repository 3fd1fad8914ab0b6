"""Micro-batch reads as PySpark sees them, with a start and a limit and with neither."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from kit.number_source import EVENTS, Numbers, NumberStream, Position, values
from pyspark_kafka._connector.spark import stream_readers
from pyspark_kafka._connector.spark.compat import spark_limits
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._connector.spark.readers import SparkPartition
from pyspark_kafka._connector.spark.stream_readers import StartlessStreamReader, StreamReaderAdapter, stream_reader
from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.errors import CheckpointError, ContractError, OptionError


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


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


def test_adapter_converts_offsets_and_limits_between_stream_and_spark() -> None:
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


def test_stream_that_goes_backwards_is_refused() -> None:
    adapter = StreamReaderAdapter(NumberStream())
    text = r'NumberStream.latestOffset\(\) must not go backwards: it returned \{"t": \{"0": 9\}\} after .*10.*Nothing'
    with pytest.raises(ContractError, match=text):
        adapter.latestOffset({"t": {"0": 10}}, spark_limits.ReadAllAvailable())


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
    from pyspark.sql.datasource_internal import ReadLimitRegistry  # noqa: PLC0415 - where it is

    adapter.latestOffset({"t": {"0": 1}}, ReadLimitRegistry().get(json.loads(wire)))
    # What a once trigger asks for.
    adapter.latestOffset({"t": {"0": 1}}, spark_limits.ReadAllAvailable())
    assert stream.asked == [(Position(1), default), (Position(1), ReadAllAvailable())]


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


def at(offset: int) -> dict[str, Any]:
    return {"t": {"0": offset}}


class Advancing(NumberStream):
    """A stream that returns as many numbers as its limit has."""

    def latestOffset(self, start: Any, limit: ReadLimit) -> Any:  # noqa: N802 - Spark's contract
        super().latestOffset(start, limit)
        assert isinstance(limit, ReadMaxRows)
        return Position(start.at + limit.max_rows)


def test_adapter_is_chosen_by_what_pyspark_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_readers, "has_read_limits", lambda: False)
    assert isinstance(stream_reader(NumberStream()), StartlessStreamReader)
    assert len(inspect.signature(StartlessStreamReader.latestOffset).parameters) == 1


def test_new_query_without_starts_begins_at_the_initial_offset_and_goes_on_at_each_end() -> None:
    stream = Advancing()
    reader = StartlessStreamReader(stream)
    # Spark asks for the end of the first batch before it asks for its start.
    assert reader.latestOffset() == at(8)
    assert reader.initialOffset() == at(3)
    reader.partitions(at(3), at(8))
    assert reader.latestOffset() == at(13)
    assert [asked[0] for asked in stream.asked] == [Position(3), Position(3), Position(8)]


def test_restarted_query_without_starts_begins_at_the_end_that_spark_has_seen() -> None:
    reader = StartlessStreamReader(Advancing())
    # How Spark passes it: the plan of an empty batch.
    reader.partitions(at(40), at(40))
    assert reader.latestOffset() == at(45)


def test_restarted_query_without_starts_goes_on_after_the_batch_that_spark_repeats() -> None:
    reader = StartlessStreamReader(Advancing())
    reader.partitions(at(50), at(50))
    reader.partitions(at(40), at(50))
    assert reader.latestOffset() == at(55)


def test_restarted_query_whose_position_spark_did_not_pass_is_refused() -> None:
    reader = StartlessStreamReader(Advancing())
    reader.latestOffset()
    with pytest.raises(CheckpointError, match="did not pass this position") as raised:
        reader.partitions(at(40), at(8))
    assert raised.value.condition == "BATCH_START_UNKNOWN"


def test_executors_get_the_factory_alone_of_a_reader_without_starts() -> None:
    reader = StartlessStreamReader(Advancing())
    reader.latestOffset()
    copy = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own bytes
    assert values(copy.read(SparkPartition(Numbers(2)))) == [1, 2]
    with pytest.raises(RuntimeError, match="executor's copy of the reader"):
        copy.latestOffset()


def test_end_before_its_start_is_refused_without_starts_too() -> None:
    reader = StartlessStreamReader(NumberStream())
    reader.partitions(at(10), at(10))
    with pytest.raises(ContractError, match="must not go backwards"):
        reader.latestOffset()
