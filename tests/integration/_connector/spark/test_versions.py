"""What a query needs of each version of PySpark; `make test-spark SPARK=4.0` runs it with another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce

PARTITIONS = 2


class Copy:
    """A query that copies one topic to another in available-now runs, on one checkpoint."""

    def __init__(self, spark: SparkSession, servers: str, topics: tuple[str, str], checkpoint: Path) -> None:
        self.spark, self.servers, self.checkpoint = spark, servers, str(checkpoint)
        self.source, self.target = topics

    def run(self, written: dict[str, str] | None = None, **read: Any) -> list[int]:
        """Run once, and return the numbers that the target has."""
        servers = {"kafka.bootstrap.servers": self.servers}
        rows = self.spark.readStream.format("pyspark_kafka").options(**servers, subscribe=self.source, **read).load()
        query = (
            rows.select("value", "partition")
            .writeStream.format("pyspark_kafka")
            .options(**servers, topic=self.target, checkpointLocation=self.checkpoint, **(written or {}))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(int(each.value or b"") for each in consume_committed(self.servers, self.target))


@pytest.fixture
def copy(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Copy:
    return Copy(spark, bootstrap_servers, (make_topic(PARTITIONS), make_topic(PARTITIONS)), tmp_path / "checkpoint")


def add(copy: Copy, start: int, stop: int) -> None:
    produce(copy.servers, copy.source, [Record(None, b"%d" % n, n % PARTITIONS) for n in range(start, stop)])


def test_batch_is_written_and_read(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(PARTITIONS)
    options = {"kafka.bootstrap.servers": bootstrap_servers}
    rows = spark.range(30).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("pyspark_kafka").options(**options, topic=topic).mode("append").save()
    read = spark.read.format("pyspark_kafka").options(**options, subscribe=topic, includeHeaders="true").load()
    assert sorted(int(row.value) for row in read.where("offset >= 0 AND headers IS NULL").collect()) == [*range(30)]


@pytest.mark.parametrize("written", [{}, {"deliveryGuarantee": "exactly_once"}], ids=["at-least-once", "exactly-once"])
def test_copy_goes_on_where_it_was(copy: Copy, written: dict[str, str]) -> None:
    add(copy, 0, 40)
    assert copy.run(written, startingOffsets="earliest") == [*range(40)]
    assert copy.run(written, startingOffsets="earliest") == [*range(40)]
    add(copy, 40, 60)
    assert copy.run({**written, "exactlyOnceCommit": "tasks"} if written else written) == [*range(60)]


def test_limit_counts_from_where_the_query_was(copy: Copy) -> None:
    add(copy, 0, 40)
    # One batch a run before PySpark 4.2, all of them later.
    first = copy.run(startingOffsets="earliest", maxOffsetsPerTrigger=10)
    assert first == [*range(len(first))]
    assert len(first) >= 10
    while (found := copy.run(startingOffsets="earliest", maxOffsetsPerTrigger=10)) != first:
        assert found == [*range(len(found))]
        assert len(found) <= len(first) + 10 or len(found) == 40
        first = found
    assert first == [*range(40)]


def test_query_from_the_end_keeps_its_start(copy: Copy) -> None:
    add(copy, 0, 10)
    assert copy.run(startingOffsets="latest") == []
    add(copy, 10, 20)
    assert copy.run(startingOffsets="latest") == [*range(10, 20)]


def test_typed_values_are_read_and_written(copy: Copy) -> None:
    produce(copy.servers, copy.source, [Record(None, b'{"id":%d}' % n) for n in range(5)])
    options = {"kafka.bootstrap.servers": copy.servers}
    typed = copy.spark.readStream.format("pyspark_kafka").options(
        **options, subscribe=copy.source, startingOffsets="earliest", valueFormat="json", valueSchema="id BIGINT"
    )
    numbers = typed.load().selectExpr("CAST(value.id * 2 AS STRING) AS value")
    query = numbers.writeStream.format("pyspark_kafka").options(
        **options, topic=copy.target, checkpointLocation=copy.checkpoint
    )
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(int(each.value or b"") for each in consume_committed(copy.servers, copy.target)) == [0, 2, 4, 6, 8]
