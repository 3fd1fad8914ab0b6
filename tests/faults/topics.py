"""Writing the source topic and reading what came of it, with kafka-python's own clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaProducer

from kit.independent_client import consumer_of, ends_of, read_to_end

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


def read_values(servers: str, topic: str) -> dict[int, list[bytes]]:
    """Read the values of each partition of a topic, as a reader of committed records."""
    found: dict[int, list[bytes]] = {}
    for record in read_to_end(servers, topic, _PATIENCE_S):
        found.setdefault(record.partition, []).append(record.value)
    return found


def read_markers(servers: str, topic: str) -> list[tuple[int, int]]:
    """Return batch id and number of records of every committed marker; there is one sink in the topic.

    Of a decision on the transactions of tasks there are two: the second says that it was carried out, and counts.
    """
    markers = [json.loads(value) for values in read_values(servers, topic).values() for value in values]
    done = [marker for marker in markers if marker.get("decision", {"complete": True})["complete"]]
    return [(marker["batch_id"], marker["records"]) for marker in done]


@contextmanager
def watching(servers: str, topic: str) -> Iterator[dict[int, list[bytes]]]:
    """Read along from another thread; the values seen so far are complete when the block ends."""
    seen: dict[int, list[bytes]] = {}
    done = threading.Event()
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            partitions = list(ends_of(servers, topic))
            consumer = consumer_of(servers)
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
