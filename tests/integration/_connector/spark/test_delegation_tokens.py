"""Queries that log in with delegation tokens: kept in a file, replaced while a query runs, and obtained by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.brokers.sessions import SessionsBroker, sessions_broker
from kit.independent_client import Record, await_committed, consume_committed, produce
from pyspark_kafka import delegation_tokens

# Long enough for a login on a busy machine within the quarter of it that is left when it is renewed.
EXPIRY_S, LIFETIME_S = 16.0, 24.0


@pytest.fixture(scope="module")
def broker() -> Iterator[SessionsBroker]:
    often = {"delegation.token.expiry.check.interval.ms": "500"}
    expiry = {"delegation.token.expiry.time.ms": str(int(EXPIRY_S * 1000))}
    with sessions_broker(0, often | expiry) as running:
        yield running


@pytest.mark.full("Sessions that end in use")
def test_query_outlives_its_tokens_if_they_are_kept_in_a_file(
    spark: SparkSession, broker: SessionsBroker, tmp_path: Path
) -> None:
    """Tokens end after 24 s: the tasks read the file again wherever they log in, and no password travels."""
    servers = broker.kafka.bootstrap_servers
    for topic in ("kept-in", "kept-out"):
        broker.kafka.create_topic(topic, 2)
    own, file = broker.options("PLAIN"), tmp_path / "token.jaas"
    options = {**delegation_tokens.query_options(own), "kafka.sasl.jaas.config": f"file:{file}"}
    sent: list[bytes] = []
    with delegation_tokens.keep(own, file=file, lifetime=timedelta(seconds=LIFETIME_S)) as keeper:
        first = keeper.token
        rows = spark.readStream.format("pyspark_kafka").options(**options)
        rows = rows.option("subscribe", "kept-in").option("startingOffsets", "earliest")
        writer = rows.load().select("value").writeStream.format("pyspark_kafka").options(**options)
        writer = writer.option("topic", "kept-out").option("deliveryGuarantee", "exactly_once")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            end: float | None = None
            while end is None or time.monotonic() < end:
                values = [b"v%04d" % number for number in range(len(sent), len(sent) + 10)]
                produce(servers, "kept-in", [Record(None, value) for value in values])
                sent += values
                query.processAllAvailable()
                end = end or time.monotonic() + 1.3 * LIFETIME_S
        finally:
            query.stop()
        assert keeper.token.token_id != first.token_id
    assert query.exception() is None
    await_committed(servers, "kept-out", sent)
    assert broker.ended_connections() == []


def test_token_among_the_credentials_of_spark_logs_a_query_in(spark: SparkSession, broker: SessionsBroker) -> None:
    broker.kafka.create_topic("given")
    token = delegation_tokens.obtain(broker.options("PLAIN"))
    jvm: Any = spark._jvm
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    text = jvm.org.apache.hadoop.io.Text
    # As Spark's provider adds it: `KafkaTokenUtil.obtainToken`.
    added = jvm.org.apache.hadoop.security.token.Token(
        bytearray(token.token_id.encode()),
        bytearray(token.key.reveal().encode()),
        text("KAFKA_DELEGATION_TOKEN"),
        text("kafka.server.delegation.token.test"),
    )
    user.addToken(text(f"test-{token.token_id}"), added)
    options = delegation_tokens.from_spark(spark, broker.servers) | {"kafka.security.protocol": "SASL_PLAINTEXT"}
    rows = spark.createDataFrame([(b"a row",)], "value binary")
    with delegation_tokens.keep(broker.options("PLAIN"), token, period=timedelta(minutes=5)):
        rows.write.format("pyspark_kafka").options(**options).option("topic", "given").mode("append").save()
    assert [record.value for record in consume_committed(broker.kafka.bootstrap_servers, "given")] == [b"a row"]
