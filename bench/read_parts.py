"""Measure where the time of a batch read of all columns goes: the JVM, the Python workers, the broker.

Beside it runs a Python source that returns one prepared batch again and again, of several sizes: what Spark allows.
Run: python bench/read_parts.py
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import prepared
import typer
from alternatives import KEY_VALUE, PARTITIONS
from measure import cpu_seconds, cpu_seconds_below
from rich.console import Console
from rich.table import Table
from session import OURS, jvm_process, start_spark
from topics import fill_topic

from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOPIC = "records-lz4"


def main(
    records: Annotated[int, typer.Option(help="Records of the topic.")] = 2_000_000,
    runs: Annotated[int, typer.Option(help="Counted runs of each side, in turns.")] = 5,
    warm_ups: Annotated[int, typer.Option(help="Runs before these.")] = 8,
    batch_rows: Annotated[str, typer.Option(help="Rows of a prepared batch, by commas.")] = "10000,40000",
) -> None:
    """Run the sides in turns, and print the medians."""
    ensure_java_for_spark()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        spark = start_spark(directory)
        stack.callback(spark.stop)
        kafka.create_topic(_TOPIC, partitions=PARTITIONS)
        fill_topic(kafka.bootstrap_servers, _TOPIC, records=records, codec="lz4")
        ours = spark.read.format(OURS).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        ours = ours.option("subscribe", _TOPIC)
        prepared.register(spark, ours.load().schema, PARTITIONS)
        ready = spark.read.format(prepared.NAME).option("records", str(records))
        sides: dict[str, DataFrame] = {}
        for columns in (None, KEY_VALUE):
            name = columns or "all columns"
            sides[f"{OURS}, {name}"] = (ours.schema(columns) if columns else ours).load()
            for size in batch_rows.split(","):
                reader = ready.option("rows", size)
                sides[f"prepared, {int(size):,} rows, {name}"] = (reader.schema(columns) if columns else reader).load()
        jvm = jvm_process(spark)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in sides}
        for run in range(warm_ups + runs):
            for name, rows in sides.items():
                before = (time.perf_counter(), *_cpu(jvm, kafka.pid))
                rows.write.format("noop").mode("overwrite").save()
                after = (time.perf_counter(), *_cpu(jvm, kafka.pid))
                if run >= warm_ups:
                    found[name].append(tuple(b - a for a, b in zip(before, after, strict=True)))
    table = Table(title="CPU time in us a row, median")
    for heading in ("", "rows/s", "JVM", "Python workers", "broker", "all"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, figures in found.items():
        wall, *used = (statistics.median(column) for column in zip(*figures, strict=True))
        parts = [1e6 * each / records for each in (*used, sum(used))]
        table.add_row(name, f"{records / wall / 1e6:.2f} M", *(f"{part:.3f}" for part in parts))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _cpu(jvm: int, broker: int) -> tuple[float, float, float]:
    alone = cpu_seconds(jvm)
    return alone, cpu_seconds_below(jvm) - alone, cpu_seconds(broker)


if __name__ == "__main__":
    typer.run(main)
