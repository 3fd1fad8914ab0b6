"""Measure how long a record takes from its creation to `get` of a continuous reader, without Spark or an engine.

A steady load on one partition, and one reader in this process; beside it kafka-python's consumer in a process of its
own, which shows what load, broker and machine take. Both read in turns. Records are made every 5 ms, those of a turn
together. Prints the latencies, and the CPU time of the reader for each second, under load and without any.
Run: python bench/continuous_reader.py
"""

from __future__ import annotations

import struct
import time
from typing import Annotated

import typer
from load import Generator, Reader
from rich.console import Console
from rich.table import Table

from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

_CREATED = struct.Struct(">q")
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def read_for(servers: str, topic: str, seconds: float) -> tuple[list[float], float]:
    """Read a topic from its end on; return the sorted latencies in ms, and the CPU seconds that a second took."""
    stream = KafkaContinuousStream.from_options(
        {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "latest"}
    )
    (partition,) = stream.planInputPartitions(stream.initialOffset())
    reader = stream.createContinuousReaderFactory().createReader(partition)
    latencies: list[float] = []
    began, cpu = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        if reader.next():
            values = reader.get().column("value")
            now = time.monotonic_ns()
            latencies += [(now - _CREATED.unpack_from(value.as_buffer())[0]) / 1e6 for value in values]
    took = (time.process_time() - cpu) / seconds
    reader.close()
    stream.stop()
    return sorted(latencies), took


def row_of(name: str, latencies: list[float], cpu: str) -> list[str]:
    """Return a row of the table."""
    shares = [latencies[min(len(latencies) - 1, int(len(latencies) * share))] for share in _SHARES.values()]
    return [name, f"{len(latencies):,}", *(f"{share:.1f}" for share in shares), cpu]


def main(
    records_per_s: Annotated[int, typer.Option(help="Records a second.")] = 1_000,
    seconds: Annotated[float, typer.Option(help="How long each side reads in each round.")] = 10.0,
    rounds: Annotated[int, typer.Option(help="How often each side reads; the first round is not counted.")] = 4,
) -> None:
    """Run the rounds and print the latencies of all of them."""
    table = Table(title=f"creation of a record to its arrival, ms, at {records_per_s:,} records/s on one partition")
    for heading in ("reader", "records", *_SHARES, "CPU s per s"):
        table.add_column(heading, justify="left" if heading == "reader" else "right")
    ours: list[float] = []
    theirs: list[float] = []
    cpu = 0.0
    with EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        servers = kafka.bootstrap_servers
        kafka.create_topic("load")
        kafka.create_topic("idle")
        with Generator(servers, "load", partitions=1, records_per_s=records_per_s):
            for number in range(rounds):
                found, took = read_for(servers, "load", seconds)
                with Reader(servers, ["load"]) as reader:
                    since = time.monotonic_ns()
                    time.sleep(seconds)
                    until = time.monotonic_ns()
                    arrivals = reader.finish()["load"]
                if number:
                    ours += found
                    theirs += arrivals.latencies_ms(since, until - 1_000_000_000)
                    cpu += took / (rounds - 1)
        _, idle = read_for(servers, "idle", seconds)
        close_clients()
    table.add_row(*row_of("continuous reader", sorted(ours), f"{cpu:.3f} (idle: {idle:.3f})"))
    table.add_row(*row_of("kafka-python consumer", sorted(theirs), ""))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
