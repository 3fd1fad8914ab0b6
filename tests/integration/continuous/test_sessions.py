"""Continuous queries over several sessions of their login, on a real broker that ends them (KIP-368)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.brokers.sessions import SessionsBroker, sessions_broker
from kit.independent_client import Record, await_committed, produce
from pyspark_kafka import continuous

pytestmark = pytest.mark.full("Sessions that end in use")

# Logins are renewed with half of it left: enough for a request on a busy machine.
LIFETIME_MS = 4_000
# How long the query runs after its first rows: several sessions.
DURATION_S = 2 * LIFETIME_MS / 1000


@pytest.fixture(scope="module")
def broker() -> Iterator[SessionsBroker]:
    with sessions_broker(LIFETIME_MS) as running:
        yield running


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_continuous_query_over_many_sessions_writes_each_row_once(
    spark: SparkSession, broker: SessionsBroker, tmp_path: Path, guarantee: str
) -> None:
    source, target = f"source-{guarantee}", f"target-{guarantee}"
    for topic in (source, target):
        broker.kafka.create_topic(topic, 2)
    options = broker.options("SCRAM-SHA-256")
    query = (
        continuous.read(spark).format("pyspark_kafka").options(**options)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .select("key", "value")
        .writeStream.format("pyspark_kafka").options(**options).option("topic", target)
        .option("deliveryGuarantee", guarantee).option("maxFailures", "0")
        .option("checkpointLocation", str(tmp_path)).trigger(continuous="300 milliseconds").start()
    )  # fmt: skip
    sent: list[bytes] = []
    end: float | None = None
    while end is None or time.monotonic() < end:
        values = [b"v%04d" % number for number in range(len(sent), len(sent) + 10)]
        produce(broker.kafka.bootstrap_servers, source, [Record(None, value) for value in values])
        sent += values
        query.processAllAvailable()
        end = end or time.monotonic() + DURATION_S
    query.stop()
    assert query.exception() is None
    await_committed(broker.kafka.bootstrap_servers, target, sent)
    assert broker.ended_connections() == []
