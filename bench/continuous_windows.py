"""Measure windows of continuous queries: the rows a second of one lane with 1,000 keys, without Kafka and Spark.

Rows come in rounds of one size, each with the same number of rows for each key group; the time of a round is 100 ms
later than that of the round before it. Each window has a count, a sum and a maximum. Results are counted, and the
state is written at the end of each second of event time. The time of that is shown apart: one file for each key group
and state.
Run: .venv/bin/python bench/continuous_windows.py [--groups 1,64,1024] [rows of a round …]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pyspark_kafka import continuous
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.continuous.task.stages import TICK, Stages

_KEYS, _STEP_MS, _BATCHES_OF_EPOCH, _SECONDS, _ROUNDS = 1_000, 100, 10, 1.5, 3
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
    """Return the rows of a round: each key about equally often, in the order of their times."""
    keys = pa.array([b"key %d" % ((number * rows + row) * 7919 % _KEYS) for row in range(rows)])
    times = pa.array([1_000 * (number * _STEP_MS + row * _STEP_MS // rows) for row in range(rows)])
    return pa.RecordBatch.from_arrays([keys, times.cast(_SCHEMA.types[1]), pa.array(range(rows))], schema=_SCHEMA)


def measured(window: Any, rows: int, groups: int) -> tuple[float, int, float]:
    """Return rows a second, how many windows were returned, and the part of the time in which state was written."""
    frame = ContinuousFrame(_NO_SESSION, KafkaTable(), {}, _SCHEMA).withWatermark("timestamp", "1 second")
    counts = frame.groupBy(window, "key").agg(
        n=("*", "count"), total=("n", "sum"), high=("n", "max"), handleLateRows=lambda _: None
    )
    with tempfile.TemporaryDirectory() as place:
        os.environ["SPARK_LOCAL_DIRS"] = place
        names = tuple(f"topic-{number}" for number in range(groups))
        states = LaneState(StatePlan(f"{place}/checkpoint", "r", {0: names}, {}, (0, 0)), 0, 0)
        states.begin_epoch(0)
        stages = Stages(counts.steps).holding(states)
        busy, writing, number, made = 0.0, 0.0, 0, 0

        def given(parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for name, part in zip(names, parts, strict=True):
                states.point_at(name)
                yield part
                while stages.has_timer_due():
                    yield TICK

        while busy < _SECONDS or number < _ROUNDS:
            each = batch(number, rows)
            bounds = [rows * group // groups for group in range(groups + 1)]
            parts = [each.slice(begin, end - begin) for begin, end in pairwise(bounds)]
            begin = time.perf_counter()
            made += sum(result.num_rows for result in stages(given(parts)))
            number += 1
            if number % _BATCHES_OF_EPOCH == 0:
                end = time.perf_counter()
                states.end_epoch().write()
                states.begin_epoch(number // _BATCHES_OF_EPOCH)
                writing += time.perf_counter() - end
            busy += time.perf_counter() - begin
        states.close()
    return number * rows / busy, made, writing / busy


def main() -> None:
    """Print a line for each window, size of a round and number of key groups."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", default="1", help="numbers of key groups")
    parser.add_argument("rows", nargs="*", type=int, default=(100, 1_000, 10_000))
    given = parser.parse_args()
    # Imports what the first batch needs.
    measured(windows()["tumbling, 10 seconds"], 100, 1)
    for groups in map(int, given.groups.split(",")):
        for rows in given.rows:
            for name, window in windows().items():
                rate, made, writing = measured(window, rows, groups)
                print(
                    f"{name}; {rows:,} rows in {groups:,} key groups: {rate:,.0f} rows/s ({made:,} windows); "
                    f"{100 * writing:.0f} % of the time to write state"
                )


if __name__ == "__main__":
    main()
