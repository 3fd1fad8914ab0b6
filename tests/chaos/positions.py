"""How far the queries are, by their checkpoints, and what batch reads may count on."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from chaos.cluster import Cluster
from chaos.world import MAIN, DriverProcess, Query
from kit.checkpoint_files import batches_of, end_of_batch

_EVERY_S = 3.0
_READ_AT_ONCE = 500
_ENDS_WITHIN_S = 60.0


class Positions:
    """Looks at checkpoints and at the ends of the logs; tells batch reads again and again what they may read."""

    def __init__(self, cluster: Cluster, driver: DriverProcess, queries: Sequence[Query]) -> None:
        self._cluster = cluster
        self._driver = driver
        self._queries = queries
        self._kept_from: dict[int, int] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Tell no more."""
        self._stopped.set()
        self._thread.join()

    def ends(self, topic: str) -> dict[int, int]:
        """Return the high watermarks of a topic; asks again while brokers fail."""
        end = time.monotonic() + _ENDS_WITHIN_S
        while True:
            try:
                return self._ask_ends(topic)
            except KafkaError:
                if time.monotonic() > end or self._stopped.is_set():
                    raise

    def _ask_ends(self, topic: str) -> dict[int, int]:
        consumer = KafkaConsumer(bootstrap_servers=self._cluster.direct, request_timeout_ms=10_000)
        try:
            partitions = [TopicPartition(topic, key) for key in consumer.partitions_for_topic(topic) or ()]
            return {each.partition: end for each, end in consumer.end_offsets(partitions).items()}
        finally:
            consumer.close()

    def read_by_all(self, topic: str) -> dict[int, int]:
        """Return where the slowest query that reads a topic is, by committed micro-batches."""
        found: dict[int, int] | None = None
        for query in self._queries:
            if topic in query.reads:
                done = batches_of(query.checkpoint, "commits")
                end = end_of_batch(query.checkpoint, done[-1]).get(topic, {}) if done else {}
                known = end if found is None else found
                found = {key: min(known[key], end[key]) for key in known.keys() & end.keys()}
        return found or {}

    def keep_from(self, offsets: Mapping[int, int]) -> int:
        """Have batch reads begin at these offsets or later; returns the number of the next such call."""
        with self._lock:
            self._kept_from.update(offsets)
            return self._number + 1

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            try:
                ends = self.ends(MAIN)
            except KafkaError:
                continue
            with self._lock:
                self._number += 1
                ranges = {
                    key: (max(self._kept_from.get(key, 0), end - _READ_AT_ONCE, 0), end) for key, end in ends.items()
                }
                self._driver.set_readable(ranges, self._number)
