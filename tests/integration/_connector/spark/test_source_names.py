"""Sources with names: a query continues though its sources change, each from its own position."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke
from kit.waiting import PATIENCE_S
from pyspark_kafka.checkpoint import CheckpointFiles, OffsetSeqLog

_SETTINGS = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}


@pytest.fixture
def evolving(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which sources have names."""
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name in _SETTINGS:
        spark.conf.unset(name)


class Query:
    """A query of one or more topics, and what it has written."""

    def __init__(self, spark: SparkSession, servers: str, place: Path) -> None:
        self._spark, self._servers, self._place = spark, servers, place
        self.checkpoint = place / "checkpoint"

    def _source(self, name: str, topic: str) -> DataFrame:
        read = self._spark.readStream.format("pyspark_kafka").name(name).option("subscribe", topic)
        read = read.option("kafka.bootstrap.servers", self._servers).option("startingOffsets", "earliest")
        read = read.option("checkpointLocation", str(self.checkpoint)).option("sourceIndex", name)
        return read.load().selectExpr("topic", "offset")

    def run(self, **topics: str) -> None:
        """Run the query over sources with these names and topics, until all is read."""
        first, *others = [self._source(*item) for item in topics.items()]
        for other in others:
            first = first.union(other)
        writer = first.writeStream.format("parquet").option("path", str(self._place / "rows"))
        query = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(int(PATIENCE_S))

    def rows(self) -> list[tuple[str, int]]:
        found = self._spark.read.schema("topic string, offset long").parquet(str(self._place / "rows")).collect()
        return sorted((row.topic, row.offset) for row in found)


def test_query_continues_after_a_source_was_added_moved_and_removed(
    evolving: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    orders, returns, refunds = make_topic(), make_topic(), make_topic()
    query = Query(evolving, bootstrap_servers, tmp_path)

    def produce_one(*topics: str) -> None:
        for topic in topics:
            produce(bootstrap_servers, topic, [Record(b"k", b"v")])

    produce_one(orders, returns, refunds)
    query.run(orders=orders, returns=returns)
    assert query.rows() == sorted([(orders, 0), (returns, 0)])
    produce_one(orders, returns)
    query.run(returns=returns, refunds=refunds, orders=orders)
    assert query.rows() == sorted([(orders, 0), (orders, 1), (returns, 0), (returns, 1), (refunds, 0)])
    produce_one(orders, refunds)
    query.run(refunds=refunds, orders=orders)
    assert query.rows() == sorted(
        [(topic, offset) for topic, ends in ((orders, 3), (returns, 2), (refunds, 2)) for offset in range(ends)]
    )
    # Each has kept its start where Spark keeps that of a source of its own with this name.
    assert all((query.checkpoint / "sources" / name / "0").is_file() for name in ("orders", "returns", "refunds"))
    log = OffsetSeqLog(CheckpointFiles(str(query.checkpoint)))
    newest = log.latest()
    assert newest is not None
    assert set(newest.sources) == {"orders", "refunds"}
    # The program shows the sources by their names, and finds no fault.
    shown = invoke("checkpoint", "explain", str(query.checkpoint))
    assert "Source orders is Kafka's" in " ".join(shown.output.split())
    verified = invoke("checkpoint", "verify", str(query.checkpoint), "--bootstrap-servers", bootstrap_servers, "--json")
    assert [each for each in json.loads(verified.stdout)["findings"] if each["severity"] != "note"] == []
    behind = invoke("lag", "--checkpoint", str(query.checkpoint), "--bootstrap-servers", bootstrap_servers, "--json")
    assert behind.exit_code == 0
