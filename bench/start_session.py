"""One Spark session and two queries: how long each takes to the end of its first micro-batch. Started by `start.py`.

Takes one argument, JSON; prints one line of JSON. It imports nothing of pyspark-kafka: the trivial source and sink are
measured where pyspark-kafka is not installed, and a program that reads from Kafka need not import it either.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from process_times import ProcessTimes
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A query that has had no batch by then has failed.
_FIRST_BATCH_S = 120.0
_POLL_S = 0.01


def main() -> None:
    """Run the queries and print what they took."""
    task = json.loads(sys.argv[1])
    spark = start_spark(task["directory"], task["config"])
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no public way
    jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
    queries = []
    for number in range(task["queries"]):
        watch = ProcessTimes(jvm_pid) if task["timeline"] else None
        jvm_cpu = process_cpu(jvm_pid)
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        found = run_query(spark, task, number)
        found["jvm_cpu_s"] = process_cpu(jvm_pid) - jvm_cpu
        found["began"] = boot
        found["processes"] = [asdict(each) | {"purpose": each.purpose} for each in watch.stop()] if watch else []
        queries.append(found)
    print(json.dumps({"queries": queries, "spark": spark.version}), flush=True)
    spark.stop()


def start_spark(directory: str, config: dict[str, str]) -> SparkSession:
    """Start a local session with two cores, with the JVM connector's jars if there are any."""
    builder = SparkSession.builder.master("local[2]").appName("pyspark-kafka bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": directory,
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        **config,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def process_cpu(pid: int) -> float:
    """Return the CPU time that a process has used so far, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - as short as it gets
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_query(spark: SparkSession, task: dict[str, Any], number: int) -> dict[str, Any]:
    """Start a query as a program does, wait for its first micro-batch, stop it; return the seconds of the steps."""
    began = time.monotonic()
    rows: DataFrame = spark.readStream.format(task["format"]).options(**task["read"]).load()
    writer = rows.select("key", "value").writeStream.format(task["format"]).options(**task["write"])
    writer = writer.option("checkpointLocation", f"{task['directory']}/checkpoint-{number}")
    loaded = time.monotonic()
    query = writer.start()
    started = time.monotonic()
    while query.lastProgress is None:
        if not query.isActive or time.monotonic() > loaded + _FIRST_BATCH_S:
            raise RuntimeError(f"the query has had no batch: {query.exception()}")
        time.sleep(_POLL_S)
    ended = time.monotonic()
    progress: Any = query.lastProgress
    report = progress if isinstance(progress, dict) else json.loads(progress.json)
    query.stop()
    return {
        "load_s": loaded - began,
        "start_s": started - loaded,
        "first_batch_s": ended - loaded,
        "total_s": ended - began,
        "rows": report["numInputRows"],
        "duration_ms": report["durationMs"],
    }


if __name__ == "__main__":
    main()
