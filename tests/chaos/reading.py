"""Reads the outputs back, with kafka-python's consumer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_S = 300.0


def read_all(servers: list[str], topic: str) -> Iterator[Any]:
    """Read the records of a topic that readers of committed records see, from its beginning to its end now.

    Raises:
        TimeoutError: an open transaction keeps readers from the end.
    """
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=5000,
        fetch_max_wait_ms=100,
    )
    # With read_committed the consumer's own ends are the last stable offsets.
    dirty: Any = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(topic, key) for key in consumer.partitions_for_topic(topic) or ()]
        ends = dirty.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        deadline = time.monotonic() + _LONGEST_S
        while behind := [each for each in partitions if consumer.position(each) < ends[each]]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the ends of {behind} cannot be reached")
            for records in consumer.poll(timeout_ms=500).values():
                yield from records
    finally:
        consumer.close()
        dirty.close()
