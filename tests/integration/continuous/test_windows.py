"""Windows and sessions with event time, compared with Spark's own aggregation, on the same rows in the same batches."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import program_below
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import StateError

_BEGIN_MS = 1_767_222_000_001
_DELAY = "5 seconds"
_FUNCTIONS = ("count", "sum", "min", "max", "avg")
# What a value is cast to: a number, a double with NaN, a decimal, a text.
_COLUMNS = {"n": "int", "x": "double", "d": "decimal(12,3)", "s": "string"}
_OF_COLUMNS = [
    (column, each) for column in _COLUMNS for each in _FUNCTIONS if column != "s" or each not in ("sum", "avg")
]


def batches() -> list[list[Record]]:
    """Return records around a time that moves on: out of order, some late, some with a null key or null values.

    Late records are late by the batches before: Spark's watermark moves after a batch, ours with each record. No end of
    a window is equal to a watermark but those that are meant to be: times are odd, or at full seconds.
    """
    rng, places = random.Random(11), random.Random(12)
    made: list[list[Record]] = []
    for number in range(6):
        made.append([])
        for _ in range(40):
            at = number * 4_000 + rng.choice([2 * rng.randrange(-6_000, 2_500), 1_000 * rng.randrange(-12, 5) - 1])
            numbers = [rng.choice([None, rng.randrange(-8, 9)]), rng.choice([None, "NaN", 0.25 * rng.randrange(9)])]
            value = json.dumps(
                [*numbers, rng.choice([None, f"{rng.randrange(-999, 999)}.125"]), rng.choice("aé\u4e2d")]
            )
            key = rng.choice([None, b"a", b"b", b"c", b"d"])
            made[-1].append(Record(key, value.encode(), 0, _BEGIN_MS + at))
        # Out of order by less than the delay.
        made[-1].sort(key=lambda record: (record.timestamp_ms or 0) + places.randrange(5_000))
    return made


def write_file(directory: Path, number: int, records: list[Record]) -> None:
    """Write records as JSON for a stream of Spark, all at once."""
    rows = [
        {
            "key": None if each.key is None else each.key.decode(),
            "value": (each.value or b"").decode(),
            "ms": each.timestamp_ms,
        }
        for each in records
    ]
    hidden = directory / f".{number}"
    hidden.write_text("\n".join(map(json.dumps, rows)))
    hidden.rename(directory / f"{number}.json")


def parsed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with typed columns of their values."""
    values = [json.loads(value) for value in rows.column("value").to_pylist()]
    n, x, d, s = ([value[number] for value in values] for number in range(4))
    return pa.RecordBatch.from_arrays(
        [
            rows.column("key").cast(pa.string()),
            rows.column("timestamp"),
            pa.array(n, pa.int32()),
            pa.array([None if each is None else float(each) for each in x], pa.float64()),
            pa.array([None if each is None else Decimal(each) for each in d], pa.decimal128(12, 3)),
            pa.array(s, pa.string()),
        ],
        schema=_PARSED,
    )


_PARSED = pa.schema(
    [("key", pa.string()), ("timestamp", pa.timestamp("us", "UTC")), ("n", pa.int32()), ("x", pa.float64()),
     ("d", pa.decimal128(12, 3)), ("s", pa.string())]
)  # fmt: skip


def as_texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a result as records: bounds as microseconds, the others as Python writes them."""
    texts = []
    for row in rows.to_pylist():
        bounds = row.pop("window" if "window" in row else "session_window")
        texts.append(repr((*(int(each.timestamp() * 1000) for each in bounds.values()), *row.values())).encode())
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.binary())], ["value"])


@pytest.mark.parametrize(
    "window",
    [
        ("window", "10 seconds"),
        ("window", "12 seconds", "5 seconds", "2 seconds"),
        ("session_window", "2 seconds"),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_windows_are_those_of_spark(
    window: tuple[str, ...],
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
) -> None:
    source, target = make_topic(partitions=1), make_topic(partitions=1)
    files, late = tmp_path / "files", tmp_path / "late"
    files.mkdir()
    late.mkdir()

    def noted(rows: pa.RecordBatch) -> None:
        batch = time.monotonic_ns()
        for row in rows.to_pylist():
            (late / f"{batch} {row['key']} {row['timestamp'].timestamp()}").touch()

    named: Any = {"rows": ("*", "count"), **{f"{each}_{column}": (column, each) for column, each in _OF_COLUMNS}}
    kind, *spans = window
    rows = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer = (
        rows.option("subscribe", source).option("startingOffsets", "earliest").load()
        .mapBatches(parsed, _PARSED).withWatermark("timestamp", _DELAY)
        .groupBy(getattr(continuous, kind)("timestamp", *spans), "key")
        .agg(**named, handleLateRows=noted)
        .mapBatches(as_texts, pa.schema([("value", pa.binary())]))
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(tmp_path / "ours"))
        .trigger(continuous="100 milliseconds")
    )  # fmt: skip
    typed = [
        f"TRY_CAST(get_json_object(value, '$[{number}]') AS {type_name}) AS {name}"
        for number, (name, type_name) in enumerate(_COLUMNS.items())
    ]
    aggregates = [getattr(f, each)(column).alias(name) for name, (column, each) in named.items()]
    spark_query = (
        spark.readStream.schema("key string, value string, ms bigint").json(str(files))
        .selectExpr("key", "timestamp_millis(ms) AS time", *typed)
        .withWatermark("time", _DELAY).groupBy(getattr(f, kind)("time", *spans), "key").agg(*aggregates)
        .writeStream.format("memory").queryName(f"windows_of_spark_{kind}_{len(spans)}")
        .option("checkpointLocation", str(tmp_path / "theirs")).start()
    )  # fmt: skip
    try:
        query = writer.start()
        for number, records in enumerate(batches()):
            # One record batch, which the query reads as a whole.
            produce(bootstrap_servers, source, records, linger_ms=60_000)
            write_file(files, number, records)
            # Also waits for the batch without rows that follows, which moves Spark's watermark.
            spark_query.processAllAvailable()
            query.processAllAvailable()
            wanted = [
                repr((*(int(each.timestamp() * 1000) for each in row[0]), *row[1:])).encode()
                for row in spark.table(f"windows_of_spark_{kind}_{len(spans)}").collect()
            ]
            found = [record.value or b"" for record in consume_committed(bootstrap_servers, target)]
            assert sorted(found) == sorted(wanted)
            if number == 2:
                query.stop()
                query = writer.start()
        progress = spark_query.recentProgress
    finally:
        spark_query.stop()
        query.stop()
    assert query.exception() is None
    assert len(wanted) > 10
    dropped = sum(state["numRowsDroppedByWatermark"] for each in progress for state in each["stateOperators"])
    assert dropped > 3
    if kind == "session_window":
        # Spark adds rows with equal keys and times together before it drops and counts them.
        assert len(list(late.iterdir())) == dropped


def test_program_of_the_page_counts_by_minute_and_refuses_other_windows(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=1), make_topic(partitions=1)
    minute = 1_767_222_000_000
    records = [
        Record(b"a", b"12345", 0, minute + 1), Record(None, b"", 0, minute + 2), Record(b"a", None, 0, minute + 59_999),
        Record(b"a", b"1", 0, minute + 60_000), Record(b"b", b"", 0, minute + 70_000),
    ]  # fmt: skip
    produce(bootstrap_servers, source, records)
    rows = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    names: dict[str, Any] = {"rows": rows.option("subscribe", source).option("startingOffsets", "earliest").load()}
    program = program_below("## Windows", "continuous-state.md")

    def start(text: str) -> ContinuousQuery:
        exec(text, names)  # noqa: S102 - our own text
        writer = names["counts"].writeStream.format("pyspark_kafka").option("topic", target)
        writer = writer.option("kafka.bootstrap.servers", bootstrap_servers).option("maxFailures", 0)
        started: ContinuousQuery = writer.option("checkpointLocation", str(tmp_path)).start()
        return started

    def written() -> list[tuple[bytes | None, bytes | None]]:
        return [(record.key, record.value) for record in consume_committed(bootstrap_servers, target)]

    query = start(program)
    query.processAllAvailable()
    query.stop()
    ends = time.strftime("%H:%M", time.gmtime(minute / 1000 + 60))
    assert sorted(written(), key=str) == [(None, f"1 0 {ends}".encode()), (b"a", f"2 5 {ends}".encode())]
    for text, other in (('"1 minute"', '"2 minutes"'), ('("size", "sum")', '("size", "max")')):
        assert text in program
        with pytest.raises(StateError) as raised:
            start(program.replace(text, other)).awaitTermination()
        assert raised.value.condition == "STATE_SCHEMA_CHANGED"
    produce(
        bootstrap_servers, source, [Record(b"a", b"22", 0, minute + 61_000), Record(b"c", b"", 0, minute + 130_000)]
    )
    # Other names of aggregates have the same state.
    query = start(program.replace("total", "sizes"))
    query.processAllAvailable()
    query.stop()
    assert len(written()) == 4


def test_windows_of_a_partition_without_rows_close_once_and_later_rows_of_them_are_late(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, pids = make_topic(partitions=2), make_topic(partitions=1), tmp_path / "pids"
    pids.mkdir()

    def noting(rows: pa.RecordBatch) -> pa.RecordBatch:
        (pids / str(os.getpid())).touch()
        return rows

    def as_text(rows: pa.RecordBatch) -> pa.RecordBatch:
        texts = [f"{row['key'].decode()} {row['window']['end']:%M} {row['n']}".encode() for row in rows.to_pylist()]
        return pa.RecordBatch.from_arrays([pa.array(texts, pa.binary())], ["value"])

    program = program_below("## Idle topic-partitions", "continuous-state.md")
    assert "5 minutes" in program

    def start() -> ContinuousQuery:
        reader = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
        names: dict[str, Any] = {"rows": rows.mapBatches(noting)}
        exec(program.replace("5 minutes", "2 seconds"), names)  # noqa: S102 - our own text
        query: ContinuousQuery = (
            names["counts"].mapBatches(as_text, pa.schema([("value", pa.binary())]))
            .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
            .option("topic", target).option("checkpointLocation", str(tmp_path / "checkpoint")).option("tasks", 1)
            .option("deliveryGuarantee", "exactly_once").trigger(continuous="100 milliseconds").start()
        )  # fmt: skip
        return query

    def send(key: bytes, seconds: int) -> None:
        at_ms = 1_767_222_000_000 + 1_000 * seconds
        produce(bootstrap_servers, source, [Record(key, b"", int(key == b"b"), at_ms)])

    def written() -> list[bytes]:
        return sorted(record.value or b"" for record in consume_committed(bootstrap_servers, target))

    def late(query: ContinuousQuery) -> int:
        return sum(step.numRowsDroppedByWatermark for each in query.recentProgress for step in each.stateOperators)

    def open_windows(query: ContinuousQuery) -> list[int]:
        progress = query.lastProgress
        return [step.customMetrics["numTimers"] for step in progress.stateOperators] if progress else []

    query = start()
    send(b"a", 5)
    send(b"b", 5)
    eventually(lambda: written() == [b"a 01 1", b"b 01 1"])
    # The one is late, the other in the next window, which closes in another process.
    send(b"a", 59)
    send(b"a", 60)
    eventually(lambda: late(query) == 1)
    for pid in pids.iterdir():
        os.kill(int(pid.name), signal.SIGKILL)
    eventually(lambda: written() == [b"a 01 1", b"a 02 1", b"b 01 1"])
    query.stop()
    assert query.exception() is None
    query = start()
    send(b"a", 119)
    send(b"b", 120)
    eventually(lambda: written() == [b"a 01 1", b"a 02 1", b"b 01 1", b"b 03 1"])
    # Nothing is open any more; the progress of an epoch comes after its commit.
    eventually(lambda: open_windows(query) == [0])
    assert late(query) == 1
    query.stop()
    assert query.exception() is None
