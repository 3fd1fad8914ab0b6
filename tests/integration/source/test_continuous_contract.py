"""Kafka keeps the contract of continuous sources."""
# ruff: noqa: N802, N803 - Spark's names

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

import pytest

from kit.independent_client import Record, produce
from pyspark_kafka.connector import Scan, ScanBuilder, SupportsRead, TableCapability
from pyspark_kafka.options import parse_stream_read_options
from pyspark_kafka.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka.source.executor.columns import source_schema
from pyspark_kafka.testing.conformance import ContinuousSourceContract

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from kit.fixtures.broker import TopicMaker

PARTITIONS = 2


class ContinuousTable(SupportsRead, ScanBuilder, Scan):
    """A topic as a table that is read continuously."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = parse_stream_read_options(options)

    def name(self) -> str:
        return "topic"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        assert not options
        return self.readSchema()

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.CONTINUOUS_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        assert not options
        return self

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return source_schema(include_headers=False)

    def toContinuousStream(self, checkpointLocation: str | None) -> KafkaContinuousStream:
        return KafkaContinuousStream(self._options, self.readSchema(), location=checkpointLocation)


class TestKafkaContinuousSource(ContinuousSourceContract):
    """A topic of two partitions, whose records are spread over both."""

    # One process for each step of the engine, and each row is an epoch of its own.
    rows_at_first = 3
    numbers: ClassVar = itertools.count()

    @pytest.fixture(autouse=True)
    def _topic(self, bootstrap_servers: str, make_topic: TopicMaker) -> None:
        self._servers, self._topic_name = bootstrap_servers, make_topic(PARTITIONS)

    def table(self) -> SupportsRead:
        return ContinuousTable(
            {
                "kafka.bootstrap.servers": self._servers,
                "subscribe": self._topic_name,
                "startingOffsets": "earliest",
                # Many small Arrow batches, so that there are epochs between them.
                "kafka.fetch.max.bytes": "1",
            }
        )

    def add_rows(self, count: int) -> None:
        records = [Record(None, b"%d" % next(self.numbers), number % PARTITIONS) for number in range(count)]
        # Each record is a record batch.
        produce(self._servers, self._topic_name, records, batch_size=1)
