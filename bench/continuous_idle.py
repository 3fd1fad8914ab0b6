"""Measure the CPU time of a continuous query that has nothing to do, by who uses it.

Kafka to Kafka, a lane for each partition, no records. Tasks are Python workers; the driver's Python has the thread of
the query and that of its connections. The JVM is shown with and without a query. Linux only.
Run: python bench/continuous_idle.py
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from measure import cpu_seconds
from rich.console import Console
from rich.table import Table
from session import OURS, jvm_process, start_spark

from pyspark_kafka import continuous
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS


def python_below(jvm: int) -> list[int]:
    """Return the Python processes below a JVM: Spark's daemon and its workers."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # ended meanwhile
    found, level = [], [jvm]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def main(
    partitions: Annotated[str, typer.Option(help="How many partitions, one measurement each.")] = "1,4,16",
    tasks: Annotated[int, typer.Option(help="Slots, and tasks at most.")] = 4,
    seconds: Annotated[float, typer.Option(help="How long each is measured.")] = 20.0,
) -> None:
    """Measure, and print the shares of a core."""
    table = Table(title=f"an idle continuous query, % of a core over {seconds:g} s")
    for heading in ("partitions", "tasks", "a task", "all tasks", "driver's Python", "JVM", "broker"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as place, EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        servers = kafka.bootstrap_servers
        kafka.create_topic("target", 1)
        spark = start_spark(place, driver_memory="1g", slots=tasks)
        jvm = jvm_process(spark)
        for number in [0, *map(int, partitions.split(","))]:
            query = None
            if number:
                kafka.create_topic(f"source-{number}", number)
                query = (
                    continuous.read(spark).format(OURS).option("kafka.bootstrap.servers", servers)
                    .option("subscribe", f"source-{number}").option("startingOffsets", "latest").load()
                    .writeStream.format(OURS).option("kafka.bootstrap.servers", servers).option("topic", "target")
                    .option("checkpointLocation", f"{place}/{number}").trigger(continuous="1 second").start()
                )  # fmt: skip
                while not query.status["isTriggerActive"]:
                    query.awaitTermination(0.1)
            # What has just started is still busy.
            time.sleep(5)
            groups = [python_below(jvm), [os.getpid()], [jvm], [kafka.pid]]
            before = [sum(map(cpu_seconds, group)) for group in groups]
            time.sleep(seconds)
            used = [
                100 * (sum(map(cpu_seconds, group)) - since) / seconds
                for group, since in zip(groups, before, strict=True)
            ]
            if query is not None:
                query.stop()
            running = min(number, tasks)
            table.add_row(
                str(number), str(running), f"{used[0] / running:.2f}" if running else "",
                *(f"{share:.2f}" for share in used),
            )  # fmt: skip
        spark.stop()
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
