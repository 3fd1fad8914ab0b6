"""Kafka under the conformance suites of the connector API, on a real broker: the cases that any source or sink has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.reading import client_of
from kit.waiting import eventually
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import MicroBatchStream
from pyspark_kafka.connector.filters import EqualTo, Filter, GreaterThan, In, IsNull, LessThan, Not
from pyspark_kafka.testing.conformance import SinkContract, SourceContract


class TestKafkaSource(SourceContract):
    """One topic of three partitions, one of which is empty at first."""

    # As in Spark's connector, a partition with waiting records advances by one at least.
    rows_above_limit = 1

    @pytest.fixture(autouse=True)
    def _topic(self, bootstrap_servers: str, make_topic: TopicMaker) -> None:
        self._servers, self._name, self._rows = bootstrap_servers, make_topic(3), 0

    def table(self) -> KafkaTable:
        return KafkaTable()

    def options(self) -> Mapping[str, str]:
        return {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._name,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
        }

    def filters(self) -> Sequence[Filter]:
        return [
            EqualTo(("partition",), 1),
            GreaterThan(("offset",), 3),
            Not(EqualTo(("offset",), 7)),
            In(("topic",), (self._name, "another")),
            LessThan(("timestamp",), datetime(3000, 1, 1, tzinfo=timezone.utc)),
            IsNull(("key",)),
            In(("value",), (b"5", b"13", None)),
        ]

    def filter_options(self) -> Mapping[str, str]:
        return {**self.options(), "pushDownPredicate": "true"}

    def add_rows(self, count: int) -> None:
        numbers = range(self._rows, self._rows + count)
        partitions = 2 if self._rows == 0 else 3
        produce(
            self._servers,
            self._name,
            [Record(None, str(n).encode(), partition=n % partitions, headers=[("n", b"h")]) for n in numbers],
        )
        self._rows += count


def test_start_is_kept_in_the_location_that_an_engine_names(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "latest"}

    def stream(location: Path | None) -> MicroBatchStream:
        scan = KafkaTable().newScanBuilder(options).build()
        return scan.toMicroBatchStream(None if location is None else str(location))

    own = tmp_path / "of-this-source"
    first = stream(own).initialOffset()
    produce(bootstrap_servers, topic, [Record(None, b"later")])
    assert stream(own).initialOffset() == first
    assert stream(None).initialOffset() != first
    assert stream(tmp_path / "of-another").initialOffset() != first


class TestKafkaSourceInOneTask(TestKafkaSource):
    """All partitions in one task, whose batches come in any order of partitions."""

    ordered = False

    def options(self) -> Mapping[str, str]:
        return {**super().options(), "maxPartitionsPerTask": "3"}


class KafkaSinkContract(SinkContract):
    """A sink that writes to one topic of two partitions."""

    @pytest.fixture(autouse=True)
    def _topic(self, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
        self._servers, self._name, self._checkpoint = bootstrap_servers, make_topic(2), tmp_path / "checkpoint"

    def table(self) -> KafkaTable:
        return KafkaTable()

    def schema(self) -> pa.Schema:
        # Columns that have no effect are there as well.
        return pa.schema([("since", pa.month_day_nano_interval()), ("key", pa.binary()), ("value", pa.string())])

    def row(self, number: int) -> Mapping[str, Any]:
        return {"since": (1, 2, 3), "key": str(number % 7).encode(), "value": str(number)}

    def visible(self) -> Sequence[int]:
        # Brokers write the end of a transaction after their response to it.
        ends = {TopicPartition(self._name, number): Latest() for number in range(2)}
        with client_of(self._servers) as client:
            committed = IsolationLevel.READ_COMMITTED
            eventually(lambda: list_offsets(client, ends, committed) == list_offsets(client, ends))
        return [int(record.value or b"") for record in consume_committed(self._servers, self._name)]

    def options(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": self._servers, "topic": self._name}


class TestKafkaAtLeastOnce(KafkaSinkContract):
    exactly_once = False


class TestKafkaExactlyOnce(KafkaSinkContract):
    """The sink identifies itself by the query's id, and a micro-batch by its source offsets: both of the checkpoint."""

    @pytest.fixture(autouse=True)
    def _query(self, _topic: None) -> None:
        (self._checkpoint / "offsets").mkdir(parents=True)
        (self._checkpoint / "metadata").write_text(json.dumps({"id": f"query-of-{self._name}"}))

    def begin_epoch(self, epoch: int) -> None:
        offsets = self._checkpoint / "offsets" / str(epoch)
        if not offsets.exists():
            offsets.write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"source":{{"0":{epoch}}}}}')

    def options(self) -> Mapping[str, str]:
        return {
            **super().options(),
            "deliveryGuarantee": "exactly_once",
            "checkpointLocation": str(self._checkpoint),
        }


@pytest.mark.full("Large batches")
class TestKafkaExactlyOnceSpooled(TestKafkaExactlyOnce):
    """Tasks leave all record batches in files."""

    def options(self) -> Mapping[str, str]:
        return {**super().options(), "spoolThresholdBytes": "1"}
