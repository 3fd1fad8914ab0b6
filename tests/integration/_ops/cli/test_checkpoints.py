"""`pyspark-kafka checkpoint` on what real queries left, and what a restart then does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.administration import delete_records
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.programs.cli import invoke
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.testing import EmbeddedKafka


def numbered(first: int, last: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%03d" % i) for i in range(first, last)]


def values(first: int, last: int) -> list[bytes]:
    return [b"v%03d" % i for i in range(first, last)]


def stream(spark: SparkSession, servers: str, source: str, checkpoint: Path) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(
        subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="20", checkpointLocation=str(checkpoint)
    ).load()


def run(rows: DataFrame, servers: str, target: str, checkpoint: Path, **options: str) -> None:
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.options(topic=target, checkpointLocation=str(checkpoint), **options)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def told(command: str, checkpoint: Path, servers: str = "", *arguments: str) -> tuple[int, dict[str, Any]]:
    if servers:
        arguments = (*arguments, "--bootstrap-servers", servers)
    result = invoke("checkpoint", command, "--json", str(checkpoint), *arguments)
    assert result.stdout, result.stderr
    return result.exit_code, json.loads(result.stdout)


def codes(found: dict[str, Any]) -> list[str]:
    return [f"{each['severity']} {each['code']}" for each in found["findings"]]


def verdict(checkpoint: Path, servers: str) -> tuple[int, list[str]]:
    status, found = told("verify", checkpoint, servers)
    return status, codes(found)


def forget_last_commit(checkpoint: Path) -> int:
    """Remove the last file of the commit log, as after a driver that died before it; return its number."""
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink()
    return last


def test_query_is_explained_and_well_until_its_records_are_deleted(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    client: KafkaClient,
    kafka: EmbeddedKafka,
    tmp_path: Path,
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    produce(bootstrap_servers, source, numbered(0, 50))
    rows = stream(spark, bootstrap_servers, source, tmp_path).select("value")
    run(rows, bootstrap_servers, target, tmp_path)
    status, found = told("explain", tmp_path)
    assert status == 0
    assert found["kind"] == "micro_batch"
    assert len(found["batches"]) == 3
    assert sum(batch["offsets"] for batch in found["batches"]) == 50
    assert sum(found["sources"][0]["position"][source].values()) == 50
    assert source in found["sources"][0]["topic_ids"]
    assert all(batch["took_ms"] > 0 for batch in found["batches"])
    status, found = told("verify", tmp_path, bootstrap_servers)
    assert (status, codes(found), found["unknown"]) == (0, [], [])

    produce(bootstrap_servers, source, numbered(50, 90))
    delete_records(client, {TopicPartition(source, number): -1 for number in range(2)})
    status, found = told("verify", tmp_path, bootstrap_servers)
    assert (status, codes(found)) == (1, ["fault records-lost"])
    assert found["findings"][0]["text"].startswith(f"At most 40 records of {source} that the query has not read are")

    kafka.delete_topic(source)
    eventually(lambda: "fault topic-gone" in codes(told("verify", tmp_path, bootstrap_servers)[1]))
    kafka.create_topic(source, 2)
    recreated = ["fault topic-recreated"]
    eventually(lambda: codes(told("verify", tmp_path, bootstrap_servers)[1]) == recreated)


def test_marker_of_an_exactly_once_sink_says_what_a_restart_writes(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    checkpoint, backup = tmp_path / "checkpoint", tmp_path / "backup"
    produce(bootstrap_servers, source, numbered(0, 40))

    def once() -> None:
        rows = stream(spark, bootstrap_servers, source, checkpoint).select("value")
        run(rows, bootstrap_servers, target, checkpoint, deliveryGuarantee="exactly_once")

    once()
    shutil.copytree(checkpoint, backup)
    last = forget_last_commit(checkpoint)
    # Brokers write the end of a transaction, and so its commit marker, after their response to it.
    eventually(lambda: codes(told("verify", checkpoint, bootstrap_servers)[1]) == ["note marker"])
    status, found = told("verify", checkpoint, bootstrap_servers)
    assert status == 0
    assert "A restart runs this batch again and writes nothing" in found["findings"][0]["text"]
    assert told("explain", checkpoint)[1]["unfinished"] == last
    once()
    await_committed(bootstrap_servers, target, values(0, 40))

    produce(bootstrap_servers, source, numbered(40, 50))
    once()
    later = (1, ["fault marker-of-a-later-batch"])
    eventually(lambda: verdict(backup, bootstrap_servers) == later)
    assert told("verify", checkpoint, bootstrap_servers)[0] == 0
    result = invoke("checkpoint", "diff", str(backup), str(checkpoint))
    assert result.exit_code == 1
    assert "The second one is ahead in 1 partition, by 10 offsets." in result.output


def test_state_that_lacks_its_last_version_stops_the_query_as_verify_says(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source = make_topic()
    produce(bootstrap_servers, source, numbered(0, 40))
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")

    def count() -> None:
        rows = stream(spark, bootstrap_servers, source, tmp_path).groupBy("topic").count()
        writer = rows.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(tmp_path))
        writer.trigger(availableNow=True).start().awaitTermination()

    try:
        count()
        assert told("explain", tmp_path)[1]["states"] == [
            {"directory": "state/0", "name": "stateStoreSave", "partitions": 1}
        ]
        assert told("verify", tmp_path)[0] == 0
        store = tmp_path / "state" / "0" / "0"
        newest = max(store.glob("[0-9]*.delta"), key=lambda path: int(path.name.partition(".")[0]))
        newest.unlink()
        status, found = told("verify", tmp_path)
        assert (status, codes(found)) == (1, ["fault state-behind"])
        produce(bootstrap_servers, source, numbered(40, 50))
        with pytest.raises(Exception, match=r"(?i)state"):
            count()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def test_continuous_query_is_told_apart_and_its_group_is_looked_at(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    produce(bootstrap_servers, source, numbered(0, 30))
    query = (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(tmp_path)).option("tasks", "2")
        .option("deliveryGuarantee", "exactly_once").trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(300)
    await_committed(bootstrap_servers, target, values(0, 30))
    result = invoke("checkpoint", "explain", str(tmp_path))
    assert result.exit_code == 0
    assert "It is a continuous query of pyspark-kafka; its batches are epochs." in result.output
    assert "It writes exactly once, with transactional ids " in result.output
    status, found = told("verify", tmp_path, bootstrap_servers)
    assert (status, found["unknown"]) == (0, [])
    assert sum(told("explain", tmp_path)[1]["sources"][0]["position"][source].values()) >= 30


def test_brokers_that_are_away_leave_the_files_and_status_3(tmp_path: Path, bootstrap_servers: str) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "commits").mkdir()
    (tmp_path / "metadata").write_text('{"id":"6a1c1f0e-9d0a-4c7e-8a37-0f7f5e2c9b11"}')
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t-that-is-not-there":{"0":5}}')
    status, found = told("verify", tmp_path, "127.0.0.1:1", "-o", "kafka.default.api.timeout.ms=2000")
    assert (status, codes(found)) == (3, [])
    assert found["unknown"][0].startswith("The brokers did not tell the topics:")
    status, found = told("verify", tmp_path, bootstrap_servers)
    assert (status, found["findings"][0]["code"]) == (1, "topic-gone")


def test_checkpoint_is_read_while_its_query_runs(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """Batches begin, finish and are removed in between: no file that a listing had may be missed."""
    source, target = make_topic(), make_topic()
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    produce(bootstrap_servers, source, numbered(0, 5))
    rows = stream(spark, bootstrap_servers, source, tmp_path).select("value")
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    query = writer.options(topic=target, checkpointLocation=str(tmp_path)).start()
    try:
        eventually((tmp_path / "commits" / "0").exists, 120)
        for number in range(15):
            produce(bootstrap_servers, source, numbered(number, number + 3))
            assert told("explain", tmp_path)[0] == 0
            status, found = told("verify", tmp_path)
            assert (status, [each for each in found["findings"] if each["severity"] == "fault"]) == (0, [])
    finally:
        query.stop()
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
