"""Kafka to Kafka exactly once: what becomes visible over stops, kills and restarts, and what the group says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from kafka import KafkaAdminClient

from kit.independent_client import Record, consume_committed, produce
from kit.waiting import eventually
from pyspark_kafka import continuous

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kit.fixtures.broker import TopicMaker
    from pyspark_kafka.continuous.query.handle import ContinuousQuery


def even(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the even numbers."""
    for batch in batches:
        numbers = pc.cast(pc.cast(batch.column("value"), pa.string()), pa.int64())
        kept = pc.equal(pc.bit_wise_and(numbers, 1), 0)
        yield pa.RecordBatch.from_arrays([batch.column("value").filter(kept)], ["value"])


def start(
    spark: SparkSession, servers: str, source: str, target: str, checkpoint: Path, **options: str
) -> ContinuousQuery:
    return (
        continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load()
        .map_in_arrow(even, "value binary")
        .write_stream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
        .option("deliveryGuarantee", "exactly_once").options(**options)
        .option("checkpointLocation", str(checkpoint)).trigger(continuous="100 milliseconds").start()
    )  # fmt: skip


def numbers(*given: int) -> list[Record]:
    return [Record(None, b"%d" % number) for number in given]


def visible(servers: str, topic: str) -> list[int]:
    return sorted(int(record.value or b"") for record in consume_committed(servers, topic))


def positions(servers: str, group: str) -> dict[tuple[str, int], int]:
    """Return what Kafka's own tools see of a group."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        found: Any = admin.list_group_offsets([group])
        return {(tp.topic, tp.partition): each.offset for tp, each in found[group].items()}
    finally:
        admin.close()


def test_records_are_visible_once_and_the_group_shows_where_the_query_is(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbers(*range(50)))
    query = start(spark, bootstrap_servers, source, target, tmp_path)
    query.processAllAvailable()
    assert visible(bootstrap_servers, target) == list(range(0, 50, 2))
    group = f"pyspark-kafka-{query.id}"
    assert sum(positions(bootstrap_servers, group).values()) == 50
    # Rows that are filtered out move the group as well.
    produce(bootstrap_servers, source, numbers(51, 53))
    eventually(lambda: sum(positions(bootstrap_servers, group).values()) == 52)
    query.stop()
    assert query.exception() is None
    produce(bootstrap_servers, source, numbers(*range(60, 70)))
    # Another number of lanes.
    again = start(spark, bootstrap_servers, source, target, tmp_path, tasks="1")
    again.processAllAvailable()
    again.stop()
    assert visible(bootstrap_servers, target) == [*range(0, 50, 2), *range(60, 70, 2)]
    assert sum(positions(bootstrap_servers, group).values()) == 62
