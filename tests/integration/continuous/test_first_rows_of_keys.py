"""Dropped duplicates with event time, compared with Spark's own operator, on the same rows in the same batches."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import program_below
from pyspark_kafka import continuous

_BEGIN_MS = 1_767_222_000_001
_DELAY = "5 seconds"


def batches() -> list[list[Record]]:
    """Return records around a time that moves on: duplicates, some after the delay, and late ones.

    Late records are late by the batches before: Spark's watermark moves after a batch, ours with each record. No time
    is equal to a watermark, at which Spark alone calls a row late.
    """
    rng, places = random.Random(7), random.Random(8)
    made: list[list[Record]] = []
    for number in range(5):
        made.append([])
        for _ in range(40):
            time_ms = _BEGIN_MS + number * 3_000 + 2 * rng.randrange(-4_000, 2_000)
            value = b"%d" % (number * 40 + len(made[-1]))
            made[-1].append(Record(b"k%d" % rng.randrange(40), value, 0, time_ms))
        # Out of order by less than the delay.
        made[-1].sort(key=lambda record: (record.timestamp_ms or 0) + places.randrange(5_000))
    return made


def write_file(directory: Path, number: int, records: list[Record]) -> None:
    """Write records as JSON for a stream of Spark, all at once."""
    rows = [
        {"key": (each.key or b"").decode(), "value": (each.value or b"").decode(), "ms": each.timestamp_ms}
        for each in records
    ]
    hidden = directory / f".{number}"
    hidden.write_text("\n".join(map(json.dumps, rows)))
    hidden.rename(directory / f"{number}.json")


def test_first_rows_are_those_of_spark(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=1), make_topic(partitions=1)
    files, late = tmp_path / "files", tmp_path / "late"
    files.mkdir()
    late.mkdir()

    def noted(rows: pa.RecordBatch) -> None:
        for value in rows.column("value").to_pylist():
            (late / value.decode()).touch()

    rows = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    names: dict[str, Any] = {
        "rows": rows.option("subscribe", source).option("startingOffsets", "earliest").load(),
        "noted": noted,
    }
    program = program_below("## Drop duplicates", "continuous-state.md")
    exec(program.replace("10 minutes", _DELAY).replace("lambda late: None", "noted"), names)  # noqa: S102 - our own text
    ours = (
        names["orders"].writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(tmp_path / "ours"))
        .trigger(continuous="100 milliseconds").start()
    )  # fmt: skip
    theirs = (
        spark.readStream.schema("key string, value string, ms bigint").json(str(files))
        .selectExpr("key", "value", "timestamp_millis(ms) AS time")
        .withWatermark("time", _DELAY).dropDuplicatesWithinWatermark(["key"]).select("value")
        .writeStream.format("memory").queryName("first_rows_of_spark")
        .option("checkpointLocation", str(tmp_path / "theirs")).start()
    )  # fmt: skip
    try:
        for number, records in enumerate(batches()):
            # One record batch, which the query reads as a whole.
            produce(bootstrap_servers, source, records, linger_ms=60_000)
            write_file(files, number, records)
            # Also waits for the batch without rows that follows, which moves Spark's watermark.
            theirs.processAllAvailable()
            ours.processAllAvailable()
            wanted = sorted(value.encode() for (value,) in spark.table("first_rows_of_spark").collect())
            assert sorted(record.value or b"" for record in consume_committed(bootstrap_servers, target)) == wanted
        progress = theirs.recentProgress
    finally:
        theirs.stop()
        ours.stop()
    assert ours.exception() is None
    dropped = sum(state["numRowsDroppedByWatermark"] for each in progress for state in each["stateOperators"])
    assert len(list(late.iterdir())) == dropped > 5
    # Some of the 40 keys passed again, after the delay; most rows were duplicates.
    assert 40 < len(wanted) < 200 - dropped
