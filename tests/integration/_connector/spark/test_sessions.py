"""Streaming queries over several sessions of their login, on a real broker that ends them (KIP-368)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.brokers.sessions import PASSWORD, SessionsBroker, sessions_broker
from kit.independent_client import Record, await_committed, consume, produce
from kit.reading import load

# Logins are renewed with half of it left: enough for a request on a busy machine.
LIFETIME_MS = 4_000
# How long queries run after their first micro-batch: several sessions.
DURATION_S = 3.5 * LIFETIME_MS / 1000
NAMES = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[SessionsBroker]:
    with sessions_broker(LIFETIME_MS) as running:
        yield running


@pytest.fixture
def topics(broker: SessionsBroker) -> tuple[str, str]:
    number = next(NAMES)
    source, target = f"source-{number}", f"target-{number}"
    broker.kafka.create_topic(source, 2)
    broker.kafka.create_topic(target, 2)
    return source, target


def copy(
    spark: SparkSession, options: dict[str, str], source: str, target: str, checkpoint: Path, **sink: Any
) -> StreamingQuery:
    rows = spark.readStream.format("pyspark_kafka").options(**options)
    rows = rows.option("subscribe", source).option("startingOffsets", "earliest")
    writer = rows.load().select("key", "value").writeStream.format("pyspark_kafka").options(**options)
    writer = writer.option("topic", target).option("checkpointLocation", str(checkpoint)).options(**sink)
    return writer.trigger(processingTime="50 milliseconds").start()


def feed(broker: SessionsBroker, source: str, query: StreamingQuery) -> list[bytes]:
    """Write rows, micro-batch after micro-batch, for several sessions; return their values."""
    sent: list[bytes] = []
    end: float | None = None
    while end is None or time.monotonic() < end:
        values = [b"v%04d" % number for number in range(len(sent), len(sent) + 10)]
        produce(broker.kafka.bootstrap_servers, source, [Record(None, value) for value in values])
        sent += values
        query.processAllAvailable()
        end = end or time.monotonic() + DURATION_S
    return sent


@pytest.mark.full("Sessions that end in use")
@pytest.mark.parametrize(
    ("mechanism", "guarantee"),
    [
        ("PLAIN", "at_least_once"),
        ("SCRAM-SHA-512", "exactly_once"),
    ],
)
def test_micro_batches_over_many_sessions_write_each_row_once(
    spark: SparkSession,
    broker: SessionsBroker,
    topics: tuple[str, str],
    tmp_path: Path,
    mechanism: str,
    guarantee: str,
) -> None:
    source, target = topics
    query = copy(spark, broker.options(mechanism), source, target, tmp_path, deliveryGuarantee=guarantee)
    try:
        sent = feed(broker, source, query)
    finally:
        query.stop()
    assert query.exception() is None
    await_committed(broker.kafka.bootstrap_servers, target, sent)
    assert broker.ended_connections() == []


def test_batch_read_that_lasts_for_many_sessions_reads_each_row_once(
    spark: SparkSession, broker: SessionsBroker, topics: tuple[str, str]
) -> None:
    source, _ = topics
    values = [b"v%04d" % at for at in range(400)]
    produce(broker.kafka.bootstrap_servers, source, [Record(None, value, at % 2) for at, value in enumerate(values)])

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(0.2 * LIFETIME_MS / 1000)
            yield batch

    rows = load(
        spark,
        broker.servers,
        **{name: value for name, value in broker.options().items() if name != "kafka.bootstrap.servers"},
        subscribe=source,
        **{"kafka.fetch.max.bytes": "2000", "kafka.max.partition.fetch.bytes": "2000"},
    )
    found = rows.select("value").mapInArrow(slowly, "value binary").collect()
    assert sorted(bytes(row.value) for row in found) == values
    assert broker.ended_connections() == []


@pytest.mark.full("Sessions that end in use")
def test_password_that_was_changed_ends_a_query_with_an_error_that_says_so(
    spark: SparkSession, broker: SessionsBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, target = topics
    query = copy(spark, broker.options("SCRAM-SHA-256"), source, target, tmp_path)
    try:
        produce(broker.kafka.bootstrap_servers, source, [Record(None, b"before")])
        query.processAllAvailable()
        broker.set_password("changed")
        with pytest.raises(Exception, match="SASL_AUTHENTICATION_FAILED") as caught:
            query.awaitTermination(300)
    finally:
        query.stop()
        broker.set_password(PASSWORD)
    text = str(caught.value)
    assert "The same login was accepted" in text
    assert PASSWORD not in text
    # What was committed before stays, and with the password the query continues.
    again = copy(spark, broker.options("SCRAM-SHA-256"), source, target, tmp_path)
    try:
        produce(broker.kafka.bootstrap_servers, source, [Record(None, b"after")])
        again.processAllAvailable()
    finally:
        again.stop()
    found = consume(broker.kafka.bootstrap_servers, target, 2)
    assert sorted(record.value or b"" for record in found) == [b"after", b"before"]
