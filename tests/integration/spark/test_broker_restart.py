"""A streaming query outlives its brokers' restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import Record, consume, produce

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from integration.conftest import MortalBroker

pytestmark = pytest.mark.broker


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
        # The query goes on asking while nobody is there.
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
