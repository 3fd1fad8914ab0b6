"""State by key and exactly once: every record once, with the right count, whoever dies when."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit.administration import create_partitions, create_topic, delete_topics
from kit.continuous_state import counted
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.pointers import REPO
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import continuous
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.errors import ConnectorError, StateError

_KEYS = 7


def start(
    spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path, function: Any = counted, **more: Any
) -> ContinuousQuery:
    """Start a query that counts."""
    trigger = more.pop("trigger", {"continuous": "200 milliseconds"})
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest")
        .option("failOnDataLoss", more.pop("failOnDataLoss", "true")).load()
        .mapWithState(function, "key binary, value binary", "n bigint")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("deliveryGuarantee", "exactly_once").options(**{"tasks": "2", **more})
        .option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
    )  # fmt: skip


class Counts:
    """A topic that gets records of some keys, one key in one partition, and the topic with their counts."""

    def __init__(self, servers: str, make_topic: TopicMaker, checkpoint: Path, partitions: int = 3) -> None:
        self.servers, self.partitions, self.checkpoint = servers, partitions, checkpoint
        self.source, self.target = make_topic(partitions=partitions), make_topic(partitions=2)
        self.sent: Counter[int] = Counter()

    def add(self, count: int, keys: int = _KEYS) -> None:
        """Send records, dealt out to keys."""
        records = []
        for number in range(count):
            key = number % keys
            self.sent[key] += 1
            records.append(Record(b"k%d" % key, b"%d" % self.sent[key], partition=key % self.partitions))
        produce(self.servers, self.source, records)

    def start(self, spark: SparkSession, function: Any = counted, **more: Any) -> ContinuousQuery:
        """Start the query."""
        return start(spark, self.servers, self.source, self.target, self.checkpoint, function, **more)

    def is_exact(self) -> bool:
        """Whether each record is there once, with its count."""
        found = Counter((each.key or b"", each.value or b"") for each in consume_committed(self.servers, self.target))
        wanted = Counter(
            (b"k%d" % key, b"%d %d" % (n, n)) for key, last in self.sent.items() for n in range(1, last + 1)
        )
        assert not found - wanted, f"too much: {list((found - wanted).items())[:5]}"
        return found == wanted

    def check(self) -> None:
        """Wait until each record is there once, with its count."""
        eventually(self.is_exact)


def test_counts_are_right_over_kills_of_workers_stops_and_other_numbers_of_lanes(
    spark: SparkSession, bootstrap_servers: str, client: KafkaClient, make_topic: TopicMaker, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def noting(rows: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        (pids / str(os.getpid())).touch()
        return counted(rows, state)

    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    counts.add(100)
    query = counts.start(spark, noting)
    query.processAllAvailable()
    for _ in range(2):
        for pid in list(pids.iterdir()):
            pid.unlink()
        counts.add(40)
        eventually(lambda: any(pids.iterdir()))
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
        counts.add(40)
        query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    counts.check()
    counts.add(30)
    # Key groups move to one lane, and partitions are added.
    create_partitions(client, {counts.source: 5})
    again = counts.start(spark, tasks="1")
    again.processAllAvailable()
    again.stop()
    assert again.exception() is None
    counts.partitions = 5
    # Keys that are new: those of before keep their partitions.
    for key in (8, 9, 13, 14):
        counts.sent[key] = 3
        produce(
            bootstrap_servers,
            counts.source,
            [Record(b"k%d" % key, b"%d" % n, partition=key % 5) for n in range(1, 4)],
        )
    last = counts.start(spark, trigger={"availableNow": True})
    assert last.awaitTermination(120)
    assert last.exception() is None
    counts.check()


_KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[5])
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark_kafka import continuous
import counting

servers, source, target, checkpoint, place, point = sys.argv[1:]
if point.startswith("driver"):
    counting.patch_driver(point)
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
(
    continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("subscribe", source).option("startingOffsets", "earliest").load()
    .mapWithState(counting.Counted(point, place), "key binary, value binary", "n bigint")
    .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    .option("deliveryGuarantee", "exactly_once").option("checkpointLocation", checkpoint).option("tasks", 2)
    .option("maxFailures", 0).trigger(continuous="100 milliseconds").start().awaitTermination()
)
"""
_COUNTING = """
import os, signal
from pathlib import Path
import pyarrow as pa

def at(place):
    # Once.
    try:
        Path(place, "armed").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name, place, *, after=False):
    real = getattr(owner, name)
    def patched(*args, **named):
        if not after:
            at(place)
        result = real(*args, **named)
        if after:
            at(place)
        return result
    setattr(owner, name, patched)

def patch_driver(point):
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
    import sys
    name = {"driver before offsets": "prepare", "driver before commits": "write_commit"}[point]
    before(EpochFiles, name, sys.argv[5])

class Counted:
    def __init__(self, point, place):
        self.point, self.place = point, place

    def __setstate__(self, state):
        self.__dict__.update(state)
        from pyspark_kafka._client.client.transactions.owner import TransactionalId
        from pyspark_kafka.continuous.state.version_files import PendingVersions
        if self.point == "versions":
            before(PendingVersions, "write", self.place, after=True)
        elif self.point == "end":
            before(TransactionalId, "end", self.place)
        elif self.point == "ended":
            before(TransactionalId, "end", self.place, after=True)

    def __call__(self, rows, state):
        keys = rows.column("key").to_pylist()
        distinct = sorted(set(keys))
        known = state.get(pa.array(distinct)).column("n").to_pylist()
        counts = {key: count or 0 for key, count in zip(distinct, known)}
        written = []
        for key, value in zip(keys, rows.column("value").to_pylist()):
            counts[key] += 1
            written.append(value + b" %d" % counts[key])
        state.update(pa.array(distinct), n=[counts[key] for key in distinct])
        return pa.RecordBatch.from_arrays([rows.column("key"), pa.array(written)], ["key", "value"])
"""


def _run_until_killed(counts: Counts, place: Path, point: str) -> None:
    """Run the query in a program of its own, until a process of it dies at a point; then nothing of it is left."""
    place.mkdir()
    (place / "killed.py").write_text(_KILLED)
    (place / "counting.py").write_text(_COUNTING)
    path = os.pathsep.join((str(REPO / "src"), str(place)))
    with (
        (place / "log").open("w") as log,
        subprocess.Popen(
            [
                sys.executable, str(place / "killed.py"), counts.servers, counts.source, counts.target,
                str(counts.checkpoint), str(place), point,
            ],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
        ) as killed,
    ):  # fmt: skip
        try:
            eventually((counts.checkpoint / "commits" / "0").exists, 120)
            (place / "armed").touch()
            counts.add(40)
            # A worker's death ends the query, which starts nothing again.
            killed.wait(120)
            assert not (place / "armed").exists(), (place / "log").read_text()[-4000:]
        finally:
            if killed.poll() is None:
                os.killpg(killed.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("versions", marks=pytest.mark.full("Kills at every point")),
        pytest.param("end", marks=pytest.mark.full("Kills at every point")),
        pytest.param("ended", marks=pytest.mark.full("Kills at every point")),
        "driver before offsets",
        pytest.param("driver before commits", marks=pytest.mark.full("Kills at every point")),
    ],
)
def test_counts_are_right_after_a_death_between_versions_transaction_and_checkpoint(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, point: str
) -> None:
    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    counts.add(30)
    _run_until_killed(counts, tmp_path / "program", point)
    counts.add(30)
    query = counts.start(spark)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    counts.check()


def _older_checkpoint(
    counts: Counts, spark: SparkSession, copy: Callable[[Path, Path], None], place: Path
) -> ContinuousQuery:
    """Run the query, put a copy of its checkpoint of an earlier moment back, and start it again."""
    counts.add(30)
    for _ in range(2):
        query = counts.start(spark)
        query.processAllAvailable()
        query.stop()
        assert query.exception() is None
        if not place.exists():
            shutil.copytree(counts.checkpoint, place)
            counts.add(60)
    copy(place, counts.checkpoint)
    counts.add(20)
    return counts.start(spark)


def test_older_logs_continue_with_the_state_of_the_positions(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    def put_back(copy: Path, checkpoint: Path) -> None:
        for log in ("offsets", "commits", "continuous/versions"):
            shutil.rmtree(checkpoint / log)
            shutil.copytree(copy / log, checkpoint / log)

    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    query = _older_checkpoint(counts, spark, put_back, tmp_path / "copy")
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    counts.check()


def test_version_that_a_position_names_and_nobody_has_is_an_error(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    def put_back(copy: Path, checkpoint: Path) -> None:
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)

    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    query = _older_checkpoint(counts, spark, put_back, tmp_path / "copy")
    with pytest.raises(StateError, match="Positions of the query name versions of its state") as caught:
        query.awaitTermination(int(PATIENCE_S))
    assert caught.value.condition == "STATE_VERSION_MISSING"
    assert "An older state would count records twice, so nothing was read." in str(caught.value)


def test_second_driver_continues_with_the_counts_of_the_first(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    counts.add(40)
    first = counts.start(spark, tasks="1")
    first.processAllAvailable()
    second = counts.start(spark, tasks="1")
    eventually(lambda: second.status["message"] == "Processing new data")
    counts.add(40)
    eventually(lambda: not first.isActive)
    assert isinstance(first.exception(), ConnectorError)
    second.processAllAvailable()
    second.stop()
    counts.check()


def test_topic_that_is_recreated_begins_with_an_empty_state(
    spark: SparkSession, bootstrap_servers: str, client: KafkaClient, make_topic: TopicMaker, tmp_path: Path
) -> None:
    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint", partitions=2)
    counts.add(20)
    first = counts.start(spark)
    first.processAllAvailable()
    first.stop()
    assert first.exception() is None
    counts.check()
    delete_topics(client, [counts.source])
    create_topic(client, counts.source, partitions=2)
    before, counts.target = counts.target, make_topic(partitions=2)
    assert before != counts.target
    counts.sent.clear()
    counts.add(20)
    again = counts.start(spark, failOnDataLoss="false")
    again.processAllAvailable()
    counts.add(20)
    again.processAllAvailable()
    again.stop()
    assert again.exception() is None
    counts.check()


def test_state_is_refused_after_micro_batches_have_moved_the_checkpoint(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    counts = Counts(bootstrap_servers, make_topic, tmp_path / "checkpoint")
    counts.add(20)
    first = counts.start(spark)
    first.processAllAvailable()
    first.stop()
    assert first.exception() is None
    counts.check()
    counts.add(10)
    # A batch of theirs has no versions of states.
    query = (
        spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", counts.servers)
        .option("subscribe", counts.source).load().select("key", "value")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", counts.servers)
        .option("topic", counts.target).option("checkpointLocation", str(counts.checkpoint))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    with pytest.raises(
        StateError, match=r"It was written by a query without this state, or by micro-batches"
    ) as caught:
        counts.start(spark).awaitTermination(120)
    assert caught.value.condition == "STATE_EPOCH_MISSING"
