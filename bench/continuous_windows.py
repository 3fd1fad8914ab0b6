"""Measure windows of continuous queries: the rows a second of one lane with 1,000 keys, without Kafka and Spark.

Rows come in batches of one size; the time of a batch is 100 ms later than that of the batch before it. Each window has
a count, a sum and a maximum. Results are counted, and the state is written at the end of each second of event time.
Run: .venv/bin/python bench/continuous_windows.py [rows of a batch …]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.continuous.task.stages import TICK, Stages
from pyspark_kafka.table.kafka_table import KafkaTable

_KEYS, _STEP_MS, _BATCHES_OF_EPOCH, _SECONDS = 1_000, 100, 10, 1.5
_SCHEMA = pa.schema([("key", pa.binary()), ("timestamp", pa.timestamp("us", "UTC")), ("n", pa.int64())])
_NO_SESSION: Any = None


def windows() -> dict[str, Any]:
    """Return the windows to measure."""
    return {
        "tumbling, 10 seconds": continuous.window("timestamp", "10 seconds"),
        "sliding, 10 of 2 seconds": continuous.window("timestamp", "10 seconds", "2 seconds"),
        "sessions, gap 500 ms": continuous.session_window("timestamp", "500 ms"),
    }


def batch(number: int, rows: int) -> pa.RecordBatch:
    """Return a batch: each key about equally often, in the order of their times."""
    keys = pa.array([b"key %d" % ((number * rows + row) * 7919 % _KEYS) for row in range(rows)])
    times = pa.array([1_000 * (number * _STEP_MS + row * _STEP_MS // rows) for row in range(rows)])
    return pa.RecordBatch.from_arrays([keys, times.cast(_SCHEMA.types[1]), pa.array(range(rows))], schema=_SCHEMA)


def measured(window: Any, rows: int) -> tuple[float, int]:
    """Return rows a second, and how many windows were returned."""
    frame = ContinuousFrame(_NO_SESSION, KafkaTable(), {}, _SCHEMA).withWatermark("timestamp", "1 second")
    counts = frame.groupBy(window, "key").agg(
        n=("*", "count"), total=("n", "sum"), high=("n", "max"), handleLateRows=lambda _: None
    )
    with tempfile.TemporaryDirectory() as place:
        os.environ["SPARK_LOCAL_DIRS"] = place
        states = LaneState(StatePlan(f"{place}/checkpoint", "r", {0: ("g",)}, {}, (0, 0)), 0, 0)
        states.begin_epoch(0)
        states.point_at(None)
        stages = Stages(counts.steps).holding(states)
        busy, number, made = 0.0, 0, 0

        def given(each: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            yield each
            while stages.has_timer_due():
                yield TICK

        while busy < _SECONDS:
            each = batch(number, rows)
            begin = time.perf_counter()
            made += sum(result.num_rows for result in stages(given(each)))
            number += 1
            if number % _BATCHES_OF_EPOCH == 0:
                states.end_epoch().write()
                states.begin_epoch(number // _BATCHES_OF_EPOCH)
            busy += time.perf_counter() - begin
        states.close()
    return number * rows / busy, made


def main() -> None:
    """Print a line for each window and size of a batch."""
    for rows in map(int, sys.argv[1:] or ("100", "1000", "10000")):
        for name, window in windows().items():
            rate, made = measured(window, rows)
            print(f"{name}; batches of {rows:,} rows: {rate:,.0f} rows/s ({made:,} windows)")


if __name__ == "__main__":
    main()
