"""Measure how long exactly-once micro-batches hold readers of committed records back.

From outside: how long the last stable offset of the target lies behind its high watermark, batch by batch. With large
batches (`--batches 2 --per-batch 10000000`) it is as good as the time for which a transaction is open, which brokers
limit; and the memory of Python processes shows that what a batch holds is in the spool, not in them. With
`--commit tasks` the tasks send; with `--workers` they run on a cluster.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from measure import python_worker_peaks_mib
from process_times import ProcessTimes
from rich.console import Console
from rich.table import Table
from session import OURS, jvm_process, start_spark
from topics import fill_topic

from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

_PARTITIONS = 4
_KEY_BYTES = 10
_SOURCE, _TARGET = "held-source", "held-target"
_PAUSE_S = 0.0005
# More records in a batch are no warmer.
_WARM_UP_BATCHES, _WARM_UP_RECORDS = 20, 10_000


class Watcher:
    """Looks at both ends of a topic all the time, in a thread of its own.

    Attributes:
        held_ms: for how long each time, from the first look that saw it held back to the first that did not.
        looks: how often it looked.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        host, _, port = servers.rpartition(":")
        self._options = ConnectionOptions(((host, int(port)),))
        self._ends = {TopicPartition(topic, number): Latest() for number in range(partitions)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.held_ms: list[float] = []
        self.looks = 0
        self.failure: BaseException | None = None

    def __enter__(self) -> Watcher:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            with borrow_client(self._options) as client:
                since: float | None = None
                while not self._stop.is_set():
                    # In this order, what is written between the two looks seems held back, for one look.
                    stable = list_offsets(client, self._ends, IsolationLevel.READ_COMMITTED)
                    ends = list_offsets(client, self._ends)
                    now = time.perf_counter()
                    self.looks += 1
                    held = any(stable[where] < ends[where] for where in ends)
                    if held and since is None:
                        since = now
                    elif not held and since is not None:
                        self.held_ms.append((now - since) * 1000)
                        since = None
                    time.sleep(_PAUSE_S)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            self.failure = error


def run_query(spark: Any, servers: str, checkpoint: str, per_batch: int, commit: str) -> list[dict[str, Any]]:
    """Copy the source to the target exactly once, by a number of records a batch; return the progress reports."""
    reader = spark.readStream.format(OURS).option("kafka.bootstrap.servers", servers).option("subscribe", _SOURCE)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(per_batch))
    writer = reader.load().select("key", "value").writeStream.format(OURS).option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", _TARGET).option("kafka.compression.type", "lz4")
    writer = writer.option("deliveryGuarantee", "exactly_once").option("checkpointLocation", checkpoint)
    writer = writer.option("exactlyOnceCommit", commit)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    reports = [json.loads(report.json) for report in query.recentProgress]
    return [report for report in reports if report["numInputRows"]]


def main(
    batches: Annotated[int, typer.Option(help="Micro-batches that count.")] = 100,
    per_batch: Annotated[int, typer.Option(help="Records of each.")] = 10_000,
    commit: Annotated[str, typer.Option(help="exactlyOnceCommit: driver or tasks.")] = "driver",
    value_bytes: Annotated[int, typer.Option(help="Of each record, beside 10 of its key.")] = 90,
    partitions: Annotated[int, typer.Option(help="Of the target.")] = _PARTITIONS,
    workers: Annotated[int, typer.Option(help="Spark workers of one core; 0: two slots in the driver.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run a query and print for how long its batches held readers back."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    ensure_java_for_spark()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="512m", jvm_flags=WARM_JVM_FLAGS))
        kafka.create_topic(_SOURCE, partitions=_PARTITIONS)
        kafka.create_topic(_TARGET, partitions=partitions)
        spark = start_spark(directory, [], workers=workers)
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
        servers, checkpoint = kafka.bootstrap_servers, f"{directory}/checkpoint"
        # The first batches warm up.
        warm_up = min(per_batch, _WARM_UP_RECORDS)
        fill_topic(servers, _SOURCE, records=_WARM_UP_BATCHES * warm_up, codec="lz4", value_bytes=value_bytes)
        run_query(spark, servers, checkpoint, warm_up, commit)
        fill_topic(servers, _SOURCE, records=batches * per_batch, codec="lz4", value_bytes=value_bytes)
        before = {process.pid: process.cpu for process in ProcessTimes(jvm_process(spark)).stop()}
        times = ProcessTimes(jvm_process(spark))
        with Watcher(servers, _TARGET, partitions) as watcher:
            began = time.perf_counter()
            reports = run_query(spark, servers, checkpoint, per_batch, commit)
            lasted_s = time.perf_counter() - began
        cpu: dict[str, float] = defaultdict(float)
        for process in times.stop():
            purpose = "executor" if "java" in process.purpose else process.purpose
            cpu[purpose] += process.cpu - before.get(process.pid, 0.0)
        if watcher.failure is not None:
            raise watcher.failure
        peak_mib = max(python_worker_peaks_mib(jvm_process(spark)), default=float("nan"))
        pyspark = spark.version
    held = sorted(watcher.held_ms)
    triggers = sorted(report["durationMs"]["triggerExecution"] for report in reports)
    if not held:
        raise RuntimeError("no batch was seen to hold readers back: none was written, or all were too quick")

    def share(values: list[float], part: float) -> float:
        return values[min(len(values) - 1, int(part * len(values)))]

    how = f"exactlyOnceCommit {commit}, {f'{workers} workers' if workers else 'local'}"
    title = f"ms, {how}, {len(reports)} micro-batches of {per_batch:,} records, {len(held)} seen held back"
    table = Table(title=title)
    for heading in ("", "p50", "p99", "longest"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, values in (("readers held back", held), ("whole batch", triggers)):
        table.add_row(name, *(f"{value:.1f}" for value in (share(values, 0.5), share(values, 0.99), values[-1])))
    console.print(table)
    look_ms = 1000 * lasted_s / watcher.looks
    console.print(f"looked every {look_ms:.1f} ms, so each figure is right to about as much", highlight=False)
    rate = per_batch / share(held, 0.5) * 1000
    console.print(f"while held back, {rate:,.0f} records/s were written", highlight=False)
    rows_gb = len(reports) * per_batch * (_KEY_BYTES + value_bytes) / 1e9
    console.print(
        f"{1000 * rows_gb / lasted_s:,.0f} MB of rows a second, start and end of the query included", highlight=False
    )
    console.print("CPU s for 1 GB of rows, by process below the driver: ", end="", highlight=False)
    console.print(", ".join(f"{name} {spent / rows_gb:.2f}" for name, spent in sorted(cpu.items())), highlight=False)
    console.print(f"peak memory of a Python process: {peak_mib:.0f} MiB", highlight=False)
    result = {
        "python": platform.python_version(),
        "pyspark": pyspark,
        "cores": os.cpu_count(),
        "commit": commit,
        "workers": workers,
        "records_per_batch": per_batch,
        "rows_gb": rows_gb,
        "cpu_s": dict(cpu),
        "batches": len(reports),
        "held_back_ms": held,
        "peak_mib": peak_mib,
        "trigger_ms": triggers,
        "look_every_ms": look_ms,
    }
    output = output or Path(__file__).parent / "results" / "held_back.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
