"""Measure what figures for Prometheus cost: a scrape of many partitions, and the batches of a query beside scrapes.

Goals: a scrape of 1,000 partitions in under 50 ms, by HTTP; no effect on the time of a batch beyond 1 %. For the
second, one exactly-once query from Kafka to Kafka runs on, and blocks of its micro-batches with figures (a listener, a
scrape a second) alternate with blocks without. The interval is that of the groups of four blocks in turn (without,
with, with, without).
Run: python bench/scrape.py [--blocks N]
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from goals import Figure
from pyspark.sql.streaming.listener import QueryProgressEvent
from rich.console import Console
from rich.table import Table
from session import OURS, start_spark
from topics import fill_topic

from pyspark_kafka import metrics
from pyspark_kafka._ops.metrics.listener import STORE, MetricsListener
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_GOAL_MS, _GOAL_PERCENT = 50.0, 1.0
_SCRAPES = 60
_SOURCE, _TARGET = "scrape-source", "scrape-target"
_PER_BATCH = 200
_PER_BLOCK = 12
_WARM_UP_BATCHES = 60
_STREAM = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream"


def report(partitions: int) -> QueryProgressEvent:
    """Return a report of Spark about a query that reads this number of partitions."""
    source = {
        "description": _STREAM,
        "startOffset": None,
        "endOffset": {"orders": {str(number): number for number in range(partitions)}},
        "latestOffset": {"orders": {str(number): 3 * number for number in range(partitions)}},
        "numInputRows": 5,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 0.0,
    }
    return QueryProgressEvent.fromJson(
        {
            "progress": {
                "id": str(uuid.uuid4()),
                "runId": str(uuid.uuid4()),
                "name": "orders",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "batchId": 7,
                "batchDuration": 5,
                "numInputRows": 5,
                "inputRowsPerSecond": 0.0,
                "processedRowsPerSecond": 0.0,
                "durationMs": {"addBatch": 3, "triggerExecution": 5},
                "stateOperators": [],
                "sources": [source],
                "sink": {"description": "sink", "numOutputRows": 5},
            }
        }
    )


def scrape(url: str) -> bytes:
    """Return an exposition."""
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - of this program
        content: bytes = response.read()
        return content


def scrapes(spark: SparkSession, partitions: int) -> Figure:
    """Measure scrapes of a query with this number of partitions."""
    event = report(partitions)
    listener = MetricsListener(STORE)
    began = time.perf_counter()
    listener.onQueryProgress(event)
    took_ms = (time.perf_counter() - began) * 1000
    endpoint = metrics.prometheus(spark, 0)
    times: list[float] = []
    size = 0
    for _ in range(_SCRAPES):
        began = time.perf_counter()
        size = len(scrape(endpoint.url))
        times.append((time.perf_counter() - began) * 1000)
    endpoint.stop()
    STORE.terminate(str(event.progress.id), str(event.progress.runId))
    median, slow = statistics.median(times), sorted(times)[int(0.95 * len(times))]
    return Figure(
        f"scrape of {partitions:,} partitions",
        f"{median:.1f} ms, 95 % under {slow:.1f} ms; {size / 1024:.0f} KiB; a report of Spark takes {took_ms:.1f} ms",
        f"< {_GOAL_MS:g} ms",
        slow < _GOAL_MS,
        {"median_ms": median, "p95_ms": slow, "bytes": size, "report_ms": took_ms},
    )


def start_query(spark: SparkSession, servers: str, place: Path) -> StreamingQuery:
    """Start the query whose batches are measured."""
    rows = spark.readStream.format(OURS).option("kafka.bootstrap.servers", servers)
    rows = rows.options(subscribe=_SOURCE, startingOffsets="earliest", maxOffsetsPerTrigger=str(_PER_BATCH))
    writer = rows.load().select("value").writeStream.format(OURS).option("kafka.bootstrap.servers", servers)
    writer = writer.options(topic=_TARGET, deliveryGuarantee="exactly_once", checkpointLocation=str(place))
    return writer.trigger(processingTime="0 seconds").start()


class Figures:
    """Switches the figures on and off, as if the program had or had not asked for them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._off = threading.Event()
        self._thread: threading.Thread | None = None

    def on(self) -> None:
        """Listen, serve, and scrape once a second."""
        endpoint = metrics.prometheus(self._spark, 0)
        self._off.clear()

        def run() -> None:
            while not self._off.wait(1):
                scrape(endpoint.url)
            endpoint.stop()
            metrics.listen(self._spark).stop()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def off(self) -> None:
        """Do nothing of that."""
        self._off.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()


def durations_ms(query: StreamingQuery, after: int, batches: int) -> tuple[list[float], int]:
    """Wait for batches behind one, and return how long each took, with the number of the last.

    What is asked of the JVM is little until they are over: PySpark's objects of 100 reports take a second to build.
    """
    running: Any = query._jsq  # noqa: SLF001 - see above
    last = after + batches
    while (progress := running.lastProgress()) is None or progress.batchId() < last:
        if not running.isActive():
            raise RuntimeError(f"the query has ended: {query.exception()}")
        time.sleep(0.2)
    found = {one["batchId"]: one for one in (json.loads(each.json()) for each in running.recentProgress())}
    return [float(found[number]["durationMs"]["triggerExecution"]) for number in range(after + 1, last + 1)], last


def beside_batches(spark: SparkSession, servers: str, place: Path, blocks: int) -> list[Figure]:
    """Measure batches with and without figures, in turns."""
    blocks += blocks % 2
    records = (2 * blocks * (_PER_BLOCK + 3) + _WARM_UP_BATCHES + 40) * _PER_BATCH
    fill_topic(servers, _SOURCE, records=records, codec="none")
    query = start_query(spark, servers, place)
    figures = Figures(spark)
    with_figures: list[list[float]] = []
    without: list[list[float]] = []
    try:
        _, last = durations_ms(query, -1, _WARM_UP_BATCHES)
        for number in range(2 * blocks):
            # A B B A: what changes slowly over the run falls on both.
            is_on = number % 4 in (1, 2)
            if is_on:
                figures.on()
            _, last = durations_ms(query, last, 2)
            times, last = durations_ms(query, last, _PER_BLOCK)
            (with_figures if is_on else without).append(times)
            if is_on:
                figures.off()
            _, last = durations_ms(query, last, 1)
    finally:
        figures.off()
        query.stop()
    return [effect(with_figures, without)]


def effect(with_figures: list[list[float]], without: list[list[float]]) -> Figure:
    """Compare the medians of blocks, in groups of four that follow each other; the interval is drawn from the groups.

    What changes slowly while the query runs changes both halves of a group alike.
    """
    ours, plain = [statistics.median(each) for each in with_figures], [statistics.median(each) for each in without]
    groups = [100 * (sum(ours[at : at + 2]) / sum(plain[at : at + 2]) - 1) for at in range(0, len(ours), 2)]
    rng = random.Random(7)
    draws = sorted(statistics.mean(rng.choices(groups, k=len(groups))) for _ in range(2_000))
    percent, base = statistics.mean(groups), statistics.mean(plain)
    low, high = draws[int(0.05 * len(draws))], draws[int(0.95 * len(draws))]
    return Figure(
        "time of a batch with figures",
        f"{percent:+.2f} % of {base:.0f} ms (90 % interval {low:+.2f} to {high:+.2f} %; {len(ours)} blocks of "
        f"{_PER_BLOCK} batches each)",
        f"< {_GOAL_PERCENT:g} %",
        percent < _GOAL_PERCENT,
        {"percent": percent, "low": low, "high": high, "base_ms": base},
    )


def main(
    blocks: Annotated[int, typer.Option(help="Blocks of batches of each kind; an even number.")] = 16,
    parts: Annotated[str, typer.Option(help="scrapes, batches, or both.")] = "scrapes,batches",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the numbers there, too.")] = None,
) -> None:
    """Print the figures beside their goals; the exit status is 1 if one is missed."""
    ensure_java_for_spark()
    found: list[Figure] = []
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        spark = start_spark(place)
        stack.callback(spark.stop)
        if "scrapes" in parts:
            found += [scrapes(spark, partitions) for partitions in (1_000, 10_000)]
        if "batches" in parts:
            kafka = stack.enter_context(EmbeddedKafka(jvm_flags=WARM_JVM_FLAGS))
            kafka.create_topic(_SOURCE, partitions=2)
            kafka.create_topic(_TARGET, partitions=2)
            found += beside_batches(spark, kafka.bootstrap_servers, Path(place) / "checkpoint", blocks)
    table = Table("what", "figure", "goal", "met")
    for each in found:
        table.add_row(each.name, each.figure, each.goal, each.verdict)
    Console(width=150).print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({each.name: each.values for each in found}, indent=2))
    sys.exit(any(each.met is False for each in found))


if __name__ == "__main__":
    typer.run(main)
