"""Kafka keeps the contract of continuous sources."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import ClassVar

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.testing.conformance import ContinuousSourceContract

PARTITIONS = 2


class TestKafkaContinuousSource(ContinuousSourceContract):
    """A topic of two partitions, whose records are spread over both."""

    # One process for each step of the engine, and each row is an epoch of its own.
    rows_at_first = 3
    numbers: ClassVar = itertools.count()

    @pytest.fixture(autouse=True)
    def _topic(self, bootstrap_servers: str, make_topic: TopicMaker) -> None:
        self._servers, self._topic_name = bootstrap_servers, make_topic(PARTITIONS)

    def table(self) -> KafkaTable:
        return KafkaTable()

    def options(self) -> Mapping[str, str]:
        return {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic_name,
            "startingOffsets": "earliest",
            # Many small Arrow batches, so that there are epochs between them.
            "kafka.fetch.max.bytes": "1",
        }

    def add_rows(self, count: int) -> None:
        records = [Record(None, b"%d" % next(self.numbers), number % PARTITIONS) for number in range(count)]
        # Each record is a record batch.
        produce(self._servers, self._topic_name, records, batch_size=1)
