"""Measure how long a query over 1,000 partitions plans: look-ups of offsets, the source's own methods, a real query.

Goals: 1,000 partitions are listed (metadata and earliest, latest, or by time) in under 1 s, and a batch is planned in
under 1 s, on one embedded broker. The records themselves are few: one a partition and batch.
Run: python bench/planning.py [--partitions N]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer
from latency import as_dict
from rich.console import Console
from rich.table import Table
from session import OURS, start_spark

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import parse_stream_read_options, parse_write_options
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka.connector import ReadAllAvailable
from pyspark_kafka.records import RecordColumns, encode_rows
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_TOPIC = "many"
_GOAL_MS = 1_000.0
_QUERY_BATCHES = 6


def add_one_record_each(bootstrap_servers: str, partitions: int, topic: str = _TOPIC) -> None:
    """Write one record to each partition; returns when all are acknowledged."""
    options = parse_write_options({"kafka.bootstrap.servers": bootstrap_servers, "topic": topic}, streaming=False)
    rows = RecordColumns(None, pa.array([b"v" * 90], pa.binary()))
    with borrow_client(options.connection) as client, Producer(client, options.producer) as producer:
        for partition in range(partitions):
            data, _ = encode_rows(rows, None, 0, 1, max_batch_bytes=1 << 20)
            producer.send_batch(TopicPartition(topic, partition), data, 1)
        producer.flush()


def times_ms(call: Callable[[], object], repeats: int) -> list[float]:
    """Time a call, after one that is not counted."""
    found = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return sorted(found[1:])


def measure_look_ups(bootstrap_servers: str, partitions: int, repeats: int) -> dict[str, list[float]]:
    """Time the listings of all partitions, and what the source's methods make of them."""
    options = parse_stream_read_options({"kafka.bootstrap.servers": bootstrap_servers, "subscribe": _TOPIC})
    asked = [TopicPartition(_TOPIC, partition) for partition in range(partitions)]
    found: dict[str, list[float]] = {}
    with borrow_client(options.connection) as client:
        found["metadata"] = times_ms(lambda: client.fetch_metadata([_TOPIC]), repeats)
        hour_ago = AtTimestamp(int(time.time() * 1000) - 3_600_000)
        for name, spec in (("earliest", Earliest()), ("latest", Latest()), ("by timestamp", hour_ago)):

            def list_all(spec: Any = spec) -> None:
                client.fetch_metadata([_TOPIC])
                offsets = list_offsets(client, dict.fromkeys(asked, spec))
                if len(offsets) != partitions:
                    raise RuntimeError(f"{len(offsets)} offsets of {partitions} partitions were found")

            found[f"metadata + {name} offsets"] = times_ms(list_all, repeats)

    stream = KafkaMicroBatchStream(options, SOURCE_SCHEMA)
    start = stream.deserializeOffset(json.dumps({_TOPIC: {str(where.partition): 0 for where in asked}}))

    def plan() -> None:
        end = stream.latestOffset(start, ReadAllAvailable())
        if len(stream.planInputPartitions(start, end)) != partitions:
            raise RuntimeError("not every partition has a task")

    found["latestOffset + planInputPartitions"] = times_ms(plan, repeats)
    close_clients()
    return found


def measure_query(
    spark: SparkSession, bootstrap_servers: str, partitions: int, checkpoint: str, per_task: int
) -> list[dict[str, int]]:
    """Run batches of one record a partition through Spark; return their durationMs, the first one cold."""
    rows = spark.readStream.format(OURS).option("kafka.bootstrap.servers", bootstrap_servers)
    rows = rows.option("startingOffsets", "earliest").option("subscribe", _TOPIC)
    rows = rows.option("maxPartitionsPerTask", str(per_task))
    query = rows.load().writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        for batch in range(_QUERY_BATCHES):
            if batch:
                add_one_record_each(bootstrap_servers, partitions)
            query.processAllAvailable()
        reports = [as_dict(report) for report in query.recentProgress]
    finally:
        query.stop()
    return [dict(each["durationMs"]) for each in reports if each["numInputRows"]]


def main(
    partitions: Annotated[int, typer.Option(help="Partitions of the topic.")] = 1_000,
    repeats: Annotated[int, typer.Option(help="Counted repeats of each look-up.")] = 20,
    per_task: Annotated[int, typer.Option(help="Partitions that share a task in the last line.")] = 250,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Measure and print the figures."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    ensure_java_for_spark()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        kafka.create_topic(_TOPIC, partitions=partitions)
        add_one_record_each(kafka.bootstrap_servers, partitions)
        look_ups = measure_look_ups(kafka.bootstrap_servers, partitions, repeats)
        spark = start_spark(directory, [])
        stack.callback(spark.stop)
        batches, shared = (
            measure_query(spark, kafka.bootstrap_servers, partitions, f"{directory}/{per_task}", per_task)
            for per_task in (1, per_task)
        )
    table = Table(title=f"{partitions:,} partitions, one broker, ms")
    for heading in ("", "p50", "longest", "goal"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, found in look_ups.items():
        table.add_row(name, f"{statistics.median(found):.0f}", f"{found[-1]:.0f}", f"< {_GOAL_MS:,.0f}")
    warm = batches[1:]
    planned = sorted(each["latestOffset"] + each["queryPlanning"] for each in warm)
    table.add_row(
        f"a query's latestOffset + queryPlanning, {len(warm)} warm batches",
        f"{statistics.median(planned):.0f}",
        f"{planned[-1]:.0f}",
        f"< {_GOAL_MS:,.0f}",
    )
    for name, reports in (("a task a partition", warm), (f"maxPartitionsPerTask={per_task}", shared[1:])):
        whole = sorted(each["triggerExecution"] for each in reports)
        table.add_row(f"its whole batch, {name}", f"{statistics.median(whole):.0f}", f"{whole[-1]:.0f}", "")
    console.print(table)
    result = {
        "partitions": partitions,
        "look_ups_ms": look_ups,
        "query_duration_ms": batches,
        "shared_duration_ms": shared,
    }
    output = output or Path(__file__).parent / "results" / "planning.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
