"""Measure the latency of micro-batches, Kafka to Kafka, side by side with Spark's JVM connector where its jars are.

A steady load of records that carry the time of their creation; a query that passes key and value through, with the
default trigger; a reader that notes when each record arrives. The sides run in turns, several rounds each, in one
session, against one broker; of each round the first seconds are discarded. Beside the latencies: where Spark says the
time of a batch goes, and the load's own latency without Spark, which every figure holds.
Run: python bench/latency.py [--jvm-jars FOLDER]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from load import Generator, Reader
from rich.console import Console
from rich.table import Table
from session import JVM, OURS, start_spark

from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INPUT = "load"
_PARTITIONS = 4
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
# How long after the last counted record its arrival is waited for.
_TAIL_S = 2.0
# A query that has had no batch by then has failed.
_START_S = 60.0
_GOAL = 1.5


@dataclass(frozen=True)
class Round:
    """What one round of one side gave: milliseconds, and per batch what Spark says of it."""

    records: int
    latency_ms: dict[str, float]
    batches_per_s: float
    records_per_batch: float
    duration_ms: dict[str, float]
    duration_p99_ms: dict[str, float]


def shares(sorted_ms: list[float]) -> dict[str, float]:
    """Return the percentiles that are shown."""
    if not sorted_ms:
        raise RuntimeError("no record arrived: the query did not run, or wrote elsewhere")
    return {name: sorted_ms[min(len(sorted_ms) - 1, int(share * len(sorted_ms)))] for name, share in _SHARES.items()}


class LatencyBench:
    """One broker under load, one Spark session, a topic to write to for each side."""

    def __init__(
        self, kafka: EmbeddedKafka, spark: SparkSession, directory: str, *, warm_up_s: float, measure_s: float
    ) -> None:
        self._servers = kafka.bootstrap_servers
        self._spark = spark
        self._directory = Path(directory)
        self._warm_up_s = warm_up_s
        self._measure_s = measure_s
        self._rounds = 0

    def bare_hop(self) -> dict[str, float]:
        """Return the latency of the load itself: from its generator to its reader, past Spark."""
        with Reader(self._servers, [_INPUT]) as reader:
            time.sleep(1)
            began = time.monotonic_ns()
            time.sleep(4)
            until = time.monotonic_ns()
            time.sleep(0.5)
            return shares(reader.finish()[_INPUT].latencies_ms(began, until))

    def round(self, side: str, topic: str) -> Round:
        """Start the query of a side, let it warm up, measure it, stop it."""
        self._rounds += 1
        kafka = {"kafka.bootstrap.servers": self._servers}
        source = self._spark.readStream.format(side).options(**kafka).option("subscribe", _INPUT)
        # A moment ago: without what earlier rounds have left, and the same records whenever it is looked up.
        rows = source.option("startingTimestamp", str(int((time.time() - 1) * 1000))).load()
        writer = rows.select("key", "value").writeStream.format(side).options(**kafka).option("topic", topic)
        with Reader(self._servers, [topic]) as reader:
            query = writer.option("checkpointLocation", str(self._directory / f"checkpoint-{self._rounds}")).start()
            try:
                _wait_for_first_batch(query)
                time.sleep(self._warm_up_s)
                first_batch = int(as_dict(query.lastProgress)["batchId"]) + 1
                began = time.monotonic_ns()
                time.sleep(self._measure_s)
                until = time.monotonic_ns()
                reports = [report for report in map(as_dict, query.recentProgress) if report["batchId"] >= first_batch]
                time.sleep(_TAIL_S)
                if not query.isActive:
                    raise RuntimeError(f"the query ended: {query.exception()}")
            finally:
                query.stop()
            latencies = reader.finish()[topic].latencies_ms(began, until)
        batches = [report for report in reports if report["numInputRows"]]
        return Round(
            records=len(latencies),
            latency_ms=shares(latencies),
            batches_per_s=len(batches) / ((until - began) / 1e9),
            records_per_batch=statistics.fmean(report["numInputRows"] for report in batches),
            duration_ms=_durations(batches, statistics.fmean),
            duration_p99_ms=_durations(batches, lambda found: sorted(found)[int(0.99 * len(found))]),
        )


def _wait_for_first_batch(query: Any) -> None:
    until = time.monotonic() + _START_S
    while query.lastProgress is None:
        if not query.isActive or time.monotonic() > until:
            raise RuntimeError(f"the query has had no batch: {query.exception()}")
        time.sleep(0.1)


def as_dict(report: Any) -> dict[str, Any]:
    """Return a progress report as what its JSON says, which has more than its attributes."""
    found: dict[str, Any] = report if isinstance(report, dict) else json.loads(report.json)
    return found


def _durations(batches: list[dict[str, Any]], summary: Any) -> dict[str, float]:
    names = sorted({name for report in batches for name in report["durationMs"]})
    return {name: float(summary([report["durationMs"].get(name, 0) for report in batches])) for name in names}


def median_of(rounds: list[Round]) -> dict[str, Any]:
    """Put the rounds of a side together: the median of each figure; of the longest latency the longest."""
    plain = [asdict(each) for each in rounds]

    def middle(name: str) -> dict[str, float]:
        keys = sorted({key for each in plain for key in each[name]})
        return {key: statistics.median(each[name].get(key, 0.0) for each in plain) for key in keys}

    return {
        "latency_ms": middle("latency_ms") | {"max": max(each.latency_ms["max"] for each in rounds)},
        "batches_per_s": statistics.median(each.batches_per_s for each in rounds),
        "records_per_batch": statistics.median(each.records_per_batch for each in rounds),
        "duration_ms": middle("duration_ms"),
        "duration_p99_ms": middle("duration_p99_ms"),
        "rounds": plain,
    }


def report(console: Console, found: dict[str, dict[str, Any]], bare: dict[str, float]) -> None:
    """Print latencies, and what Spark says of its batches."""
    ours, jvm = found[OURS], found.get(JVM)
    table = Table(title="latency in ms, Kafka to Kafka, default trigger, median of the rounds")
    for heading in ("", "pyspark-kafka", "JVM connector", "ratio", "goal", "load alone"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in _SHARES:
        mine, theirs = ours["latency_ms"][name], jvm["latency_ms"][name] if jvm else None
        goal = f"<= {_GOAL:g}" if name in ("p50", "p99") else ""
        table.add_row(name, f"{mine:.0f}", *_against(mine, theirs), goal, f"{bare[name]:.1f}")
    mine, theirs = ours["batches_per_s"], jvm["batches_per_s"] if jvm else None
    table.add_row("batches/s", f"{mine:.1f}", "-" if theirs is None else f"{theirs:.1f}")
    console.print(table)
    table = Table(title="durationMs of the progress reports, mean of a batch (p99)")
    for heading in ("", "pyspark-kafka", "JVM connector", "difference"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, mine in ours["duration_ms"].items():
        cells = [f"{mine:.1f} ({ours['duration_p99_ms'][name]:.0f})", "-", "-"]
        if jvm:
            theirs = jvm["duration_ms"].get(name, 0.0)
            cells[1:] = [f"{theirs:.1f} ({jvm['duration_p99_ms'].get(name, 0.0):.0f})", f"{mine - theirs:+.1f}"]
        table.add_row(name, *cells)
    console.print(table)


def _against(ours: float, jvm: float | None) -> tuple[str, str]:
    return ("-", "-") if jvm is None else (f"{jvm:.0f}", f"{ours / jvm:.2f}")


def main(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 1_000,
    rounds: Annotated[int, typer.Option(help="Counted rounds of each side, after one that is not counted.")] = 3,
    warm_up: Annotated[float, typer.Option(help="Seconds of each round before it counts.")] = 4.0,
    measure: Annotated[float, typer.Option(help="Seconds of each round that count.")] = 8.0,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the JVM connector's jars.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run the rounds and print the figures."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    ensure_java_for_spark()
    sides = (JVM, OURS) if jars else (OURS,)
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="512m", jvm_flags=WARM_JVM_FLAGS))
        for topic in (_INPUT, *sides):
            kafka.create_topic(topic, partitions=_PARTITIONS)
        spark = start_spark(directory, jars)
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
        stack.enter_context(Generator(kafka.bootstrap_servers, _INPUT, partitions=_PARTITIONS, records_per_s=rate))
        bench = LatencyBench(kafka, spark, directory, warm_up_s=warm_up, measure_s=measure)
        for side in sides:
            bench.round(side, side)
        bare = bench.bare_hop()
        counted: dict[str, list[Round]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                counted[side].append(bench.round(side, side))
        found = {side: median_of(each) for side, each in counted.items()}
        report(console, found, bare)
        result = {
            "python": platform.python_version(),
            "pyspark": spark.version,
            "cores": os.cpu_count(),
            "records_per_s": rate,
            "load_alone_ms": bare,
            "sides": found,
        }
    output = output or Path(__file__).parent / "results" / "latency.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
