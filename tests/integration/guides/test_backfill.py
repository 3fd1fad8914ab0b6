"""The programs and commands of docs/guides/backfill.md."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pages import GuidePage
from kit.programs.cli import invoke
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import QUIET_S

_HOUR_MS = 3_600_000
_MIDNIGHT_MS = int(datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)


def at(value: bytes, time_ms: int) -> Record:
    return Record(None, value, timestamp_ms=time_ms)


@pytest.mark.full("Programs of the pages")
def test_guide_reads_a_day_catches_up_forks_and_rewinds(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    # Brokers delete records of past days at once, unless the topic keeps them.
    topic = make_topic(config={"retention.ms": "-1"})
    now_ms = time.time_ns() // 1_000_000
    of_the_day = [at(b"first", _MIDNIGHT_MS), at(b"last", _MIDNIGHT_MS + 24 * _HOUR_MS - 1)]
    produce(bootstrap_servers, topic, [at(b"before", _MIDNIGHT_MS - 1), *of_the_day])
    produce(
        bootstrap_servers, topic, [at(b"after", _MIDNIGHT_MS + 24 * _HOUR_MS), at(b"3 hours", now_ms - 3 * _HOUR_MS)]
    )
    produce(bootstrap_servers, topic, [at(b"1 hour", now_ms - _HOUR_MS)])
    own = {"localhost:9092": bootstrap_servers, '"orders"': f'"{topic}"', '"/tables': f'"{tmp_path}/tables'}
    page = GuidePage("backfill", spark, {**own, "/checkpoints": f"{tmp_path}/checkpoints"})

    page.run("endingTimestamp")
    day = spark.read.parquet(str(tmp_path / "tables" / "orders" / "day=2026-01-01"))
    assert sorted(bytes(row.value) for row in day.collect()) == [b"first", b"last"]

    page.run("maxOffsetsPerTrigger")
    table = tmp_path / "tables" / "orders-all"
    assert spark.read.parquet(str(table)).count() == 6

    forked = page.command("checkpoint fork")
    assert topic in forked
    of_the_fork = {"orders-all": "again", '/checkpoints/orders"': '/checkpoints/orders-again"', **page.replaced}
    GuidePage("backfill", spark, of_the_fork).run("maxOffsetsPerTrigger")
    again = spark.read.parquet(str(tmp_path / "tables" / "again"))
    assert [bytes(row.value) for row in again.collect()] == [b"1 hour"]

    assert "[CHECKPOINT_IN_USE]" in page.refused("checkpoint rewind")
    assert f"wait {QUIET_S:.0f} s" in page.text
    page.command("checkpoint rewind", "--force")
    page.run("maxOffsetsPerTrigger")
    values = sorted(bytes(row.value) for row in spark.read.parquet(str(table)).collect())
    assert len(values) == 7
    assert values.count(b"1 hour") == 2


@pytest.mark.full("Programs of the pages")
def test_table_of_the_file_sink_cannot_be_read_after_a_rewind(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    rows = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = rows.options(subscribe=topic, startingOffsets="earliest")
    place, table = str(tmp_path / "checkpoint"), str(tmp_path / "table")
    for turn in ("first", "second"):
        produce(bootstrap_servers, topic, [Record(None, turn.encode())])
        writer = rows.load().writeStream.format("parquet").option("path", table).option("checkpointLocation", place)
        writer.trigger(availableNow=True).start().awaitTermination()
        if turn == "first":
            assert spark.read.parquet(table).count() == 1
            to_start = json.dumps({topic: {"0": 0}})
            done = invoke(
                "checkpoint", "rewind", place, "--offsets", to_start,
                "--bootstrap-servers", bootstrap_servers, "--yes", "--force",
            )  # fmt: skip
            assert done.exit_code == 0, done.output
    with pytest.raises(Exception, match=r"_spark_metadata/1 doesn't exist"):
        spark.read.parquet(table).count()
