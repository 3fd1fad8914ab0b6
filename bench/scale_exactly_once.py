"""Exactly-once micro-batches of hundreds of tasks, with a driver as Spark starts one: 1 GiB, and its limit of results.

What a task hands over below the spool threshold travels in its commit message; Spark adds these up, aborts the job
where they are more than `spark.driver.maxResultSize`, and holds them in the driver's heap. Rows come from Spark's own
`rate-micro-batch` source, evenly in each task, and are sent uncompressed, so a task's bytes are known beforehand.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goals import Figure
from measure import python_worker_peaks_mib
from py4j.protocol import Py4JError
from session import OURS, jvm_process, start_spark

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_MIB = 1 << 20
_PARTITIONS = 4
# A record takes this, with what a record batch says of it: 64 hexadecimal digits, repeated, and a frame around them.
_VALUE_BYTES, _RECORD_BYTES = 4_096, 4_106
# Of tasks that spool: as much as can be written in a minute or two.
_SPOOLED_BYTES = 4 * _MIB
# How long a micro-batch may take; it is far less, or something hangs.
_END_S = 400
_MAX_RESULT_SIZE = 1 << 30


def measure_below() -> list[Figure]:
    """Return the lines of 200 tasks, the default of a shuffle, that just spool nothing."""
    return _commit(200, int(_threshold() * 0.97), "just below the spool threshold")


def measure_above() -> list[Figure]:
    """Return the lines of 500 tasks that spool, and of 200 whose messages would not fit the driver together."""
    return [
        *_commit(500, max(int(_threshold() * 1.03), _SPOOLED_BYTES), "above the spool threshold"),
        *_commit(200, max(int(_threshold() * 1.03), 2 * _SPOOLED_BYTES), "above the spool threshold"),
    ]


def _threshold() -> int:
    """Return the default of `spoolThresholdBytes` for a stream."""
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "deliveryGuarantee": "exactly_once", "checkpointLocation": "/c"}
    options = parse_write_options(given, streaming=True).exactly_once
    if options is None:
        raise RuntimeError("the write is not exactly once")
    return options.spool_threshold_bytes


def _commit(tasks: int, task_bytes: int, where: str) -> list[Figure]:
    """Run one micro-batch with a number of tasks, each with the same number of encoded bytes."""
    rows = max(1, task_bytes // _RECORD_BYTES)
    ensure_java_for_spark()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="512m", jvm_flags=WARM_JVM_FLAGS))
        kafka.create_topic("out", partitions=_PARTITIONS)
        # As large as Spark's default, with its default limit of results.
        spark = start_spark(directory, driver_memory="1g")
        stack.callback(_stop, spark)
        spool = stack.enter_context(_LargestSize(Path(directory) / "checkpoint"))
        reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(tasks * rows))
        source = reader.option("numPartitions", str(tasks)).load()
        value = f"repeat(sha2(cast(value as string), 256), {_VALUE_BYTES // 64})"
        writer = source.selectExpr(f"{value} as value").writeStream.format(OURS)
        writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers).option("topic", "out")
        writer = writer.option("deliveryGuarantee", "exactly_once")
        writer = writer.option("checkpointLocation", f"{directory}/checkpoint").trigger(once=True)
        java = jvm_process(spark)
        began = time.monotonic()
        query = writer.start()
        failed = _failure(lambda: query.awaitTermination(_END_S))
        took = time.monotonic() - began
        written, results, longest, tasks_s, heap, python = 0, 0, 0, float("nan"), float("nan"), float("nan")
        # A driver that is out of memory ends, and then has nothing to tell.
        with suppress(Py4JError, OSError):
            written = sum(int(json.loads(report.json)["numInputRows"]) for report in query.recentProgress)
            results, longest, tasks_s = _results(spark)
            python = max(python_worker_peaks_mib(java), default=python)
            heap = _peak_mib(java)
    total = tasks * rows * _RECORD_BYTES
    size = f"{tasks} tasks of {rows * _RECORD_BYTES / _MIB:.2f} MiB, {where}"
    done = f"committed: {total / _MIB:,.0f} MiB in {took:.0f} s, of it tasks {tasks_s:.0f} s"
    figure = f"failed after {took:.0f} s: {failed}" if failed else done
    values: dict[str, float | str] = {
        "tasks": tasks,
        "bytes": total,
        "seconds": took,
        "tasks_seconds": tasks_s,
        "result_bytes": results,
        "spool_bytes": spool.largest,
        "jvm_peak_mib": heap,
        "python_peak_mib": python,
        "error": failed,
    }
    return [
        Figure(size, figure, "commits", written == tasks * rows, values),
        Figure(
            "of it in commit messages, on the driver at once",
            f"{results / _MIB:,.1f} MiB, a task {longest / _MIB:.2f} MiB",
            f"< {_MAX_RESULT_SIZE >> 20:,} MiB",
            0 < results < _MAX_RESULT_SIZE,
        ),
        Figure(
            "in spool files; peak memory of JVM and of a Python process",
            f"{spool.largest / _MIB:,.0f} MiB; {heap:,.0f} MiB, {python:,.0f} MiB",
        ),
    ]


def _stop(spark: SparkSession) -> None:
    # Its JVM may be gone.
    with suppress(Py4JError, OSError):
        spark.stop()


def _failure(call: Callable[[], Any]) -> str:
    """Return what a query failed with; empty where it ended."""
    try:
        ended = call()
    except Exception as error:  # noqa: BLE001 - whatever ended the query is the figure
        return " ".join(str(error).split())[:300]
    return "" if ended else f"not done after {_END_S} s"


def _results(spark: SparkSession) -> tuple[int, int, float]:
    """Return the bytes of all tasks' results as Spark counts them, of one on average, and how long the tasks took."""
    # No public way, as in `session.jvm_process`: REST has it, where there is a web UI.
    context: Any = spark.sparkContext
    store, nothing = context._jsc.sc().statusStore(), context._jvm.java.util.ArrayList()  # noqa: SLF001
    no_quantiles = getattr(store, "stageList$default$4")()
    stages = store.stageList(nothing, False, False, no_quantiles, nothing)
    total, longest, lasted_ms = 0, 0, 0
    for index in range(stages.size()):
        stage = stages.apply(index)
        total += int(stage.resultSize())
        longest = max(longest, int(stage.resultSize()) // max(1, int(stage.numCompleteTasks())))
        if stage.completionTime().isDefined():
            lasted_ms += stage.completionTime().get().getTime() - stage.submissionTime().get().getTime()
    return total, longest, lasted_ms / 1000


def _peak_mib(pid: int) -> float:
    status = (Path("/proc") / str(pid) / "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class _LargestSize:
    """Looks at the bytes of the files below a folder all the time, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.largest = 0

    def __enter__(self) -> _LargestSize:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self.largest = max(self.largest, sum(map(_size, self._folder.rglob("*"))))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0  # put in its place, or removed, meanwhile
