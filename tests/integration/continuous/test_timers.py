"""Timers and event time from Kafka to Kafka: each window once and with all of its rows, over kills and restarts."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import program_below
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import StateError

_MINUTE_MS = 60_000
_BEGIN_MS = 1_767_222_000_000
_TIME = pa.timestamp("us", "UTC")
_WITH_TIME = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", _TIME), ("created", _TIME)])


class Topics:
    """A topic with a source of a query, and the one that it writes to, exactly once."""

    def __init__(self, servers: str, make_topic: TopicMaker, checkpoint: Path) -> None:
        self.servers, self.checkpoint = servers, checkpoint
        self.source, self.target = make_topic(partitions=2), make_topic()

    def read(self, spark: SparkSession) -> ContinuousFrame:
        return (
            continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source).option("startingOffsets", "earliest").load()
        )  # fmt: skip

    def start(self, frame: ContinuousFrame, **options: Any) -> ContinuousQuery:
        trigger = options.pop("trigger", {"continuous": "200 milliseconds"})
        return (
            frame.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", self.servers)
            .option("topic", self.target).option("deliveryGuarantee", "exactly_once")
            .options(**{"tasks": "2", **options}).option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger).start()
        )  # fmt: skip

    def found(self) -> Counter[tuple[bytes, bytes]]:
        return Counter((each.key or b"", each.value or b"") for each in consume_committed(self.servers, self.target))


@pytest.fixture
def topics(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Topics:
    return Topics(bootstrap_servers, make_topic, tmp_path / "checkpoint")


class Minutes:
    """Records in two partitions, of which one is an hour behind, and what the program of the page makes of them."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._now_ms = [_BEGIN_MS, _BEGIN_MS - 60 * _MINUTE_MS]
        self._counts: Counter[tuple[int, bytes, int]] = Counter()
        self._late: list[bytes] = []

    def add(self, count: int, *, late: bytes | None = None) -> None:
        """Send records 7 s apart in each partition; one of them 9 s behind, and perhaps one that is late."""
        records = []
        for partition in (0, 1):
            for number in range(count):
                self._now_ms[partition] += 7_000
                time_ms = self._now_ms[partition] - 9_000 * (number % 3 == 2)
                key = b"p%d-%d" % (partition, number % 2)
                self._counts[partition, key, (time_ms // _MINUTE_MS + 1) * _MINUTE_MS] += 1
                records.append(Record(key, b"", partition, time_ms))
        produce(self._topics.servers, self._topics.source, records)
        if late is not None:
            self._late.append(late)
            # In a request of its own, so that it comes in a batch after the others.
            eventually(lambda: self.is_there(up_to_late=False))
            produce(self._topics.servers, self._topics.source, [Record(b"p1-0", late, 1, self._now_ms[1] - 30_000)])

    def is_there(self, *, up_to_late: bool = True) -> bool:
        """Whether each minute that is over is there once, with its count, and each late record."""
        late = self._late if up_to_late else self._late[:-1]
        wanted = Counter((b"late", each) for each in late)
        for (partition, key, end_ms), count in self._counts.items():
            if end_ms <= self._now_ms[partition] - 10_000:
                text = datetime.fromtimestamp(end_ms / 1000, timezone.utc).strftime(" until %H:%M")
                wanted[key + text.encode(), b"%d" % count] += 1
        found = self._topics.found()
        assert not found - wanted, f"too much: {list((found - wanted).items())[:5]}"
        return found == wanted


def test_program_of_the_page_counts_each_minute_once_over_kills_and_restarts(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(rows: pa.RecordBatch) -> pa.RecordBatch:
        (pids / str(os.getpid())).touch()
        return rows

    names: dict[str, Any] = {"rows": topics.read(spark).mapBatches(noting)}
    exec(program_below("## Timers and event time", "continuous-state.md"), names)  # noqa: S102 - our own text
    minutes = Minutes(topics)
    query = topics.start(names["counts"])
    minutes.add(30, late=b"1")
    for _ in range(2):
        for pid in list(pids.iterdir()):
            pid.unlink()
        minutes.add(20)
        eventually(lambda: any(pids.iterdir()))
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
        minutes.add(20, late=b"2")
    eventually(minutes.is_there)
    query.stop()
    assert query.exception() is None
    minutes.add(20)
    # Both partitions in one lane.
    again = topics.start(names["counts"], tasks="1")
    eventually(minutes.is_there)
    minutes.add(20, late=b"3")
    eventually(minutes.is_there)
    again.stop()
    assert again.exception() is None
    minutes.add(20)
    last = topics.start(names["counts"], trigger={"availableNow": True})
    assert last.awaitTermination(120)
    assert last.exception() is None
    assert minutes.is_there()

    # The watermark in the state is one of the other column.
    def with_time(rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [rows.column(name) for name in ("key", "value", "timestamp", "timestamp")]
        return pa.RecordBatch.from_arrays(columns, schema=_WITH_TIME)

    names["rows"] = topics.read(spark).mapBatches(with_time, _WITH_TIME)
    program = program_below("## Timers and event time", "continuous-state.md")
    exec(program.replace('withWatermark("timestamp"', 'withWatermark("created"'), names)  # noqa: S102 - likewise
    with pytest.raises(
        StateError, match=r"timers of event time created.* has .*timers of event time timestamp"
    ) as raised:
        topics.start(names["counts"]).awaitTermination(120)
    assert raised.value.condition == "STATE_SCHEMA_CHANGED"


def test_timers_of_the_clock_expire_without_rows_and_once_over_a_restart(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    due = tmp_path / "due"

    def at_due(rows: pa.RecordBatch, state: Any) -> None:
        # The value says when.
        state.registerTimer(rows.column("key"), [int(value) for value in rows.column("value").to_pylist()])

    def expired(timers: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        assert state.getCurrentProcessingTimeInMs() >= timers.column("expiryTimeInMs")[-1].as_py()
        due.touch()
        return pa.RecordBatch.from_arrays([timers.column("key")] * 2, ["key", "value"])

    frame = topics.read(spark).mapWithState(
        at_due, "key binary, value binary", "n bigint", timeMode="ProcessingTime", handleExpiredTimer=expired
    )

    def add(key: bytes, after_ms: int) -> int:
        due_ms = int(time.time() * 1000) + after_ms
        produce(topics.servers, topics.source, [Record(key, b"%d" % due_ms)])
        return due_ms

    add(b"now", 0)
    add(b"never", 10**9)
    query = topics.start(frame)
    wanted = Counter({(b"now", b"now"): 1})
    eventually(lambda: topics.found() == wanted)
    add(b"soon", 700)
    wanted[b"soon", b"soon"] = 1
    eventually(lambda: topics.found() == wanted)
    due_ms = add(b"while stopped", 2_000)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    # At the latest now it is due.
    eventually(lambda: time.time() * 1000 > due_ms)
    again = topics.start(frame)
    wanted[b"while stopped", b"while stopped"] = 1
    eventually(lambda: topics.found() == wanted)
    again.processAllAvailable()
    again.stop()
    assert again.exception() is None
    assert topics.found() == wanted
