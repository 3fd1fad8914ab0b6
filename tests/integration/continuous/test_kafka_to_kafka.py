"""Kafka to Kafka, continuously: latency, new partitions, restarts, and a checkpoint that micro-batches continue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume, produce
from kit.pointers import REPO
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.handle import ContinuousQuery


def upper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        value = pc.cast(pc.ascii_upper(pc.cast(batch.column("value"), pa.string())), pa.binary())
        yield pa.RecordBatch.from_arrays([batch.column("key"), value], ["key", "value"])


def start(spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path) -> ContinuousQuery:
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .mapInArrow(upper, "key binary, value binary")
        .where(pc.field("key").is_valid())
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("checkpointLocation", str(checkpoint)).trigger(continuous="200 milliseconds").start()
    )  # fmt: skip


def records(*numbers: int) -> list[Record]:
    return [Record(b"k%d" % number, b"v%d" % number) for number in numbers]


def values(found: list[Any]) -> list[bytes]:
    return sorted(record.value for record in found)


def has_records(servers: str, topic: str, count: int) -> bool:
    try:
        return len(consume(servers, topic, count)) == count
    except AssertionError:
        return False


def test_records_flow_and_a_restart_continues(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    produce(bootstrap_servers, source, records(*range(50)))
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    query.processAllAvailable()
    assert values(consume(bootstrap_servers, target, 50)) == sorted(b"V%d" % number for number in range(50))
    produce(bootstrap_servers, source, records(*range(50, 60)))
    # Without anybody asking for it.
    eventually(lambda: has_records(bootstrap_servers, target, 60))
    query.stop()
    progress = query.lastProgress
    assert progress is not None
    assert sum(json.loads(progress.sources[0].endOffset)[source].values()) == 60
    produce(bootstrap_servers, source, records(60, 61))
    again = start(spark, bootstrap_servers, source, target, tmp_path)
    again.processAllAvailable()
    again.stop()
    # At least once, and after a stop exactly once: the last epoch is committed.
    assert values(consume(bootstrap_servers, target, 62)) == sorted(b"V%d" % number for number in range(62))


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_typed_values_are_written_with_the_schema_that_the_query_began_with(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, guarantee: str
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": "string"}]})
    with SchemaRegistryServer() as registry:
        schema_id = registry.add(f"{target}-value", schema)
        for numbers in ((0, 1, 2), (3, 4)):
            produce(bootstrap_servers, source, records(*numbers))
            query = (
                continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
                .option("subscribe", source).option("startingOffsets", "earliest").load()
                .mapInArrow(as_structs, "key binary, value struct<v:string>")
                .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
                .option("topic", target).option("deliveryGuarantee", guarantee).option("valueFormat", "avro")
                .option("schema.registry.url", registry.url).option("checkpointLocation", str(tmp_path))
                .trigger(continuous="200 milliseconds").start()
            )  # fmt: skip
            query.processAllAvailable()
            query.stop()
            registry.stop()
    encoded = [b"\0" + schema_id.to_bytes(4, "big") + b"\x04v%d" % number for number in range(5)]
    await_committed(bootstrap_servers, target, encoded)


def as_structs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        value = pa.StructArray.from_arrays([pc.cast(batch.column("value"), pa.string())], names=["v"])
        yield pa.RecordBatch.from_arrays([batch.column("key"), value], ["key", "value"])


def test_micro_batches_continue_the_checkpoint_and_hand_it_back(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    produce(bootstrap_servers, source, records(*range(10)))
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    query.processAllAvailable()
    query.stop()
    produce(bootstrap_servers, source, records(*range(10, 20)))
    micro_batches = (
        spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .selectExpr("key", "upper(string(value)) AS value")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", target).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )  # fmt: skip
    micro_batches.awaitTermination(120)
    assert micro_batches.exception() is None
    assert str(micro_batches.id) == query.id
    produce(bootstrap_servers, source, records(*range(20, 25)))
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    query.processAllAvailable()
    query.stop()
    assert values(consume(bootstrap_servers, target, 25)) == sorted(b"V%d" % number for number in range(25))


def test_failed_function_names_topic_partition_and_offset(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source = make_topic(partitions=3)
    produce(
        bootstrap_servers, source, [Record(None, b"bad" if at == 4 else b"good", partition=at % 3) for at in range(9)]
    )

    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if b"bad" in batch.column("value").to_pylist():
                raise ValueError("boom")
        yield from ()

    query = (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load().mapInArrow(broken, "value binary")
        .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", source).option("checkpointLocation", str(tmp_path)).option("tasks", "1")
        .option("maxFailures", "0").start()
    )  # fmt: skip
    eventually(lambda: not query.isActive, 120)
    text = str(query.exception())
    assert "ValueError: boom" in text
    assert "in broken" in text
    # One lane reads all three.
    assert f"with the rows of {source}-1 [0, 3): ValueError: boom" in text


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "## Kafka to Kafka, continuous"), ("docs/continuous.md", "# Continuous queries")],
)
def test_first_query_of_a_page_runs(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, page: str, heading: str
) -> None:
    text = (REPO / page).read_text().partition(heading)[2]
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, records(*range(20)))
    for given, here in (
        ("localhost:9092", bootstrap_servers),
        ('"events"', f'"{source}"'),
        ('"events-copy"', f'"{target}"'),
        ("/checkpoints/events-copy", str(tmp_path / "checkpoint")),
    ):
        assert given in program
        program = program.replace(given, here)
    names: dict[str, Any] = {"spark": spark}
    exec(program, names)  # noqa: S102 - our own text
    query = names["query"]
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert values(consume(bootstrap_servers, target, 20)) == sorted(b"V%d" % number for number in range(20))
