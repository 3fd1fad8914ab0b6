"""Measure how long a continuous query is silent when one of its Python workers is killed.

Kafka to Kafka, at least once, one lane for each partition, epochs of one second, a steady load. Again and again a
worker gets kill -9. Counted is the time from the kill to the end of the longest pause in what arrives after it: then
records of all lanes flow again. Linux only.
Run: python bench/continuous_restart.py
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from load import ArrowReader, Generator
from rich.console import Console
from session import OURS, start_spark

from pyspark_kafka import continuous
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from load import ArrowArrivals

    from pyspark_kafka.continuous.query.handle import ContinuousQuery

_MAX_S = 60.0


def noting(place: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that changes nothing, and leaves a file with the id of its process."""

    def note(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(place, str(os.getpid())).touch()
        yield from batches

    return note


def await_commit(query: ContinuousQuery) -> None:
    """Wait until another epoch is committed."""
    before = query.lastProgress
    end = time.monotonic() + _MAX_S
    while query.lastProgress == before:
        if time.monotonic() > end:
            raise RuntimeError(f"nothing is committed: {query.status}, {query.exception()}")
        query.awaitTermination(0.05)


def pause_after(killed_ns: int, until_ns: int, arrivals: ArrowArrivals) -> float:
    """Return the seconds from a kill to the end of the longest pause before `until_ns`."""
    times = np.sort(arrivals.arrived_ns)
    times = np.concatenate([[killed_ns], times[(times > killed_ns) & (times < until_ns)], [until_ns]])
    return float(times[int(np.argmax(np.diff(times))) + 1] - killed_ns) / 1e9


def main(
    kills: Annotated[int, typer.Option(help="How often a worker is killed.")] = 10,
    lanes: Annotated[int, typer.Option(help="Partitions, lanes and tasks.")] = 3,
    records_per_s: Annotated[int, typer.Option(help="Records a second.")] = 600,
    seconds: Annotated[float, typer.Option(help="From a commit to the kill after it.")] = 1.0,
) -> None:
    """Run the query, kill its workers, and print the pauses."""
    with tempfile.TemporaryDirectory() as place, EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        servers = kafka.bootstrap_servers
        kafka.create_topic("source", lanes)
        kafka.create_topic("target", 1)
        spark = start_spark(place, driver_memory="1g", slots=lanes)
        workers = Path(place, "workers")
        workers.mkdir()
        query = (
            continuous.read(spark).format(OURS).option("kafka.bootstrap.servers", servers)
            .option("subscribe", "source").option("startingOffsets", "latest").load()
            .select("key", "value").mapInArrow(noting(str(workers)), "key binary, value binary")
            .writeStream.format(OURS).option("kafka.bootstrap.servers", servers).option("topic", "target")
            .option("checkpointLocation", f"{place}/checkpoint").trigger(continuous="1 second").start()
        )  # fmt: skip
        killed: list[int] = []
        with (
            Generator(servers, "source", partitions=lanes, records_per_s=records_per_s),
            ArrowReader(servers, "target") as reader,
        ):
            if not reader.has_records(60):
                raise RuntimeError(f"nothing flows: {query.status}, {query.exception()}")
            for _ in range(kills):
                # Workers of the run that reads now note themselves. Behind a commit, so that no failures are in a row.
                await_commit(query)
                for note in workers.iterdir():
                    note.unlink()
                await_commit(query)
                time.sleep(seconds)
                os.kill(int(next(workers.iterdir()).name), signal.SIGKILL)
                killed.append(time.monotonic_ns())
            await_commit(query)
            time.sleep(seconds)
            arrivals = reader.finish()
        failure = query.exception()
        query.stop()
        spark.stop()
    if failure is not None:
        raise failure
    ends = [*killed[1:], int(arrivals.arrived_ns.max()) + 1]
    pauses = sorted(pause_after(*pair, arrivals) for pair in zip(killed, ends, strict=True))
    Console().print(
        f"kill -9 of a Python worker to records of all {lanes} lanes, {kills} times: "
        f"p50 {pauses[len(pauses) // 2]:.2f} s, max {pauses[-1]:.2f} s"
    )


if __name__ == "__main__":
    typer.run(main)
