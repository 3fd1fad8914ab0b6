"""When a read is said to have too many small tasks."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest

from kit.fixtures.offsets import ScriptedOffsets
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest
from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.driver.tasks import advise_sharing
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka.connector import ReadAllAvailable


def options_of(topic: str, **options: Any) -> StreamReadOptions:
    connection = ConnectionOptions((("not-asked", 9092),))
    return StreamReadOptions(connection, Subscription("subscribe", (topic,)), starting=Earliest(), **options)


def ranges_of(topic: str, count: int, each: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), 0, each) for number in range(count)]


@pytest.fixture
def topic() -> str:
    """One that nothing was said of in this process."""
    return uuid.uuid4().hex


def test_many_small_tasks_are_warned_of_once_with_the_option_that_helps(
    topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        advise_sharing(ranges_of(topic, 300, 5), options_of(topic))
    (said,) = caplog.messages
    assert said == (
        f"This read of Subscribe[{topic}] has 300 tasks with 5.0 offsets each on average, and each task costs Spark "
        "milliseconds. Option 'maxPartitionsPerTask', for example 100, lets topic-partitions share tasks."
    )
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("count", "each", "options"), [(99, 5, {}), (300, 1_000, {}), (300, 5, {"max_partitions_per_task": 2}), (0, 0, {})]
)
def test_few_tasks_and_large_ones_and_those_that_share_are_left_alone(
    topic: str, caplog: pytest.LogCaptureFixture, count: int, each: int, options: dict[str, Any]
) -> None:
    advise_sharing(ranges_of(topic, count, each), options_of(topic, **options))
    assert caplog.messages == []


def test_stream_warns_of_small_tasks_when_it_plans(
    topic: str, offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    offsets.logs = {TopicPartition(topic, number): (0, 2) for number in range(120)}
    stream = KafkaMicroBatchStream(options_of(topic), SOURCE_SCHEMA)
    start = stream.initialOffset()
    stream.planInputPartitions(start, stream.latestOffset(start, ReadAllAvailable()))
    assert f"This read of Subscribe[{topic}] has 120 tasks with 2.0 offsets" in caplog.text
