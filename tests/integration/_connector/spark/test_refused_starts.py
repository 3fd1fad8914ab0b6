"""A query that is started by mistake, and refused, continues after the correction: its checkpoint is as before.

Each refusal runs through Spark, which keeps the end of a micro-batch before it asks for its plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from kit.administration import create_topic, delete_records
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import options_for
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka.testing import EmbeddedKafka

Wrong = Callable[[str, str, str], dict[str, str]]

WRONG_STARTS: dict[str, tuple[Wrong, str]] = {
    "a topic less": (lambda one, _two, _trimmed: {"subscribe": one}, "PARTITIONS_DELETED"),
    "partitions less": (lambda one, _two, _trimmed: {"assign": json.dumps({one: [0]})}, "PARTITIONS_DELETED"),
    "a narrow pattern": (lambda one, _two, _trimmed: {"subscribePattern": f"^{one}$"}, "PARTITIONS_DELETED"),
    "a further topic with lost records": (
        lambda one, two, trimmed: {"subscribe": f"{one},{two},{trimmed}"},
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
    ),
}


@pytest.fixture
def topics(bootstrap_servers: str, make_topic: TopicMaker) -> tuple[str, str, str]:
    """Return two topics of four records, and one whose first two records are gone."""
    made = make_topic(), make_topic(), make_topic()
    for topic in made:
        send(bootstrap_servers, topic, 4)
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_records(client, {TopicPartition(made[2], 0): 2})
    return made


def send(servers: str, topic: str, count: int) -> None:
    produce(servers, topic, [Record(None, b"v", 0)] * count)


def stream(spark: SparkSession, servers: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(**{"startingOffsets": "earliest", **options}).load()


def run(rows: DataFrame, checkpoint: Path) -> list[tuple[str, int]]:
    """Run a query to its end, and return the topic and offset of each record."""
    found: list[tuple[str, int]] = []

    def take(frame: DataFrame, _: int) -> None:
        found.extend((row.topic, row.offset) for row in frame.select("topic", "offset").collect())

    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(take).start().awaitTermination()
    return sorted(found)


def content(checkpoint: Path) -> dict[str, str]:
    """Return the files of the checkpoint that name batches and positions."""
    folders = ("offsets", "commits", "sources")
    return {
        str(path.relative_to(checkpoint)): path.read_text()
        for folder in folders
        for path in sorted((checkpoint / folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize("wrong", WRONG_STARTS)
def test_refused_start_leaves_the_checkpoint_and_the_corrected_query_goes_on(
    spark: SparkSession, bootstrap_servers: str, topics: tuple[str, str, str], tmp_path: Path, wrong: str
) -> None:
    one, two, _ = topics
    assert len(run(stream(spark, bootstrap_servers, subscribe=f"{one},{two}"), tmp_path)) == 8
    before = content(tmp_path)
    options, condition = WRONG_STARTS[wrong][0](*topics), WRONG_STARTS[wrong][1]
    send(bootstrap_servers, one, 1)
    with pytest.raises(StreamingQueryException, match=rf"KAFKA_DATA_LOSS\.{condition}\].* no micro-batch was planned"):
        run(stream(spark, bootstrap_servers, **options), tmp_path)
    assert content(tmp_path) == before
    assert run(stream(spark, bootstrap_servers, subscribe=f"{one},{two}"), tmp_path) == [(one, 4)]


def test_refused_cluster_that_is_behind_leaves_the_checkpoint(
    spark: SparkSession,
    bootstrap_servers: str,
    older_kafka: EmbeddedKafka,
    topics: tuple[str, str, str],
    tmp_path: Path,
) -> None:
    one = topics[0]
    assert len(run(stream(spark, bootstrap_servers, subscribe=one), tmp_path)) == 4
    before = content(tmp_path)
    with borrow_client(options_for(older_kafka.bootstrap_servers)) as client:
        create_topic(client, one)
    send(older_kafka.bootstrap_servers, one, 2)
    with pytest.raises(StreamingQueryException, match=r"PARTITION_OFFSET_CHANGED\].* no micro-batch was planned"):
        run(stream(spark, older_kafka.bootstrap_servers, subscribe=one), tmp_path)
    assert content(tmp_path) == before
    send(bootstrap_servers, one, 1)
    assert run(stream(spark, bootstrap_servers, subscribe=one), tmp_path) == [(one, 4)]


def test_refused_order_of_two_sources_leaves_the_checkpoint(
    spark: SparkSession, bootstrap_servers: str, topics: tuple[str, str, str], tmp_path: Path
) -> None:
    one, two, _ = topics

    def both(first: str, second: str) -> DataFrame:
        return stream(spark, bootstrap_servers, subscribe=first).union(
            stream(spark, bootstrap_servers, subscribe=second)
        )

    assert len(run(both(one, two), tmp_path)) == 8
    before = content(tmp_path)
    send(bootstrap_servers, one, 1)
    with pytest.raises(StreamingQueryException, match=r"PARTITIONS_DELETED\].* no micro-batch was planned"):
        run(both(two, one), tmp_path)
    assert content(tmp_path) == before
    assert run(both(one, two), tmp_path) == [(one, 4)]
