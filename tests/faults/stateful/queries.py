"""The stateful queries, by name: what each makes of the rows of Kafka. Runs in drivers and, in part, in their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from faults.stateful.events import BASE_S, DELAY_S, JOIN_S, STEP_S, WINDOW_S

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
# Each with its output mode.
QUERIES = {
    "append": "append",
    "append_at_least_once": "append",
    "update": "update",
    "complete": "complete",
    "dedup": "append",
    "inner": "append",
    "outer": "append",
    "state": "append",
}
_DELAY = f"{DELAY_S} seconds"


def build(query: str, read: Callable[[str], DataFrame]) -> DataFrame:
    """Return a query's rows as the column `value`; `read` returns a stream of the `left` or the `right` topic."""
    rows = _parsed(read("left"))
    if query in {"append", "append_at_least_once", "update", "complete"}:
        counted = rows.groupBy(f.window("timestamp", f"{WINDOW_S} seconds"), "key").count()
        return _texts(counted.select(_seconds("window.start").alias("start"), "key", "count"))
    if query == "dedup":
        return _texts(rows.dropDuplicatesWithinWatermark(["id"]).select("id"))
    if query == "state":
        return _texts(
            rows.select("key", "timestamp")
            .groupBy("key")
            .transformWithState(Steps(), "kind string, key string, number bigint, count bigint", "append", "EventTime")
            .select("kind", "key", "number", "count")
        )
    right = _parsed(read("right")).select(f.col("name").alias("wanted"), f.col("timestamp").alias("at"))
    condition = f"name = wanted AND at >= timestamp AND at <= timestamp + INTERVAL {JOIN_S} SECONDS"
    joined = rows.join(right, f.expr(condition), {"inner": "inner", "outer": "left_outer"}[query])
    found = f.coalesce(_seconds("at").cast("string"), f.lit("none"))
    return _texts(joined.select("name", found.alias("found")))


def _parsed(rows: DataFrame) -> DataFrame:
    value = f.split(f.col("value").cast("string"), ",")
    return rows.select(
        "timestamp", f.col("key").cast("string").alias("key"), value[0].alias("name"), value[1].alias("id")
    ).withWatermark("timestamp", _DELAY)


def _seconds(column: str) -> Any:
    return f.unix_timestamp(column) - BASE_S


def _texts(rows: DataFrame) -> DataFrame:
    return rows.select(f.concat_ws(" ", *rows.columns).alias("value"))


class Steps(StatefulProcessor):
    """Numbers the rows of a key, and counts them by step; a timer tells when a step is over."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state: a number, and a map."""
        self._handle = handle
        self._total = handle.getValueState("total", "total bigint")
        self._steps = handle.getMapState("steps", "step bigint", "rows bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's contract
        """Count the rows of a micro-batch."""
        (total,) = self._total.get() or (0,)
        for row in rows:
            step = (int(row.timestamp.timestamp()) - BASE_S) // STEP_S
            (seen,) = self._steps.getValue((step,)) or (0,)
            self._steps.updateValue((step,), (seen + 1,))
            self._handle.registerTimer((BASE_S + (step + 1) * STEP_S) * 1000)
            total += 1
            yield Row(kind="row", key=key[0], number=total, count=None)
        self._total.update((total,))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's contract
        """Write the rows of a step that is over, and forget them."""
        step = expiredTimerInfo.getExpiryTimeInMs() // 1000 // STEP_S - BASE_S // STEP_S - 1
        (rows,) = self._steps.getValue((step,)) or (0,)
        self._steps.removeKey((step,))
        yield Row(kind="step", key=key[0], number=step, count=rows)

    def close(self) -> None:
        """Nothing is open."""
