"""Topics and partitions that come, go and come back while a continuous query reads them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import DataLossError
from pyspark_kafka.testing import EmbeddedKafka


class Flow:
    """A query from all topics of a prefix to one topic.

    Attributes:
        first, second: the names of two topics; the first exists.
        query: the query that was started last.
    """

    query: ContinuousQuery

    def __init__(self, spark: SparkSession, kafka: EmbeddedKafka, target: str, checkpoint: Path) -> None:
        self._spark, self._kafka, self._target, self._checkpoint = spark, kafka, target, checkpoint
        self._servers = kafka.bootstrap_servers
        prefix = f"flow-{uuid.uuid4().hex[:8]}"
        self.first, self.second = f"{prefix}-a", f"{prefix}-b"
        self._pattern = f"^{prefix}-"
        self._count = 0
        kafka.create_topic(self.first, 2)

    def start(self, *, fails: bool) -> None:
        self.query = (
            continuous.read(self._spark).format("pyspark_kafka").option("kafka.bootstrap.servers", self._servers)
            .option("subscribePattern", self._pattern).option("startingOffsets", "earliest")
            .option("failOnDataLoss", fails).option("kafka.metadata.max.age.ms", "1000").load().select("value")
            .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", self._servers)
            .option("topic", self._target).option("checkpointLocation", str(self._checkpoint)).option("tasks", "2")
            .trigger(continuous="200 milliseconds").start()
        )  # fmt: skip

    def write(self, topic: str, partition: int = 0) -> None:
        """Write five records, and wait until they, and all before them, have arrived once."""
        made = range(self._count, self._count + 5)
        self._count += 5
        produce(self._servers, topic, [Record(None, b"%d" % number, partition=partition) for number in made])
        eventually(lambda: self.arrived() == list(range(self._count)) or not self.query.isActive)
        assert self.arrived() == list(range(self._count)), self.query.exception()

    def arrived(self) -> list[int]:
        return sorted(int(record.value or b"") for record in consume_committed(self._servers, self._target))


@pytest.fixture
def flow(spark: SparkSession, kafka: EmbeddedKafka, make_topic: TopicMaker, tmp_path: Path) -> Flow:
    return Flow(spark, kafka, make_topic(), tmp_path)


def test_topics_and_partitions_come_and_go_while_the_query_runs(
    flow: Flow, kafka: EmbeddedKafka, client: KafkaClient
) -> None:
    flow.start(fails=False)
    flow.write(flow.first)
    kafka.create_topic(flow.second, 1)
    flow.write(flow.second)
    # And wait until the broker tells producers of it.
    create_partitions(client, {flow.first: 3})
    flow.write(flow.first, partition=2)
    run = flow.query.runId
    kafka.delete_topic(flow.second)
    flow.write(flow.first)
    kafka.create_topic(flow.second, 1)
    flow.write(flow.second)
    flow.query.stop()
    assert flow.query.exception() is None
    assert flow.query.runId == run


def test_deleted_topic_ends_a_query_that_must_not_lose_data(flow: Flow, kafka: EmbeddedKafka) -> None:
    kafka.create_topic(flow.second, 1)
    flow.start(fails=True)
    flow.write(flow.second)
    kafka.delete_topic(flow.second)
    eventually(lambda: not flow.query.isActive, 120)
    error = flow.query.exception()
    assert isinstance(error, DataLossError)
    assert flow.second in str(error)
    assert "Nothing more was read." in str(error)
    assert "batch" not in str(error).partition("Hint")[0]
