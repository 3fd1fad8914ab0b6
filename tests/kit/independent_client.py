"""Producing and consuming with an independent client, kafka-python's own, to test ours against."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kit.waiting import eventually


@dataclass(frozen=True)
class Record:
    """One record to produce, or that was consumed."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    offset: int = -1


def produce(bootstrap_servers: str, topic: str, records: list[Record], **config: Any) -> None:
    """Produce and wait for every acknowledgement; in order within a partition.

    However long `linger_ms` is, nothing is waited for once the last record is handed over.
    """
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", **config)
    try:
        sent = [producer.send(topic, r.value, r.key, r.headers or [], r.partition, r.timestamp_ms) for r in records]
        producer.flush()
        for future in sent:
            future.get(timeout=120)
    finally:
        producer.close()


def consume(bootstrap_servers: str, topic: str, count: int) -> list[Record]:
    """Read a topic from its beginning to its end and check that it holds `count` records."""
    found = consume_all(bootstrap_servers, topic)
    if len(found) != count:
        raise AssertionError(f"topic {topic} holds {len(found)} records, expected {count}")
    return found


def consume_all(bootstrap_servers: str, topic: str) -> list[Record]:
    """Read what a topic holds now, committed or not, from its beginning to its end."""
    return _read(bootstrap_servers, topic, "read_uncommitted")


def consume_committed(bootstrap_servers: str, topic: str) -> list[Record]:
    """Read what readers of committed records see of a topic now, from its beginning to its end."""
    return _read(bootstrap_servers, topic, "read_committed")


def await_committed(bootstrap_servers: str, topic: str, values: list[bytes]) -> None:
    """Check that readers of committed records see these values, in any order, each as often as it is named.

    It waits: brokers write the markers of a transaction's end after their response to it.
    """
    expected = sorted(values)
    eventually(lambda: sorted(r.value or b"" for r in consume_committed(bootstrap_servers, topic)) == expected)


def _read(bootstrap_servers: str, topic: str, isolation_level: str) -> list[Record]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level=isolation_level,
    )
    try:
        partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(partitions)
        # With read_committed the last stable offsets.
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning(*partitions)
        found: list[Record] = []
        while any(consumer.position(p) < ends[p] for p in partitions):
            for batch in consumer.poll(timeout_ms=1000).values():
                found += [Record(r.key, r.value, r.partition, r.timestamp, list(r.headers), r.offset) for r in batch]
        return found
    finally:
        consumer.close()


def consumer_of(bootstrap_servers: str | list[str], isolation_level: str = "read_committed") -> Any:
    """Return a consumer that has no partitions yet, and no group."""
    return KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=5000,
        fetch_max_wait_ms=100,
    )


def ends_of(bootstrap_servers: str | list[str], topic: str) -> dict[TopicPartition, int]:
    """Return the end of each partition of a topic, open transactions included."""
    # With read_committed they would be the last stable offsets.
    consumer = consumer_of(bootstrap_servers, "read_uncommitted")
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return dict(consumer.end_offsets(partitions))
    finally:
        consumer.close()


def read_to_end(bootstrap_servers: str | list[str], topic: str, patience_s: float = 300.0) -> Iterator[Any]:
    """Read what readers of committed records see of a topic, up to the last record that anyone has written.

    Yields:
        Records of kafka-python, in the order of each partition.

    Raises:
        TimeoutError: an open transaction keeps readers from the end.
    """
    ends = ends_of(bootstrap_servers, topic)
    consumer = consumer_of(bootstrap_servers)
    try:
        consumer.assign([*ends])
        consumer.seek_to_beginning(*ends)
        deadline = time.monotonic() + patience_s
        while behind := [each for each, end in ends.items() if consumer.position(each) < end]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"open transactions keep committed readers from the end of {behind}")
            for records in consumer.poll(timeout_ms=200).values():
                yield from records
    finally:
        consumer.close()


def commit_positions(bootstrap_servers: str, group_id: str, positions: dict[tuple[str, int], int]) -> None:
    """Commit positions of a consumer group without members, by topic and partition."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=group_id, enable_auto_commit=False)
    try:
        partitions = {TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in positions.items()}
        consumer.assign(list(partitions))
        consumer.commit(partitions)
    finally:
        consumer.close(autocommit=False)
