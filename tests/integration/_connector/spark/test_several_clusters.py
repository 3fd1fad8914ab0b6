"""Several clusters in one query, each with credentials of its own, and credentials that are replaced meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.independent_client import Record, await_committed, produce
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.secured.certificates import CertificateAuthority
from pyspark_kafka.testing.secured.listeners import Listener


@pytest.fixture(scope="module")
def first() -> Iterator[EmbeddedKafka]:
    """The cluster of users with passwords, who have rights."""
    listener = Listener("SASL_SSL", mechanisms=("SCRAM-SHA-256", "PLAIN"), max_reauth_ms=4_000)
    users = {"alice": "of-alice", "bob": "of-bob"}
    with EmbeddedKafka(listeners=[listener], users=users, authorizer=True) as running:
        yield running


@pytest.fixture(scope="module")
def second() -> Iterator[EmbeddedKafka]:
    """The cluster of users with certificates."""
    with EmbeddedKafka(listeners=[Listener("SSL", client_auth="required")]) as running:
        yield running


@pytest.fixture
def renewed() -> Iterator[EmbeddedKafka]:
    """A cluster for one test, which replaces its certificates: another test would not know the new authority."""
    with EmbeddedKafka(listeners=[Listener("SSL", client_auth="required")]) as running:
        yield running


def numbered(start: int, end: int) -> list[bytes]:
    return [b"v%04d" % number for number in range(start, end)]


def load(spark: SparkSession, topic: str, options: dict[str, str]) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").options(**options)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load().select("value")


def start(rows: DataFrame, topic: str, options: dict[str, str], checkpoint: Path, **sink: Any) -> StreamingQuery:
    writer = rows.writeStream.format("pyspark_kafka").options(**options).options(topic=topic, **sink)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="50 milliseconds").start()


def test_query_uses_the_credentials_of_each_cluster(
    spark: SparkSession, first: EmbeddedKafka, second: EmbeddedKafka, tmp_path: Path
) -> None:
    """Two users of one cluster, who may read a topic each, and a certificate for another cluster."""
    for user in ("alice", "bob"):
        first.create_topic(f"of-{user}")
        for operation, kind in (("READ", "TOPIC"), ("READ", "GROUP")):
            first.security.grant(user, operation, kind, f"of-{user}" if kind == "TOPIC" else "*")
    second.create_topic("both", 2)
    rows = load(spark, "of-alice", first.client_options("SASL_SSL", "alice", mechanism="SCRAM-SHA-256"))
    rows = rows.union(load(spark, "of-bob", first.client_options("SASL_SSL", "bob", mechanism="PLAIN")))
    sink = second.client_options("SSL", "carol")
    query = start(rows, "both", sink, tmp_path, deliveryGuarantee="exactly_once")
    try:
        for turn in range(3):
            for at, user in enumerate(("alice", "bob")):
                values = numbered(20 * turn + 10 * at, 20 * turn + 10 * at + 10)
                produce(first.bootstrap_servers, f"of-{user}", [Record(None, value) for value in values])
            query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    await_committed(second.bootstrap_servers, "both", numbered(0, 60))


@pytest.mark.full("Sessions that end in use")
def test_query_continues_when_the_certificates_of_both_sides_are_replaced(
    spark: SparkSession, renewed: EmbeddedKafka, tmp_path: Path
) -> None:
    """The authority, the broker's and the client's certificate change in place; the former ones expire or are gone."""
    for topic in ("renewed-in", "renewed-out"):
        renewed.create_topic(topic, 2)
    trusted, own = tmp_path / "trusted.pem", tmp_path / "own.pem"
    trusted.write_bytes(renewed.security.authority.pem)
    expires = datetime.now(timezone.utc) + timedelta(seconds=90)
    own.write_bytes(renewed.security.authority.issue(user="carol", not_after=expires).pem)
    files = {"kafka.ssl.truststore.location": str(trusted), "kafka.ssl.keystore.location": str(own)}
    options = renewed.client_options("SSL", "carol") | files
    query = start(load(spark, "renewed-in", options), "renewed-out", options, tmp_path / "checkpoint")
    try:
        produce(renewed.bootstrap_servers, "renewed-in", [Record(None, value) for value in numbered(0, 10)])
        query.processAllAvailable()
        other = CertificateAuthority(tmp_path / "other")
        trusted.write_bytes(renewed.security.authority.pem + other.pem)
        renewed.security.replace_certificate("SSL", other.issue())
        trusted.write_bytes(other.pem)
        own.write_bytes(renewed.security.authority.issue(user="carol").pem)
        time.sleep(max(0.0, (expires - datetime.now(timezone.utc)).total_seconds()))
        renewed.restart()
        produce(renewed.bootstrap_servers, "renewed-in", [Record(None, value) for value in numbered(10, 20)])
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    await_committed(renewed.bootstrap_servers, "renewed-out", numbered(0, 20))
