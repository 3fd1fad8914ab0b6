"""The write of a continuous query to Kafka: which guarantee it has, and what is refused before anything is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.continuous import FilesStream
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.table.write import KafkaWrite
from pyspark_kafka.connector import ContinuousStream, LogicalWriteInfo, SupportsSourceOffsets
from pyspark_kafka.errors import CapabilityError, ConnectorError, OptionError

_SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9"}
_SCHEMA = pa.schema([("value", pa.binary())])


def kafka_stream() -> ContinuousStream:
    return KafkaContinuousStream.from_options({**_SERVERS, "subscribe": "a"})


def write(**options: str) -> KafkaWrite:
    given = {**_SERVERS, "topic": "b", "checkpointLocation": "/tmp/nowhere", **options}  # noqa: S108 - not written
    return KafkaWrite(LogicalWriteInfo(given, _SCHEMA, "query"))


def test_write_is_at_least_once_by_default_and_takes_any_source() -> None:
    for stream in (kafka_stream(), FilesStream(".")):
        assert not isinstance(write().toContinuous(stream, 1_000), SupportsSourceOffsets)


def test_write_that_is_exactly_once_keeps_the_positions_of_kafka() -> None:
    made = write(deliveryGuarantee="exactly_once").toContinuous(kafka_stream(), 20_000)
    assert isinstance(made, SupportsSourceOffsets)
    assert made.idleEpochSeconds() is not None
    limit = made.commitLimit()
    assert limit is not None
    # A transaction of a minute has room for three epochs.
    assert (limit.per_second, limit.longest_s) == (5_000, 20.0)


def test_limit_of_markers_is_that_of_the_option() -> None:
    options = {"maxTransactionMarkersPerSecond": "70", "kafka.transaction.timeout.ms": "90000"}
    made = write(deliveryGuarantee="exactly_once", **options).toContinuous(kafka_stream(), 20_000)
    assert isinstance(made, SupportsSourceOffsets)
    limit = made.commitLimit()
    assert limit is not None
    assert (limit.per_second, limit.longest_s, limit.option) == (70, 30.0, "maxTransactionMarkersPerSecond")


@pytest.mark.parametrize(
    ("options", "source", "epoch_ms", "kind", "text"),
    [
        ({}, FilesStream("."), 100, CapabilityError, "only what it reads from Kafka"),
        ({}, None, 20_001, OptionError, "An epoch of 20001 ms is too long for option 'kafka.transaction.timeout.ms'"),
        ({"kafka.transaction.timeout.ms": "300"}, None, 101, OptionError, "300 ms: a transaction lasts for an epoch"),
        ({"identityHeaders": "true"}, None, 100, OptionError, "'identityHeaders' does not go with exactly_once"),
        ({"kafka.acks": "1"}, None, 100, OptionError, "kafka.acks"),
    ],
)
def test_write_that_cannot_be_exactly_once_is_refused(
    options: dict[str, str], source: Any, epoch_ms: int, kind: type[ConnectorError], text: str
) -> None:
    with pytest.raises(kind, match=text) as raised:
        write(deliveryGuarantee="exactly_once", **options).toContinuous(source or kafka_stream(), epoch_ms)
    assert raised.value.hint


def test_group_has_no_effect_in_other_writes_and_a_note_says_so() -> None:
    made = write(offsetsGroupId="mine")
    made.toContinuous(kafka_stream(), 100)
    assert any("offsetsGroupId" in note for note in made.notes())


def test_group_of_the_source_is_refused_where_transactions_keep_the_positions() -> None:
    stream = KafkaContinuousStream.from_options({**_SERVERS, "subscribe": "a", "commitOffsetsToGroup": "lag"})
    assert not isinstance(write().toContinuous(stream, 100), SupportsSourceOffsets)
    with pytest.raises(OptionError, match=r"'commitOffsetsToGroup' has no place in an exactly-once") as raised:
        write(deliveryGuarantee="exactly_once").toContinuous(stream, 100)
    assert "'offsetsGroupId'" in raised.value.hint
