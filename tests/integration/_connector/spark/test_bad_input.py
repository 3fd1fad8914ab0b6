"""What a user sees in Spark when something is wrong: the condition, the place, and what to do. Nothing half-done."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.texts import said


def error_text(call: Callable[[], object]) -> str:
    """Run a call that must fail, and return the text that a user sees."""
    with pytest.raises(Exception, match=r"\[[A-Z_.]+\]") as caught:
        call()
    return str(caught.value)


def read(spark: SparkSession, **options: Any) -> DataFrame:
    named = {name.replace("kafka_", "kafka.").replace("_", "."): str(value) for name, value in options.items()}
    return spark.read.format("pyspark_kafka").options(**named).load()


def write(rows: DataFrame, **options: Any) -> None:
    named = {name.replace("_", "."): str(value) for name, value in options.items()}
    rows.write.format("pyspark_kafka").options(**named).mode("append").save()


# Nothing listens there, and no program is given it by chance.
CLOSED_PORT = 1


def seconds(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.mark.full("Waits for limits of time")
def test_an_unreachable_broker_is_named_within_30_seconds(spark: SparkSession, bootstrap_servers: str) -> None:
    def text_of(servers: str) -> str:
        return error_text(lambda: read(spark, kafka_bootstrap_servers=servers, subscribe="no-such-topic").count())

    # What Spark takes for a read that fails as soon as a broker is asked.
    of_spark = seconds(lambda: text_of(bootstrap_servers))
    texts: list[str] = []
    assert seconds(lambda: texts.append(text_of(f"127.0.0.1:{CLOSED_PORT}"))) < 30 + of_spark
    (text,) = texts
    assert f"127.0.0.1:{CLOSED_PORT}" in text
    assert "kafka.bootstrap.servers" in text
    assert "Hint:" in text


def test_an_unreachable_broker_fails_a_write_too(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    rows = spark.createDataFrame([("v",)], "value string")
    options = {"topic": make_topic(), "kafka.default.api.timeout.ms": "4000"}
    of_spark = seconds(lambda: write(rows, kafka_bootstrap_servers=bootstrap_servers, **options))
    texts: list[str] = []
    closed = f"127.0.0.1:{CLOSED_PORT}"
    took = seconds(lambda: texts.append(error_text(lambda: write(rows, kafka_bootstrap_servers=closed, **options))))
    # Not for as long as without the option.
    assert took < 15 + of_spark
    (text,) = texts
    assert f"127.0.0.1:{CLOSED_PORT}" in text
    assert "kafka.bootstrap.servers" in text


def test_an_unknown_topic_is_named_with_its_cluster_and_the_nearest_one(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    misspelt = topic.replace("t-", "T-") + "x"
    text = error_text(lambda: read(spark, kafka_bootstrap_servers=bootstrap_servers, subscribe=misspelt).count())
    assert f"[UNKNOWN_TOPIC] Topic '{misspelt}' does not exist in the cluster of {bootstrap_servers}, or " in text
    assert re.search(r"Hint: Did you mean 't-\w+-\d+'\? Otherwise check the spelling", text)


def test_an_unknown_topic_is_named_by_a_write(spark: SparkSession, bootstrap_servers: str) -> None:
    rows = spark.createDataFrame([("v",)], "value string")
    options = {"topic": "no-such-target", "kafka.max.block.ms": "2000"}
    text = error_text(lambda: write(rows, kafka_bootstrap_servers=bootstrap_servers, **options))
    assert f"Writing to topic 'no-such-target' failed: it does not exist in the cluster of {bootstrap_servers}" in text
    assert "Hint: Create the topic" in text
    waited = re.search(r"looked up for (\d+) ms", text)
    assert waited is not None
    # Not the default, 15 s.
    assert 2_000 <= int(waited[1]) < 12_000


def test_a_read_is_called_a_read_where_spark_does_not_say_which(spark: SparkSession) -> None:
    text = error_text(lambda: read(spark, kafka_bootstrap_servers="not-asked:9092", subscribe="t", minPartition="3"))
    assert "Option 'minpartition' is not known in a read. Hint: Did you mean 'minPartitions'?" in text
    assert "stream" not in text.split("OPTION_UNKNOWN")[1]


@pytest.mark.parametrize(
    "trigger", [{"availableNow": True}, {"processingTime": "1 second"}], ids=lambda t: next(iter(t))
)
def test_the_reason_is_the_last_line_where_a_stream_does_not_start(
    spark: SparkSession, tmp_path: Path, trigger: dict[str, Any]
) -> None:
    options = {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "t", "endingOffsets": "latest"}
    rows = spark.readStream.format("pyspark_kafka").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(**trigger)
    text = error_text(lambda: writer.start().awaitTermination(300))
    traceback = text[: text.index(" SQLSTATE:")].splitlines()
    assert said(traceback[-1].partition(": ")[2]) == (
        "[OPTION_NOT_APPLICABLE] Option 'endingOffsets' has no meaning in a streaming read; it is an option of batch "
        "read. Hint: A stream has no end. Remove it, or read a batch with spark.read."
    )
    assert "UnboundLocalError" not in text


def test_every_problem_with_the_options_is_reported_at_once(spark: SparkSession) -> None:
    text = error_text(lambda: read(spark, startingOffsets="soon", failOnDataLoss="maybe"))
    for name in ("kafka.bootstrap.servers", "subscribe", "startingOffsets", "failOnDataLoss"):
        assert name in text


def test_starting_offsets_for_other_partitions_than_there_are(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 0}})}
    text = error_text(lambda: read(spark, kafka_bootstrap_servers=bootstrap_servers, **options).count())
    assert f"{topic}-1" in text
    assert "startingOffsets" in text


def test_a_schema_with_a_foreign_column(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    reader = reader.option("subscribe", make_topic())
    text = error_text(lambda: reader.schema("key binary, payload string, offset int").load().count())
    assert "payload" in text
    assert "offset" in text


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ("1 AS value", "column 'value' is int and must be string or binary"),
        ("'v' AS value, 1L AS key", "column 'key' is bigint and must be string or binary"),
        ("'v' AS value, 1L AS partition", "column 'partition' is bigint and must be int"),
        ("'v' AS value, array('h') AS headers", "column 'headers' is array<string> and must be array<struct<"),
    ],
)
def test_a_sink_column_of_a_wrong_type(spark: SparkSession, bootstrap_servers: str, columns: str, named: str) -> None:
    rows = spark.sql(f"SELECT {columns}")
    text = error_text(lambda: write(rows, kafka_bootstrap_servers=bootstrap_servers, topic="t"))
    assert named in text


def test_a_sink_that_meets_a_null_topic(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    rows = spark.createDataFrame([(topic, "a"), (None, "b")], "topic string, value string").coalesce(1)
    text = error_text(lambda: write(rows, kafka_bootstrap_servers=bootstrap_servers))
    assert "KAFKA_NULL_TOPIC_IN_DATA" in text
    assert "Hint:" in text
    # The rows of a batch are checked before any of them is sent.
    assert consume(bootstrap_servers, topic, 0) == []


def test_a_record_larger_than_the_broker_takes(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(config={"max.message.bytes": "10000"})
    rows = spark.sql("SELECT repeat('x', 20000) AS value")
    text = error_text(lambda: write(rows, kafka_bootstrap_servers=bootstrap_servers, topic=topic))
    assert "MESSAGE_TOO_LARGE" in text
    assert "max.message.bytes" in text
    assert topic in text
    assert consume(bootstrap_servers, topic, 0) == []


def test_partitions_that_are_gone_when_a_stream_restarts(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    gone, kept = make_topic(), make_topic()
    for topic in (gone, kept):
        produce(bootstrap_servers, topic, [Record(b"k", b"v")])

    def run(fail: str, topics: str) -> None:
        reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.option("subscribe", topics).option("startingOffsets", "earliest").option("failOnDataLoss", fail)
        query = rows.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run("true", f"{gone},{kept}")
    produce(bootstrap_servers, kept, [Record(b"k", b"v")])
    text = error_text(lambda: run("true", kept))
    assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in text
    assert f"{gone}-0" in text
    run("false", kept)


def test_a_stream_refuses_a_checkpoint_of_another_kind(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"v")])

    def run() -> None:
        reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
        query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    log = tmp_path / "checkpoint" / "offsets" / "0"
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], '{"index":7}']))
    (log.parent / ".0.crc").unlink()
    text = error_text(run)
    assert "CHECKPOINT_OFFSET_INVALID" in text
    assert "index" in text
