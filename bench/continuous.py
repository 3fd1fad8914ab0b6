"""Measure continuous queries, Kafka to Kafka, compared with Spark's JVM connector where its jars are.

Latencies at several rates: a steady load of records that carry the time at which they were due, a query that passes key
and value through, a reader of committed records. Sides: the continuous trigger and the real-time mode of Spark, this
package at least once with epochs of one second and exactly once with epochs of 100 ms, and the same clients with
nothing between them. Then throughput: whole topics copied, as they are and with a field of their JSON changed.
All sides run in turns in one session, against one broker, on one machine.
The load comes as one record batch a partition every 5 ms, or from librdkafka with `linger.ms=0`.
Run: python bench/continuous.py [--jvm-jars FOLDER] [--parts latency] [--librdkafka]
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from continuous_copies import BASELINE, GOALS, CopyBench
from continuous_figures import (
    COPY_HEADINGS,
    LATENCY_HEADINGS,
    copy_rows,
    latency_of,
    latency_rows,
    markdown,
    middle_of,
    remarks_on,
)
from continuous_legs import APPEND_TIME, legs_of
from continuous_sides import OF_JVM, Place, sides_of
from load import ArrowReader, Generator
from measure import cpu_seconds, cpu_seconds_below
from rich.console import Console
from rich.table import Table
from session import start_spark

from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from continuous_figures import Latency
    from continuous_sides import Copying
    from pyspark.sql import SparkSession

_PARTITIONS = 2
# Twice as many as there are tasks: real-time mode asks for all of them at the same time.
_SLOTS = 4
_START_S = 60.0
_TAIL_S = 1.0


class LatencyBench:
    """One broker, one Spark session, and a generator for each round."""

    def __init__(
        self,
        kafka: EmbeddedKafka,
        spark: SparkSession,
        directory: str,
        warm_up_s: float,
        seconds: float,
        *,
        librdkafka: bool,
        legs: bool,
    ) -> None:
        self._kafka, self._spark, self._directory = kafka, spark, directory
        self._legs = legs
        self._warm_up_s, self._seconds, self._librdkafka = warm_up_s, seconds, librdkafka
        self._rounds = 0

    def measure(
        self, rates: Sequence[int], sides: Mapping[str, Callable[[Place], Copying]], rounds: int, console: Console
    ) -> list[Latency]:
        """Measure all sides in turns at each rate; one that fails is named and left out at this rate."""
        for side, start in sides.items():
            if side in OF_JVM:
                # Its code is compiled while it runs: a round that is not counted.
                self._try(side, start, max(rates), console)
        latencies: list[Latency] = []
        for rate in rates:
            found: dict[str, list[Latency]] = {side: [] for side in sides}
            for _ in range(rounds):
                for side, start in sides.items():
                    found[side] += self._try(side, start, rate, console)
            latencies += [middle_of(each) for each in found.values() if each]
        return latencies

    def _try(self, side: str, start: Callable[[Place], Copying], rate: int, console: Console) -> list[Latency]:
        try:
            return [self.round(side, start, rate, console)]
        except Exception as error:  # noqa: BLE001 - the others are measured all the same
            console.print(f"{side} failed at {rate:,} records/s: {error}", highlight=False)
            return []

    def round(self, side: str, start: Callable[[Place], Copying], rate: int, console: Console) -> Latency:
        """Start a side under load, let it warm up, measure it, stop it."""
        self._rounds += 1
        servers = self._kafka.bootstrap_servers
        source, target = f"load-{self._rounds}", f"copy-{self._rounds}"
        for topic in (source, target):
            self._kafka.create_topic(topic, partitions=_PARTITIONS, config=APPEND_TIME if self._legs else None)
        place = Place(self._spark, servers, source, target, f"{self._directory}/checkpoint-{self._rounds}")
        # Their processes start side by side.
        generator = Generator(servers, source, partitions=_PARTITIONS, records_per_s=rate, librdkafka=self._librdkafka)
        reader = ArrowReader(servers, target)
        with reader, generator:
            copying = start(place)
            try:
                if not reader.has_records(_START_S):
                    raise RuntimeError(f"{side} copied nothing: {copying.failure()}")
                time.sleep(self._warm_up_s)
                since, cpu = time.monotonic_ns(), self._cpu(copying)
                time.sleep(self._seconds)
                until, cpu_after = time.monotonic_ns(), self._cpu(copying)
                time.sleep(_TAIL_S)
                if (failure := copying.failure()) is not None:
                    raise RuntimeError(f"{side} ended: {failure}")
                arrivals, lateness = reader.finish(), generator.finish()
            finally:
                copying.stop()
        legs = legs_of(servers, source, target, arrivals, since, until) if self._legs else None
        for topic in (source, target):
            self._kafka.delete_topic(topic)
        figure = latency_of(
            side,
            rate,
            (until - since) / 1e9,
            arrivals.latencies_ms(since, until),
            lateness.sorted_ms(since, until),
            (cpu_after[0] - cpu[0], cpu_after[1] - cpu[1]),
        )
        text = f"{rate:,} records/s, {side}: {figure.p50_ms:.1f} / {figure.p99_ms:.1f} / {figure.max_ms:.0f} ms"
        used = f"engine {figure.engine_us:.1f} µs, broker {figure.broker_us:.1f} µs"
        console.print(f"{text}, {used}, sent up to {figure.late_p99_ms:.1f} ms late (p99)", highlight=False)
        if legs is not None:
            console.print(f"  {legs}", highlight=False)
        return figure

    def _cpu(self, copying: Copying) -> tuple[float, float]:
        alone, with_children = copying.pids()
        engine = sum(map(cpu_seconds, alone)) + sum(map(cpu_seconds_below, with_children))
        return engine, cpu_seconds(self._kafka.pid)


def _show(console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("", "side", "goal") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main(
    rates: Annotated[str, typer.Option(help="Records a second, by commas.")] = "1000,10000,50000",
    parts: Annotated[str, typer.Option(help="Which: latency, throughput.")] = "latency,throughput",
    sides: Annotated[str, typer.Option(help="Only sides whose name has one of these words, by commas.")] = "",
    rounds: Annotated[int, typer.Option(help="Counted rounds of each side at each rate.")] = 1,
    warm_up: Annotated[float, typer.Option(help="Seconds of each round before it counts.")] = 4.0,
    seconds: Annotated[float, typer.Option(help="Seconds of each round that count.")] = 6.0,
    real_time: Annotated[str, typer.Option(help="Length of a batch in real-time mode; Spark's is 5 minutes.")] = (
        "5 minutes"
    ),
    librdkafka: Annotated[bool, typer.Option(help="Whether librdkafka, linger.ms=0, makes the load.")] = False,
    legs: Annotated[bool, typer.Option(help="Whether to print where records were for how long.")] = False,
    exactly_once: Annotated[bool, typer.Option(help="Whether exactly once takes part.")] = True,
    seen: Annotated[
        str, typer.Option(help="Also a query with traces and lineage, sent to a collector at this address.")
    ] = "",
    state: Annotated[bool, typer.Option(help="Whether a running count, with state by key, takes part.")] = False,
    records: Annotated[int, typer.Option(help="Records of the topics that are copied.")] = 4_000_000,
    runs: Annotated[int, typer.Option(help="Counted copies of each side.")] = 3,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the JVM connector's jars.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run the rounds and print the figures."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    if not jars:
        console.print("Spark's own engines are left out: --jvm-jars (JVM_JARS of make) names no folder with its jars.")
    ensure_java_for_spark()
    if seen:
        # Before Spark starts: its processes have the variables of this one.
        os.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": seen, "OPENLINEAGE_URL": seen}
    chosen = sides_of(
        with_jvm=bool(jars),
        real_time=real_time,
        with_exactly_once=exactly_once,
        with_state=state,
        with_seen=bool(seen),
    )
    words = [word.strip() for word in sides.split(",") if word.strip()]
    chosen = {name: start for name, start in chosen.items() if not words or any(word in name for word in words)}
    latencies: list[Latency] = []
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        spark = start_spark(directory, jars, slots=_SLOTS)
        # Spark's continuous tasks report their end as an error.
        spark.sparkContext.setLogLevel("FATAL")
        stack.callback(spark.stop)
        stack.callback(close_clients)
        if "latency" in parts:
            bench = LatencyBench(kafka, spark, directory, warm_up, seconds, librdkafka=librdkafka, legs=legs)
            latencies = bench.measure([int(rate) for rate in rates.split(",")], chosen, rounds, console)
            rows = latency_rows(latencies)
            _show(console, "creation to arrival, Kafka to Kafka; CPU time for each record", LATENCY_HEADINGS, rows)
            for remark in remarks_on(latencies):
                console.print(remark, highlight=False)
            console.print(markdown(LATENCY_HEADINGS, rows), highlight=False, soft_wrap=True)
        copies = CopyBench(kafka, spark, directory, records, runs, with_jvm=bool(jars), console=console)
        figures = copies.measure() if "throughput" in parts else []
        if figures:
            rows = copy_rows(figures, BASELINE, GOALS)
            _show(console, f"{records:,} records copied, start of the query included", COPY_HEADINGS, rows)
            console.print(markdown(COPY_HEADINGS, rows), highlight=False, soft_wrap=True)
        result = {
            "python": platform.python_version(),
            "pyspark": spark.version,
            "cores": os.cpu_count(),
            "latency": [asdict(each) for each in latencies],
            "throughput": [asdict(each) for each in figures],
        }
    output = output or Path(__file__).parent / "results" / "continuous.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
