"""A continuous query from a checkpoint that was forked or rewound: what it writes is exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import Result

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.programs.cli import invoke
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka.errors import CheckpointError


def counted(rows: pa.RecordBatch, state: Any) -> pa.RecordBatch:
    """Return each value with the number of records of its key so far."""
    found = []
    for key, value in zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True):
        keys = pa.array([key])
        n = (state.get(keys).column("n").to_pylist()[0] or 0) + 1
        state.update(keys, n=[n])
        found.append(value + b" %d" % n)
    return pa.RecordBatch.from_arrays([rows.column("key"), pa.array(found)], ["key", "value"])


def run(
    spark: SparkSession,
    servers: str,
    source: str,
    target: str,
    checkpoint: Path,
    *,
    state: bool = False,
    **options: str,
) -> None:
    """Copy everything that there is, in one epoch or more, and end."""
    frame = (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
    )  # fmt: skip
    frame = frame.mapWithState(counted, "key binary, value binary", "n bigint") if state else frame
    frame = frame if state else frame.select("key", "value")
    query = (
        frame.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("checkpointLocation", str(checkpoint)).options(**options).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    assert query.exception() is None


def invoked(name: str, *arguments: object, servers: str) -> Result:
    given = [str(each) for each in arguments]
    return invoke("checkpoint", name, *given, "--json", "--yes", "-o", f"kafka.bootstrap.servers={servers}")


def command(name: str, *arguments: object, servers: str) -> dict[str, Any]:
    done = invoked(name, *arguments, servers=servers)
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def numbers(first: int, last: int) -> list[Record]:
    return [Record(b"k", b"%d" % number, partition=0) for number in range(first, last)]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_continuous_query_starts_at_the_place_and_reads_each_record_once(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, guarantee: str
) -> None:
    source, target, second = make_topic(), make_topic(), make_topic()
    place, forked = tmp_path / "query", tmp_path / "forked"
    for first in (0, 10, 20):
        produce(bootstrap_servers, source, numbers(first, first + 10))
        run(spark, bootstrap_servers, source, target, place, deliveryGuarantee=guarantee)
    told = command("fork", place, forked, "--offsets", json.dumps({source: {"0": 15}}), servers=bootstrap_servers)
    assert told["read_again"] == 15
    run(spark, bootstrap_servers, source, second, forked, deliveryGuarantee=guarantee)
    await_committed(bootstrap_servers, second, [b"%d" % number for number in range(15, 30)])
    told = command("rewind", place, "--offsets", json.dumps({source: {"0": 25}}), "--force", servers=bootstrap_servers)
    assert (told["query_id"] != told["former_query_id"]) is (guarantee == "exactly_once")
    run(spark, bootstrap_servers, source, target, place, deliveryGuarantee=guarantee)
    await_committed(bootstrap_servers, target, [b"%d" % number for number in [*range(30), *range(25, 30)]])


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_state_of_a_continuous_query_is_that_of_its_epoch(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, guarantee: str
) -> None:
    source, target, second, third = (make_topic() for _ in range(4))
    place, forked, dropped = tmp_path / "query", tmp_path / "forked", tmp_path / "dropped"
    for first in (0, 10, 20):
        produce(bootstrap_servers, source, numbers(first, first + 10))
        run(spark, bootstrap_servers, source, target, place, state=True, deliveryGuarantee=guarantee)
    history = read_checkpoint(str(place)).history
    ends = {each: planned.entry.of_source(0) for each in history.finished if (planned := history.get(each)) is not None}
    epoch = max(each for each, end in ends.items() if json.loads(end or "")[source]["0"] == 10)
    told = command("fork", place, forked, "--batch", epoch, servers=bootstrap_servers)
    assert told["state"] == "carried"
    run(spark, bootstrap_servers, source, second, forked, state=True, deliveryGuarantee=guarantee)
    await_committed(bootstrap_servers, second, [b"%d %d" % (number, number + 1) for number in range(10, 30)])
    at = ("--offsets", json.dumps({source: {"0": 25}}))
    assert command("fork", place, dropped, *at, "--drop-state", servers=bootstrap_servers)["state"] == "dropped"
    run(spark, bootstrap_servers, source, third, dropped, state=True, deliveryGuarantee=guarantee)
    await_committed(bootstrap_servers, third, [b"%d %d" % (number, number - 24) for number in range(25, 30)])
    assert command("rewind", place, "--batch", epoch, "--force", servers=bootstrap_servers)["state"] == "carried"
    fourth = make_topic()
    run(spark, bootstrap_servers, source, fourth, place, state=True, deliveryGuarantee=guarantee)
    await_committed(bootstrap_servers, fourth, [b"%d %d" % (number, number + 1) for number in range(10, 30)])


def test_continuous_query_that_was_left_running_ends_and_the_place_stays(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target, place = make_topic(), make_topic(), tmp_path / "query"
    produce(bootstrap_servers, source, numbers(0, 10))
    query = (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(place))
        .trigger(continuous="200 milliseconds").start()
    )  # fmt: skip
    query.processAllAvailable()

    def is_rewound() -> bool:
        at = ("--offsets", json.dumps({source: {"0": 4}}))
        done = invoked("rewind", place, *at, "--force", servers=bootstrap_servers)
        # The query writes an epoch without rows after the last rows.
        assert done.exit_code == 0 or "[CHECKPOINT_IN_USE]" in done.output, done.output
        return done.exit_code == 0

    eventually(is_rewound)
    produce(bootstrap_servers, source, numbers(10, 12))
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_CHANGED\]"):
        query.awaitTermination(120)
    assert read_checkpoint(str(place)).position()["0"].json() == json.dumps({source: {"0": 4}}, separators=(",", ":"))
