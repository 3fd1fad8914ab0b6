"""Kafka's own tools see where a continuous query is: the ends of its epochs are committed to a consumer group."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.fixtures.kafka_tools import KafkaTool
from kit.independent_client import Record, consume, produce
from kit.reading import positions_of_group
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.handle import ContinuousQuery


def as_read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from (batch.select(["value"]) for batch in batches)


def without_bad(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in as_read(batches):
        if b"bad" in batch.column("value").to_pylist():
            raise ValueError("this value is bad")
        yield batch


class Copying:
    """Two topics of two partitions, a query that copies one to the other, and the group that it commits to."""

    def __init__(self, spark: SparkSession, servers: str, make_topic: TopicMaker, checkpoint: Path) -> None:
        self.spark, self.servers, self.checkpoint = spark, servers, checkpoint
        self.source, self.target = make_topic(partitions=2), make_topic(partitions=2)
        self.group = f"lag-{uuid.uuid4().hex}"

    def start(self, step: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] = as_read) -> ContinuousQuery:
        return (
            continuous.read(self.spark).format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source).option("startingOffsets", "earliest")
            .option("commitOffsetsToGroup", self.group).load().mapInArrow(step, "value binary")
            .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("topic", self.target).option("checkpointLocation", str(self.checkpoint))
            .option("maxFailures", "0").trigger(continuous="100 milliseconds").start()
        )  # fmt: skip

    def produce(self, count: int, partition: int = 0, value: bytes = b"v") -> None:
        produce(self.servers, self.source, [Record(None, value, partition=partition)] * count)

    def await_positions(self, expected: dict[int, int]) -> None:
        eventually(lambda: positions_of_group(self.servers, self.group) == expected)


@pytest.fixture
def copying(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Copying:
    return Copying(spark, bootstrap_servers, make_topic, tmp_path / "checkpoint")


def test_group_follows_the_epochs_of_a_query_that_runs(copying: Copying, kafka_tool: KafkaTool) -> None:
    copying.produce(5)
    query = copying.start()
    copying.await_positions({0: 5, 1: 0})
    # What the group says is done is written.
    assert len(consume(copying.servers, copying.target, 5)) == 5
    copying.produce(3, partition=1)
    copying.await_positions({0: 5, 1: 3})
    query.stop()
    copying.produce(4)
    said = kafka_tool(
        "consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", copying.servers, "--describe", "--group", copying.group),
    )
    lines = [line.split() for line in said.splitlines() if copying.group in line and copying.source in line]
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG
    assert sorted(line[2:6] for line in lines) == [["0", "5", "9", "4"], ["1", "3", "3", "0"]], said


def test_last_epoch_is_in_the_group_when_a_query_was_stopped_and_a_restart_goes_on(copying: Copying) -> None:
    for more, count in ((6, 6), (4, 10)):
        copying.produce(more)
        query = copying.start()
        query.processAllAvailable()
        query.stop()
        copying.await_positions({0: count, 1: 0})
    assert len(consume(copying.servers, copying.target, 10)) == 10


def test_end_of_an_epoch_that_failed_is_not_in_the_group(copying: Copying) -> None:
    copying.produce(2)
    query = copying.start(without_bad)
    copying.await_positions({0: 2, 1: 0})
    copying.produce(1, value=b"bad")
    eventually(lambda: not query.isActive, 120)
    assert "this value is bad" in str(query.exception())
    assert positions_of_group(copying.servers, copying.group) == {0: 2, 1: 0}
    again = copying.start()
    copying.await_positions({0: 3, 1: 0})
    again.stop()
