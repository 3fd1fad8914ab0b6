"""Spark's own state stores under a streaming aggregation, for bench/keyed_state.py."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from session import start_spark

from pyspark_kafka.testing import ensure_java_for_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {
    "spark-rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
    "spark-hdfs": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
}


@dataclass(frozen=True)
class StateBatch:
    """What one progress report says.

    Attributes:
        seconds: of the whole micro-batch.
        updates_s: what its tasks together spent on updates of the state.
        commit_s: and on its commit.
        memory_bytes: what the store says it has in memory.
    """

    seconds: float
    updates_s: float
    commit_s: float
    memory_bytes: int


def aggregate(name: str, keys: int, rows: int, rounds: int) -> list[StateBatch]:
    """Run an aggregation by key: one micro-batch with all keys, then one a round, with rows of random keys."""
    ensure_java_for_spark()
    directory = Path(tempfile.mkdtemp(prefix="pyspark-kafka-bench-"))
    spark = start_spark(str(directory))
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[name])
        _write(spark.range(0, keys, 1, 2).select(_key(sf.col("id")), sf.lit(0).alias("value")), directory, 0)
        for number in range(1, rounds + 1):
            ids = spark.range(0, rows, 1, 1).select(
                sf.floor(sf.rand(number) * keys).alias("id"), (sf.col("id") % 100).cast("int").alias("value")
            )
            _write(ids.select(_key(sf.col("id")), "value"), directory, number)
        return _run(spark, directory)
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _run(spark: SparkSession, directory: Path) -> list[StateBatch]:
    stream = spark.readStream.schema("key binary, value int").option("maxFilesPerTrigger", "1")
    counted = stream.parquet(f"{directory}/rows").groupBy("key").agg(sf.count("*"), sf.sum("value"))
    writer = counted.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{directory}/checkpoint").start()
    query.awaitTermination()
    reports = [json.loads(progress.json) for progress in query.recentProgress]
    return [
        StateBatch(
            report["durationMs"]["triggerExecution"] / 1000,
            report["stateOperators"][0]["allUpdatesTimeMs"] / 1000,
            report["stateOperators"][0]["commitTimeMs"] / 1000,
            report["stateOperators"][0]["memoryUsedBytes"],
        )
        for report in reports
        if report["numInputRows"]
    ]


def _key(number: Column) -> Column:
    # 16 bytes.
    return sf.unhex(sf.md5(number.cast("string"))).alias("key")


def _write(frame: DataFrame, directory: Path, number: int) -> None:
    """Write one file; a query reads files in the order of their times."""
    beside = directory / f"written-{number}"
    frame.coalesce(1).write.parquet(str(beside))
    (file,) = beside.glob("*.parquet")
    target = directory / "rows" / f"{number}.parquet"
    target.parent.mkdir(exist_ok=True)
    file.rename(target)
    os.utime(target, (1_700_000_000 + number, 1_700_000_000 + number))
