"""Reading many ranges from a real broker: 500 partitions over one connection, splits that fetch little twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import options_for, read
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import DataLossError
from pyspark_kafka.records import iter_decode

KIB = 1 << 10
PARTITIONS = 500
EACH = 20


@pytest.fixture(scope="module")
def wide_topic(bootstrap_servers: str, make_topic: TopicMaker) -> str:
    """500 partitions; record n of partition p is `p:n` and 100 bytes."""
    topic = make_topic(PARTITIONS)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=200, batch_size=16 * KIB)
    try:
        for number in range(EACH):
            for partition in range(PARTITIONS):
                producer.send(topic, b"%d:%d".ljust(100) % (partition, number), partition=partition)
        producer.flush()
    finally:
        producer.close()
    return topic


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The addresses of the connections that are opened."""
    found: list[str] = []

    def note(event: WireEvent) -> None:
        if event.step is WireStep.OPENED:
            found.append(event.broker)

    with trace.listening(note):
        yield found


def wide_ranges(topic: str, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), start, end) for number in range(PARTITIONS)]


def rows_of(bootstrap_servers: str, ranges: list[OffsetRange], **fetch: Any) -> list[dict[str, Any]]:
    """Read ranges in one task, as an executor does."""
    # A name of its own, so that the pool has no client for it.
    connection = options_for(bootstrap_servers, client_id=f"many-{ranges[0].topic_partition.topic}")
    return list(read(connection, *ranges, columns=("value", "topic", "partition", "offset"), **fetch))


@pytest.mark.parametrize("fetch", [{}, {"max_bytes_per_fetch": 64 * KIB}], ids=["default", "small answers"])
def test_500_partitions_are_read_in_one_task_over_one_connection(
    bootstrap_servers: str, wide_topic: str, opened: list[str], fetch: dict[str, int]
) -> None:
    rows = rows_of(bootstrap_servers, wide_ranges(wide_topic, 3, EACH), **fetch)
    assert len(rows) == PARTITIONS * (EACH - 3)
    by_partition: dict[int, list[int]] = {}
    for row in rows:
        assert row["value"].split() == [b"%d:%d" % (row["partition"], row["offset"])]
        assert row["topic"] == wide_topic
        by_partition.setdefault(row["partition"], []).append(row["offset"])
    assert by_partition == {partition: [*range(3, EACH)] for partition in range(PARTITIONS)}
    # One to find the cluster, one to read; the second run has both already.
    assert len(opened) <= 2


def test_one_lost_range_among_many_is_named(bootstrap_servers: str, wide_topic: str) -> None:
    ranges = wide_ranges(wide_topic, 0, EACH)[:50]
    ranges[17] = OffsetRange(ranges[17].topic_partition, EACH + 5, EACH + 9)
    with pytest.raises(DataLossError, match=rf"Offsets \[25, 29\) of {wide_topic}-17 \[25, 29\) cannot be read"):
        rows_of(bootstrap_servers, ranges)


def test_ranges_of_very_different_sizes_are_read_together(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(3)
    counts = (3_000, 1, 50)
    for partition, count in enumerate(counts):
        produce(
            bootstrap_servers,
            topic,
            [Record(None, b"%d" % number + b"." * KIB, partition) for number in range(count)],
            batch_size=128 * KIB,
            linger_ms=50,
        )
    ranges = [OffsetRange(TopicPartition(topic, partition), 0, count) for partition, count in enumerate(counts)]
    rows = rows_of(bootstrap_servers, ranges, max_bytes_per_fetch=512 * KIB)
    for partition, count in enumerate(counts):
        assert [row["offset"] for row in rows if row["partition"] == partition] == [*range(count)]


@pytest.mark.parametrize(("batch_size", "value_size", "splits"), [(16 * KIB, 1_000, 32), (64 * KIB, 100, 16)])
def test_splits_of_a_partition_fetch_it_once_and_a_batch_each(
    bootstrap_servers: str, make_topic: TopicMaker, batch_size: int, value_size: int, splits: int
) -> None:
    topic, count = make_topic(), 4 * KIB * KIB // (value_size + 10)
    produce(
        bootstrap_servers,
        topic,
        [Record(None, b"." * value_size, 0) for _ in range(count)],
        batch_size=batch_size,
        linger_ms=50,
    )
    partition = TopicPartition(topic, 0)
    bounds = [count * number // splits for number in range(splits + 1)]
    with KafkaClient(options_for(bootstrap_servers)) as client:
        whole, largest_batch = fetched_bytes(client, OffsetRange(partition, 0, count))
    # A process that has not read the topic before, as the first tasks of an executor.
    with KafkaClient(options_for(bootstrap_servers)) as client:
        received = sum(
            fetched_bytes(client, OffsetRange(partition, start, end))[0] for start, end in itertools.pairwise(bounds)
        )
    print(f"{splits} splits: {received / whole:.2f} of {whole} bytes, batches to {largest_batch}")  # noqa: T201 - figure
    assert received <= 1.2 * whole + splits * largest_batch


def fetched_bytes(client: KafkaClient, offset_range: OffsetRange) -> tuple[int, int]:
    """Read a range; return the bytes of records received, thrown away ones included, and the largest batch."""
    received = largest = position = 0
    with Fetcher(client, [offset_range], FetchOptions()) as fetcher:
        for topic_partition, fetched in fetcher:
            received += len(fetched.records)
            at = 0
            while at + 12 <= len(fetched.records):
                size = 12 + int.from_bytes(fetched.records[at + 8 : at + 12], "big")
                largest, at = max(largest, size), at + size
            for decoded in iter_decode(
                fetched.records, start_offset=fetched.start_offset, end_offset=offset_range.end_offset, columns=[]
            ):
                position = decoded.next_offset
            fetcher.confirm(topic_partition, position)
    assert position == offset_range.end_offset
    return received, largest


def test_partitions_of_one_answer_interleave_and_keep_their_order(bootstrap_servers: str, wide_topic: str) -> None:
    ranges = wide_ranges(wide_topic, 0, EACH)
    seen: dict[TopicPartition, int] = {}
    with (
        KafkaClient(options_for(bootstrap_servers)) as client,
        # Room for one batch: every partition is first once.
        Fetcher(client, ranges[:100], FetchOptions(max_bytes_per_fetch=1)) as fetcher,
    ):
        for topic_partition, fetched in fetcher:
            assert fetched.start_offset == seen.get(topic_partition, 0)
            seen[topic_partition] = fetched.scanned_offset
    assert set(seen.values()) == {EACH}
    assert len(seen) == 100
