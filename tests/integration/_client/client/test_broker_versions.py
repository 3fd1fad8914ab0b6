"""One tour of everything that readers and writers ask of brokers, against each supported line of Kafka.

Brokers of older versions than the two real ones are played by the real ones: what a broker offers is cut down after
the negotiation, so that requests and answers of older versions go over the wire.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaProducer

from kit.administration import create_topic, delete_records, delete_topics
from kit.reading import client_of, read_range
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka._client.client.net import handshake
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.api_versions import MAX_PRODUCE_VERSION, ApiVersions
from pyspark_kafka._client.client.wire.messages import (
    CreateTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from pyspark_kafka._client.options import FetchOptions, ProducerOptions
from pyspark_kafka.errors import BrokerError, DeliveryError
from pyspark_kafka.records import HEADERS_TYPE, RecordColumns, encode_rows
from pyspark_kafka.testing import EmbeddedKafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# What brokers of the oldest supported version offer of the requests that this package sends.
KAFKA_2_1 = {
    ProduceRequest: 7,
    FetchRequest: 10,
    ListOffsetsRequest: 4,
    MetadataRequest: 7,
    CreateTopicsRequest: 3,
    InitProducerIdRequest: 1,
}


def connect(kafka: EmbeddedKafka) -> KafkaClient:
    return client_of(kafka)


def cut_down(monkeypatch: pytest.MonkeyPatch, newest: dict[Any, int]) -> set[tuple[str, int]]:
    """Let brokers seem to offer nothing newer; return the set that fills with the requests sent and their versions."""
    negotiate, send = handshake.negotiate_versions, Connection.send_request
    sent: set[tuple[str, int]] = set()

    def negotiate_less(connection: Connection, deadline: Deadline) -> ApiVersions:
        versions = negotiate(connection, deadline)
        for request, version in newest.items():
            lowest, highest = versions.offered[request.API_KEY]
            versions.offered[request.API_KEY] = (lowest, min(highest, version))
        return versions

    def note(self: Connection, request: Any, **named: Any) -> int:
        version = send(self, request, **named)
        sent.add((request.name, version))
        return version

    monkeypatch.setattr(handshake, "negotiate_versions", negotiate_less)
    monkeypatch.setattr(Connection, "send_request", note)
    return sent


def versions_of(sent: set[tuple[str, int]], request: Any) -> set[int]:
    return {version for name, version in sent if name == request.name}


def produce_every_codec(
    client: KafkaClient, partition: TopicPartition, codecs: tuple[str, ...] = CODECS
) -> list[dict[str, Any]]:
    """Write a batch of three records with each codec, and return the rows that a reader must see."""
    rows: list[dict[str, Any]] = [
        {"key": b"k", "value": b"v" * 500, "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]},
        {"key": None, "value": b"", "headers": None},
        {"key": b"", "value": None, "headers": None},
    ]
    expected: list[dict[str, Any]] = []
    for number, codec in enumerate(codecs):
        columns = RecordColumns(
            pa.array([row["key"] for row in rows], pa.binary()),
            pa.array([row["value"] for row in rows], pa.binary()),
            headers=pa.array([row["headers"] for row in rows], HEADERS_TYPE),
            timestamp_ms=1_000 * (number + 1),
        )
        with Producer(client, ProducerOptions(compression=codec)) as producer:
            data, taken = encode_rows(columns, None, 0, 3, max_batch_bytes=1 << 20, compression=codec)
            producer.send_batch(partition, data, taken)
            producer.flush()
        expected += [{"offset": 3 * number + i} | row for i, row in enumerate(rows)]
    return expected


def read(client: KafkaClient, partition: TopicPartition, start: int, end: int, isolation: IsolationLevel) -> Any:
    fetch = FetchOptions(isolation_level=isolation, poll_timeout_ms=20_000)
    found = read_range(client, OffsetRange(partition, start, end), fetch, columns=["offset", "key", "value", "headers"])
    return [row for rows in found for row in rows]


def write_transactions(kafka: EmbeddedKafka, topic: str) -> None:
    """Write a committed transaction and an aborted one with kafka-python: `yes`, its marker, `no`, its marker."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=f"tx-{topic}")
    try:
        producer.init_transactions()
        for value, end in ((b"yes", producer.commit_transaction), (b"no", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, value, partition=0).get(timeout=PATIENCE_S)
            end()
    finally:
        producer.close()


@dataclass(frozen=True)
class Written:
    """Every version of a broker must return the same."""

    topic: str
    codecs: list[dict[str, Any]]

    @property
    def transactional(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    @property
    def compressed(self) -> TopicPartition:
        return TopicPartition(self.topic, 1)


def write(kafka: EmbeddedKafka, client: KafkaClient) -> Written:
    topic = f"tour-{uuid.uuid4().hex[:8]}"
    create_topic(client, topic, partitions=2)
    written = Written(topic, produce_every_codec(client, TopicPartition(topic, 1)))
    write_transactions(kafka, topic)
    # Reading waits for the last marker, which is written after the producer has its answer.
    read(client, written.transactional, 0, 4, IsolationLevel.READ_COMMITTED)
    return written


def check_metadata(client: KafkaClient, written: Written) -> None:
    topics = client.fetch_metadata([written.topic, "not-there"]).topics
    described = topics[written.topic]
    assert described.error is None
    assert [found.topic_partition for found in described.partitions] == [written.transactional, written.compressed]
    missing = topics["not-there"].error
    assert missing is not None
    assert missing.condition == "UNKNOWN_TOPIC"


def check_offsets(client: KafkaClient, written: Written) -> None:
    first, second = written.transactional, written.compressed
    assert list_offsets(client, {first: Earliest(), second: Earliest()}) == {first: 0, second: 0}
    for level in IsolationLevel:
        assert list_offsets(client, {first: Latest(), second: Latest()}, level) == {first: 4, second: 15}
    assert list_offsets(client, {second: AtTimestamp(3_000)}) == {second: 6}
    assert list_offsets(client, {second: AtTimestamp(1_000_000)}) == {}


def check_reads(client: KafkaClient, written: Written, end: int = 15) -> None:
    expected, partition = written.codecs, written.compressed
    assert read(client, partition, 0, end, IsolationLevel.READ_UNCOMMITTED) == expected[:end]
    assert read(client, partition, 4, 10, IsolationLevel.READ_COMMITTED) == expected[4:10]
    seen = [[row["value"] for row in read(client, written.transactional, 0, 4, level)] for level in IsolationLevel]
    assert dict(zip(IsolationLevel, seen, strict=True)) == {
        IsolationLevel.READ_UNCOMMITTED: [b"yes", b"no"],
        IsolationLevel.READ_COMMITTED: [b"yes"],
    }


def check_refusals(client: KafkaClient, written: Written) -> None:
    """Trim the log and remove the topic, and see the error of a reader."""
    partition = written.compressed
    delete_records(client, {partition: 6})
    with pytest.raises(OffsetOutOfRangeError) as out_of_range:
        read(client, partition, 0, 15, IsolationLevel.READ_UNCOMMITTED)
    assert (out_of_range.value.log_start_offset, out_of_range.value.log_end_offset) == (6, 15)
    delete_topics(client, [written.topic])
    with pytest.raises(BrokerError, match=rf"\[UNKNOWN_TOPIC\] Topic '{written.topic}' does not exist"):
        list_offsets(client, {partition: Latest()})


def tour(kafka: EmbeddedKafka, client: KafkaClient) -> None:
    """Do once what sources and sinks do, and check what comes of it."""
    written = write(kafka, client)
    check_metadata(client, written)
    check_offsets(client, written)
    check_reads(client, written)
    check_refusals(client, written)


def test_newest_kafka_is_toured(kafka: EmbeddedKafka) -> None:
    assert kafka.version == "4.3.0"
    with connect(kafka) as client:
        tour(kafka, client)


def test_kafka_before_4_is_toured(older_kafka: EmbeddedKafka) -> None:
    with connect(older_kafka) as client:
        tour(older_kafka, client)


def test_broker_that_offers_what_kafka_2_1_did_is_toured(
    older_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = cut_down(monkeypatch, KAFKA_2_1)
    with connect(older_kafka) as client:
        tour(older_kafka, client)
    for request, version in KAFKA_2_1.items():
        assert versions_of(sent, request) == {version}


@pytest.fixture(scope="module")
def written(kafka: EmbeddedKafka) -> Written:
    with connect(kafka) as client:
        return write(kafka, client)


@pytest.mark.parametrize("version", range(4, 18))
def test_every_fetch_version_reads_from_kafka_4(
    kafka: EmbeddedKafka, written: Written, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    sent = cut_down(monkeypatch, {FetchRequest: version})
    with connect(kafka) as client:
        check_reads(client, written)
    assert versions_of(sent, FetchRequest) == {version}


def test_topic_of_zstd_is_refused_by_name_where_fetches_are_older_than_it(
    older_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    # KIP-110; brokers from 4.0 on hand it out all the same.
    older_kafka.create_topic("zstd", 1, {"compression.type": "zstd"})
    partition = TopicPartition("zstd", 0)
    with connect(older_kafka) as client:
        produce_every_codec(client, partition)
    cut_down(monkeypatch, {FetchRequest: 9})
    with connect(older_kafka) as client, pytest.raises(BrokerError, match=r"UNSUPPORTED_COMPRESSION_TYPE.* zstd-0 "):
        read(client, partition, 0, 15, IsolationLevel.READ_UNCOMMITTED)


@pytest.mark.parametrize("version", range(1, 12))
def test_every_list_offsets_version_finds_offsets_in_kafka_4(
    kafka: EmbeddedKafka, written: Written, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    sent = cut_down(monkeypatch, {ListOffsetsRequest: version})
    with connect(kafka) as client:
        check_offsets(client, written)
    assert versions_of(sent, ListOffsetsRequest) == {version}


@pytest.mark.parametrize("version", range(1, 14))
def test_every_metadata_version_describes_kafka_4_and_the_rest_goes_with_it(
    kafka: EmbeddedKafka, written: Written, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    # Below 10 there are no topic ids, though Fetch and Produce are offered in versions that want them.
    sent = cut_down(monkeypatch, {MetadataRequest: version})
    with connect(kafka) as client:
        check_metadata(client, written)
        check_reads(client, written)
    assert versions_of(sent, MetadataRequest) == {version}
    assert max(versions_of(sent, FetchRequest)) <= (12 if version < 10 else 18)


@pytest.mark.parametrize("version", range(3, MAX_PRODUCE_VERSION + 1))
def test_every_produce_version_writes_to_kafka_4(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    sent = cut_down(monkeypatch, {ProduceRequest: version})
    with connect(kafka) as client:
        partition = TopicPartition(f"tour-{uuid.uuid4().hex[:8]}", 0)
        create_topic(client, partition.topic)
        # Before version 7 brokers do not take zstd (KIP-110).
        expected = produce_every_codec(client, partition, CODECS if version >= 7 else CODECS[:-1])
        if version < 7:
            with pytest.raises(DeliveryError, match=r"UNSUPPORTED_COMPRESSION_TYPE.* not delivered 3, unknown 0"):
                produce_every_codec(client, partition, CODECS[-1:])
        assert read(client, partition, 0, len(expected), IsolationLevel.READ_UNCOMMITTED) == expected
    assert versions_of(sent, ProduceRequest) == {version}


@pytest.mark.parametrize("version", range(5))
def test_every_init_version_returns_a_producer_id(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    sent = cut_down(monkeypatch, {InitProducerIdRequest: version})
    with connect(kafka) as client:
        partition = TopicPartition(f"tour-{uuid.uuid4().hex[:8]}", 0)
        create_topic(client, partition.topic)
        expected = produce_every_codec(client, partition, CODECS[:1])
        assert read(client, partition, 0, 3, IsolationLevel.READ_UNCOMMITTED) == expected
    assert versions_of(sent, InitProducerIdRequest) == {version}


@pytest.mark.parametrize("version", range(2, 8))
def test_every_create_version_creates_a_topic(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    sent = cut_down(monkeypatch, {CreateTopicsRequest: version})
    name = f"tour-{uuid.uuid4().hex[:8]}"
    with connect(kafka) as client:
        create_topic(client, name, partitions=3)
        assert len(client.fetch_metadata([name]).topics[name].partitions) == 3
    assert versions_of(sent, CreateTopicsRequest) == {version}
