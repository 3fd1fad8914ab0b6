"""Measures fetch to Arrow in one process, without Spark: what a task does before it hands batches on.

Prints rows/s by wall time and by the process's CPU time; the difference is the broker and the machine.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from topics import fill_topic

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

_ALL = [name for name in SOURCE_SCHEMA.names if name != "headers"]


def read_all(connection: ConnectionOptions, columns: list[str], offset_range: OffsetRange) -> tuple[int, int]:
    """Read a range to its end; return rows and bytes of Arrow data."""
    schema = pa.schema([SOURCE_SCHEMA.field(name) for name in columns])
    factory = KafkaPartitionReaderFactory(connection, FetchOptions(), schema, fail_on_data_loss=True)
    reader = factory.createReader(KafkaInputPartition(offset_range))
    rows = size = 0
    try:
        while reader.next():
            rows += reader.get().num_rows
            size += reader.get().nbytes
    finally:
        reader.close()
    return rows, size


def measure(connection: ConnectionOptions, columns: list[str], offset_range: OffsetRange) -> dict[str, float]:
    """Return the best of five runs, after one that warms up."""
    best = {"rows_per_s": 0.0, "rows_per_cpu_s": 0.0, "arrow_mb_per_s": 0.0}
    for _ in range(6):
        wall, cpu = time.perf_counter(), time.process_time()
        rows, size = read_all(connection, columns, offset_range)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found = {"rows_per_s": rows / wall, "rows_per_cpu_s": rows / cpu, "arrow_mb_per_s": size / wall / 1e6}
        best = max(best, found, key=lambda figures: figures["rows_per_s"])
    return best


def main(
    records: Annotated[int, typer.Option(help="Records of 100 B; a fifth as many of 1 kB.")] = 1_000_000,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run every case and print the figures."""
    table = Table(title="fetch to Arrow, one process, one partition")
    for heading in ("case", "rows/s", "rows per CPU second", "Arrow MB/s"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    results = {}
    with EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        connection = ConnectionOptions(((host, int(port)),))
        for codec, value_bytes in (("none", 90), ("lz4", 90), ("zstd", 90), ("lz4", 990)):
            topic = f"records-{codec}-{value_bytes}"
            kafka.create_topic(topic)
            count = records if value_bytes < 100 else records // 5
            fill_topic(kafka.bootstrap_servers, topic, records=count, codec=codec, value_bytes=value_bytes)
            topic_partition = TopicPartition(topic, 0)
            with borrow_client(connection) as client:
                end = list_offsets(client, {topic_partition: Latest()})[topic_partition]
            for name, columns in (("all columns", _ALL), ("key + value", ["key", "value"])):
                case = f"{value_bytes + 10} B, {codec}, {name}"
                found = results[case] = measure(connection, columns, OffsetRange(topic_partition, 0, end))
                table.add_row(case, *(f"{figure:,.0f}" for figure in found.values()))
        close_clients()
    Console().print(table)
    output = output or Path(__file__).parent / "results" / "fetch.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
