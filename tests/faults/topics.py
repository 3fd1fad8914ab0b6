"""Writing the source topic and reading what came of it, with kafka-python's own clients."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

Pairs = list[tuple[bytes, bytes]]

_PATIENCE_S = 30.0


def send(servers: str, topic: str, records: dict[int, Pairs]) -> None:
    """Write records to the partitions they belong to, in order."""
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    try:
        futures = [
            producer.send(topic, value, key, partition=partition)
            for partition, pairs in records.items()
            for key, value in pairs
        ]
        for future in futures:
            future.get(timeout=_PATIENCE_S)
    finally:
        producer.close()


def read_committed(servers: str, topic: str, patience_s: float = _PATIENCE_S) -> dict[int, Pairs]:
    """Read a topic as a reader of committed records does, up to the last record that anyone has written.

    Raises:
        TimeoutError: a transaction stays open, so that nobody can read that far.
    """
    ends = _ends(servers, topic)
    consumer = _consumer(servers)
    found: dict[int, Pairs] = {partition.partition: [] for partition in ends}
    try:
        consumer.assign(list(ends))
        consumer.seek_to_beginning(*ends)
        deadline = time.monotonic() + patience_s
        while behind := [each for each, end in ends.items() if consumer.position(each) < end]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"open transactions keep committed readers from the end of {behind}")
            for partition, records in consumer.poll(timeout_ms=200).items():
                found[partition.partition] += [(record.key, record.value) for record in records]
    finally:
        consumer.close()
    return found


def read_markers(servers: str, topic: str) -> list[tuple[int, int]]:
    """Return batch id and number of records of every committed marker; there is one sink in the topic."""
    partitions = read_committed(servers, topic)
    markers = [json.loads(value) for pairs in partitions.values() for _, value in pairs]
    return [(marker["batch_id"], marker["records"]) for marker in markers]


@contextmanager
def watching(servers: str, topic: str) -> Iterator[dict[int, list[bytes]]]:
    """Read along from another thread; the values seen so far are complete when the block ends."""
    seen: dict[int, list[bytes]] = {}
    done = threading.Event()
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            partitions = list(_ends(servers, topic))
            consumer = _consumer(servers)
            try:
                consumer.assign(partitions)
                consumer.seek_to_beginning(*partitions)
                while not done.is_set():
                    for partition, records in consumer.poll(timeout_ms=100).items():
                        seen.setdefault(partition.partition, []).extend(record.value for record in records)
            finally:
                consumer.close()
        except BaseException as error:  # noqa: BLE001 - given to the thread that waits
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]


def _consumer(servers: str, isolation_level: str = "read_committed") -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def _ends(servers: str, topic: str) -> dict[TopicPartition, int]:
    consumer = _consumer(servers, "read_uncommitted")
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return dict(consumer.end_offsets(partitions))
    finally:
        consumer.close()
