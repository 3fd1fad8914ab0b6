"""When a reader of committed records has seen the records of a topic, by a consumer that reads all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from chaos.cluster import Cluster
from kit.independent_client import consumer_of

_PAUSE_S = 0.5


class VisibleTimes:
    """Reads topics from their beginning in a thread, on brokers' own addresses, until the block ends.

    Attributes:
        times: seconds of the epoch, by topic, partition and offset.
    """

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        self.times: dict[tuple[str, int, int], float] = {}
        self._cluster, self._topics = cluster, topics
        self._positions: dict[TopicPartition, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="visible", daemon=True)

    def __enter__(self) -> VisibleTimes:  # noqa: PYI034 - typing.Self needs Python 3.11
        if self._topics:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            consumer: Any = None
            try:
                consumer = consumer_of(self._cluster.direct)
                self._read(consumer)
            except KafkaError:
                # Brokers fail; the next consumer continues.
                self._stopped.wait(_PAUSE_S)
            finally:
                if consumer is not None:
                    consumer.close()

    def _read(self, consumer: Any) -> None:
        partitions = [
            TopicPartition(topic, number)
            for topic in self._topics
            for number in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(partitions)
        for each in partitions:
            consumer.seek(each, self._positions.get(each, 0))
        while not self._stopped.is_set():
            for where, records in consumer.poll(timeout_ms=200).items():
                now = time.time()
                for record in records:
                    self.times[where.topic, where.partition, record.offset] = now
                self._positions[where] = records[-1].offset + 1
