"""Kafka's own tools see where queries are: the ends of finished batches are committed to a consumer group."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import RetriableError
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.fixtures.kafka_tools import KafkaTool
from kit.independent_client import Record, produce
from kit.programs.run import run_connect_program
from kit.reading import positions_of_group
from kit.waiting import eventually
from pyspark_kafka import KafkaSource


class Setting:
    """A topic, a query that reads it, and the group that it commits to."""

    def __init__(self, spark: SparkSession, servers: str, topic: str, place: Path) -> None:
        self.spark, self.servers, self.topic, self.place = spark, servers, topic, place
        self.group = f"lag-{uuid.uuid4().hex}"

    def options(self, **options: Any) -> dict[str, Any]:
        return {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "commitOffsetsToGroup": self.group,
            **options,
        }

    def read(self, **options: Any) -> DataFrame:
        return self.spark.readStream.format("pyspark_kafka").options(**self.options(**options)).load()

    def run(self, rows: DataFrame, on_batch: Any = None, **trigger: Any) -> None:
        """Run the query until it ends."""
        write = rows.writeStream.option("checkpointLocation", str(self.place / "checkpoint"))
        write = write.format("noop") if on_batch is None else write.foreachBatch(on_batch)
        write.trigger(**(trigger or {"availableNow": True})).start().awaitTermination()

    def produce(self, count: int, partition: int = 0) -> None:
        produce(self.servers, self.topic, [Record(b"k", b"v", partition=partition)] * count)

    def await_positions(self, expected: dict[int, int]) -> None:
        eventually(lambda: positions_of_group(self.servers, self.group) == expected)


@pytest.fixture
def setting(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Setting:
    return Setting(spark, bootstrap_servers, make_topic(partitions=2), tmp_path)


def test_last_batch_of_an_available_now_run_is_in_the_group(setting: Setting) -> None:
    setting.produce(30)
    setting.produce(7, partition=1)
    setting.run(setting.read(maxOffsetsPerTrigger=20))
    setting.await_positions({0: 30, 1: 7})


def test_last_batch_of_a_once_run_is_in_the_group_where_the_source_knows_the_checkpoint(setting: Setting) -> None:
    """Spark ends the planning process without another question; the commit log says that the batch is finished."""
    setting.produce(5)
    setting.run(setting.read(checkpointLocation=str(setting.place / "checkpoint")), once=True)
    setting.await_positions({0: 5, 1: 0})


def test_running_query_commits_what_is_finished_without_another_batch(setting: Setting) -> None:
    setting.produce(5)
    query = (
        setting.read()
        .writeStream.format("noop")
        .option("checkpointLocation", str(setting.place / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        setting.await_positions({0: 5, 1: 0})
        setting.produce(3, partition=1)
        setting.await_positions({0: 5, 1: 3})
    finally:
        query.stop()


@pytest.mark.full("Drivers of their own")
def test_end_of_a_batch_that_failed_is_not_committed_and_neither_is_the_beginning(setting: Setting) -> None:
    """The batch is in the offset log and not in the commit log; a restart finishes it."""
    setting.produce(5)
    checkpoint = str(setting.place / "checkpoint")

    def fail_from(first: int) -> Any:
        def on_batch(_: DataFrame, batch_id: int) -> None:
            if batch_id >= first:
                raise ValueError("this batch fails")

        return on_batch

    with pytest.raises(Exception, match="this batch fails"):
        setting.run(setting.read(checkpointLocation=checkpoint), fail_from(0))
    assert positions_of_group(setting.servers, setting.group) == {}
    rows = setting.read(checkpointLocation=checkpoint, maxOffsetsPerTrigger=4)
    setting.produce(4)
    with pytest.raises(Exception, match="this batch fails"):
        setting.run(rows, fail_from(1))
    setting.await_positions({0: 5, 1: 0})
    setting.run(rows, fail_from(9))
    setting.await_positions({0: 9, 1: 0})


def test_query_goes_on_where_the_group_is_in_use(setting: Setting) -> None:
    setting.produce(5)
    # It must be a member for as long as the query takes, also where its heartbeats are late.
    member = KafkaConsumer(
        setting.topic,
        bootstrap_servers=setting.servers,
        group_id=setting.group,
        enable_auto_commit=False,
        session_timeout_ms=300_000,
    )
    admin: Any = KafkaAdminClient(bootstrap_servers=setting.servers)

    def is_in_use() -> bool:
        """Return whether the coordinator has a member, be it before or after the group is balanced."""
        member.poll(timeout_ms=100)
        try:
            return bool(admin.describe_groups([setting.group])[setting.group]["members"])
        except RetriableError:
            # The coordinator of the first group of a broker is not there at once.
            return False

    seen: list[int] = []
    try:
        eventually(is_in_use)
        setting.run(setting.read(), lambda rows, _: seen.append(rows.count()))
        assert sum(seen) == 5
        assert positions_of_group(setting.servers, setting.group) == {}
    finally:
        admin.close()
        member.close()


def test_kafka_consumer_groups_shows_the_lag_of_a_query(setting: Setting, kafka_tool: KafkaTool) -> None:
    setting.produce(30)
    setting.run(setting.read())
    setting.await_positions({0: 30, 1: 0})
    setting.produce(12)
    said = kafka_tool(
        "consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", setting.servers, "--describe", "--group", setting.group),
    )
    lines = [line.split() for line in said.splitlines() if setting.group in line and setting.topic in line]
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG
    assert sorted(line[2:6] for line in lines) == [["0", "30", "42", "12"], ["1", "0", "0", "0"]], said


def test_program_that_takes_its_batches_itself_says_what_is_finished(setting: Setting) -> None:
    setting.produce(5)
    source = KafkaSource(setting.spark, setting.options())
    end = source.latestOffset()
    assert end is not None
    assert source.getBatch(None, end).count() == 5
    # To look for the next end is not a commit.
    source.latestOffset(end)
    source.stop()
    assert positions_of_group(setting.servers, setting.group) == {}
    again = KafkaSource(setting.spark, setting.options())
    again.commit(end)
    again.stop()
    assert positions_of_group(setting.servers, setting.group) == {0: 5, 1: 0}


_CONNECT = """
import sys
from pyspark.sql import SparkSession

servers, topic, group, place = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
query = (
    spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("subscribe", topic).option("startingOffsets", "earliest").option("commitOffsetsToGroup", group).load()
    .writeStream.format("noop").option("checkpointLocation", place + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""


@pytest.mark.full("Spark Connect")
def test_query_on_spark_connect_commits_to_its_group(setting: Setting) -> None:
    setting.produce(5)
    place = setting.place / "connect"
    place.mkdir()
    run_connect_program(_CONNECT, setting.servers, setting.topic, setting.group, str(place), place=place)
    setting.await_positions({0: 5, 1: 0})
