"""A streaming query outlives its brokers' restart."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.fixtures.broker import MortalBroker
from kit.independent_client import Record, await_committed, consume, produce


@pytest.mark.full("Waits for limits of time")
def test_a_running_query_writes_everything_once_its_broker_is_back(
    spark: SparkSession, mortal_broker: MortalBroker, tmp_path: Path
) -> None:
    servers = mortal_broker.bootstrap_servers
    for topic in ("restart-in", "restart-out"):
        mortal_broker.kafka.create_topic(topic, 2)
    rows = (
        spark.readStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "restart-in")
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "restart-out")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="50 milliseconds")
        .start()
    )
    sent = [Record(b"k%d" % n, b"v%04d" % n, n % 2) for n in range(400)]
    try:
        produce(servers, "restart-in", sent[:200])
        query.processAllAvailable()
        # The query keeps asking while no broker runs.
        mortal_broker.kafka.kill()
        mortal_broker.kafka.start()
        produce(servers, "restart-in", sent[200:])
        query.processAllAvailable()
        assert query.isActive
        assert query.exception() is None
    finally:
        query.stop()
    found = consume(servers, "restart-out", 400)
    assert sorted(record.value or b"" for record in found) == [record.value for record in sent]
    assert sum(progress.numInputRows for progress in query.recentProgress) == 400


# Look-ups of the queries here take 2 s at most.
_OUTAGE_S = 7.0


def _start(
    spark: SparkSession, broker: MortalBroker, source: str, target: str, checkpoint: Path, guarantee: str
) -> StreamingQuery:
    """Start a copy from one topic to another."""
    common = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.default.api.timeout.ms": "2000"}
    rows = (
        spark.readStream.format("pyspark_kafka")
        .options(**common)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    return (
        rows.select("key", "value")
        .writeStream.format("pyspark_kafka")
        .options(**common)
        .option("topic", target)
        .option("deliveryGuarantee", guarantee)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="50 milliseconds")
        .start()
    )


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_a_query_outlives_an_outage_longer_than_its_look_ups(
    spark: SparkSession, mortal_broker: MortalBroker, tmp_path: Path, guarantee: str
) -> None:
    servers = mortal_broker.bootstrap_servers
    source, target = f"frozen-in-{guarantee}", f"frozen-out-{guarantee}"
    for topic in (source, target):
        mortal_broker.kafka.create_topic(topic, 2)
    sent = [Record(b"k%d" % n, b"v%04d" % n, n % 2) for n in range(400)]
    query = _start(spark, mortal_broker, source, target, tmp_path / "checkpoint", guarantee)
    try:
        produce(servers, source, sent[:200])
        query.processAllAvailable()
        mortal_broker.kafka.pause()
        try:
            # Nothing that this process sees tells when a look-up has failed in that of the query.
            time.sleep(_OUTAGE_S)
            assert query.isActive
        finally:
            mortal_broker.kafka.resume()
        produce(servers, source, sent[200:])
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    await_committed(servers, target, [record.value or b"" for record in sent])


def test_a_query_that_waits_for_its_broker_can_be_stopped(
    spark: SparkSession, mortal_broker: MortalBroker, tmp_path: Path
) -> None:
    for topic in ("stopped-in", "stopped-out"):
        mortal_broker.kafka.create_topic(topic)
    query = _start(spark, mortal_broker, "stopped-in", "stopped-out", tmp_path / "checkpoint", "at_least_once")
    try:
        produce(mortal_broker.bootstrap_servers, "stopped-in", [Record(None, b"v", 0)])
        query.processAllAvailable()
        mortal_broker.kafka.kill()
        time.sleep(_OUTAGE_S)
        assert query.isActive
    finally:
        began = time.monotonic()
        query.stop()
    assert time.monotonic() - began < 30.0
