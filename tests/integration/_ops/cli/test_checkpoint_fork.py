"""`pyspark-kafka checkpoint fork` and `rewind` on the checkpoints of real queries: what runs from there is exact."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import Result

from kit.checkpoint_files import write_checkpoint
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume_all, produce
from kit.programs.cli import invoke
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint

HOUR_MS = 3_600_000

_SECOND = pytest.mark.full("Second state store")


def numbered(first: int, last: int, timestamp_ms: int | None = None) -> list[Record]:
    return [Record(b"k%d" % (i % 3), b"%d" % i, partition=i % 2, timestamp_ms=timestamp_ms) for i in range(first, last)]


def values(records: list[Record]) -> Counter[int]:
    return Counter(int(record.value or b"") for record in records)


def once(first: int, last: int) -> Counter[int]:
    return Counter(range(first, last))


def await_values(servers: str, topic: str, expected: Counter[int]) -> None:
    await_committed(servers, topic, [b"%d" % value for value in expected.elements()])


def command(name: str, *arguments: object, servers: str, fails: bool = False) -> Result:
    given = [str(each) for each in arguments]
    done = invoke("checkpoint", name, *given, "-o", f"kafka.bootstrap.servers={servers}")
    assert (done.exit_code != 0) is fails, done.output
    return done


def stream(spark: SparkSession, servers: str, source: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe=source, startingOffsets="earliest", **options).load()


def copy(
    spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path, *, read: Any = None, **options: str
) -> None:
    """Copy everything that there is, and end."""
    rows = stream(spark, servers, source, **(read or {})).select("key", "value")
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.options(topic=target, checkpointLocation=str(checkpoint), **options)
    writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
@pytest.mark.parametrize("known", [True, pytest.param(False, marks=_SECOND)])
def test_fork_to_a_time_writes_what_came_since_once(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    guarantee: str,
    known: bool,
) -> None:
    source, target, second = make_topic(2), make_topic(), make_topic()
    place, forked = tmp_path / "query", tmp_path / "forked"
    now = int(time.time() * 1000)

    def run(target: str, checkpoint: Path) -> None:
        read = {"checkpointLocation": str(checkpoint)} if known else {}
        copy(spark, bootstrap_servers, source, target, checkpoint, read=read, deliveryGuarantee=guarantee)

    for first, hours in ((0, 3), (10, 1), (20, 0)):
        produce(bootstrap_servers, source, numbered(first, first + 10, now - hours * HOUR_MS))
        run(target, place)
    arguments = (place, forked, "--at", "2 hours ago")
    shown = command("fork", *arguments, servers=bootstrap_servers)
    assert "At most 20 records are read again" in shown.output
    assert "Nothing was written. Pass --yes to write it." in shown.output
    assert not forked.exists()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    told = json.loads(command("fork", *arguments, "--yes", "--json", servers=bootstrap_servers).stdout)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert (told["read_again"], told["skipped"], told["lost"], told["applied"]) == (20, 0, 0, True)
    assert told["query_id"] != told["former_query_id"] == read_checkpoint(str(place)).query_id()
    run(second, forked)
    await_values(bootstrap_servers, second, once(10, 30))
    # It goes its way, and so does the other one.
    produce(bootstrap_servers, source, numbered(30, 35))
    run(second, forked)
    run(target, place)
    await_values(bootstrap_servers, second, once(10, 35))
    await_values(bootstrap_servers, target, once(0, 35))


def test_rewind_of_an_exactly_once_query_writes_again_only_what_is_behind_the_place(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(2), make_topic(), tmp_path / "query"
    named = {"deliveryGuarantee": "exactly_once", "kafka.transactional.id": f"rewound-{source}"}
    for first in (0, 10, 20):
        produce(bootstrap_servers, source, numbered(first, first + 10))
        copy(spark, bootstrap_servers, source, target, place, **named)
    refused = command("rewind", place, "--batch", 0, "--yes", servers=bootstrap_servers, fails=True)
    assert refused.exit_code == 2
    assert "[CHECKPOINT_IN_USE]" in refused.stderr
    query_id = read_checkpoint(str(place)).query_id()
    done = command("rewind", place, "--batch", 0, "--yes", "--force", servers=bootstrap_servers)
    assert "what is read again is written a second time" in done.output
    assert read_checkpoint(str(place)).query_id() == query_id
    copy(spark, bootstrap_servers, source, target, place, **named)
    await_values(bootstrap_servers, target, once(0, 30) + once(10, 30))
    # And forward, over records that were never read.
    produce(bootstrap_servers, source, numbered(30, 40))
    ends = json.dumps({source: "latest"})
    shown = command("rewind", place, "--offsets", ends, "--yes", "--force", servers=bootstrap_servers)
    assert "At most 10 records are SKIPPED" in shown.output
    produce(bootstrap_servers, source, numbered(40, 45))
    copy(spark, bootstrap_servers, source, target, place, **named)
    await_values(bootstrap_servers, target, once(0, 30) + once(10, 30) + once(40, 45))
    (backup, *_) = sorted(tmp_path.glob("query-backup-*"))
    command("rewind", place, "--restore", backup, "--yes", "--force", servers=bootstrap_servers)
    assert read_checkpoint(str(place)).history.last_finished == 2


class Counts:
    """A query that counts the records of each key, with the last count that it has told of each."""

    def __init__(self, spark: SparkSession, servers: str, source: str) -> None:
        self.rows = stream(spark, servers, source, maxOffsetsPerTrigger="30").groupBy("key").count()

    def run(self, checkpoint: Path) -> dict[bytes, int]:
        told: dict[bytes, int] = {}

        def keep(rows: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - Spark's contract
            told.update({bytes(row.key): row["count"] for row in rows.collect()})

        writer = self.rows.writeStream.foreachBatch(keep).outputMode("update")
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
        return told


_STORES = {
    "hdfs": {},
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
        "RocksDBStateStoreProvider"
    },
    "changelog": {
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
        "RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}


@pytest.mark.parametrize(
    "store", ["hdfs", pytest.param("rocksdb", marks=_SECOND), pytest.param("changelog", marks=_SECOND)]
)
def test_aggregation_is_forked_and_rewound_with_the_state_of_its_batch(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, store: str
) -> None:
    source, place, forked, dropped = make_topic(2), tmp_path / "query", tmp_path / "forked", tmp_path / "dropped"
    counts = Counts(spark, bootstrap_servers, source)
    for name, value in _STORES[store].items():
        spark.conf.set(name, value)
    try:
        produce(bootstrap_servers, source, numbered(0, 120))
        assert counts.run(place) == {b"k%d" % key: 40 for key in range(3)}
        at = ("--offsets", json.dumps({source: {"0": 30}}))
        refused = command("fork", place, forked, *at, "--yes", servers=bootstrap_servers, fails=True)
        assert "[CHECKPOINT_STATE_NOT_CARRIED]" in refused.stderr
        assert not forked.exists()
        command("fork", place, forked, "--batch", 1, "--yes", servers=bootstrap_servers)
        assert counts.run(forked) == {b"k%d" % key: 40 for key in range(3)}
        shown = command("fork", place, dropped, *at, "--drop-state", "--yes", servers=bootstrap_servers)
        assert "Its state is DROPPED" in shown.output
        # Of partition 0 the second half is counted again, of partition 1 nothing.
        assert counts.run(dropped) == {b"k%d" % key: 10 for key in range(3)}
        told = json.loads(
            command("rewind", place, "--batch", 2, "--yes", "--force", "--json", servers=bootstrap_servers).stdout
        )
        assert (told["state"], told["next_batch"]) == ("carried", 3)
        produce(bootstrap_servers, source, numbered(120, 150))
        assert counts.run(place) == {b"k%d" % key: 50 for key in range(3)}
        command(
            "rewind", place, "--at", "2001-01-01T00:00:00Z", "--drop-state", "--yes", "--force",
            servers=bootstrap_servers,
        )  # fmt: skip
        assert counts.run(place) == {b"k%d" % key: 50 for key in range(3)}
    finally:
        for name in _STORES[store]:
            spark.conf.unset(name)


def test_place_that_cannot_be_is_refused_with_the_status_of_wrong_use(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(2), make_topic(), tmp_path / "query"
    produce(bootstrap_servers, source, numbered(0, 10))
    copy(spark, bootstrap_servers, source, target, place)
    forked = tmp_path / "forked"
    for arguments, condition in (
        (("--batch", 7), "CHECKPOINT_PLACE_INVALID"),
        (("--at", "yesterday"), "ARGUMENT_INVALID"),
        (("--offsets", "no such file"), "ARGUMENT_INVALID"),
        (("--offsets", '{"other":{"0":1}}'), "CHECKPOINT_OFFSETS_INVALID"),
        (("--offsets", json.dumps({source: {"0": 99}})), "CHECKPOINT_OFFSETS_INVALID"),
        ((), "ARGUMENT_INVALID"),
        (("--batch", 0, "--at", "2h"), "ARGUMENT_INVALID"),
    ):
        done = command("fork", place, forked, *arguments, "--yes", servers=bootstrap_servers, fails=True)
        assert done.exit_code == 2
        assert f"[{condition}]" in done.stderr
    done = command("fork", tmp_path / "none", forked, "--batch", 0, servers=bootstrap_servers, fails=True)
    assert "[CHECKPOINT_NOT_FOUND]" in done.stderr
    assert not forked.exists()


def test_batch_is_forked_without_brokers_and_the_status_says_that_they_are_away(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(2), make_topic(), tmp_path / "query"
    produce(bootstrap_servers, source, numbered(0, 10))
    copy(spark, bootstrap_servers, source, target, place)
    away = ("-o", "kafka.default.api.timeout.ms=1500", "-o", "kafka.request.timeout.ms=1000")
    done = command("fork", place, tmp_path / "a", "--batch", 0, *away, servers="127.0.0.1:1", fails=True)
    assert done.exit_code == 3
    assert "Not found out, whether the brokers still have these records" in done.stderr
    done = command("fork", place, tmp_path / "a", "--at", "2h", *away, servers="127.0.0.1:1", fails=True)
    assert done.exit_code == 4
    alone = invoke("checkpoint", "fork", str(place), str(tmp_path / "b"), "--batch", "0", "--yes")
    assert alone.exit_code == 0
    assert "The brokers were not asked" in alone.output
    assert read_checkpoint(str(tmp_path / "b")).history.last_finished == 1


def test_records_that_the_log_has_lost_are_told(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(2), make_topic(), tmp_path / "query"
    for first in (0, 10):
        produce(bootstrap_servers, source, numbered(first, first + 10))
        copy(spark, bootstrap_servers, source, target, place)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.delete_records({KafkaPartition(source, 0): 7})
    finally:
        admin.close()
    done = command("fork", place, tmp_path / "a", "--batch", 0, servers=bootstrap_servers)
    assert "At most 2 records from there on are LOST" in done.output
    done = command("fork", place, tmp_path / "a", "--at", "9h", "--yes", servers=bootstrap_servers)
    assert f"The log begins there: {source}-0 at 7." in done.output
    second = make_topic()
    copy(spark, bootstrap_servers, source, second, tmp_path / "a")
    assert values(consume_all(bootstrap_servers, second)) == Counter([*range(1, 20, 2), 14, 16, 18])


@pytest.mark.parametrize("to_a_time", [False, True])
def test_fork_at_the_end_of_a_log_starts_before_the_records_of_an_open_transaction(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, to_a_time: bool
) -> None:
    source, now = make_topic(), int(time.time() * 1000)
    place = write_checkpoint(tmp_path / "query", [{source: {"0": 2}}])
    produce(bootstrap_servers, source, [Record(None, b"x", 0, now - 3 * HOUR_MS) for _ in range(5)])
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers, transactional_id=f"open-{source}", transaction_timeout_ms=600_000
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for hours in (3, 1):
            producer.send(source, b"open", partition=0, timestamp_ms=now - hours * HOUR_MS).get(timeout=120)
        there = ("--at", "2h") if to_a_time else ("--offsets", json.dumps({source: "latest"}))
        done = command("fork", place, tmp_path / "forked", *there, "--json", servers=bootstrap_servers)
        producer.abort_transaction()
    finally:
        producer.close()
    (partition,) = json.loads(done.stdout)["partitions"]
    assert (partition["to"], partition["skipped"]) == (5, 3)


def test_query_that_was_left_running_ends_at_its_next_batch(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(2), make_topic(), tmp_path / "query"
    produce(bootstrap_servers, source, numbered(0, 10))
    rows = stream(spark, bootstrap_servers, source).select("key", "value")
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    query = writer.options(topic=target, checkpointLocation=str(place)).start()
    try:
        query.processAllAvailable()
        ends = json.dumps({source: "earliest"})
        command("rewind", place, "--offsets", ends, "--yes", "--force", servers=bootstrap_servers)
        produce(bootstrap_servers, source, numbered(10, 12))
        with pytest.raises(StreamingQueryException, match="CONCURRENT_STREAM_LOG_UPDATE"):
            query.awaitTermination(300)
    finally:
        query.stop()
    copy(spark, bootstrap_servers, source, target, place)
    assert values(consume_all(bootstrap_servers, target)) == once(0, 10) + once(0, 12)
