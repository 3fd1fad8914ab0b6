"""State by key from Kafka to Kafka: what is written, once or twice, never contradicts; the function of the page."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kit.administration import create_partitions
from kit.continuous_state import counted
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import program_below
from pyspark_kafka import continuous
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.query.handle import ContinuousQuery


class Topics:
    """A topic that gets records of 7 keys, one key in one partition, and the topic with what was made of them."""

    def __init__(self, servers: str, source: str, target: str, checkpoint: Path) -> None:
        self.servers, self.source, self.target, self.checkpoint = servers, source, target, checkpoint
        self.counts: Counter[int] = Counter()

    def add(self, count: int, *, keys: int = 7) -> None:
        records = []
        for number in range(count):
            key = number % keys
            self.counts[key] += 1
            records.append(Record(b"k%d" % key, b"%d" % self.counts[key], partition=key % 4 if key < 7 else key - 3))
        produce(self.servers, self.source, records)

    def read(self, spark: SparkSession) -> ContinuousFrame:
        return (
            continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source).option("startingOffsets", "earliest")
        ).load()  # fmt: skip

    def write(self, frame: ContinuousFrame, tasks: int, **trigger: Any) -> ContinuousQuery:
        return (
            frame.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("topic", self.target).option("tasks", tasks).option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger or {"continuous": "200 milliseconds"}).start()
        )  # fmt: skip

    def found(self) -> set[tuple[bytes | None, bytes | None]]:
        return {(each.key, each.value) for each in consume_committed(self.servers, self.target)}

    def expected(self) -> set[tuple[bytes, bytes]]:
        return {(b"k%d" % key, b"%d %d" % (n, n)) for key, count in self.counts.items() for n in range(1, count + 1)}


def test_counts_never_contradict_over_kills_and_new_partitions(
    spark: SparkSession, bootstrap_servers: str, client: KafkaClient, make_topic: TopicMaker, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(rows: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        (pids / str(os.getpid())).touch()
        return counted(rows, state)

    topics = Topics(bootstrap_servers, make_topic(partitions=4), make_topic(), tmp_path / "checkpoint")
    topics.add(100)
    frame = topics.read(spark).mapWithState(noting, "key binary, value binary", "n bigint")
    query = topics.write(frame, 2)
    query.processAllAvailable()
    for _ in range(2):
        for pid in list(pids.iterdir()):
            pid.unlink()
        topics.add(50)
        query.processAllAvailable()
        topics.add(20)
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
        topics.add(50)
        query.processAllAvailable()
        assert topics.found() == topics.expected()
    # And wait until the broker tells producers of them.
    create_partitions(client, {topics.source: 6})
    topics.add(90, keys=9)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    topics.add(45, keys=9)
    again = topics.write(frame, 1, availableNow=True)
    assert again.awaitTermination(120)
    assert again.exception() is None
    assert topics.found() == topics.expected()


def test_function_of_the_page_counts(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topics = Topics(bootstrap_servers, make_topic(partitions=4), make_topic(), tmp_path / "checkpoint")
    topics.add(30)
    produce(bootstrap_servers, topics.source, [Record(None, b"without a key")])
    names: dict[str, Any] = {"rows": topics.read(spark)}
    exec(program_below("## State by key", "continuous-state.md"), names)  # noqa: S102 - our own text
    query = topics.write(names["counts"], 2)
    query.processAllAvailable()
    topics.add(30)
    query.processAllAvailable()
    query.stop()
    newest: dict[Any, int] = {}
    for each in consume_committed(bootstrap_servers, topics.target):
        newest[each.key] = max(int(each.value or b"0"), newest.get(each.key, 0))
    assert newest == {b"k%d" % key: count for key, count in topics.counts.items()}
