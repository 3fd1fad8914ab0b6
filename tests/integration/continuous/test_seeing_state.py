"""What a continuous query tells of its state and its event time: counts by step, late rows, who holds a window open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.waiting import eventually
from pyspark_kafka import continuous, lag
from pyspark_kafka.continuous.query.handle import ContinuousQuery

_BEGIN_MS = 1_767_222_000_000
_MINUTE_MS = 60_000


def as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([rows.column("key")], ["value"])


def start(
    spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path, **options: str
) -> ContinuousQuery:
    reader = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    windows = (
        rows.withWatermark("timestamp", "10 seconds")
        .dropDuplicatesWithinWatermark(["key", "value"], handleLateRows=lambda _: None)
        .groupBy(continuous.window("timestamp", "1 minute"), "key")
        .agg(n=("*", "count"), handleLateRows=lambda _: None)
        .mapBatches(as_records, "value binary")
    )
    writer = windows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", target).option("checkpointLocation", str(checkpoint)).options(**options)
    query: ContinuousQuery = writer.trigger(continuous="100 milliseconds").start()
    return query


def wait_for(query: ContinuousQuery, is_there: Callable[[Any], bool]) -> Any:
    """Return the first report for which a condition holds."""
    found: list[Any] = []

    def look() -> bool:
        found.extend(each for each in query.recentProgress if is_there(each))
        return bool(found)

    eventually(look)
    return found[0]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_report_names_the_partition_that_holds_a_window_open(
    guarantee: str, spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()

    def send(partition: int, value: bytes, after_ms: int) -> None:
        produce(bootstrap_servers, source, [Record(b"k%d" % partition, value, partition, _BEGIN_MS + after_ms)])

    # The other partition is half an hour ahead, and has closed all windows but the last one.
    send(0, b"1", 5_000)
    send(1, b"1", 0)
    send(1, b"1", 1_000)
    send(1, b"2", 30 * _MINUTE_MS)
    query = start(spark, bootstrap_servers, source, target, tmp_path, deliveryGuarantee=guarantee)
    query.processAllAvailable()
    report = wait_for(query, lambda each: each.stateOperators and each.stateOperators[1].numRowsTotal == 2)
    first, windows = report.stateOperators
    assert (first.operatorName, windows.operatorName) == ("dedupeWithinWatermark", "stateStoreSave")
    assert windows.numStateStoreInstances == 2
    assert windows.customMetrics["numTimers"] == 2
    assert windows.customMetrics["stateOnCurrentVersionSizeBytes"] > 100
    assert windows["watermarks"] == {
        "lowest": {
            "topicPartition": f"{source}-0",
            "watermark": "2025-12-31T22:59:55.000Z",
            "firstTimer": "2025-12-31T23:01:00.000Z",
        },
        "highest": {"topicPartition": f"{source}-1", "watermark": "2025-12-31T23:29:50.000Z"},
    }
    assert report.eventTime["watermark"] == "2025-12-31T22:59:55.000Z"
    assert any(each.stateOperators[1].commitTimeMs > 0 for each in query.recentProgress)
    # A late row, which drops out at the first step.
    before = report.batchId
    send(1, b"3", 2_000)
    report = wait_for(query, lambda each: each.batchId > before and each.numInputRows)
    assert [each.numRowsDroppedByWatermark for each in report.stateOperators] == [1, 0]
    assert report.eventTime["max"] == report.eventTime["min"] == "2025-12-31T23:00:02.000Z"
    query.stop()
    held = lag({"kafka.bootstrap.servers": bootstrap_servers}, checkpoint=str(tmp_path)).waiting
    assert [(each.step, each.operator, each.key_group) for each in held] == [
        (0, "dedupeWithinWatermark", f"{source}-0"),
        (1, "stateStoreSave", f"{source}-0"),
    ]
    assert (held[1].watermark_ms, held[1].timer_ms) == (_BEGIN_MS - 5_000, _BEGIN_MS + _MINUTE_MS)
    # The counts of a restart are those of its state.
    query = start(spark, bootstrap_servers, source, target, tmp_path, deliveryGuarantee=guarantee)
    send(0, b"4", 6_000)
    report = wait_for(query, lambda each: each.numInputRows)
    assert report.stateOperators[1].numRowsTotal == 2
    assert report.stateOperators[1].customMetrics["numTimers"] == 2
    query.stop()
