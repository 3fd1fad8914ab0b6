"""Measures a whole topic as an Arrow table without Spark: `read_arrow`, and loops over other consumers.

Every reader returns the same columns of the same records, in turns. The figure is the best round of each, the ratio
that of `read_arrow` to it. DuckDB's community extension tributary takes part where DuckDB can install it.
Run: python bench/arrow_read.py [--records N] [--partitions N]
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import confluent_kafka
import duckdb
import kafka as kafka_python
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from topics import fill_topic

from pyspark_kafka import read_arrow
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

_COLUMNS = ["key", "value", "partition", "offset", "timestamp"]
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_TOPIC = "records"
_TRIBUTARY = """
    SELECT message, partition, "offset", timestamp FROM tributary_scan_topic('{}', "bootstrap.servers" := '{}')
"""


def ours(servers: str, threads: int | None) -> pa.Table:
    """Return the topic as `read_arrow` reads it."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": _TOPIC}
    return pa.table(read_arrow(options, columns=_COLUMNS, threads=threads, progress=False))


def librdkafka(servers: str, partitions: int, records: int) -> pa.Table:
    """Return the topic by the loop that people write around confluent-kafka, in batches of 10,000 messages."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(_TOPIC, number, 0) for number in range(partitions)])
    batches, rows = [], 0
    while rows < records:
        messages = consumer.consume(10_000, timeout=10)
        if not messages:
            raise TimeoutError(f"{rows} of {records} records after 10 s without one")
        rows += len(messages)
        batches.append(_batch([(m.key(), m.value(), m.partition(), m.offset(), m.timestamp()[1]) for m in messages]))
    consumer.close()
    return pa.Table.from_batches(batches)


def pure_python(servers: str, partitions: int, records: int) -> pa.Table:
    """Return the topic by a loop around kafka-python."""
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False, max_poll_records=10_000
    )
    consumer.assign([kafka_python.TopicPartition(_TOPIC, number) for number in range(partitions)])
    batches, rows = [], 0
    while rows < records:
        polled = [record for found in consumer.poll(10_000).values() for record in found]
        if not polled:
            raise TimeoutError(f"{rows} of {records} records after 10 s without one")
        rows += len(polled)
        batches.append(_batch([(r.key, r.value, r.partition, r.offset, r.timestamp) for r in polled]))
    consumer.close()
    return pa.Table.from_batches(batches)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [*zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns[:4], _SCHEMA, strict=False)]
    timestamps = pa.array(columns[4], pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(_SCHEMA.field("timestamp").type)
    return pa.record_batch([*arrays, timestamps], schema=_SCHEMA)


def tributary(servers: str) -> Callable[[], pa.Table] | str:
    """Return a read by DuckDB's extension, or why there is none."""
    connection = duckdb.connect()
    try:
        connection.execute("INSTALL tributary FROM community")
        connection.execute("LOAD tributary")
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return lambda: connection.sql(_TRIBUTARY.format(_TOPIC, servers)).to_arrow_table()


def seconds_of(read: Callable[[], pa.Table], records: int) -> float:
    """Read once; return the seconds that it took."""
    began = time.perf_counter()
    rows = read().num_rows
    took = time.perf_counter() - began
    if rows != records:
        raise AssertionError(f"{rows} rows of {records} records")
    return took


def main(
    records: Annotated[int, typer.Option(help="Records of 100 B.")] = 1_000_000,
    partitions: Annotated[int, typer.Option(help="Partitions of the topic.")] = 4,
    rounds: Annotated[int, typer.Option(help="Reads by each, after one that warms up.")] = 3,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Print records/s of each reader, and the ratios."""
    with EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        servers = kafka.bootstrap_servers
        kafka.create_topic(_TOPIC, partitions)
        fill_topic(servers, _TOPIC, records=records, codec="lz4")
        readers: dict[str, Callable[[], pa.Table]] = {
            "read_arrow": lambda: ours(servers, None),
            "read_arrow, one thread": lambda: ours(servers, 1),
            "confluent-kafka, a loop": lambda: librdkafka(servers, partitions, records),
            "kafka-python, a loop": lambda: pure_python(servers, partitions, records),
        }
        extension = tributary(servers)
        if isinstance(extension, str):
            Console().print(f"DuckDB's tributary takes no part: {extension}", highlight=False, soft_wrap=True)
        else:
            readers["DuckDB's tributary"] = extension
        times: dict[str, list[float]] = {name: [] for name in readers}
        for number in range(rounds + 1):
            for name, read in readers.items():
                took = seconds_of(read, records)
                if number:
                    times[name].append(took)
    table = Table(title=f"{records:,} records of 100 B, lz4, {partitions} partitions, as an Arrow table")
    for heading in ("reader", "records/s", "read_arrow is faster by"):
        table.add_column(heading, justify="left" if heading == "reader" else "right")
    best = {name: min(found) for name, found in times.items()}
    for name, took in best.items():
        table.add_row(name, f"{records / took:,.0f}", f"{took / best['read_arrow']:.1f}")
    Console().print(table)
    output = output or Path(__file__).parent / "results" / "arrow_read.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({name: records / took for name, took in best.items()}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
